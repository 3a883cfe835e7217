package me

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// paramThen is the parameter with the path of ours that setting up a second factor goes on to.
const paramThen = "then"

// then returns the path and query that paramThen leads to; "" = none, or not one of ours.
func (p *person) then() string {
	then := string(p.HTTP.QueryArgs().Peek(paramThen))
	for _, page := range []string{pages.PathAuthorize + "?", pages.PathDevice, pages.PathMe} {
		if then == page || strings.HasPrefix(then, page) && !strings.ContainsAny(then, "\r\n\\") {
			return then
		}
	}
	return ""
}

// withThen returns path with the paramThen of this request.
func (p *person) withThen(path string) string {
	then := p.then()
	if then == "" {
		return path
	}
	return visit.AddParameter(path, paramThen, url.QueryEscape(then))
}

// factors shows the second factors of the account.
func (s *service) factors(p *person) {
	page := pages.MeFactors{Account: p.Account(), Notice: p.notice(),
		HasKeys: s.people.PasskeyDomain() != "", Keys: p.User.SecurityKeys(),
		Codes: len(p.User.Credentials.RecoveryCodes)}
	if a := p.User.Credentials.Authenticator; a != nil {
		page.App = texts.Day(a.Created)
	}
	s.WritePage(p.HTTP, fasthttp.StatusOK, page)
}

// setUpApp shows and handles the form that sets up an authenticator app. Its secret is made with the
// page, and is stored only when a code of the app has come.
func (s *service) setUpApp(p *person) {
	secret := p.Field("secret")
	if !p.HTTP.IsPost() || len(secret) > visit.MaxSecretText {
		secret = people.NewAuthenticatorSecret()
	}
	show := func(status int, problems ...pages.Problem) {
		var key string
		if s.people.PasskeyDomain() != "" && !p.User.HasSecondFactor() {
			key = p.withThen(pages.PathMeKey)
		}
		s.WritePage(p.HTTP, status, pages.MeApp{KeyPage: key,
			Account: p.Account(), Secret: secret, URL: s.people.AuthenticatorURL(p.User, secret),
			NeedsPassword: s.needs(p) == people.NeedsPassword, Required: p.then() != "",
			Action:    p.withThen(pages.PathMeApp),
			FormToken: p.bound("app " + secret).NewFormToken(p.Now), Problems: problems,
		})
	}
	code := p.Field("code")
	switch {
	case p.User.Credentials.Authenticator != nil && p.then() != "":
		visit.Redirect(p.HTTP, p.then())
	case p.User.Credentials.Authenticator != nil:
		visit.Redirect(p.HTTP, pages.PathMeFactors)
	case !s.fresh(p):
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
	case !p.CheckForm(p.bound("app " + secret)):
		secret = people.NewAuthenticatorSecret()
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case code == "" || len(code) > visit.MaxSecretText:
		show(fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: "code", Text: texts.Of("factor.app_missing")})
	default:
		s.takeApp(p, secret, code, show)
	}
}

func (s *service) takeApp(p *person, secret, code string, show func(int, ...pages.Problem)) {
	codes, err := s.people.AddAuthenticator(p.Ctx, p.User, s.proof(p), secret, code, p.Now)
	switch {
	case errors.Is(err, people.ErrWrongCode):
		show(fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: "code", Text: texts.Of("factor.app_wrong")})
	case s.refuseProof(p, err, show):
	case errors.Is(err, people.ErrHasApp):
		visit.Redirect(p.HTTP, pages.PathMeFactors)
	case err != nil:
		s.WriteFailure(p.HTTP, "set up an authenticator app", err)
	default:
		s.factorAdded(p, codes, noticeAppAdded)
	}
}

// factorAdded shows the recovery codes that a new second factor came with, or goes on with a notice.
func (s *service) factorAdded(p *person, codes []string, notice visit.Notice) {
	next := p.then()
	switch {
	case codes != nil:
		s.WritePage(p.HTTP, fasthttp.StatusOK, pages.MeRecovery{Account: p.Account(), Codes: codes,
			New: true, Then: cmp.Or(next, pages.PathMeFactors)})
	case next != "":
		visit.Redirect(p.HTTP, next)
	default:
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMeFactors, notice))
	}
}

