package me

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// sessionsOf returns the sessions of the account: the current one first, then by last use.
func (s *service) sessionsOf(p *person) ([]*account.Session, error) {
	all, err := s.people.Sessions(p.Ctx, p.User.ID, p.Now)
	slices.SortStableFunc(all, func(a, b *account.Session) int {
		switch p.Session.Hash {
		case a.Hash:
			return -1
		case b.Hash:
			return 1
		}
		return 0
	})
	return all, err
}

// maxSignIns limits the sign-ins among which those of the sessions are looked for.
const maxSignIns = 2 * account.MaxSessions

// shownSessions returns sessions for display. Where a person signed in is in the trail: sessions keep
// no address.
func (s *service) shownSessions(p *person, all []*account.Session) ([]pages.Session, error) {
	events, err := s.audit.Events(p.Ctx, audit.Filter{UserID: p.User.ID, Since: p.User.Created,
		Action: audit.SignIn, Newest: true, Limit: maxSignIns})
	if err != nil {
		return nil, err
	}
	from := map[string]string{}
	for _, e := range events {
		if id, ok := e.Data["session"].(string); ok && from[id] == "" {
			from[id] = e.From
		}
	}
	var shown []pages.Session
	for _, session := range all {
		id := session.ID()
		shown = append(shown, pages.Session{ID: id, Device: texts.Device(session.Device),
			Since: texts.Moment(session.SignedIn), At: session.SignedIn.UTC().Format(time.RFC3339),
			Near: s.placeOf(from[id]), Seen: texts.Ago(session.Seen, p.Now),
			Current: session.Hash == p.Session.Hash})
	}
	return shown, nil
}

// placeOf returns the rough place of what the trail keeps of an address: that, a prefix or nothing.
func (s *service) placeOf(from string) string {
	prefix, err := netip.ParsePrefix(from)
	addr := prefix.Addr()
	if err != nil {
		addr, _ = netip.ParseAddr(from)
	}
	return s.PlaceOf(addr)
}

// sessions shows all sessions, or ends one or all but this one.
func (s *service) sessions(p *person) {
	switch {
	case !p.HTTP.IsPost():
		s.showSessions(p, fasthttp.StatusOK)
	case !p.sentMe():
		s.showSessions(p, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case p.Field("all") == "true":
		s.endOtherSessions(p)
	default:
		s.endSession(p)
	}
}

// showSessions shows one page of all sessions.
func (s *service) showSessions(p *person, status int, problems ...pages.Problem) {
	all, err := s.sessionsOf(p)
	if err != nil {
		s.WriteFailure(p.HTTP, "read sessions", err)
		return
	}
	from, to := p.span(len(all))
	shown, err := s.shownSessions(p, all[from:to])
	if err != nil {
		s.WriteFailure(p.HTTP, "read sign-ins", err)
		return
	}
	s.WritePage(p.HTTP, status, pages.MeSessions{
		Account: p.Account(), FormToken: p.bound("me").NewFormToken(p.Now),
		Sessions: shown,
		From:     from, More: len(all) - to, Step: maxShown, Notice: p.notice(),
		Problems: problems,
	})
}

func (s *service) endOtherSessions(p *person) {
	if err := s.people.EndOtherSessions(p.Ctx, p.User.ID, p.Token); err != nil {
		s.WriteFailure(p.HTTP, "end sessions", err)
		return
	}
	visit.Redirect(p.HTTP, p.WithNotice(pages.PathMeSessions, noticeSessionsEnded))
}

// endSession ends one session, and returns to the page of the form.
func (s *service) endSession(p *person) {
	id := p.Field("session")
	err := s.people.EndSession(p.Ctx, p.User.ID, id, p.Now)
	switch {
	case errors.Is(err, account.ErrNotFound):
		s.showSessions(p, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("sessions.gone")})
	case err != nil:
		s.WriteFailure(p.HTTP, "end a session", err)
	case id == p.Session.ID():
		s.leave(p)
	default:
		visit.Redirect(p.HTTP, p.WithNotice(p.listed(pages.PathMeSessions), noticeSessionEnded))
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
