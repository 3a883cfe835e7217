package signin

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// phoneFlow signs in by phone number, and registers a new number.
func (s *service) phoneFlow() *codeFlow {
	return &codeFlow{
		CodeFlow: visit.CodeFlow{
			Kind: pages.VerifyPhone, Purpose: account.ForPhone, Channel: account.SMS,
			Start: pages.PathPhone, Path: pages.PathPhoneVerify, Resend: pages.PathPhoneResend,
			Restart: s.showPhone, Resume: s.resume,
		},
		confirm: func(v *visit.Visit, token, code string,
			by people.Browser) (*people.SignedIn, error) {
			return s.people.ConfirmPhone(v.Ctx, token, code, v.Field("name"), by, v.Now)
		},
	}
}

// phone shows and handles the form for a phone number.
func (s *service) phone(v *visit.Visit) {
	if !v.HTTP.IsPost() {
		s.showPhone(v, fasthttp.StatusOK)
		return
	}
	number := v.Field("phone_number")
	switch {
	case !v.CheckForm(v.Bind("phone")):
		s.showPhone(v, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case number == "":
		status, problems := visit.Again(v, account.Missing("phone_number"), "", "")
		s.showPhone(v, status, problems...)
	default:
		token, err := s.people.BeginPhone(v.Ctx, number, s.Browser(v, number), v.Now)
		s.GoToCode(v, &s.phoneFlow().CodeFlow, token, err)
	}
}

func (s *service) showPhone(v *visit.Visit, status int, problems ...pages.Problem) {
	s.Show(v, status, pages.Phone{
		Client: v.ClientName(), Action: v.Path(pages.PathPhone),
		FormToken: v.Bind("phone").NewFormToken(v.Now),
		Number:    hinted(v, "phone_number", isPhone), Login: v.Path(pages.PathLogin), Problems: problems,
	})
}
