package me

import (
	"encoding/base64"
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// paramRemoved is the parameter with the ID of the passkey that was removed.
const paramRemoved = "removed"

// passkeyEndpoints returns the endpoints of a person's passkeys.
func (s *service) passkeyEndpoints(methods []string) (all []endpoint.Endpoint) {
	for _, row := range []struct {
		path   string
		handle func(*person)
	}{{pages.PathMePasskeys, s.passkeys}, {pages.PathMePasskeyAdd, s.addPasskey}} {
		all = append(all, endpoint.Endpoint{Pattern: row.path, Methods: methods,
			Format: endpoint.Page, Handle: s.Passkeys(s.Replay(s.personal(row.handle)))})
	}
	return all
}

// passkeys shows the passkeys of the account, and renames or removes one.
func (s *service) passkeys(p *person) {
	switch {
	case !p.HTTP.IsPost():
		s.showPasskeys(p, fasthttp.StatusOK)
	case !p.CheckForm(p.bound("passkeys")):
		s.showPasskeys(p, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		s.changePasskey(p)
	}
}

func (s *service) showPasskeys(p *person, status int, problems ...pages.Problem) {
	page := pages.MePasskeys{
		Account: p.Account(), FormToken: p.bound("passkeys").NewFormToken(p.Now),
		Most:   len(p.User.Credentials.Passkeys) >= account.MaxPasskeys,
		Notice: p.notice(), Problems: problems,
	}
	var signals []pages.Signal
	if handle := p.User.Credentials.Handle; handle != nil {
		signals = append(signals, pages.CurrentUserDetails(s.people.PasskeyDomain(),
			base64.RawURLEncoding.EncodeToString(handle), people.PasskeyUserName(p.User), p.User.Name))
	}
	if id := s.removedPasskey(p); id != "" {
		signals = append(signals, pages.UnknownCredential(s.people.PasskeyDomain(), id))
	}
	page.Told.Signals = pages.SignalText(signals...)
	for _, key := range p.User.Credentials.Passkeys {
		shown := pages.MyPasskey{ID: base64.RawURLEncoding.EncodeToString(key.ID), Name: key.Name,
			SignsIn: key.SignsIn, Synced: key.BackedUp, Created: texts.Day(key.Created)}
		if !key.Used.IsZero() {
			shown.Used = texts.Ago(key.Used, p.Now)
		}
		page.Passkeys = append(page.Passkeys, shown)
	}
	s.WritePage(p.HTTP, status, page)
}

// removedPasskey returns the ID of the passkey that was removed just before; "" = none.
func (s *service) removedPasskey(p *person) string {
	text := string(p.HTTP.QueryArgs().Peek(paramRemoved))
	id, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || p.Noticed() != noticePasskeyRemoved ||
		p.User.Credentials.Passkey(id) >= 0 {
		return ""
	}
	return text
}

// changePasskey renames or removes a passkey.
func (s *service) changePasskey(p *person) {
	id, err := base64.RawURLEncoding.DecodeString(p.Field("id"))
	next, done := pages.PathMePasskeys, noticePasskeyRenamed
	switch {
	case err != nil:
		err = account.ErrNotFound
	case p.Field("do") != "remove":
		err = s.people.RenamePasskey(p.Ctx, p.User, id, p.Field("name"), p.Now)
	case s.needs(p) != people.NeedsNothing:
		err = people.ErrProofNeeded
	default:
		err = s.people.RemovePasskey(p.Ctx, p.User, s.proof(p), id, p.Now)
		next, done = next+"?"+paramRemoved+"="+p.Field("id"), noticePasskeyRemoved
	}
	status, problems := visit.Again(p.Visit, err, "", "proof.too_many")
	switch {
	case err == nil:
		visit.Redirect(p.HTTP, p.WithNotice(next, done))
	case errors.Is(err, people.ErrProofNeeded):
		s.askProof(p)
	case errors.Is(err, people.ErrLastWay):
		s.showPasskeys(p, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("passkey.last_way")})
	case errors.Is(err, account.ErrNotFound):
		s.showPasskeys(p, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("passkey.gone")})
	case status != 0:
		for i := range problems {
			problems[i].Field = "" // there is one form for each passkey
		}
		s.showPasskeys(p, status, problems...)
	default:
		s.WriteFailure(p.HTTP, "change a passkey", err)
	}
}

