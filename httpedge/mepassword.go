package httpedge

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// changePassword shows the form for another password, and takes it.
func (s *Server) changePassword(p *person) {
	form := p.bound("password")
	show := func(status int, problems ...pages.Problem) {
		s.writePage(p.http, status, pages.MePassword{Account: p.account(), Action: pathMePassword, FormToken: form.newFormToken(p.now), Problems: problems})
	}
	next := value(p.form, "new_password")
	switch {
	case !p.needsPassword():
		redirect(p.http, pathMe)
	case !p.http.IsPost():
		show(fasthttp.StatusOK)
	case !form.spendFormToken(s.spent, value(p.form, fieldFormToken), p.now):
		show(fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
	case next == "":
		show(fasthttp.StatusUnprocessableEntity, pages.Problem{Field: "new_password", Text: "Enter a new password."})
	default:
		s.takePassword(p, next, show)
	}
}

func (s *Server) takePassword(p *person, next string, show func(int, ...pages.Problem)) {
	in, err := s.config.Identity.ChangePassword(p.ctx, p.user, s.proof(p), next, p.now)
	var wrong account.FieldError
	switch {
	case s.refuseProof(p, err, show):
	case errors.As(err, &wrong):
		show(fasthttp.StatusUnprocessableEntity, pages.Problem{Field: "new_password", Text: "The new password " + wrong.Message + "."})
	case errors.Is(err, account.ErrNotFound):
		redirect(p.http, pathLogin)
	case err != nil:
		s.writeFailure(p.http, "change a password", err)
	default:
		s.renewSession(p, in)
	}
}

// renewSession goes on with the session that has taken the place of the former one.
func (s *Server) renewSession(p *person, in *actors.SignedIn) {
	session, user, err := s.config.Identity.Session(p.ctx, in.Token, p.now)
	if err != nil {
		s.writeFailure(p.http, "read a new session", err)
		return
	}
	s.keepSessions(p.visit, append([]visitor{{in.Token, session, user}}, p.others...))
	s.keepKnown(p.http, user.Email, in.Known)
	redirect(p.http, p.toNotice(pathMe, noticePassword))
}
