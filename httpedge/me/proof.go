package me

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// proof returns the evidence that the owner of the account sent the form.
func (s *service) proof(p *person) people.Proof {
	return people.Proof{Session: p.Session, Password: p.Field("current_password"),
		Caller: s.Caller(p.Visit),
		Known:  s.KnownMark(p.HTTP, p.User.Email)}
}

// hasPassword reports whether the account has a password.
func (p *person) hasPassword() bool { return p.User.PasswordHash != "" }

// needs returns what the person has to enter before the change that the page is for.
func (s *service) needs(p *person) people.Need {
	deletes := string(p.HTTP.Path()) == pages.PathMeDelete
	return s.people.Needs(p.User, p.Session, deletes, p.Now)
}

// fresh reports whether the form of a change of credentials can be shown. If not, it asks for the
// proof that is missing.
func (s *service) fresh(p *person) bool {
	if s.needs(p) == people.NeedsCode {
		s.askProof(p)
		return false
	}
	return true
}

// paramFor is the parameter with the page that asked for a proof.
const paramFor = "for"

// proofPages are the pages that may ask for a proof, by the value of paramFor.
var proofPages = map[string]string{
	"email": pages.PathMeEmail, "phone": pages.PathMePhone, "password": pages.PathMePassword,
	"phone-sign-in": pages.PathMePhoneSignIn, "delete": pages.PathMeDelete,
	"connections": pages.PathMeConnections,
}

// askProof sends the browser to the page that sends a code, and from there back to the page of this
// request.
func (s *service) askProof(p *person) {
	for name, path := range proofPages {
		if at := string(p.HTTP.Path()); at == path || at == path+"/verify" {
			visit.Redirect(p.HTTP, pages.PathMeConfirm+"?"+paramFor+"="+name)
			return
		}
	}
	visit.Redirect(p.HTTP, pages.PathMe)
}

// proofEndpoints returns the endpoints that ask for a code to an older channel of the account.
func (s *service) proofEndpoints(methods []string) (all []endpoint.Endpoint) {
	for _, row := range []struct {
		path   string
		handle func(p *person, next string, f *visit.CodeFlow)
	}{
		{pages.PathMeConfirm, s.confirm}, {pages.PathMeConfirmVerify, s.verifyProof},
		{pages.PathMeConfirmResend, s.resendProof},
	} {
		all = append(all, endpoint.Endpoint{Pattern: row.path, Methods: methods,
			Format: endpoint.Page, Handle: s.Replay(s.personal(func(p *person) {
				name := string(p.HTTP.QueryArgs().Peek(paramFor))
				next := proofPages[name]
				if next == "" {
					visit.Redirect(p.HTTP, pages.PathMe)
					return
				}
				row.handle(p, next, s.proofFlow(name))
			}))})
	}
	return all
}

// proofFlow asks for the code that the page of that name needs.
func (s *service) proofFlow(name string) *visit.CodeFlow {
	query := "?" + paramFor + "=" + name
	return &visit.CodeFlow{
		Kind: pages.VerifyEmailProof, Purpose: account.ForProof,
		Start: pages.PathMeConfirm + query, Path: pages.PathMeConfirmVerify + query,
		Resend: pages.PathMeConfirmResend + query,
		Restart: func(v *visit.Visit, _ int, _ ...pages.Problem) {
			visit.Redirect(v.HTTP, pages.PathMeConfirm+query)
		},
	}
}

// confirm shows the channels that a code can be sent to, and sends one.
func (s *service) confirm(p *person, next string, f *visit.CodeFlow) {
	channels := s.people.ProofChannels(p.User, p.Now)
	providers := s.proofButtons(p, strings.TrimPrefix(f.Start, pages.PathMeConfirm))
	form := p.bound(f.Start)
	show := func(status int, problems ...pages.Problem) {
		page := pages.MeConfirm{Account: p.Account(), Action: f.Start,
			FormToken: form.NewFormToken(p.Now), Providers: providers, Problems: problems}
		for _, c := range channels {
			address := p.User.Email
			if c == account.SMS {
				address = p.User.Phone
			}
			page.Choices = append(page.Choices, pages.Choice{Channel: string(c), Address: address})
		}
		s.WritePage(p.HTTP, status, page)
	}
	switch {
	case len(channels) == 0 && len(providers) == 0:
		visit.Redirect(p.HTTP, pages.PathMe)
	case !p.HTTP.IsPost() && s.people.Needs(p.User, p.Session, false, p.Now) != people.NeedsCode:
		visit.Redirect(p.HTTP, next)
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK, resultProblems(p.Visit)...)
	case !p.CheckForm(form):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		channel := account.Channel(p.Field("channel"))
		address := p.User.Email
		if channel == account.SMS {
			address = p.User.Phone
		}
		token, err := s.people.BeginProof(p.Ctx, p.User, channel, s.Browser(p.Visit, address), p.Now)
		f.Restart = func(_ *visit.Visit, status int, problems ...pages.Problem) {
			show(status, problems...)
		}
		if errors.Is(err, people.ErrProofNeeded) {
			show(fasthttp.StatusUnprocessableEntity, pages.Problem{Text: texts.Of("proof.choose")})
			return
		}
		s.GoToCode(p.Visit, f, token, err)
	}
}

// verifyProof shows and handles the page that asks for the code.
func (s *service) verifyProof(p *person, next string, f *visit.CodeFlow) {
	token, c, ok := s.Challenge(p.Visit, f)
	if !ok {
		return
	}
	if c.UserID != p.User.ID {
		visit.Redirect(p.HTTP, f.Start)
		return
	}
	code, ok := s.EnteredCode(p.Visit, f, token, c)
	if !ok {
		return
	}
	err := s.people.ConfirmProof(p.Ctx, p.Session, token, code, s.Browser(p.Visit, c.Address), p.Now)
	switch {
	case err == nil:
		s.DropCode(p.HTTP)
		visit.Redirect(p.HTTP, next)
	case errors.Is(err, account.ErrNotFound):
		visit.Redirect(p.HTTP, pages.PathLogin)
	default:
		s.RefuseCode(p.Visit, f, token, c, err)
	}
}

// resendProof handles the form that requests another code.
func (s *service) resendProof(p *person, _ string, f *visit.CodeFlow) {
	if p.HTTP.IsPost() {
		if _, c, ok := s.Challenge(p.Visit, f); !ok {
			return
		} else if c.UserID != p.User.ID {
			visit.Redirect(p.HTTP, f.Start)
			return
		}
	}
	s.ResendCode(f)(p.Visit)
}

// refuseProof responds when err says that the proof is not sufficient, and returns true. show shows
// the form again.
func (s *service) refuseProof(p *person, err error,
	show func(status int, problems ...pages.Problem)) (responded bool) {
	status, problems := visit.Again(p.Visit, err, "current_password",
		"proof.too_many")
	switch {
	case errors.Is(err, people.ErrWrongCredentials):
		text := texts.Of("wrong.own_password")
		if p.Field("current_password") == "" {
			text = texts.Of("wrong.password_missing")
		}
		show(status, pages.Problem{Field: "current_password", Text: text})
	case status == fasthttp.StatusTooManyRequests:
		show(status, problems...)
	case errors.Is(err, people.ErrProofNeeded):
		s.askProof(p)
	default:
		return false
	}
	return true
}
