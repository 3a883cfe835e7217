package me

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// proof returns the evidence that the owner of the account sent the form.
func (s *service) proof(p *person) people.Proof {
	return people.Proof{Session: p.Session, Password: p.Field("current_password"),
		Caller: s.Caller(p.Visit),
		Known:  s.KnownMark(p.HTTP, p.User.Email)}
}

// needsPassword reports whether sensitive changes need the password.
func (p *person) needsPassword() bool { return p.User.PasswordHash != "" }

// fresh reports whether the form of a sensitive change can be shown. If not, it asks for a new
// sign-in.
func (s *service) fresh(p *person) bool {
	if p.needsPassword() || p.Now.Sub(p.Session.SignedIn) < people.RecentSignIn {
		return true
	}
	s.askSignIn(p)
	return false
}

// askSignIn responds that the last sign-in is too long ago.
func (s *service) askSignIn(p *person) {
	problem := endpoint.ProblemOf(people.ErrSignInAgain)
	s.WriteMessage(p.HTTP, problem.Status, pages.Message{
		Title:  "Please sign in again",
		Text:   problem.Message,
		Advice: "Sign in once more; you will come back to your account.",
		Link:   s.signInPath(p), LinkText: "Sign in",
	})
}

// signInPath returns where an account without a password signs in.
func (s *service) signInPath(p *person) string {
	if p.User.Phone != "" && s.people.Channels().Has(account.SMS) {
		return pages.PathPhone
	}
	return pages.PathLogin
}

// refuseProof responds when err says that the proof is not sufficient, and returns true. show shows
// the form again.
func (s *service) refuseProof(p *person, err error,
	show func(status int, problems ...pages.Problem)) (responded bool) {
	status, problems := visit.Again(p.Visit, err, "current_password",
		"There were too many attempts.")
	switch {
	case errors.Is(err, people.ErrWrongCredentials):
		text := "This is not your password. Check it and try again."
		if p.Field("current_password") == "" {
			text = "Enter your password."
		}
		show(status, pages.Problem{Field: "current_password", Text: text})
	case status == fasthttp.StatusTooManyRequests:
		show(status, problems...)
	case errors.Is(err, people.ErrSignInAgain):
		s.askSignIn(p)
	default:
		return false
	}
	return true
}
