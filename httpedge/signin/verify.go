package signin

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// justNow limits how long after a sign-in a form sent before it continues the flow.
const justNow = 10 * time.Second

// codeFlow is a way to sign in that ends with a code.
type codeFlow struct {
	visit.CodeFlow
	// confirm checks the code and signs in.
	confirm func(v *visit.Visit, token, code string, by people.Browser) (*people.SignedIn, error)
}

// pathIf returns the path of a page that needs a messenger for channel; "" = not offered.
func (s *service) pathIf(v *visit.Visit, channel account.Channel, page string) string {
	if !s.people.Channels().Has(channel) {
		return ""
	}
	return v.Path(page)
}

// verify shows and handles the page that asks for f's code.
func (s *service) verify(f *codeFlow) func(*visit.Visit) {
	return func(v *visit.Visit) {
		token, c, ok := s.Challenge(v, &f.CodeFlow)
		if !ok {
			return
		}
		if code, ok := s.EnteredCode(v, &f.CodeFlow, token, c); ok {
			s.confirmCode(v, f, token, code, c)
		}
	}
}

// resume continues for an account that signed in with this browser just now, such as by the first
// click of a double click. It returns false when there is none.
func (s *service) resume(v *visit.Visit) bool {
	visitors, err := s.Visitors(v)
	switch {
	case err != nil:
		s.WriteFailure(v.HTTP, "read sessions", err)
	case len(visitors) == 0 || v.Now.Sub(visitors[0].Session.SignedIn) >= justNow:
		return false
	case v.Pending == nil:
		visit.Redirect(v.HTTP, v.Home())
	default:
		visit.Redirect(v.HTTP, v.PathChosen(pages.PathAuthorize, visitors[0].User.ID))
	}
	return true
}

// noticeRecovery leads to the account with a notice, if it is the account that the visit leads to.
func (s *service) noticeRecovery(v *visit.Visit) {
	if to := v.Home(); string(v.HTTP.Response.Header.Peek(fasthttp.HeaderLocation)) == to &&
		v.Pending == nil && to == pages.PathMe {
		visit.Redirect(v.HTTP, v.WithNotice(to, visit.NoticeRecovered))
	}
}

func (s *service) confirmCode(v *visit.Visit, f *codeFlow, token, code string,
	c *account.Challenge) {
	in, err := f.confirm(v, token, code, s.Browser(v, c.Address))
	var stepUp *people.StepUpError
	var factor *people.FactorNeededError
	var waiting *people.WaitingError
	switch {
	case errors.As(err, &factor):
		s.DropCode(v.HTTP)
		s.GoToFactor(v, factor.Token)
	case errors.As(err, &waiting):
		s.DropCode(v.HTTP)
		s.KeepWaiting(v.HTTP, waiting.Token)
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case errors.Is(err, people.ErrAttemptEnded):
		s.DropCode(v.HTTP)
		s.showLogin(v, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("with.waiting_ended")})
	case errors.Is(err, people.ErrNotConnected):
		s.DropCode(v.HTTP)
		s.showWithEnded(v)
	case errors.As(err, &stepUp):
		s.GoOnToCode(v, &s.resetProofFlow().CodeFlow, stepUp.Token)
	case err == nil:
		s.DropCode(v.HTTP)
		s.finishSignIn(v, in)
		if f.Purpose == account.ForReset || f.Purpose == account.ForResetProof {
			s.noticeRecovery(v)
		}
	case errors.Is(err, account.ErrTaken):
		s.DropCode(v.HTTP)
		s.showLogin(v, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("login.taken")})
	case errors.Is(err, people.ErrPasswordNeeded):
		s.DropCode(v.HTTP)
		problem := endpoint.ProblemOf(err)
		s.WriteMessage(v.HTTP, problem.Status,
			pages.Message{Title: texts.Of("login.with_password"), Text: visit.TextOf(err),
				Advice: texts.Of("login.password_advice"),
				Link:   v.Path(pages.PathLogin), LinkText: texts.Of("login.with_password")})
	case errors.Is(err, people.ErrNoRegistration),
		errors.Is(err, people.ErrNoAccount) && f.Purpose != account.ForReset &&
			f.Purpose != account.ForResetProof:
		s.DropCode(v.HTTP)
		s.refuseRegistration(v)
	case errors.Is(err, people.ErrDisabled):
		s.DropCode(v.HTTP)
		s.showDisabled(v, err)
	default:
		s.RefuseCode(v, &f.CodeFlow, token, c, err)
	}
}
