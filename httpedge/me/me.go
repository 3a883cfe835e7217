// Package me serves the pages of a person's own account: profile, ways to sign in, connected apps,
// sessions, security history and deletion.
package me

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// service holds what the handlers share.
type service struct {
	*visit.Site
	people *people.Service
	tokens *token.Service
	audit  audit.Reader
}

// Endpoints returns the endpoints.
func Endpoints(
	site *visit.Site, people *people.Service, tokens *token.Service, trail audit.Reader,
) []endpoint.Endpoint {
	s := &service{site, people, tokens, trail}
	toEmail, toPhone := s.emailChange(), s.phoneChange()
	email := func(handle func(*person)) fasthttp.RequestHandler {
		return s.Offered(account.Email, s.personal(handle))
	}
	sms := func(handle func(*person)) fasthttp.RequestHandler {
		return s.Offered(account.SMS, s.personal(handle))
	}
	show := []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost}
	all := []endpoint.Endpoint{
		{Pattern: pages.PathMe, Handle: s.personal(s.me)},
		{Pattern: pages.PathMeApps, Handle: s.Replay(s.personal(s.apps))},
		{Pattern: pages.PathMeSessions, Handle: s.Replay(s.personal(s.sessions))},
		{Pattern: pages.PathMePassword, Handle: s.Replay(s.personal(s.changePassword))},
		{Pattern: pages.PathMeEmail, Handle: s.Replay(email(s.changeAddress(toEmail)))},
		{Pattern: pages.PathMeEmailVerify, Handle: s.Replay(email(s.verifyAddress(toEmail)))},
		{Pattern: pages.PathMeEmailResend, Handle: email(s.resendAddress(toEmail))},
		{Pattern: pages.PathMePhoneSignIn, Handle: s.Replay(sms(s.changePhoneSignIn))},
		{Pattern: pages.PathMePhone, Handle: s.Replay(sms(s.changeAddress(toPhone)))},
		{Pattern: pages.PathMePhoneVerify, Handle: s.Replay(sms(s.verifyAddress(toPhone)))},
		{Pattern: pages.PathMePhoneResend, Handle: sms(s.resendAddress(toPhone))},
		{Pattern: pages.PathMeDelete, Handle: s.Replay(s.personal(s.deleteAccount))},
	}
	for i := range all {
		all[i].Methods, all[i].Format = show, endpoint.Page
	}
	all = append(all, s.proofEndpoints(show)...)
	return append(all, endpoint.Endpoint{
		Pattern: pages.PathMeHistory, Methods: show, Handle: s.personal(s.history),
		Format: endpoint.Page,
	}, endpoint.Endpoint{
		Pattern: pages.PathMeData, Methods: show[:2], Handle: s.personal(s.data), Format: endpoint.Page,
	}, endpoint.Endpoint{
		Pattern: pages.PathMeDeleted, Methods: show[:2], Handle: s.Handle(s.showDeleted),
		Format: endpoint.Page,
	})
}

// person is a request by somebody who is signed in: by the account of the browser that was chosen
// last.
type person struct {
	*visit.Visit
	visit.Visitor
	others []visit.Visitor // other accounts of the browser
}

// bound binds a form to the session as well, so that it expires with it and is not valid for
// another account of the browser.
func (p *person) bound(purpose string) visit.Binding {
	return p.Bind(purpose + " " + p.Token)
}

// all returns all accounts of the browser, the current one first.
func (p *person) all() []visit.Visitor { return append([]visit.Visitor{p.Visitor}, p.others...) }

// personal returns a handler that needs a signed-in account; others are redirected to sign in. It
// refuses forms that other sites send.
func (s *service) personal(handle func(*person)) fasthttp.RequestHandler {
	return s.Handle(func(v *visit.Visit) {
		v.Secret = s.BrowserSecret(v.HTTP)
		visitors, err := s.Visitors(v)
		if err != nil {
			s.WriteFailure(v.HTTP, "read sessions", err)
			return
		}
		if len(visitors) == 0 {
			visit.Redirect(v.HTTP, pages.PathLogin)
			return
		}
		v.By(visitors[0].User.ID)
		handle(&person{v, visitors[0], visitors[1:]})
	})
}

// me shows the account, or saves its profile.
func (s *service) me(p *person) {
	switch {
	case !p.HTTP.IsPost():
		s.KeepSessions(p.Visit, p.all())
		s.showMe(p, fasthttp.StatusOK, profileOf(p.User))
	case !p.sentMe():
		s.showMe(p, fasthttp.StatusForbidden, profileOf(p.User),
			pages.Problem{Text: visit.TextStaleForm})
	default:
		s.saveProfile(p)
	}
}

// sentMe reports whether the form token is valid for the page of the account.
func (p *person) sentMe() bool {
	return p.CheckForm(p.bound("me"))
}

// showMe shows the account, with the profile as stored or as entered.
func (s *service) showMe(p *person, status int, fields pages.Profile, problems ...pages.Problem) {
	connections, err := s.people.Connections(p.Ctx, p.User.ID)
	if err != nil {
		s.WriteFailure(p.HTTP, "read connections", err)
		return
	}
	sessions, err := s.sessionsOf(p)
	if err != nil {
		s.WriteFailure(p.HTTP, "read sessions", err)
		return
	}
	attributes, err := s.ownAttributes(p)
	if err != nil {
		s.WriteFailure(p.HTTP, "read attributes", err)
		return
	}
	channels := s.people.Channels()
	latest := lastUsed(connections)[:min(len(connections), maxShown)]
	shown, err := s.shownConnections(p, latest)
	if err != nil {
		s.WriteFailure(p.HTTP, "read resources", err)
		return
	}
	s.WritePage(p.HTTP, status, pages.Me{
		Account: p.Account(), FormToken: p.bound("me").NewFormToken(p.Now), Fields: fields,
		Attributes: attributes,
		Email:      p.User.Email, Phone: p.User.Phone,
		EmailOffered: channels.Has(account.Email), PhoneOffered: channels.Has(account.SMS),
		HasPassword: p.hasPassword(),
		PhoneSignIn: p.User.Phone != "" &&
			!p.User.MustUsePassword(s.people.PhoneReplacesPassword()),
		PhoneChoice:     s.choosesPhoneSignIn(p) && channels.Has(account.SMS),
		Connections:     shown,
		MoreConnections: len(connections) - len(latest),
		Sessions:        p.shownSessions(sessions[:min(len(sessions), maxShown)]),
		MoreSessions:    max(0, len(sessions)-maxShown),
		Accounts:        pages.PathAccounts, Logout: pages.PathLogout, Notice: p.notice(),
		Problems: problems,
	})
}
