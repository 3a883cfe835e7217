package me

import (
	"errors"
	"strconv"

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
		permissions := pages.Permissions(c.Scopes, 0)
		if len(c.Targets) > 0 {
			resources, err := s.tokens.Resources(p.Ctx)
			if err != nil {
				return nil, err
			}
			permissions = append(permissions,
				pages.ResourcePermissions(resources.Reaches(c.Targets), nil)...)
		}
		host := ""
		if c.Client.IsUnverified() && len(c.Client.RedirectURIs) > 0 { // its name proves nothing, and its document may change it
			host = c.Client.HostBeforeConsent(c.Client.RedirectURIs[0])
		}
		shown = append(shown, pages.Connection{ClientID: c.Client.ID, Name: c.Client.Name,
			URI: c.Client.URI, Host: host,
			Permissions: permissions, Granted: texts.Day(c.Granted),
			LastUsed: texts.Ago(c.Used, p.Now)})
	}
	return shown, nil
}

// maxShown limits the apps and the sessions on a page, and so its size.
const maxShown = 12

// paramFrom is the parameter with the number of apps before the page.
const paramFrom = "from"

// listed returns the path of a list at the part from which the form was sent.
func (p *person) listed(path string) string {
	if from := p.from(); from > 0 {
		path += "?" + paramFrom + "=" + strconv.Itoa(from)
	}
	return path
}

// from returns the number of apps or sessions before the page.
func (p *person) from() int {
	from, err := strconv.ParseUint(string(p.HTTP.QueryArgs().Peek(paramFrom)), 10, 16)
	if err != nil {
		return 0
	}
	return int(from)
}

// span returns the part of n apps or sessions that the page shows.
func (p *person) span(n int) (from, to int) {
	if from = p.from(); from >= n {
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
		s.showApps(p, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		s.removeApp(p)
	}
}

// removeApp withdraws what a client was granted, and returns to the page of the form.
func (s *service) removeApp(p *person) {
	err := s.people.Disconnect(p.Ctx, p.User.ID, p.Field("client_id"), p.Now)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		s.showApps(p, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("apps.unknown")})
	case err != nil:
		s.WriteFailure(p.HTTP, "remove a connection", err)
	default:
		visit.Redirect(p.HTTP, p.WithNotice(p.listed(pages.PathMeApps), noticeAppRemoved))
	}
}
