package httpedge

import (
	"context"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// Paths of one's own account.
const (
	pathMe            = "/me"
	pathMeApps        = "/me/apps"
	pathMeSessions    = "/me/sessions"
	pathMePassword    = "/me/password"
	pathMeEmail       = "/me/email"
	pathMeEmailVerify = "/me/email/verify"
	pathMeEmailResend = "/me/email/resend"
	pathMePhone       = "/me/phone"
	pathMePhoneVerify = "/me/phone/verify"
	pathMePhoneResend = "/me/phone/resend"
	pathMeDelete      = "/me/delete"
	pathMeDeleted     = "/me/deleted"
)

// personEndpoints are the pages of one's own account.
func (s *Server) personEndpoints() []endpoint {
	get := []string{fasthttp.MethodGet, fasthttp.MethodHead}
	show := []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost}
	return []endpoint{
		{pattern: pathMe, methods: show, handle: s.personal(s.me)},
		{pattern: pathMeApps, methods: show, handle: s.once(s.personal(s.apps))},
		{pattern: pathMeSessions, methods: show, handle: s.once(s.personal(s.endSessions))},
		{pattern: pathMePassword, methods: show, handle: s.once(s.personal(s.changePassword))},
		{pattern: pathMeEmail, methods: show, handle: s.once(s.reachable(account.Email, s.changeAddress(emailChange)))},
		{pattern: pathMeEmailVerify, methods: show, handle: s.once(s.reachable(account.Email, s.verifyAddress(emailChange)))},
		{pattern: pathMeEmailResend, methods: show, handle: s.reachable(account.Email, s.resendAddress(emailChange))},
		{pattern: pathMePhone, methods: show, handle: s.once(s.reachable(account.SMS, s.changeAddress(phoneChange)))},
		{pattern: pathMePhoneVerify, methods: show, handle: s.once(s.reachable(account.SMS, s.verifyAddress(phoneChange)))},
		{pattern: pathMePhoneResend, methods: show, handle: s.reachable(account.SMS, s.resendAddress(phoneChange))},
		{pattern: pathMeDelete, methods: show, handle: s.once(s.personal(s.deleteAccount))},
		{pattern: pathMeDeleted, methods: get, handle: s.flow(s.showDeleted)},
	}
}

// isPersonal reports whether path is one of one's own account.
func isPersonal(path []byte) bool {
	rest, ok := strings.CutPrefix(view(path), pathMe)
	return ok && (rest == "" || rest[0] == '/')
}

// person is one request of somebody to their own account: the one of the browser that was chosen last.
type person struct {
	*visit
	visitor
	others []visitor // accounts of the browser
}

// bound binds a form to the session, so that it ends with it and cannot be sent for another account of the browser.
func (p *person) bound(purpose string) binding {
	return p.bind(purpose + " " + p.token)
}

// all returns all accounts of the browser, this one first.
func (p *person) all() []visitor { return append([]visitor{p.visitor}, p.others...) }

// personal makes a handler of one that needs somebody who is signed in; others are sent to sign in. It lets no form pass
// that comes from another site.
func (s *Server) personal(handle func(*person)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		deadline, cancel := context.WithTimeout(context.Background(), pageDeadline)
		defer cancel()
		v := &visit{http: ctx, ctx: deadline, now: time.Now()}
		if ctx.IsPost() && !s.readPage(v) {
			return
		}
		v.secret = s.browserSecret(ctx)
		visitors, err := s.visitors(v)
		if err != nil {
			s.writeFailure(ctx, "read sessions", err)
			return
		}
		if len(visitors) == 0 {
			redirect(ctx, pathLogin)
			return
		}
		handle(&person{v, visitors[0], visitors[1:]})
	}
}

// me shows the account, or takes its profile.
func (s *Server) me(p *person) {
	switch {
	case !p.http.IsPost():
		s.keepSessions(p.visit, p.all())
		s.showMe(p, fasthttp.StatusOK, profileOf(p.user))
	case !p.sentMe():
		s.showMe(p, fasthttp.StatusForbidden, profileOf(p.user), pages.Problem{Text: textStaleForm})
	default:
		s.saveProfile(p)
	}
}

// sentMe reports whether the form is one of the account's page.
func (p *person) sentMe() bool {
	return p.bound("me").checkFormToken(value(p.form, fieldFormToken), p.now)
}

// showMe shows the account with a profile as it is or as it was entered.
func (s *Server) showMe(p *person, status int, fields pages.Profile, problems ...pages.Problem) {
	connections, err := s.config.Identity.Connections(p.ctx, p.user.ID)
	if err != nil {
		s.writeFailure(p.http, "read connections", err)
		return
	}
	sessions, err := s.config.Identity.Sessions(p.ctx, p.user.ID, p.now)
	if err != nil {
		s.writeFailure(p.http, "read sessions", err)
		return
	}
	channels := s.config.Identity.Channels()
	s.writePage(p.http, status, pages.Me{
		Account: p.account(), FormToken: p.bound("me").newFormToken(p.now), Fields: fields, Email: p.user.Email, Phone: p.user.Phone,
		EmailOffered: channels.Has(account.Email), PhoneOffered: channels.Has(account.SMS), HasPassword: p.user.PasswordHash != "",
		Connections: shownConnections(lastUsed(connections)[:min(len(connections), maxShown)], p.now), MoreConnections: max(0, len(connections)-maxShown),
		Sessions: p.shownSessions(sessions), MoreSessions: max(0, len(sessions)-maxShown),
		Accounts: pathAccounts, Logout: pathLogout, Notice: p.notice(), Problems: problems,
	})
}
