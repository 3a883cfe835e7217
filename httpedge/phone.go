package httpedge

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// phoneFlow signs in by phone number, and makes an account where there is none.
var phoneFlow = &codeFlow{
	kind: pages.VerifyPhone, purpose: account.ForPhone, channel: account.SMS,
	start: pathPhone, path: pathPhoneVerify, resend: pathPhoneResend,
	restart: (*Server).showPhone,
	confirm: func(s *Server, v *visit, token, code string, by actors.Visitor) (*actors.SignedIn, error) {
		return s.config.Identity.ConfirmPhone(v.ctx, token, code, value(v.form, "name"), by, v.now)
	},
}

// phone shows the form for a phone number, and takes it.
func (s *Server) phone(v *visit) {
	if !v.http.IsPost() {
		s.showPhone(v, fasthttp.StatusOK)
		return
	}
	number := value(v.form, "phone_number")
	switch {
	case !v.bind("phone").checkFormToken(value(v.form, fieldFormToken), v.now):
		s.showPhone(v, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
	case number == "":
		s.showPhone(v, fasthttp.StatusUnprocessableEntity, pages.Problem{Field: "phone_number", Text: fieldWords["phone_number"].missing})
	default:
		token, err := s.config.Identity.BeginPhone(v.ctx, number, s.clients.caller(v.http), v.now)
		s.begun(v, phoneFlow, token, err)
	}
}

func (s *Server) showPhone(v *visit, status int, problems ...pages.Problem) {
	s.show(v, status, pages.Phone{
		Client: v.clientName(), Action: v.path(pathPhone), FormToken: v.bind("phone").newFormToken(v.now),
		Number: v.shown("phone_number"), Login: v.path(pathLogin), Problems: problems,
	})
}
