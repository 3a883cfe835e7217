package httpedge

import (
	"errors"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/pages"
)

// shownConnections is what the page shows of the clients that a person has let in.
func shownConnections(all []actors.Connection, now time.Time) []pages.Connection {
	var shown []pages.Connection
	for _, c := range all {
		shown = append(shown, pages.Connection{ClientID: c.Client.ID, Name: c.Client.Name, URI: c.Client.URI,
			Permissions: permissionTexts(c.Scopes), Granted: day(c.Granted), LastUsed: ago(c.Used, now)})
	}
	return shown
}

// maxShown bounds the sessions on the page, and so its size. The others can be ended together.
const maxShown = 12

// shownSessions is what the page shows of sessions: this one first.
func (p *person) shownSessions(all []*account.Session) []pages.Session {
	slices.SortStableFunc(all, func(a, b *account.Session) int {
		switch p.session.Hash {
		case a.Hash:
			return -1
		case b.Hash:
			return 1
		}
		return 0
	})
	var shown []pages.Session
	for _, session := range all[:min(len(all), maxShown)] {
		shown = append(shown, pages.Session{ID: session.ID(), Device: session.Device, Since: day(session.Created), Seen: ago(session.Seen, p.now),
			Current: session.Hash == p.session.Hash})
	}
	return shown
}

// removeApp takes back what a client was granted.
func (s *Server) removeApp(p *person) {
	if !p.http.IsPost() {
		redirect(p.http, pathMe) // by who loads again what a form has answered
		return
	}
	if !p.sentMe() {
		s.showMe(p, fasthttp.StatusForbidden, profileOf(p.user), pages.Problem{Text: textStaleForm})
		return
	}
	err := s.config.Identity.Disconnect(p.ctx, p.user.ID, value(p.form, "client_id"), p.now)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		s.showMe(p, fasthttp.StatusUnprocessableEntity, profileOf(p.user), pages.Problem{Text: "This app is no longer there. Choose one of those below."})
	case err != nil:
		s.writeFailure(p.http, "remove a connection", err)
	default:
		redirect(p.http, p.toNotice(pathMe, noticeAppRemoved))
	}
}

// endSessions ends one session, or all but this one.
func (s *Server) endSessions(p *person) {
	if !p.http.IsPost() {
		redirect(p.http, pathMe) // by who loads again what a form has answered
		return
	}
	if !p.sentMe() {
		s.showMe(p, fasthttp.StatusForbidden, profileOf(p.user), pages.Problem{Text: textStaleForm})
		return
	}
	if value(p.form, "all") == "true" {
		if err := s.config.Identity.EndOtherSessions(p.ctx, p.user.ID, p.token); err != nil {
			s.writeFailure(p.http, "end sessions", err)
			return
		}
		redirect(p.http, p.toNotice(pathMe, noticeSessionsEnded))
		return
	}
	id := value(p.form, "session")
	err := s.config.Identity.EndSession(p.ctx, p.user.ID, id, p.now)
	switch {
	case errors.Is(err, account.ErrNotFound):
		s.showMe(p, fasthttp.StatusUnprocessableEntity, profileOf(p.user), pages.Problem{Text: "This session has ended already."})
	case err != nil:
		s.writeFailure(p.http, "end a session", err)
	case id == p.session.ID():
		s.leave(p)
	default:
		redirect(p.http, p.toNotice(pathMe, noticeSessionEnded))
	}
}

// leave takes an account whose session here has ended out of the browser.
func (s *Server) leave(p *person) {
	if len(p.others) == 0 {
		s.cookies.write(p.http, s.cookies.session, nil, 0)
		p.secret = s.renewBrowserSecret(p.http)
		redirect(p.http, pathLogout)
		return
	}
	s.keepSessions(p.visit, p.others)
	redirect(p.http, pathAccounts)
}
