package visit

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// What people are told about codes.
var (
	textCodeGone = texts.Of("verify.gone")
	textCodeSent = texts.Of("verify.sent")
)

const keyTooManyCodes = "verify.too_many_sent"

// paramSent marks a visit to the code page right after another code was sent.
const paramSent = "sent"

// paramSoon marks a visit to the code page after another code was requested too soon.
const paramSoon = "soon"

// CodeFlow is a flow that ends with a code, such as registration.
type CodeFlow struct {
	Kind    pages.VerifyKind
	Purpose account.Purpose
	Channel account.Channel
	Start   string // path of the first page
	Path    string // path of the code page
	Resend  string // path of the form that requests another code
	// Restart shows the first page of the flow.
	Restart func(v *Visit, status int, problems ...pages.Problem)
	// Resume is optional. It continues for a browser that completed the flow a moment ago, and
	// returns false for any other.
	Resume func(v *Visit) bool
}

// codeToken returns the token of the challenge that this browser has to pass; "" = none.
func (s *Site) codeToken(ctx *fasthttp.RequestCtx) string {
	if token := string(ctx.Request.Header.Cookie(s.cookies.code)); account.LooksLikeSecret(token) {
		return token
	}
	return ""
}

// keepCode stores the token of a challenge in the browser's cookie, in place of an earlier one.
func (s *Site) keepCode(ctx *fasthttp.RequestCtx, token string) {
	s.cookies.write(ctx, s.cookies.code, []string{token}, account.ChallengeLifetime)
}

// DropCode removes the challenge from the browser's cookie.
func (s *Site) DropCode(ctx *fasthttp.RequestCtx) { s.cookies.write(ctx, s.cookies.code, nil, 0) }

// GoOnToCode redirects to the code page of f, after a code was sent in place of another.
func (s *Site) GoOnToCode(v *Visit, f *CodeFlow, token string) {
	s.keepCode(v.HTTP, token)
	Redirect(v.HTTP, v.Path(f.Path))
}

// GoToCode redirects to the code page after a code was sent. If err is not nil, it shows the first
// page again.
func (s *Site) GoToCode(v *Visit, f *CodeFlow, token string, err error) {
	status, problems := Again(v, err, "", keyTooManyCodes)
	switch {
	case err == nil:
		s.GoOnToCode(v, f, token)
	case status != 0:
		f.Restart(v, status, problems...)
	default:
		s.WriteFailure(v.HTTP, "send a code", err)
	}
}

// Challenge returns the browser's challenge and its token. When it is not one of f's, it sends the
// browser to the start of f and returns false.
func (s *Site) Challenge(v *Visit, f *CodeFlow) (string, *account.Challenge, bool) {
	token := s.codeToken(v.HTTP)
	c, err := s.people.Challenge(v.Ctx, token, v.Now)
	switch {
	case err == nil && c.Purpose == f.Purpose:
		return token, c, true
	case err != nil && !errors.Is(err, people.ErrCodeExpired):
		s.WriteFailure(v.HTTP, "read a challenge", err)
	case v.HTTP.IsPost() && f.Resume != nil && f.Resume(v):
	case v.HTTP.IsPost():
		f.Restart(v, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: textCodeGone})
	default:
		Redirect(v.HTTP, v.Path(f.Start))
	}
	return "", nil, false
}

// EnteredCode returns the code that was entered on f's page, and true. Otherwise it shows the page
// and returns false.
func (s *Site) EnteredCode(v *Visit, f *CodeFlow, token string,
	c *account.Challenge) (string, bool) {
	code := v.Field("code")
	switch {
	case !v.HTTP.IsPost():
		var notice texts.Text
		args, wait := v.HTTP.QueryArgs(), c.Again.Sub(v.Now)
		switch {
		case args.Has(paramSent) && v.Now.Sub(c.Sent) < account.SendInterval:
			notice = textCodeSent
		case args.Has(paramSoon) && isSoon(c, v.Now):
			notice = texts.Of("verify.wait", "wait", texts.Wait(int(endpoint.WholeSeconds(wait))))
		}
		s.showVerify(v, f, token, c, fasthttp.StatusOK, notice)
	case !v.CheckForm(v.verifyForm(f.Path, token)):
		s.showVerify(v, f, token, c, fasthttp.StatusForbidden, nil,
			pages.Problem{Text: TextStaleForm})
	case code == "" || len(code) > MaxSecretText:
		s.showVerify(v, f, token, c, fasthttp.StatusUnprocessableEntity, nil,
			pages.Problem{Field: "code", Text: texts.Of("verify.missing")})
	default:
		return code, true
	}
	return "", false
}

