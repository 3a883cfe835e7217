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

// addressChange is the flow that changes the email address or phone number of an account.
type addressChange struct {
	visit.CodeFlow
	done, removed visit.Notice
}

func (s *service) emailChange() *addressChange {
	return &addressChange{done: noticeEmail, removed: noticeEmailRemoved, CodeFlow: visit.CodeFlow{
		Kind: pages.VerifyEmailChange, Purpose: account.ForChange, Channel: account.Email,
		Start: pages.PathMeEmail, Path: pages.PathMeEmailVerify, Resend: pages.PathMeEmailResend,
		Restart: func(v *visit.Visit, status int, problems ...pages.Problem) {
			s.restartAddress(v, account.Email, status, problems...)
		},
	}}
}

func (s *service) phoneChange() *addressChange {
	return &addressChange{done: noticePhone, removed: noticePhoneRemoved, CodeFlow: visit.CodeFlow{
		Kind: pages.VerifyPhoneChange, Purpose: account.ForChange, Channel: account.SMS,
		Start: pages.PathMePhone, Path: pages.PathMePhoneVerify, Resend: pages.PathMePhoneResend,
		Restart: func(v *visit.Visit, status int, problems ...pages.Problem) {
			s.restartAddress(v, account.SMS, status, problems...)
		},
	}}
}

// changeAddress shows and handles the form for a new address or number.
func (s *service) changeAddress(f *addressChange) func(*person) {
	return func(p *person) {
		switch {
		case !s.fresh(p):
		case !p.HTTP.IsPost():
			s.showAddress(p, f.Channel, fasthttp.StatusOK)
		case !p.CheckForm(p.bound(f.Start)):
			s.showAddress(p, f.Channel, fasthttp.StatusForbidden,
				pages.Problem{Text: visit.TextStaleForm})
		default:
			s.takeAddress(p, f)
		}
	}
}

func (s *service) takeAddress(p *person, f *addressChange) {
	show := func(status int, problems ...pages.Problem) {
		s.showAddress(p, f.Channel, status, problems...)
	}
	if p.Field("remove") == "true" {
		s.removeAddress(p, f, show)
		return
	}
	token, err := s.people.BeginChange(p.Ctx, p.User, s.proof(p), f.Channel,
		p.Field(addressField(f.Channel)), s.Browser(p.Visit, p.Field(addressField(f.Channel))),
		p.Now)
	if !s.refuseProof(p, err, show) {
		s.GoToCode(p.Visit, &f.CodeFlow, token, err)
	}
}

// removeAddress removes the address or number.
func (s *service) removeAddress(p *person, f *addressChange,
	show func(int, ...pages.Problem)) {
	_, err := s.people.RemoveAddress(p.Ctx, p.User, s.proof(p), f.Channel, p.Now)
	switch {
	case s.refuseProof(p, err, show):
	case errors.Is(err, people.ErrLastWay):
		show(fasthttp.StatusUnprocessableEntity, pages.Problem{Text: textLastWay})
	case err != nil:
		s.WriteFailure(p.HTTP, "remove an address", err)
	default:
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMe, f.removed))
	}
}

var textLastWay = texts.Of("address.last_way")

// addressField returns the name of the field with the address or number.
func addressField(channel account.Channel) string {
	if channel == account.SMS {
		return "phone_number"
	}
	return "email"
}

// showAddress shows the form for a new address or number.
func (s *service) showAddress(p *person, channel account.Channel, status int,
	problems ...pages.Problem) {
	page := pages.MeAddress{Account: p.Account(), Channel: "email", Current: p.User.Email,
		Address:       p.Shown(addressField(channel)),
		CanRemove:     p.User.Email != "" && p.User.Phone != "",
		NeedsPassword: s.needs(p) == people.NeedsPassword, Action: pages.PathMeEmail, Problems: problems}
	if channel == account.SMS {
		page.Channel, page.Current, page.Action = "phone", p.User.Phone, pages.PathMePhone
	}
	page.FormToken = p.bound(page.Action).NewFormToken(p.Now)
	s.WritePage(p.HTTP, status, page)
}

// restartAddress shows the form again to the current account.
func (s *service) restartAddress(v *visit.Visit, channel account.Channel, status int,
	problems ...pages.Problem) {
	visitors, err := s.Visitors(v)
	switch {
	case err != nil:
		s.WriteFailure(v.HTTP, "read sessions", err)
	case len(visitors) == 0:
		visit.Redirect(v.HTTP, pages.PathLogin)
	default:
		s.showAddress(&person{v, visitors[0], visitors[1:]}, channel, status, problems...)
	}
}

// addressChallenge is Challenge, for changes of this account only.
func (s *service) addressChallenge(p *person, f *addressChange) (string, *account.Challenge, bool) {
	token, c, ok := s.Challenge(p.Visit, &f.CodeFlow)
	if ok && (c.UserID != p.User.ID || c.Channel != f.Channel) {
		visit.Redirect(p.HTTP, f.Start)
		return "", nil, false
	}
	return token, c, ok
}

// verifyAddress shows and handles the page that asks for the code.
func (s *service) verifyAddress(f *addressChange) func(*person) {
	return func(p *person) {
		token, c, ok := s.addressChallenge(p, f)
		if !ok {
			return
		}
		if code, ok := s.EnteredCode(p.Visit, &f.CodeFlow, token, c); ok {
			s.confirmAddress(p, f, token, code, c)
		}
	}
}

func (s *service) confirmAddress(p *person, f *addressChange, token, code string,
	c *account.Challenge) {
	_, err := s.people.ConfirmChange(p.Ctx, p.Session, token, code, p.Now)
	switch {
	case errors.Is(err, people.ErrProofNeeded):
		s.DropCode(p.HTTP)
		s.askProof(p)
	case err == nil:
		s.DropCode(p.HTTP)
		if mark := s.KnownMark(p.HTTP, p.Account().Address); mark != "" {
			s.KeepKnown(p.HTTP, mark, c.Address)
		}
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMe, f.done))
	case errors.Is(err, account.ErrTaken):
		s.DropCode(p.HTTP)
		s.showAddress(p, f.Channel, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: addressField(f.Channel),
				Text: texts.Of("address.taken")})
	case errors.Is(err, account.ErrNotFound):
		visit.Redirect(p.HTTP, pages.PathLogin)
	default:
		s.RefuseCode(p.Visit, &f.CodeFlow, token, c, err)
	}
}

// resendAddress handles the form that requests another code.
func (s *service) resendAddress(f *addressChange) func(*person) {
	resend := s.ResendCode(&f.CodeFlow)
	return func(p *person) {
		if !p.HTTP.IsPost() {
			resend(p.Visit)
			return
		}
		if _, _, ok := s.addressChallenge(p, f); ok {
			resend(p.Visit)
		}
	}
}
