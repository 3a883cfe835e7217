package me

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/people"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// choosesPhoneSignIn reports whether the person may choose that a code to the phone replaces the
// password.
func (s *service) choosesPhoneSignIn(p *person) bool {
	return s.people.PhoneReplacesPassword() && p.hasPassword() && p.User.Email != "" &&
		p.User.Phone != ""
}

// changePhoneSignIn shows and handles the form for that choice.
func (s *service) changePhoneSignIn(p *person) {
	form := p.bound("phone sign-in")
	show := func(status int, problems ...pages.Problem) {
		s.WritePage(p.HTTP, status, pages.MePhoneSignIn{
			Account: p.Account(), Phone: p.User.Phone, Allowed: p.User.PhoneSignIn,
			NeedsPassword: s.needs(p) == people.NeedsPassword,
			Action:        pages.PathMePhoneSignIn, FormToken: form.NewFormToken(p.Now),
			Problems: problems,
		})
	}
	switch {
	case !s.choosesPhoneSignIn(p):
		visit.Redirect(p.HTTP, pages.PathMe)
	case !s.fresh(p):
	case !p.HTTP.IsPost():
		show(fasthttp.StatusOK)
	case !p.CheckForm(form):
		show(fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		s.takePhoneSignIn(p, show)
	}
}

func (s *service) takePhoneSignIn(p *person, show func(int, ...pages.Problem)) {
	allow := p.Field("allow") == "true"
	err := s.people.SetPhoneSignIn(p.Ctx, p.User, s.proof(p), allow, p.Now)
	switch {
	case s.refuseProof(p, err, show):
	case err != nil:
		s.WriteFailure(p.HTTP, "choose how to sign in", err)
	case allow:
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMe, noticePhoneSignIn))
	default:
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMe, noticePasswordOnly))
	}
}
