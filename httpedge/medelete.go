package httpedge

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// deleteAccount asks whether to delete the account, and does it.
func (s *Server) deleteAccount(p *person) {
	form := p.bound("delete")
	show := func(status int, problems ...pages.Problem) {
		s.writePage(p.http, status, pages.MeDelete{Account: p.account(), NeedsPassword: p.needsPassword(), Action: pathMeDelete,
			FormToken: form.newFormToken(p.now), Problems: problems})
	}
	switch {
	case !s.fresh(p):
	case !p.http.IsPost():
		show(fasthttp.StatusOK)
	case !form.spendFormToken(s.spent, value(p.form, fieldFormToken), p.now):
		show(fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
	case value(p.form, "confirm") != "delete":
		show(fasthttp.StatusUnprocessableEntity, pages.Problem{Field: "confirm", Text: "Tick the box if you want to delete your account."})
	default:
		s.takeDeletion(p, show)
	}
}

func (s *Server) takeDeletion(p *person, show func(int, ...pages.Problem)) {
	err := s.config.Identity.Prove(p.ctx, p.user, s.proof(p), p.now)
	if s.refuseProof(p, err, show) {
		return
	}
	if err == nil {
		err = s.config.Identity.DeleteUser(p.ctx, p.user.ID)
	}
	if err != nil && !errors.Is(err, account.ErrNotFound) { // deleted by another just now
		s.writeFailure(p.http, "delete an account", err)
		return
	}
	s.keepSessions(p.visit, p.others)
	s.dropKnown(p.http, p.user.Email)
	p.secret = s.renewBrowserSecret(p.http)
	redirect(p.http, p.toNotice(pathMeDeleted, noticeDeleted))
}

// showDeleted says goodbye to who has just deleted an account.
func (s *Server) showDeleted(v *visit) {
	if v.noticed() != noticeDeleted {
		redirect(v.http, pathMe)
		return
	}
	s.writeMessage(v.http, fasthttp.StatusOK, pages.Message{Title: "Your account is deleted",
		Text: "Your profile is removed, you are signed out everywhere, and apps can no longer use the account.", Link: pathLogin, LinkText: "Sign in to another account"})
}
