package httpedge

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// addressChange gives an account another e-mail address or phone number, by a code that is sent there.
type addressChange struct {
	codeFlow
	done notice
}

var (
	emailChange = &addressChange{done: noticeEmail, codeFlow: codeFlow{
		kind: pages.VerifyEmailChange, purpose: account.ForChange, channel: account.Email,
		start: pathMeEmail, path: pathMeEmailVerify, resend: pathMeEmailResend,
		restart: func(s *Server, v *visit, status int, problems ...pages.Problem) {
			s.restartAddress(v, account.Email, status, problems...)
		},
	}}
	phoneChange = &addressChange{done: noticePhone, codeFlow: codeFlow{
		kind: pages.VerifyPhoneChange, purpose: account.ForChange, channel: account.SMS,
		start: pathMePhone, path: pathMePhoneVerify, resend: pathMePhoneResend,
		restart: func(s *Server, v *visit, status int, problems ...pages.Problem) {
			s.restartAddress(v, account.SMS, status, problems...)
		},
	}}
)

// reachable is personal for people who can be reached by channel. Without a messenger there is no such page.
func (s *Server) reachable(channel account.Channel, handle func(*person)) fasthttp.RequestHandler {
	serve := s.personal(handle)
	return func(ctx *fasthttp.RequestCtx) {
		if !s.config.Identity.Channels().Has(channel) {
			s.showNotFound(ctx)
			return
		}
		serve(ctx)
	}
}

// changeAddress shows the form for another address or number, and takes it.
func (s *Server) changeAddress(f *addressChange) func(*person) {
	return func(p *person) {
		switch {
		case !s.fresh(p):
		case !p.http.IsPost():
			s.showAddress(p, f.channel, fasthttp.StatusOK)
		case !p.bound(f.start).checkFormToken(value(p.form, fieldFormToken), p.now):
			s.showAddress(p, f.channel, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
		default:
			s.takeAddress(p, f)
		}
	}
}

func (s *Server) takeAddress(p *person, f *addressChange) {
	show := func(status int, problems ...pages.Problem) { s.showAddress(p, f.channel, status, problems...) }
	err := s.config.Identity.Prove(p.ctx, p.user, s.proof(p), p.now)
	if s.refuseProof(p, err, show) {
		return
	}
	if err != nil {
		s.writeFailure(p.http, "check a password", err)
		return
	}
	token, err := s.config.Identity.BeginChange(p.ctx, p.user.ID, f.channel, value(p.form, addressField(f.channel)), s.clients.caller(p.http), p.now)
	s.begun(p.visit, &f.codeFlow, token, err)
}

// addressField is the field with an address or number.
func addressField(channel account.Channel) string {
	if channel == account.SMS {
		return "phone_number"
	}
	return "email"
}

// showAddress shows the form for another address or number.
func (s *Server) showAddress(p *person, channel account.Channel, status int, problems ...pages.Problem) {
	page := pages.MeAddress{Account: p.account(), Channel: "email", Current: p.user.Email, Address: p.shown(addressField(channel)),
		NeedsPassword: p.needsPassword(), Action: pathMeEmail, Problems: problems}
	if channel == account.SMS {
		page.Channel, page.Current, page.Action = "phone", p.user.Phone, pathMePhone
	}
	page.FormToken = p.bound(page.Action).newFormToken(p.now)
	s.writePage(p.http, status, page)
}

// restartAddress shows the form again to whoever is signed in.
func (s *Server) restartAddress(v *visit, channel account.Channel, status int, problems ...pages.Problem) {
	visitors, err := s.visitors(v)
	switch {
	case err != nil:
		s.writeFailure(v.http, "read sessions", err)
	case len(visitors) == 0:
		redirect(v.http, pathLogin)
	default:
		s.showAddress(&person{v, visitors[0], visitors[1:]}, channel, status, problems...)
	}
}

// addressChallenge is challenge for this account's change alone.
func (s *Server) addressChallenge(p *person, f *addressChange) (string, *account.Challenge, bool) {
	token, c, ok := s.challenge(p.visit, &f.codeFlow)
	if ok && (c.UserID != p.user.ID || c.Channel != f.channel) {
		redirect(p.http, f.start)
		return "", nil, false
	}
	return token, c, ok
}

// verifyAddress shows the page that asks for the code, and takes the code.
func (s *Server) verifyAddress(f *addressChange) func(*person) {
	return func(p *person) {
		token, c, ok := s.addressChallenge(p, f)
		switch {
		case !ok:
		case !p.http.IsPost():
			notice := ""
			if p.http.QueryArgs().Has(paramSent) && p.now.Sub(c.Sent) < account.SendInterval {
				notice = textCodeSent
			}
			s.showVerify(p.visit, &f.codeFlow, token, c, fasthttp.StatusOK, notice)
		case !p.verifyForm(f.path, token).checkFormToken(value(p.form, fieldFormToken), p.now):
			s.showVerify(p.visit, &f.codeFlow, token, c, fasthttp.StatusForbidden, "", pages.Problem{Text: textStaleForm})
		default:
			s.confirmAddress(p, f, token, c)
		}
	}
}

func (s *Server) confirmAddress(p *person, f *addressChange, token string, c *account.Challenge) {
	code := value(p.form, "code")
	if code == "" || len(code) > maxSecretText {
		s.showVerify(p.visit, &f.codeFlow, token, c, fasthttp.StatusUnprocessableEntity, "", pages.Problem{Field: "code", Text: "Enter the code from our message."})
		return
	}
	_, err := s.config.Identity.ConfirmChange(p.ctx, p.user.ID, token, code, p.now)
	switch {
	case err == nil:
		s.dropCode(p.http)
		if mark := s.knownMark(p.http, p.user.Email); mark != "" && f.channel == account.Email {
			s.keepKnown(p.http, c.Address, mark)
		}
		redirect(p.http, p.toNotice(pathMe, f.done))
	case errors.Is(err, account.ErrTaken):
		s.dropCode(p.http)
		s.showAddress(p, f.channel, fasthttp.StatusUnprocessableEntity, pages.Problem{Field: addressField(f.channel), Text: "This belongs to another account in the meantime."})
	case errors.Is(err, account.ErrNotFound):
		redirect(p.http, pathLogin)
	default:
		s.refuseCode(p.visit, &f.codeFlow, token, c, err)
	}
}

// resendAddress takes the form that asks for another code.
func (s *Server) resendAddress(f *addressChange) func(*person) {
	resend := s.resendCode(&f.codeFlow)
	return func(p *person) {
		if !p.http.IsPost() {
			resend(p.visit)
			return
		}
		if _, _, ok := s.addressChallenge(p, f); ok {
			resend(p.visit)
		}
	}
}
