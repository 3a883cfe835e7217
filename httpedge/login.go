package httpedge

import (
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/httpedge/pages"
)

// What people are told when they cannot be signed in.
const (
	textStaleForm = "This form was open for too long, or was opened elsewhere in this browser. Please try again."
	textWrong     = "The email address and the password do not belong together. Check both and try again."
)

// maxSecretText bounds what is taken for an e-mail address or a password, in bytes.
const maxSecretText = 1024

// login shows the form that asks for an e-mail address and a password, and takes it.
func (s *Server) login(v *visit) {
	if !v.http.IsPost() {
		s.showLogin(v, fasthttp.StatusOK)
		return
	}
	if !v.loginForm().checkFormToken(value(v.form, fieldFormToken), v.now) {
		s.showLogin(v, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
		return
	}
	email, password := value(v.form, "email"), value(v.form, "password")
	if problems := missing(email, password); problems != nil {
		s.showLogin(v, fasthttp.StatusUnprocessableEntity, problems...)
		return
	}
	if len(email) > maxSecretText || len(password) > maxSecretText {
		s.showLogin(v, fasthttp.StatusUnprocessableEntity, pages.Problem{Field: "email", Text: textWrong})
		return
	}
	s.signIn(v, email, password)
}

func missing(email, password string) []pages.Problem {
	var problems []pages.Problem
	if email == "" {
		problems = append(problems, pages.Problem{Field: "email", Text: "Enter your email address."})
	}
	if password == "" {
		problems = append(problems, pages.Problem{Field: "password", Text: "Enter your password."})
	}
	return problems
}

func (s *Server) signIn(v *visit, email, password string) {
	signedIn, err := s.config.Identity.SignIn(v.ctx, actors.SignIn{
		Email: email, Password: password,
		Caller: s.clients.caller(v.http),
		Device: device(string(v.http.UserAgent())),
		Known:  s.knownMark(v.http, email),
	}, v.now)
	var throttled *actors.ThrottledError
	switch {
	case errors.Is(err, actors.ErrWrongCredentials):
		s.showLogin(v, fasthttp.StatusUnprocessableEntity, pages.Problem{Field: "email", Text: textWrong})
	case errors.As(err, &throttled):
		seconds := strconv.FormatInt(wholeSeconds(throttled.RetryAfter), 10)
		v.http.Response.Header.Set(fasthttp.HeaderRetryAfter, seconds)
		s.showLogin(v, fasthttp.StatusTooManyRequests, pages.Problem{Text: "Too many attempts to sign in have failed. Try again in " + seconds + " seconds."})
	case err != nil:
		s.writeFailure(v.http, "sign in", err)
	default:
		s.welcome(v, email, signedIn)
	}
}

// welcome keeps the new session in the browser and goes on with what the person came for.
func (s *Server) welcome(v *visit, email string, signedIn *actors.SignedIn) {
	session, user, err := s.config.Identity.Session(v.ctx, signedIn.Token, v.now)
	if err != nil {
		s.writeFailure(v.http, "read a new session", err)
		return
	}
	if err := s.join(v, visitor{signedIn.Token, session, user}); err != nil {
		s.writeFailure(v.http, "join a session to others", err)
		return
	}
	s.keepKnown(v.http, email, signedIn.Known)
	v.secret = s.renewBrowserSecret(v.http)
	if v.pending == nil {
		redirect(v.http, pathAccounts)
		return
	}
	redirect(v.http, v.pathChosen(pathAuthorize, newChoice(user.ID, true)))
}

// showLogin shows the form, with the address as it was entered.
func (s *Server) showLogin(v *visit, status int, problems ...pages.Problem) {
	email := value(v.form, "email")
	if len(email) > maxSecretText {
		email = ""
	}
	s.show(v, status, pages.Login{
		Client: v.clientName(), Action: v.path(pathLogin), FormToken: v.loginForm().newFormToken(v.now),
		Email: email, Problems: problems,
	})
}

func (v *visit) loginForm() binding { return v.bind("login") }