// addPasskey shows and handles the form that makes a passkey, or a security key that only is a second
// factor.
func (s *service) addPasskey(p *person) {
	factor := string(p.HTTP.QueryArgs().Peek("kind")) == "key"
	path, button := pages.PathMePasskeyAdd, texts.Of("passkey.add")
	if factor {
		path, button = path+"?kind=key", texts.Of("passkey.add_key")
	}
	form := p.bound(path)
	made := func() pages.Passkey {
		handle := people.NewHandle(p.User)
		challenge, sealed := p.NewChallenge(form, handle...)
		return pages.Passkey{Action: path, Challenge: sealed, Names: true, Name: p.Shown("name"),
			Button: button, Options: string(s.people.NewPasskeyOptions(p.User, s.ServiceName(),
				challenge, handle, factor))}
	}
	show := func(status int, problems ...pages.Problem) {
		s.WritePage(p.HTTP, status, pages.MePasskeyAdd{Account: p.Account(), Factor: factor,
			Passkey: made(), Problems: problems})
	}
	switch {
	case s.needs(p) != people.NeedsNothing:
		s.askProof(p)
	case p.WantsChallenge():
		s.SendChallenge(p.Visit, made())
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
	default:
		s.takePasskey(p, form, factor, show)
	}
}

func (s *service) takePasskey(
	p *person, form visit.Binding, factor bool, show func(int, ...pages.Problem),
) {
	answer, handle, err := s.PasskeyAnswer(p.Visit, form, people.HandleLength)
	if err == nil {
		_, err = s.people.AddPasskey(p.Ctx, p.User, s.proof(p), people.NewPasskey{
			PasskeyAnswer: answer, Handle: handle, Name: visit.PasskeyName(p.Visit), Factor: factor,
		}, p.Now)
	}
	status, problems := visit.Again(p.Visit, err, "", "proof.too_many")
	switch {
	case err == nil:
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMePasskeys, noticePasskeyAdded))
	case errors.Is(err, people.ErrProofNeeded), errors.Is(err, people.ErrWrongCredentials):
		s.askProof(p)
	case errors.Is(err, account.ErrNotFound):
		visit.Redirect(p.HTTP, pages.PathLogin)
	case status != 0:
		for i := range problems {
			if problems[i].Field == "name" {
				problems[i].Field = "passkey_name"
			}
		}
		show(status, problems...)
	default:
		s.WriteFailure(p.HTTP, "add a passkey", err)
	}
}

// proofPasskey returns the form that proves by a passkey, before the page of that name; zero = the
// account has no passkey that is old enough.
func (s *service) proofPasskey(p *person, name string) pages.Passkey {
	if len(s.people.ProvingPasskeys(p.User, p.Now)) == 0 {
		return pages.Passkey{}
	}
	challenge, sealed := p.NewChallenge(p.bound(pages.PathMeConfirmPasskey))
	return pages.Passkey{Action: pages.PathMeConfirmPasskey + "?" + paramFor + "=" + name,
		Challenge: sealed, Options: string(s.people.PasskeyOptions(p.User, challenge, true))}
}

// confirmPasskey proves by a passkey who the person is, and goes on to the page next.
func (s *service) confirmPasskey(p *person, next string, f *visit.CodeFlow) {
	switch {
	case p.WantsChallenge():
		s.SendChallenge(p.Visit, s.proofPasskey(p, string(p.HTTP.QueryArgs().Peek(paramFor))))
		return
	case !p.HTTP.IsPost():
		visit.Redirect(p.HTTP, f.Start)
		return
	}
	answer, _, err := s.PasskeyAnswer(p.Visit, p.bound(pages.PathMeConfirmPasskey), 0)
	if err == nil {
		err = s.people.ProveByPasskey(p.Ctx, p.User, p.Session, answer, p.Now)
	}
	status, problems := visit.Again(p.Visit, err, "", "proof.too_many")
	switch {
	case err == nil:
		visit.Redirect(p.HTTP, next)
	case errors.Is(err, account.ErrNotFound):
		visit.Redirect(p.HTTP, pages.PathLogin)
	case errors.Is(err, people.ErrProofNeeded):
		s.showConfirm(p, f, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("passkey.too_young")})
	case status != 0:
		s.showConfirm(p, f, status, problems...)
	default:
		s.WriteFailure(p.HTTP, "prove by a passkey", err)
	}
}
