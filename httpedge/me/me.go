// Package me has the pages of a person's own account: profile, ways to sign in, connected apps, sessions, deletion.
package me

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// service is what the handlers share.
type service struct {
	*visit.Site
	people *people.Service
}

// Endpoints returns the rows of the table of routes.
func Endpoints(site *visit.Site, people *people.Service) []endpoint.Endpoint {
	s := &service{site, people}
	toEmail, toPhone := s.emailChange(), s.phoneChange()
	email := func(handle func(*person)) fasthttp.RequestHandler {
		return s.Offered(account.Email, s.personal(handle))
	}
	sms := func(handle func(*person)) fasthttp.RequestHandler { return s.Offered(account.SMS, s.personal(handle)) }
	show := []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost}
	all := []endpoint.Endpoint{
		{Pattern: pages.PathMe, Handle: s.personal(s.me)},
		{Pattern: pages.PathMeApps, Handle: s.Once(s.personal(s.apps))},
		{Pattern: pages.PathMeSessions, Handle: s.Once(s.personal(s.endSessions))},
		{Pattern: pages.PathMePassword, Handle: s.Once(s.personal(s.changePassword))},
		{Pattern: pages.PathMeEmail, Handle: s.Once(email(s.changeAddress(toEmail)))},
		{Pattern: pages.PathMeEmailVerify, Handle: s.Once(email(s.verifyAddress(toEmail)))},
		{Pattern: pages.PathMeEmailResend, Handle: email(s.resendAddress(toEmail))},
		{Pattern: pages.PathMePhone, Handle: s.Once(sms(s.changeAddress(toPhone)))},
		{Pattern: pages.PathMePhoneVerify, Handle: s.Once(sms(s.verifyAddress(toPhone)))},
		{Pattern: pages.PathMePhoneResend, Handle: sms(s.resendAddress(toPhone))},
		{Pattern: pages.PathMeDelete, Handle: s.Once(s.personal(s.deleteAccount))},
	}
	for i := range all {
		all[i].Methods, all[i].Format = show, endpoint.Page
	}
	return append(all, endpoint.Endpoint{
		Pattern: pages.PathMeDeleted, Methods: show[:2], Handle: s.Handle(s.showDeleted), Format: endpoint.Page,
	})
}

// person is one request of somebody to their own account: the one of the browser that was chosen last.
type person struct {
	*visit.Visit
	visit.Visitor
	others []visit.Visitor // accounts of the browser
}

// bound binds a form to the session, so that it ends with it and cannot be sent for another account of the browser.
func (p *person) bound(purpose string) visit.Binding {
	return p.Bind(purpose + " " + p.Token)
}

// all returns all accounts of the browser, this one first.
func (p *person) all() []visit.Visitor { return append([]visit.Visitor{p.Visitor}, p.others...) }

// personal makes a handler of one that needs somebody who is signed in; others are sent to sign in. It lets no form pass
// that comes from another site.
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
		handle(&person{v, visitors[0], visitors[1:]})
	})
}

// me shows the account, or takes its profile.
func (s *service) me(p *person) {
	switch {
	case !p.HTTP.IsPost():
		s.KeepSessions(p.Visit, p.all())
		s.showMe(p, fasthttp.StatusOK, profileOf(p.User))
	case !p.sentMe():
		s.showMe(p, fasthttp.StatusForbidden, profileOf(p.User), pages.Problem{Text: visit.TextStaleForm})
	default:
		s.saveProfile(p)
	}
}

// sentMe reports whether the form is one of the account's page.
func (p *person) sentMe() bool {
	return p.CheckForm(p.bound("me"))
}

// showMe shows the account with a profile as it is or as it was entered.
func (s *service) showMe(p *person, status int, fields pages.Profile, problems ...pages.Problem) {
	connections, err := s.people.Connections(p.Ctx, p.User.ID)
	if err != nil {
		s.WriteFailure(p.HTTP, "read connections", err)
		return
	}
	sessions, err := s.people.Sessions(p.Ctx, p.User.ID, p.Now)
	if err != nil {
		s.WriteFailure(p.HTTP, "read sessions", err)
		return
	}
	channels := s.people.Channels()
	s.WritePage(p.HTTP, status, pages.Me{
		Account: p.Account(), FormToken: p.bound("me").NewFormToken(p.Now), Fields: fields, Email: p.User.Email, Phone: p.User.Phone,
		EmailOffered: channels.Has(account.Email), PhoneOffered: channels.Has(account.SMS), HasPassword: p.User.PasswordHash != "",
		Connections: shownConnections(lastUsed(connections)[:min(len(connections), maxShown)], p.Now), MoreConnections: max(0, len(connections)-maxShown),
		Sessions: p.shownSessions(sessions), MoreSessions: max(0, len(sessions)-maxShown),
		Accounts: pages.PathAccounts, Logout: pages.PathLogout, Notice: p.notice(), Problems: problems,
	})
}
