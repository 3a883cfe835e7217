package httpedge

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// registerFlow makes an account with an e-mail address and a password. Nothing that it answers tells whether an address has one.
var registerFlow = &codeFlow{
	kind: pages.VerifyRegistration, purpose: account.ForRegistration, channel: account.Email,
	start: pathRegister, path: pathRegisterVerify, resend: pathRegisterResend,
	restart: (*Server).showRegister,
	confirm: func(s *Server, v *visit, token, code string, by actors.Visitor) (*actors.SignedIn, error) {
		return s.config.Identity.ConfirmRegistration(v.ctx, token, code, by, v.now)
	},
}

// register shows the form for an account by e-mail, and takes it.
func (s *Server) register(v *visit) {
	if !v.http.IsPost() {
		s.showRegister(v, fasthttp.StatusOK)
		return
	}
	if !v.bind("register").checkFormToken(value(v.form, fieldFormToken), v.now) {
		s.showRegister(v, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
		return
	}
	token, err := s.config.Identity.Register(v.ctx, actors.Registration{
		Name: value(v.form, "name"), Email: value(v.form, "email"), Password: value(v.form, "password"), Caller: s.clients.caller(v.http),
	}, v.now)
	s.begun(v, registerFlow, token, err)
}

func (s *Server) showRegister(v *visit, status int, problems ...pages.Problem) {
	s.show(v, status, pages.Register{
		Client: v.clientName(), Action: v.path(pathRegister), FormToken: v.bind("register").newFormToken(v.now),
		Name: v.shown("name"), Email: v.shown("email"), Login: v.path(pathLogin), Phone: s.pathIf(v, account.SMS, pathPhone),
		Problems: problems,
	})
}
