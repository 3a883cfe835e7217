package me

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// changePassword shows and handles the form for a new password.
func (s *service) changePassword(p *person) {
	form := p.bound("password")
	show := func(status int, problems ...pages.Problem) {
		s.WritePage(p.HTTP, status,
			pages.MePassword{Account: p.Account(), Action: pages.PathMePassword,
				NeedsPassword: s.needs(p) == people.NeedsPassword,
				FormToken:     form.NewFormToken(p.Now), Problems: problems})
	}
	next := p.Field("new_password")
	switch {
	case !p.hasPassword():
		visit.Redirect(p.HTTP, pages.PathMe)
	case !s.fresh(p):
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
	case !p.CheckForm(form):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case next == "":
		show(fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: "new_password", Text: texts.Of("wrong.new_password_missing")})
	default:
		s.takePassword(p, next, show)
	}
}

func (s *service) takePassword(p *person, next string, show func(int, ...pages.Problem)) {
	in, err := s.people.ChangePassword(p.Ctx, p.User, s.proof(p), next, p.Now)
	var wrong account.FieldError
	switch {
	case s.refuseProof(p, err, show):
	case errors.As(err, &wrong):
		show(fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: "new_password", Text: visit.FieldText(wrong)})
	case err != nil:
		s.WriteFailure(p.HTTP, "change a password", err)
	default:
		s.renewSession(p, in)
	}
}

// renewSession continues with the session that replaces the current one.
func (s *service) renewSession(p *person, in *people.SignedIn) {
	session, user, err := s.people.Session(p.Ctx, in.Token, p.Now)
	if err != nil {
		s.WriteFailure(p.HTTP, "read a new session", err)
		return
	}
	s.KeepSessions(p.Visit, append([]visit.Visitor{{Token: in.Token, Session: session, User: user}},
		p.others...))
	s.KeepKnown(p.HTTP, in.Known, user.Email, user.Phone)
	visit.Redirect(p.HTTP, p.WithNotice(pages.PathMe, noticePassword))
}