// RefuseCode shows the code page again after err.
func (s *Site) RefuseCode(v *Visit, f *CodeFlow, token string, c *account.Challenge, err error) {
	status, problems := Again(v, err, "code", "verify.too_many_wrong")
	if status == 0 {
		s.WriteFailure(v.HTTP, "check a code", err)
		return
	}
	if errors.Is(err, people.ErrCodeExpired) {
		var ok bool
		if token, c, ok = s.Challenge(v, f); !ok {
			return
		}
	}
	s.showVerify(v, f, token, c, status, nil, problems...)
}

// ResendCode handles the form that requests another code.
func (s *Site) ResendCode(f *CodeFlow) func(*Visit) {
	return func(v *Visit) {
		if !v.HTTP.IsPost() {
			Redirect(v.HTTP, v.Path(f.Path)) // a reload after the form was sent
			return
		}
		token, c, ok := s.Challenge(v, f)
		if !ok {
			return
		}
		if !v.CheckForm(v.verifyForm(f.Resend, token)) {
			s.showVerify(v, f, token, c, fasthttp.StatusForbidden, nil,
				pages.Problem{Text: TextStaleForm})
			return
		}
		err := s.people.Resend(v.Ctx, token, s.Browser(v, c.Address), v.Now)
		status, problems := Again(v, err, "", keyTooManyCodes)
		switch {
		case err == nil:
			Redirect(v.HTTP, v.pathSent(f.Path))
		case errors.Is(err, people.ErrCodeExpired):
			f.Restart(v, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: textCodeGone})
		case status == fasthttp.StatusTooManyRequests && isSoon(c, v.Now):
			v.HTTP.Response.Header.Del(fasthttp.HeaderRetryAfter)
			Redirect(v.HTTP, v.PathWith(f.Path, paramSoon, "1"))
		case status != 0:
			s.showVerify(v, f, token, c, status, nil, problems...)
		default:
			s.WriteFailure(v.HTTP, "send a code", err)
		}
	}
}

// isSoon reports whether another code can be requested in a moment, and not only for another reason.
func isSoon(c *account.Challenge, now time.Time) bool {
	wait := c.Again.Sub(now)
	return wait > 0 && wait <= account.SendInterval
}

// pathSent is Path with paramSent.
func (v *Visit) pathSent(page string) string { return v.PathWith(page, paramSent, "1") }

// verifyForm binds a form to the challenge as well, so that the form expires with it.
func (v *Visit) verifyForm(path, token string) Binding { return v.Bind(path + " " + token) }

// shownAddress returns the address or number of a challenge for a page. Who recovers an account by one
// channel need not know the others: of those it has the end only.
func shownAddress(c *account.Challenge) string {
	if c.Purpose != account.ForResetProof {
		return c.Address
	}
	if name, host, ok := strings.Cut(c.Address, "@"); ok {
		_, n := utf8.DecodeRuneInString(name)
		return name[:n] + "…@" + host
	}
	return "…" + c.Address[max(0, len(c.Address)-2):]
}

// asksName reports whether the code was right, and belongs to a new phone number whose owner has to say
// a name.
func (v *Visit) asksName(f *CodeFlow, problems pages.Problems) bool {
	if f.Kind != pages.VerifyPhone {
		return false
	}
	if !v.HTTP.IsPost() { // after a redirect with the code
		return v.Field("code") != ""
	}
	return len(problems) > 0 && problems.At("name") != nil
}

func (s *Site) showVerify(v *Visit, f *CodeFlow, token string, c *account.Challenge, status int,
	notice texts.Text, problems ...pages.Problem) {
	kind := f.Kind
	if kind == pages.VerifyEmailProof && c.Channel == account.SMS {
		kind = pages.VerifyPhoneProof
	}
	p := pages.Verify{
		Kind: kind, Client: v.ClientName(), Action: v.Path(f.Path),
		FormToken: v.verifyForm(f.Path, token).NewFormToken(v.Now),
		Resend:    v.Path(f.Resend), ResendToken: v.verifyForm(f.Resend, token).NewFormToken(v.Now),
		Address: shownAddress(c), Name: v.Shown("name"), Back: v.Path(f.Start), Notice: notice,
		Long: c.Long, Problems: problems,
	}
	if v.asksName(f, problems) {
		p.Entered = v.Shown("code")
		if !endpoint.Has(v.Form, "name") { // it was not asked yet
			p.Problems = nil
		}
	}
	if wait := c.Again.Sub(v.Now); wait > 0 {
		p.Wait = int(endpoint.WholeSeconds(wait))
	}
	s.Show(v, status, p)
}
