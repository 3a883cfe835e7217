package signin

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// registerFlow registers with an email address and a password. Its responses do not reveal whether
// an address has an account.
func (s *service) registerFlow() *codeFlow {
	return &codeFlow{
		CodeFlow: visit.CodeFlow{
			Kind: pages.VerifyRegistration, Purpose: account.ForRegistration,
			Channel: account.Email,
			Start:   pages.PathRegister, Path: pages.PathRegisterVerify,
			Resend:  pages.PathRegisterResend,
			Restart: s.showRegister, Resume: s.resume,
		},
		confirm: func(v *visit.Visit, token, code string,
			by people.Browser) (*people.SignedIn, error) {
			return s.people.ConfirmRegistration(v.Ctx, token, code, by, v.Now)
		},
	}
}

// register shows and handles the registration form.
func (s *service) register(v *visit.Visit) {
	if !s.people.Registers() {
		s.refuseRegistration(v)
		return
	}
	if !v.HTTP.IsPost() {
		s.showRegister(v, fasthttp.StatusOK)
		return
	}
	if !v.CheckForm(v.Bind("register")) {
		s.showRegister(v, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
		return
	}
	token, err := s.people.Register(v.Ctx, people.Registration{
		Name: v.Field("name"), Email: v.Field("email"), Password: v.Field("password"),
		By: s.Browser(v, v.Field("email")),
	}, v.Now)
	s.GoToCode(v, &s.registerFlow().CodeFlow, token, err)
}

// registerPath returns the path of the page to register; "" = not offered.
func (s *service) registerPath(v *visit.Visit) string {
	if !s.people.Registers() {
		return ""
	}
	return s.pathIf(v, account.Email, pages.PathRegister)
}

// refuseRegistration tells that people cannot make accounts by themselves.
func (s *service) refuseRegistration(v *visit.Visit) {
	s.WriteMessage(v.HTTP, fasthttp.StatusForbidden, pages.Message{
		Title: texts.Of("register.closed"), Text: texts.Of("register.closed_text"),
		Link: v.Path(pages.PathLogin), LinkText: texts.Of("login.heading")})
}

func (s *service) showRegister(v *visit.Visit, status int, problems ...pages.Problem) {
	s.Show(v, status, pages.Register{
		Client: v.ClientName(), Action: v.Path(pages.PathRegister),
		FormToken: v.Bind("register").NewFormToken(v.Now),
		Name:      v.Shown("name"), Email: v.Shown("email"), Login: v.Path(pages.PathLogin),
		Phone:     s.pathIf(v, account.SMS, pages.PathPhone),
		Providers: s.providers(v),
		Problems:  problems,
	})
}
