package me

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// resultKeys are the texts of what a sign-in with a provider has led to, other than a connection.
var resultKeys = map[visit.Result]string{
	visit.WithTaken: "connections.taken", visit.WithTooMany: "connections.too_many",
	visit.WithProofNeeded: "connections.confirm_again", visit.WithAway: "connections.away",
	visit.WithFailed: "connections.failed", visit.WithCancelled: "connections.cancelled",
}

// resultProblems returns what a sign-in with a provider has led to, if that is a problem.
func resultProblems(v *visit.Visit) []pages.Problem {
	if key := resultKeys[v.Result()]; key != "" {
		return []pages.Problem{{Text: texts.Of(key, "n", account.MaxConnections)}}
	}
	return nil
}

// connections shows the connections to other providers, and removes one.
func (s *service) connections(p *person) {
	form := p.bound("connections")
	show := func(status int, problems ...pages.Problem) { s.showConnections(p, status, problems...) }
	switch {
	case !p.HTTP.IsPost():
		s.showConnections(p, fasthttp.StatusOK, resultProblems(p.Visit)...)
	case !p.CheckForm(form):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case p.Field("remove") == "":
		err := s.people.ProveByPassword(p.Ctx, p.User, s.proof(p), p.Now)
		switch {
		case s.refuseProof(p, err, show):
		case err != nil:
			s.WriteFailure(p.HTTP, "check a password", err)
		default:
			visit.Redirect(p.HTTP, pages.PathMeConnections)
		}
	default:
		s.removeConnection(p, show)
	}
}

func (s *service) removeConnection(p *person, show func(int, ...pages.Problem)) {
	err := s.people.RemoveConnection(p.Ctx, p.User, p.Session, p.Field("remove"), p.Now)
	switch {
	case errors.Is(err, people.ErrLastWay):
		show(fasthttp.StatusUnprocessableEntity, pages.Problem{Text: texts.Of("connections.last")})
	case errors.Is(err, people.ErrProofNeeded):
		show(fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("wrong.proof_needed")})
	case errors.Is(err, account.ErrNotFound):
		show(fasthttp.StatusUnprocessableEntity, pages.Problem{Text: texts.Of("connections.unknown")})
	case err != nil:
		s.WriteFailure(p.HTTP, "remove a connection", err)
	default:
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMeConnections, noticeConnectionRemoved))
	}
}

func (s *service) showConnections(p *person, status int, problems ...pages.Problem) {
	choices, err := s.people.ProviderChoices(p.Ctx)
	if err != nil {
		s.WriteFailure(p.HTTP, "read providers", err)
		return
	}
	page := pages.MeConnections{Account: p.Account(), Action: pages.PathMeConnections,
		FormToken:     p.bound("connections").NewFormToken(p.Now),
		Proved:        s.people.HasProved(p.User, p.Session, p.Now),
		NeedsPassword: s.needs(p) == people.NeedsPassword,
		Confirm:       pages.PathMeConfirm + "?" + paramFor + "=connections",
		Notice:        p.notice(), Problems: problems,
		Providers: visit.ProviderButtons(p.Visit, choices, p.bound,
			func(id string) string { return pages.PathMeConnections + "/" + id }),
	}
	if s.needs(p) == people.NeedsFactor {
		page.Confirm = pages.PathMeConfirmFactor + "?" + paramFor + "=connections"
	}
	if p.Result() == visit.WithConnected {
		page.Notice = texts.Of("connections.added")
	}
	for _, c := range s.people.Connected(p.User, choices) {
		shown := pages.ProviderConnection{ID: c.ID(), Provider: c.Provider.Name, Name: c.Name,
			Offered: c.Provider.ID != "", Added: texts.Day(c.Created), Used: texts.Ago(c.Used, p.Now)}
		for _, name := range c.Groups {
			if p.User.Mapped[c.Issuer].Has(name) {
				shown.Groups = append(shown.Groups, name)
			}
		}
		if !shown.Offered {
			shown.Provider = c.Issuer
		}
		page.Connections = append(page.Connections, shown)
	}
	s.WritePage(p.HTTP, status, page)
}

// connect sends the browser to a provider, to connect an account there.
func (s *service) connect(p *person) {
	if !s.people.HasProved(p.User, p.Session, p.Now) {
		visit.Redirect(p.HTTP, p.PathResult(pages.PathMeConnections, visit.WithProofNeeded))
		return
	}
	s.goWith(p, people.WithAdd, pages.PathMeConnections)
}

// confirmWith sends the browser to a provider, to prove who the person is.
func (s *service) confirmWith(p *person) {
	name := string(p.HTTP.QueryArgs().Peek(paramFor))
	if proofPages[name] == "" {
		visit.Redirect(p.HTTP, pages.PathMe)
		return
	}
	s.goWith(p, people.WithProof, pages.PathMeConfirm+"?"+paramFor+"="+name)
}

// goWith begins a sign-in with a provider that leads back to a page.
func (s *service) goWith(p *person, purpose, back string) {
	id, _ := p.HTTP.UserValue("id").(string)
	if !p.CheckToken(p.bound(visit.StartWith(id)), visit.ParamStart) {
		visit.Redirect(p.HTTP, back)
		return
	}
	url, err := s.people.BeginWith(p.Ctx, people.With{Provider: id, Purpose: purpose,
		Secret: p.Secret, Caller: s.Caller(p.Visit), Session: p.Session, Query: back}, p.Now)
	var throttled *people.ThrottledError
	switch {
	case err == nil:
		visit.Redirect(p.HTTP, url)
	case errors.Is(err, oauth.ErrProviderAway), errors.Is(err, oauth.ErrBusy),
		errors.As(err, &throttled):
		visit.Redirect(p.HTTP, p.PathResult(back, visit.WithAway))
	case errors.Is(err, people.ErrAttemptEnded), errors.As(err, new(*oauth.ProviderError)):
		visit.Redirect(p.HTTP, p.PathResult(back, visit.WithFailed))
	default:
		s.WriteFailure(p.HTTP, "begin a sign-in with a provider", err)
	}
}

// proofButtons returns the buttons of providers that prove who the person is.
func (s *service) proofButtons(p *person, start string) []pages.Provider {
	choices, err := s.people.ProviderChoices(p.Ctx)
	if err != nil {
		s.LogFailure(p.Visit, "read providers", err)
		return nil
	}
	var proving []people.ProviderChoice
	for _, choice := range choices {
		if s.people.ProvesWith(p.User, choice.Issuer, p.Now) {
			proving = append(proving, choice)
		}
	}
	return visit.ProviderButtons(p.Visit, proving, p.bound, func(id string) string {
		return pages.PathMeConfirm + "/with/" + id + start
	})
}
