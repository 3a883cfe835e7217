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
	return s.needsAt(p, string(p.HTTP.Path()))
}

// needsAt is needs for the page at path.
func (s *service) needsAt(p *person, path string) people.Need {
	if path != pages.PathMeDelete {
		return s.needsBefore(p, path)
	}
	return s.people.Needs(p.User, p.Session, true, p.Now)
}

// fresh reports whether the form of a change of credentials can be shown. If not, it asks for the
// proof that is missing. Who has signed in by a passkey is asked for that before the password.
func (s *service) fresh(p *person) bool {
	needs := s.needs(p)
	switch {
	case needs == people.NeedsCode,
		needs == people.NeedsPassword && !p.HTTP.IsPost() && p.Session.Way.IsPasskey() &&
			(!asksItself(string(p.HTTP.Path())) || len(s.people.ProvingPasskeys(p.User, p.Now)) > 0):
		s.askProof(p)
		return false
	case needs == people.NeedsFactor:
		s.askFactor(p)
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
	"passkeys": pages.PathMePasskeys, "passkeys-add": pages.PathMePasskeyAdd,
	"app": pages.PathMeApp, "key": pages.PathMeKey, "codes": pages.PathMeRecovery, "remove-app": pages.PathMeRemove,
	"connections": pages.PathMeConnections,
}

// proofName returns the name of the page of this request among proofPages; "" = it has none.
func proofName(p *person) string {
	at := string(p.HTTP.Path())
	for name, path := range proofPages {
		if at == path || at == path+"/verify" {
			return name
		}
	}
	return ""
}

// askProof sends the browser to the page that sends a code, and from there back to the page of this
// request.
func (s *service) askProof(p *person) {
	if s.needs(p) == people.NeedsFactor {
		s.askFactor(p)
		return
	}
	if name := proofName(p); name != "" {
		visit.Redirect(p.HTTP, p.withThen(pages.PathMeConfirm+"?"+paramFor+"="+name))
		return
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
		{pages.PathMeConfirmResend, s.resendProof}, {pages.PathMeConfirmPasskey, s.confirmPasskey},
		{pages.PathMeConfirmFactor, s.confirmFactor(s.UseFactor)},
		{pages.PathMeConfirmKey, s.confirmFactor(s.UseKeyFactor)},
	} {
		all = append(all, endpoint.Endpoint{Pattern: row.path, Methods: methods,
			Format: endpoint.Page, Handle: s.Replay(s.personal(func(p *person) {
				name := string(p.HTTP.QueryArgs().Peek(paramFor))
				next := proofPages[name]
				if next == "" {
					visit.Redirect(p.HTTP, pages.PathMe)
					return
				}
				row.handle(p, p.withThen(next), s.proofFlow(p, name))
			}))})
	}
	return all
}

// proofFlow asks for the code that the page of that name needs.
func (s *service) proofFlow(p *person, name string) *visit.CodeFlow {
	query := p.withThen("?" + paramFor + "=" + name)
	return &visit.CodeFlow{
		Kind: pages.VerifyEmailProof, Purpose: account.ForProof,
		Start: pages.PathMeConfirm + query, Path: pages.PathMeConfirmVerify + query,
		Resend: pages.PathMeConfirmResend + query,
		Restart: func(v *visit.Visit, _ int, _ ...pages.Problem) {
			visit.Redirect(v.HTTP, pages.PathMeConfirm+query)
		},
	}
}

// showConfirm shows the ways to prove who the person is: a passkey, the password, or else the channels
// that a code can be sent to.
func (s *service) showConfirm(
	p *person, f *visit.CodeFlow, status int, problems ...pages.Problem,
) {
	next := proofPages[string(p.HTTP.QueryArgs().Peek(paramFor))]
	page := pages.MeConfirm{Account: p.Account(), Action: f.Start,
		Password:  s.needsBefore(p, next) == people.NeedsPassword,
		Passkey:   s.proofPasskey(p, string(p.HTTP.QueryArgs().Peek(paramFor))),
		Providers: s.proofButtons(p, strings.TrimPrefix(f.Start, pages.PathMeConfirm)),
		FormToken: p.bound(f.Start).NewFormToken(p.Now), Problems: problems}
	if !page.Password {
		for _, c := range s.people.ProofChannels(p.User, p.Now) {
			address := p.User.Email
			if c == account.SMS {
				address = p.User.Phone
			}
			page.Choices = append(page.Choices, pages.Choice{Channel: string(c), Address: address})
		}
	}
	s.WritePage(p.HTTP, status, page)
}

// needsBefore returns what the person has to prove before the page next, besides what it was asked for.
func (s *service) needsBefore(p *person, next string) people.Need {
	if path, _, _ := strings.Cut(next, "?"); path == pages.PathMeApp || path == pages.PathMeKey {
		return s.people.NeedsToEnrol(p.User, p.Session, p.Now)
	}
	return s.people.Needs(p.User, p.Session, false, p.Now)
}

// confirm shows the ways to prove who the person is, and checks the password or sends a code.
func (s *service) confirm(p *person, next string, f *visit.CodeFlow) {
	show := func(status int, problems ...pages.Problem) { s.showConfirm(p, f, status, problems...) }
	needs := s.needsBefore(p, next)
	hasForm := needs == people.NeedsPassword && !asksItself(next)
	hasPasskey := s.proofPasskey(p, "").Action != ""
	switch {
	case needs == people.NeedsCode && len(s.people.ProofChannels(p.User, p.Now)) == 0 && !hasPasskey &&
		len(s.proofButtons(p, strings.TrimPrefix(f.Start, pages.PathMeConfirm))) == 0:
		visit.Redirect(p.HTTP, pages.PathMe)
	case !p.HTTP.IsPost() && needs != people.NeedsCode && !hasForm &&
		(needs == people.NeedsNothing || !hasPasskey):
		visit.Redirect(p.HTTP, next)
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK, resultProblems(p.Visit)...)
	case !p.CheckForm(p.bound(f.Start)):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case needs == people.NeedsPassword && p.Field("channel") == "":
		err := s.people.ProveByPassword(p.Ctx, p.User, s.proof(p), p.Now)
		switch {
		case s.refuseProof(p, err, show):
		case err != nil:
			s.WriteFailure(p.HTTP, "check a password", err)
		default:
			visit.Redirect(p.HTTP, next)
		}
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

// refuseProof responds when err says that the proof is not sufficient, or that the session has ended,
// and returns true. show shows the form again.
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
	case errors.Is(err, people.ErrFactorNeeded):
		s.askFactor(p)
	case errors.Is(err, account.ErrNotFound): // the session or the account has ended meanwhile
		visit.Redirect(p.HTTP, pages.PathLogin)
	default:
		return false
	}
	return true
}

// asksItself reports whether the page at a path asks for the password itself.
func asksItself(path string) bool { return !strings.HasPrefix(path, pages.PathMePasskeys) }
