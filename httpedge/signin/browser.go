package signin

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// browserFlow makes a browser known to an account, whose owner then signs in with the password. It
// is for the time when too many attempts of others have failed. Its responses do not reveal whether
// an address has an account.
func (s *service) browserFlow() *visit.CodeFlow {
	return &visit.CodeFlow{
		Kind: pages.VerifyBrowser, Purpose: account.ForBrowser, Channel: account.Email,
		Start: pages.PathLogin, Path: pages.PathLoginVerify, Resend: pages.PathLoginResend,
		Restart: s.showLogin,
	}
}

// needsCode reports whether the owner of an account can sign in only after browserFlow.
func needsCode(err error) bool {
	var throttled *people.ThrottledError
	return errors.As(err, &throttled) && throttled.ByCode
}

var textManyAttempts = texts.Of("login.many_attempts")

// offerCode shows the form that requests a code, in place of the one for the password.
func (s *service) offerCode(v *visit.Visit, status int) {
	p := s.loginPage(v)
	p.CodePath = v.Path(pages.PathLoginCode)
	p.CodeToken = v.Bind("login code").NewFormToken(v.Now)
	p.Problems = pages.Problems{{Text: textManyAttempts}}
	s.Show(v, status, p)
}

// loginCode handles the form that requests a code.
func (s *service) loginCode(v *visit.Visit) {
	switch {
	case !v.HTTP.IsPost():
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case !v.CheckForm(v.Bind("login code")):
		s.showLogin(v, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		token, err := s.people.BeginBrowser(v.Ctx, v.Field("email"),
			s.Browser(v, v.Field("email")), v.Now)
		s.GoToCode(v, s.browserFlow(), token, err)
	}
}

// verifyBrowser shows and handles the page that asks for the code.
func (s *service) verifyBrowser(f *visit.CodeFlow) func(*visit.Visit) {
	return func(v *visit.Visit) {
		token, c, ok := s.Challenge(v, f)
		if !ok {
			return
		}
		code, ok := s.EnteredCode(v, f, token, c)
		if !ok {
			return
		}
		known, err := s.people.ConfirmBrowser(v.Ctx, token, code, s.Browser(v, c.Address),
			v.Now)
		if err != nil {
			s.RefuseCode(v, f, token, c, err)
			return
		}
		s.DropCode(v.HTTP)
		s.KeepKnown(v.HTTP, known, c.Address)
		visit.Redirect(v.HTTP, pathConfirmed(v))
	}
}

// paramConfirmed marks a visit to the sign-in page right after browserFlow.
const paramConfirmed = "confirmed"

// pathConfirmed returns the path of the sign-in page with paramConfirmed.
func pathConfirmed(v *visit.Visit) string {
	return v.PathWith(pages.PathLogin, paramConfirmed, "1")
}

// confirmed returns the notice for a visit with paramConfirmed.
func confirmed(v *visit.Visit) texts.Text {
	if v.HTTP.IsPost() || !v.HTTP.QueryArgs().Has(paramConfirmed) {
		return nil
	}
	return texts.Of("login.code_right")
}
