// Package me serves the pages of a person's own account: profile, ways to sign in, connected apps,
// sessions, security history and deletion.
package me

import (
	"slices"

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
		{Pattern: pages.PathMe, Handle: s.shown(s.me)},
		{Pattern: pages.PathMeProfile, Handle: s.personal(s.profile)},
		{Pattern: pages.PathMeHistory, Handle: s.shown(s.history)},
		{Pattern: pages.PathMeData, Handle: s.shown(s.showData)},
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
		{Pattern: pages.PathMeFactors, Handle: s.personal(s.factors)},
		{Pattern: pages.PathMeApp, Handle: s.Coalesce(s.personal(s.setUpApp))},
		{Pattern: pages.PathMeRecovery, Handle: s.Coalesce(s.personal(s.newCodes))},
		{Pattern: pages.PathMeRemove, Handle: s.Replay(s.personal(s.removeAuthenticator))},
		{Pattern: pages.PathMeConnections, Handle: s.Replay(s.personal(s.connections))},
		{Pattern: pages.PathMeDelete, Handle: s.Replay(s.personal(s.deleteAccount))},
	}
	for i := range all {
		all[i].Methods, all[i].Format = show, endpoint.Page
	}
	all = append(all, s.proofEndpoints(show)...)
	all = append(all, s.passkeyEndpoints(show)...)
	return append(all, endpoint.Endpoint{
		Pattern: pages.PathMeConnect, Methods: show[:1], Handle: s.personal(s.connect),
		Format: endpoint.Page,
	}, endpoint.Endpoint{
		Pattern: pages.PathMeConfirmWith, Methods: show[:1], Handle: s.personal(s.confirmWith),
		Format: endpoint.Page,
	}, endpoint.Endpoint{
		Pattern: pages.PathMeDataFile, Methods: show[:2], Handle: s.personal(s.data),
		Format: endpoint.Page,
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

// shown returns the handler of a page without a form but that of languages, which Handle takes.
func (s *service) shown(show func(*person)) fasthttp.RequestHandler {
	return s.personal(func(p *person) {
		if p.HTTP.IsPost() {
			s.ShowProblem(p.HTTP, endpoint.ErrMethodNotAllowed)
			return
		}
		show(p)
	})
}

// maxLatest limits the sign-ins on the overview.
const maxLatest = 3

// me shows the overview of the account.
func (s *service) me(p *person) {
	s.KeepSessions(p.Visit, p.all())
	sessions, err := s.sessionsOf(p)
	if err != nil {
		s.WriteFailure(p.HTTP, "read sessions", err)
		return
	}
	latest, err := s.shownSessions(p, lastSignedIn(sessions))
	if err != nil {
		s.WriteFailure(p.HTTP, "read sign-ins", err)
		return
	}
	providers, err := s.people.ProviderChoices(p.Ctx)
	if err != nil {
		s.WriteFailure(p.HTTP, "read providers", err)
		return
	}
	channels := s.people.Channels()
	s.WritePage(p.HTTP, fasthttp.StatusOK, pages.Me{
		Account: p.Account(), Email: p.User.Email, Phone: p.User.Phone,
		EmailOffered: channels.Has(account.Email), PhoneOffered: channels.Has(account.SMS),
		HasPassword: p.hasPassword(),
		Factor:      p.User.HasSecondFactor(), Providers: len(p.User.Credentials.Connections),
		ProvidersShown: len(providers)+len(p.User.Credentials.Connections) > 0,
		HasPasskeys:    s.people.PasskeyDomain() != "", Passkeys: len(p.User.Credentials.Passkeys) - p.User.SecurityKeys(),
		PhoneSignIn: p.User.Phone != "" &&
			!p.User.MustUsePassword(s.people.PhoneReplacesPassword()),
		PhoneChoice: s.choosesPhoneSignIn(p) && channels.Has(account.SMS),
		Sessions:    latest,
		AllSessions: len(sessions),
		Accounts:    pages.PathAccounts, Logout: pages.PathLogout, Notice: p.notice(),
	})
}

// lastSignedIn returns the sessions with the last sign-ins, the newest first.
func lastSignedIn(all []*account.Session) []*account.Session {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *account.Session) int {
		return b.SignedIn.Compare(a.SignedIn)
	})
	return all[:min(len(all), maxLatest)]
}

// sentMe reports whether the form token is valid for the pages of the account.
func (p *person) sentMe() bool {
	return p.CheckForm(p.bound("me"))
}

// profile shows the profile, or saves it.
func (s *service) profile(p *person) {
	switch {
	case !p.HTTP.IsPost():
		s.showProfile(p, fasthttp.StatusOK, p.entered())
	case !p.sentMe():
		s.showProfile(p, fasthttp.StatusForbidden, profileOf(p.User),
			pages.Problem{Text: visit.TextStaleForm})
	default:
		s.saveProfile(p)
	}
}

// showProfile shows the profile as stored or as entered.
func (s *service) showProfile(p *person, status int, fields pages.Profile,
	problems ...pages.Problem) {
	attributes, err := s.ownAttributes(p)
	if err != nil {
		s.WriteFailure(p.HTTP, "read attributes", err)
		return
	}
	s.WritePage(p.HTTP, status, pages.MeProfile{Account: p.Account(), Attributes: attributes,
		FormToken: p.bound("me").NewFormToken(p.Now), Fields: fields, Notice: p.notice(),
		Problems: problems})
}