// newCodes shows and handles the form that makes new recovery codes.
func (s *service) newCodes(p *person) {
	form := p.bound("recovery codes")
	show := func(status int, problems ...pages.Problem) {
		s.WritePage(p.HTTP, status, pages.MeRecovery{Account: p.Account(),
			NeedsPassword: s.needs(p) == people.NeedsPassword, Action: pages.PathMeRecovery,
			FormToken: form.NewFormToken(p.Now), Problems: problems})
	}
	switch {
	case !p.User.HasSecondFactor():
		visit.Redirect(p.HTTP, pages.PathMeFactors)
	case !s.fresh(p):
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
	case !p.CheckForm(form):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		codes, err := s.people.ReplaceRecoveryCodes(p.Ctx, p.User, s.proof(p), p.Now)
		switch {
		case s.refuseProof(p, err, show):
		case err != nil:
			s.WriteFailure(p.HTTP, "make recovery codes", err)
		default:
			s.WritePage(p.HTTP, fasthttp.StatusOK, pages.MeRecovery{Account: p.Account(),
				Codes: codes, Then: pages.PathMeFactors})
		}
	}
}

// removeAuthenticator shows and handles the form that removes the authenticator app.
func (s *service) removeAuthenticator(p *person) {
	form := p.bound("remove app")
	show := func(status int, problems ...pages.Problem) {
		s.WritePage(p.HTTP, status, pages.MeRemove{Account: p.Account(),
			Keys:          p.User.SecurityKeys() > 0,
			NeedsPassword: s.needs(p) == people.NeedsPassword, Action: pages.PathMeRemove,
			FormToken: form.NewFormToken(p.Now), Problems: problems})
	}
	switch {
	case p.User.Credentials.Authenticator == nil:
		visit.Redirect(p.HTTP, pages.PathMeFactors)
	case !s.fresh(p):
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
	case !p.CheckForm(form):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		err := s.people.RemoveAuthenticator(p.Ctx, p.User, s.proof(p), p.Now)
		switch {
		case s.refuseProof(p, err, show):
		case err != nil:
			s.WriteFailure(p.HTTP, "remove an authenticator app", err)
		default:
			visit.Redirect(p.HTTP, p.WithNotice(pages.PathMeFactors, noticeAppGone))
		}
	}
}

// askFactor sends the browser to the page that asks for the second factor, and from there back to the
// page of this request.
func (s *service) askFactor(p *person) {
	if name := proofName(p); name != "" {
		visit.Redirect(p.HTTP, p.withThen(pages.PathMeConfirmFactor+"?"+paramFor+"="+name))
		return
	}
	visit.Redirect(p.HTTP, pages.PathMe)
}

// confirmFactor asks for the second factor before a change of credentials, as use does. Without one, or
// if it was used just now, it goes on to next.
func (s *service) confirmFactor(
	use func(*visit.Visit, *visit.SessionFactor),
) func(*person, string, *visit.CodeFlow) {
	return func(p *person, next string, _ *visit.CodeFlow) {
		if !p.User.HasSecondFactor() ||
			!p.HTTP.IsPost() && p.Session.UsedFactor(account.ProofLifetime, p.Now) {
			visit.Redirect(p.HTTP, next)
			return
		}
		query := "?" + paramFor + "=" + string(p.HTTP.QueryArgs().Peek(paramFor))
		use(p.Visit, &visit.SessionFactor{Visitor: p.Visitor, Back: pages.PathMe,
			Path:    p.withThen(pages.PathMeConfirmFactor + query),
			KeyPath: p.withThen(pages.PathMeConfirmKey + query),
			Form:    p.bound("confirm factor"), KeyForm: p.bound("confirm key"),
			TooMany: "proof.too_many", Next: next})
	}
}
