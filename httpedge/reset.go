package httpedge

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// resetFlow replaces a forgotten password. Nothing that it answers tells whether an address has an account.
var resetFlow = &codeFlow{
	kind: pages.VerifyReset, purpose: account.ForReset, channel: account.Email,
	start: pathReset, path: pathResetVerify, resend: pathResetResend,
	restart: (*Server).showReset,
	confirm: func(s *Server, v *visit, token, code string, by actors.Visitor) (*actors.SignedIn, error) {
		return s.config.Identity.ConfirmReset(v.ctx, token, code, value(v.form, "password"), by, v.now)
	},
}

// reset shows the form for the address of an account whose password is forgotten, and takes it.
func (s *Server) reset(v *visit) {
	if !v.http.IsPost() {
		s.showReset(v, fasthttp.StatusOK)
		return
	}
	if !v.bind("reset").checkFormToken(value(v.form, fieldFormToken), v.now) {
		s.showReset(v, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
		return
	}
	token, err := s.config.Identity.BeginReset(v.ctx, value(v.form, "email"), s.clients.caller(v.http), v.now)
	s.begun(v, resetFlow, token, err)
}

func (s *Server) showReset(v *visit, status int, problems ...pages.Problem) {
	s.show(v, status, pages.Reset{
		Client: v.clientName(), Action: v.path(pathReset), FormToken: v.bind("reset").newFormToken(v.now),
		Email: v.shown("email"), Login: v.path(pathLogin), Problems: problems,
	})
}
