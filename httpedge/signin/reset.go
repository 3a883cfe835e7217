package signin

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// resetFlow replaces a forgotten password. Its responses do not reveal whether an address has an
// account.
func (s *service) resetFlow() *codeFlow {
	return &codeFlow{
		CodeFlow: visit.CodeFlow{
			Kind: pages.VerifyReset, Purpose: account.ForReset, Channel: account.Email,
			Start: pages.PathReset, Path: pages.PathResetVerify, Resend: pages.PathResetResend,
			Restart: s.showReset, Resume: s.resume,
		},
		confirm: func(v *visit.Visit, token, code string,
			by people.Browser) (*people.SignedIn, error) {
			return s.people.ConfirmReset(v.Ctx, token, code, v.Field("password"), by, v.Now)
		},
	}
}

// resetProofFlow ends a resetFlow of an account that has older channels than the address.
func (s *service) resetProofFlow() *codeFlow {
	return &codeFlow{
		CodeFlow: visit.CodeFlow{
			Kind: pages.VerifyEmailProof, Purpose: account.ForResetProof,
			Start: pages.PathReset, Path: pages.PathResetConfirm, Resend: pages.PathResetConfirmResend,
			Restart: s.showReset, Resume: s.resume,
		},
		confirm: func(v *visit.Visit, token, code string,
			by people.Browser) (*people.SignedIn, error) {
			return s.people.ConfirmResetProof(v.Ctx, token, code, by, v.Now)
		},
	}
}

// reset shows and handles the form for the address of an account whose password is forgotten.
func (s *service) reset(v *visit.Visit) {
	if !v.HTTP.IsPost() {
		s.showReset(v, fasthttp.StatusOK)
		return
	}
	if !v.CheckForm(v.Bind("reset")) {
		s.showReset(v, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
		return
	}
	email := v.Field("email")
	token, err := s.people.BeginReset(v.Ctx, email, s.Browser(v, email), v.Now)
	s.GoToCode(v, &s.resetFlow().CodeFlow, token, err)
}

func (s *service) showReset(v *visit.Visit, status int, problems ...pages.Problem) {
	s.Show(v, status, pages.Reset{
		Client: v.ClientName(), Action: v.Path(pages.PathReset),
		FormToken: v.Bind("reset").NewFormToken(v.Now),
		Email:     v.Shown("email"), Login: v.Path(pages.PathLogin), Problems: problems,
	})
}
