package me

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// shownConnections returns the connected apps for display.
func (s *service) shownConnections(p *person, all []people.Connection) ([]pages.Connection, error) {
	var shown []pages.Connection
	for _, c := range all {
		permissions := permissionTexts(c.Scopes)
		if len(c.Targets) > 0 {
			resources, err := s.tokens.Resources(p.Ctx)
			if err != nil {
				return nil, err
			}
			for _, at := range pages.ResourcePermissions(resources.Reaches(c.Targets), nil) {
				permissions = append(permissions, at.Text)
			}
		}
		shown = append(shown, pages.Connection{ClientID: c.Client.ID, Name: c.Client.Name,
			URI:         c.Client.URI,
			Permissions: permissions, Granted: texts.Day(c.Granted),
			LastUsed: texts.Ago(c.Used, p.Now)})
	}
	return shown, nil
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

// maxShown limits the apps and the sessions on a page, and so its size. Others have pages of their
// own.
const maxShown = 12

// paramFrom is the parameter with the number of apps before the page.
const paramFrom = "from"

// listFrom returns the number of apps or sessions before the page, and whether the request came
// from the page of all of them.
func (p *person) listFrom() (from int, all bool) {
	args := p.HTTP.QueryArgs()
	if from, err := strconv.ParseUint(string(args.Peek(paramFrom)), 10, 16); err == nil {
		return int(from), true
	}
	return 0, args.Has(paramFrom)
}

// span returns the part of n apps or sessions that the page shows.
func (p *person) span(n int) (from, to int) {
	from, _ = p.listFrom()
	if from >= n {
		from = max(0, n-maxShown)
	}
	return from, min(from+maxShown, n)
}

// showApps shows one page of all connected apps.
func (s *service) showApps(p *person, status int, problems ...pages.Problem) {
	all, err := s.people.Connections(p.Ctx, p.User.ID)
	if err != nil {
		s.WriteFailure(p.HTTP, "read connections", err)
		return
	}
	from, to := p.span(len(all))
	shown, err := s.shownConnections(p, all[from:to])
	if err != nil {
		s.WriteFailure(p.HTTP, "read resources", err)
		return
	}
	s.WritePage(p.HTTP, status, pages.MeApps{
		Account: p.Account(), FormToken: p.bound("me").NewFormToken(p.Now),
		Connections: shown,
		From:        from, More: len(all) - to, Step: maxShown, Notice: p.notice(),
		Problems: problems,
	})
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
func (s *service) refuseApp(p *person, status int, text texts.Text) {
	if _, all := p.listFrom(); all {
		s.showApps(p, status, pages.Problem{Text: text})
		return
	}
	s.showMe(p, status, profileOf(p.User), pages.Problem{Text: text})
}

// removeApp withdraws what a client was granted, and returns to the page of the form.
func (s *service) removeApp(p *person) {
	back := pages.PathMe
	if from, all := p.listFrom(); all {
		back = pages.PathMeApps + "?" + paramFrom + "=" + strconv.Itoa(from)
	}
	err := s.people.Disconnect(p.Ctx, p.User.ID, p.Field("client_id"), p.Now)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		s.refuseApp(p, fasthttp.StatusUnprocessableEntity,
			texts.Of("apps.unknown"))
	case err != nil:
		s.WriteFailure(p.HTTP, "remove a connection", err)
	default:
		visit.Redirect(p.HTTP, toNotice(p.Visit, back, noticeAppRemoved))
	}
}
