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
	}{
		{pages.PathMePasskeys, s.passkeys},
		{pages.PathMePasskeyAdd, s.addPasskey},
	} {
		all = append(all, endpoint.Endpoint{Pattern: row.path, Methods: methods,
			Format: endpoint.Page, Handle: s.Passkeys(s.Replay(s.personal(row.handle)))})
	}
	return append(all, endpoint.Endpoint{Pattern: pages.PathMeKey, Methods: methods,
		Format: endpoint.Page, Handle: s.Passkeys(s.Coalesce(s.personal(s.addKey)))})
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

// addPasskey shows and handles the form that makes a passkey.
func (s *service) addPasskey(p *person) {
	if s.needs(p) != people.NeedsNothing {
		s.askProof(p)
		return
	}
	s.takePasskey(p, newPasskey{path: pages.PathMePasskeyAdd, button: "passkey.add",
		page: pages.MePasskeyAdd{Back: pages.PathMePasskeys},
		add: func(n people.NewPasskey) error {
			_, err := s.people.AddPasskey(p.Ctx, p.User, s.proof(p), n, p.Now)
			return err
		},
		done: func() { visit.Redirect(p.HTTP, p.WithNotice(pages.PathMePasskeys, noticePasskeyAdded)) },
	})
}

// addKey shows and handles the form that makes a security key, which only is a second factor.
func (s *service) addKey(p *person) {
	if !s.fresh(p) {
		return
	}
	page := pages.MePasskeyAdd{Factor: true, Required: p.then() != "", Back: pages.PathMeFactors}
	if p.User.Credentials.Authenticator == nil {
		page.App = p.withThen(pages.PathMeApp)
	}
	var codes []string
	s.takePasskey(p, newPasskey{path: p.withThen(pages.PathMeKey), button: "passkey.add_key",
		page: page,
		add: func(n people.NewPasskey) (err error) {
			codes, err = s.people.AddSecurityKey(p.Ctx, p.User, s.proof(p), n, p.Now)
			return err
		},
		done: func() { s.factorAdded(p, codes, noticeKeyAdded) },
	})
}

// newPasskey is a form that makes a passkey.
type newPasskey struct {
	path   string // and query
	button string // key of its text
	page   pages.MePasskeyAdd
	add    func(people.NewPasskey) error
	done   func() // responds
}

// takePasskey shows and handles a form that makes a passkey.
func (s *service) takePasskey(p *person, n newPasskey) {
	form := p.bound(n.path)
	made := func() pages.Passkey {
		return s.NewPasskey(p.Visit, p.User, form, pages.Passkey{Action: n.path, Names: true,
			Name: p.Shown("name"), Key: n.page.Factor, Button: texts.Of(n.button),
			NeedsPassword: s.needs(p) == people.NeedsPassword})
	}
	show := func(status int, problems ...pages.Problem) {
		n.page.Account, n.page.Passkey, n.page.Problems = p.Account(), made(), problems
		n.page.Passkey.Problems = problems
		s.WritePage(p.HTTP, status, n.page)
	}
	switch {
	case p.WantsChallenge():
		s.SendChallenge(p.Visit, made())
		return
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
		return
	}
	answer, handle, err := s.PasskeyAnswer(p.Visit, form, people.HandleLength)
	if err == nil {
		err = n.add(people.NewPasskey{PasskeyAnswer: answer, Handle: handle,
			Name: visit.PasskeyName(p.Visit)})
	}
	status, problems := visit.Again(p.Visit, err, "", "proof.too_many")
	switch {
	case err == nil:
		n.done()
	case s.refuseProof(p, err, show):
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
		Challenge: sealed, Options: string(s.people.PasskeyOptions(p.User, challenge))}
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
