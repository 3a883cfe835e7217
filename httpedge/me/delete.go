package me

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// deleteAccount shows the form that deletes the account, and handles it.
func (s *service) deleteAccount(p *person) {
	form := p.bound("delete")
	show := func(status int, problems ...pages.Problem) {
		s.WritePage(p.HTTP, status,
			pages.MeDelete{Account: p.Account(), NeedsPassword: s.needs(p) == people.NeedsPassword,
				Action:    pages.PathMeDelete,
				FormToken: form.NewFormToken(p.Now), Problems: problems})
	}
	switch {
	case !s.fresh(p):
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
	case !p.CheckForm(form):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case p.Field("confirm") != "delete":
		show(fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: "confirm",
				Text: texts.Of("delete.tick")})
	default:
		s.takeDeletion(p, show)
	}
}

func (s *service) takeDeletion(p *person, show func(int, ...pages.Problem)) {
	err := s.people.DeleteAccount(p.Ctx, p.User, s.proof(p), p.Now)
	if s.refuseProof(p, err, show) {
		return
	}
	if err != nil {
		s.WriteFailure(p.HTTP, "delete an account", err)
		return
	}
	s.KeepSessions(p.Visit, p.others)
	s.DropKnown(p.HTTP, p.User.Email)
	p.Secret = s.RenewBrowserSecret(p.HTTP)
	visit.Redirect(p.HTTP, p.WithNotice(pages.PathMeDeleted, noticeDeleted))
}

// showDeleted shows that the account was deleted.
func (s *service) showDeleted(v *visit.Visit) {
	v.Secret = s.BrowserSecret(v.HTTP)
	if v.Noticed() != noticeDeleted {
		visit.Redirect(v.HTTP, pages.PathMe)
		return
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusOK, pages.Message{Title: texts.Of("delete.done"),
		Text: texts.Of("delete.done_text"),
		Link: pages.PathLogin, LinkText: texts.Of("delete.done_link")})
}
