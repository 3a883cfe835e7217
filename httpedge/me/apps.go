package me

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// shownConnections returns the connected apps for display.
func shownConnections(all []people.Connection, now time.Time) []pages.Connection {
	var shown []pages.Connection
	for _, c := range all {
		shown = append(shown, pages.Connection{ClientID: c.Client.ID, Name: c.Client.Name,
			URI:         c.Client.URI,
			Permissions: permissionTexts(c.Scopes), Granted: day(c.Granted),
			LastUsed: ago(c.Used, now)})
	}
	return shown
}

// lastUsed sorts the apps by last use or grant, the latest first, and returns them.
func lastUsed(all []people.Connection) []people.Connection {
	latest := func(c people.Connection) time.Time {
		if c.Used.After(c.Granted) {
			return c.Used
		}
		return c.Granted
	}
	slices.SortStableFunc(all, func(a, b people.Connection) int {
		return latest(b).Compare(latest(a))
	})
	return all
}

// maxShown limits the apps and the sessions on a page, and so its size. Other apps have pages of
// their own; other sessions can be ended together.
const maxShown = 12

// paramFrom is the parameter with the number of apps before the page.
const paramFrom = "from"

// appsFrom returns the number of apps before the page, and whether the request came from the page
// of all apps.
func (p *person) appsFrom() (from int, all bool) {
	args := p.HTTP.QueryArgs()
	if from, err := strconv.ParseUint(string(args.Peek(paramFrom)), 10, 16); err == nil {
		return int(from), true
	}
	return 0, args.Has(paramFrom)
}

// showApps shows one page of all connected apps.
func (s *service) showApps(p *person, status int, problems ...pages.Problem) {
	all, err := s.people.Connections(p.Ctx, p.User.ID)
	if err != nil {
		s.WriteFailure(p.HTTP, "read connections", err)
		return
	}
	from, _ := p.appsFrom()
	if from >= len(all) {
		from = max(0, len(all)-maxShown)
	}
	to := min(from+maxShown, len(all))
	s.WritePage(p.HTTP, status, pages.MeApps{
		Account: p.Account(), FormToken: p.bound("me").NewFormToken(p.Now),
		Connections: shownConnections(all[from:to], p.Now),
		From:        from, More: len(all) - to, Step: maxShown, Notice: p.notice(),
		Problems: problems,
	})
}

// shownSessions returns the sessions for display, the current one first.
func (p *person) shownSessions(all []*account.Session) []pages.Session {
	slices.SortStableFunc(all, func(a, b *account.Session) int {
		switch p.Session.Hash {
		case a.Hash:
			return -1
		case b.Hash:
			return 1
		}
		return 0
	})
	var shown []pages.Session
	for _, session := range all[:min(len(all), maxShown)] {
		shown = append(shown, pages.Session{ID: session.ID(), Device: session.Device,
			Since: day(session.Created), Seen: ago(session.Seen, p.Now),
			Current: session.Hash == p.Session.Hash})
	}
	return shown
}

// apps shows all connected apps, or removes one.
func (s *service) apps(p *person) {
	switch {
	case !p.HTTP.IsPost():
		s.showApps(p, fasthttp.StatusOK)
	case !p.sentMe():
		s.refuseApp(p, fasthttp.StatusForbidden, visit.TextStaleForm)
	default:
		s.removeApp(p)
	}
}

// refuseApp shows the page of the form again, with a problem.
func (s *service) refuseApp(p *person, status int, text string) {
	if _, all := p.appsFrom(); all {
		s.showApps(p, status, pages.Problem{Text: text})
		return
	}
	s.showMe(p, status, profileOf(p.User), pages.Problem{Text: text})
}

// removeApp withdraws what a client was granted, and returns to the page of the form.
func (s *service) removeApp(p *person) {
	back := pages.PathMe
	if from, all := p.appsFrom(); all {
		back = pages.PathMeApps + "?" + paramFrom + "=" + strconv.Itoa(from)
	}
	err := s.people.Disconnect(p.Ctx, p.User.ID, p.Field("client_id"), p.Now)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		s.refuseApp(p, fasthttp.StatusUnprocessableEntity,
			"This app is not connected to your account.")
	case err != nil:
		s.WriteFailure(p.HTTP, "remove a connection", err)
	default:
		visit.Redirect(p.HTTP, toNotice(p.Visit, back, noticeAppRemoved))
	}
}

// endSessions ends one session, or all but this one.
func (s *service) endSessions(p *person) {
	if !p.HTTP.IsPost() {
		visit.Redirect(p.HTTP, pages.PathMe) // a reload after the form was sent
		return
	}
	if !p.sentMe() {
		s.showMe(p, fasthttp.StatusForbidden, profileOf(p.User),
			pages.Problem{Text: visit.TextStaleForm})
		return
	}
	if p.Field("all") == "true" {
		if err := s.people.EndOtherSessions(p.Ctx, p.User.ID, p.Token); err != nil {
			s.WriteFailure(p.HTTP, "end sessions", err)
			return
		}
		visit.Redirect(p.HTTP, toNotice(p.Visit, pages.PathMe, noticeSessionsEnded))
		return
	}
	id := p.Field("session")
	err := s.people.EndSession(p.Ctx, p.User.ID, id, p.Now)
	switch {
	case errors.Is(err, account.ErrNotFound):
		s.showMe(p, fasthttp.StatusUnprocessableEntity, profileOf(p.User),
			pages.Problem{Text: "This session has ended already."})
	case err != nil:
		s.WriteFailure(p.HTTP, "end a session", err)
	case id == p.Session.ID():
		s.leave(p)
	default:
		visit.Redirect(p.HTTP, toNotice(p.Visit, pages.PathMe, noticeSessionEnded))
	}
}

// leave removes the account from this browser after its session has ended.
func (s *service) leave(p *person) {
	if len(p.others) == 0 {
		s.DropSessions(p.Visit)
		p.Secret = s.RenewBrowserSecret(p.HTTP)
		visit.Redirect(p.HTTP, pages.PathLogout)
		return
	}
	s.KeepSessions(p.Visit, p.others)
	visit.Redirect(p.HTTP, pages.PathAccounts)
}
