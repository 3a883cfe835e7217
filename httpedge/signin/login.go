package signin

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// login shows and handles the form with email address and password.
func (s *service) login(v *visit.Visit) {
	if !v.HTTP.IsPost() {
		s.greet(v)
		return
	}
	if !v.CheckForm(v.Bind("login")) {
		s.showLogin(v, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
		return
	}
	email, password := v.Field("email"), v.Field("password")
	if problems := missing(email, password); problems != nil {
		s.showLogin(v, fasthttp.StatusUnprocessableEntity, problems...)
		return
	}
	if len(email) > visit.MaxSecretText || len(password) > visit.MaxSecretText {
		status, problems := visit.Again(v, people.ErrWrongCredentials, "email", "")
		s.showLogin(v, status, problems...)
		return
	}
	s.signIn(v, email, password)
}

func missing(email, password string) []pages.Problem {
	var problems []pages.Problem
	if email == "" {
		problems = append(problems,
			pages.Problem{Field: "email", Text: texts.Of("wrong.email_missing")})
	}
	if password == "" {
		problems = append(problems, pages.Problem{Field: "password", Text: texts.Of("wrong.password_missing")})
	}
	return problems
}

func (s *service) signIn(v *visit.Visit, email, password string) {
	signedIn, err := s.people.SignIn(v.Ctx, people.SignIn{
		Email: email, Password: password,
		Caller: s.Caller(v),
		Device: visit.DeviceOf(string(v.HTTP.UserAgent())),
		Known:  s.KnownMark(v.HTTP, email), App: v.ClientID(), Second: s.SecondStep(v, email),
	}, v.Now)
	status, problems := visit.Again(v, err, "email", "login.too_many")
	var factor *people.FactorNeededError
	switch {
	case err == nil:
		s.finishSignIn(v, signedIn)
	case errors.As(err, &factor):
		s.GoToFactor(v, factor.Token)
	case needsCode(err):
		s.offerCode(v, status)
	case errors.Is(err, people.ErrDisabled):
		s.showDisabled(v, err)
	case status != 0:
		s.showLogin(v, status, problems...)
	default:
		s.WriteFailure(v.HTTP, "sign in", err)
	}
}

// finishSignIn stores the new session in the browser and continues the flow.
func (s *service) finishSignIn(v *visit.Visit, signedIn *people.SignedIn) {
	session, user, err := s.people.Session(v.Ctx, signedIn.Token, v.Now)
	if err != nil {
		s.WriteFailure(v.HTTP, "read a new session", err)
		return
	}
	if err := s.Join(v, visit.Visitor{Token: signedIn.Token, Session: session,
		User: user}); err != nil {
		s.WriteFailure(v.HTTP, "join a session to others", err)
		return
	}
	s.KeepKnown(v.HTTP, signedIn.Known, user.Email, user.Phone)
	if signedIn.Trusted != "" {
		s.KeepTrusted(v.HTTP, signedIn.Trusted, user.Email, user.Phone)
	}
	result := s.connectWaiting(v, session)
	v.Secret = s.RenewBrowserSecret(v.HTTP)
	next := v.Home()
	if result != 0 && next == pages.PathMe {
		next = v.PathResult(pages.PathMeConnections, result)
	}
	switch {
	case v.Pending != nil:
		v.Pending.Prove(session)
		next = v.PathChosen(pages.PathAuthorize, user.ID)
	case s.people.MustEnrol(user, session, false):
		visit.Redirect(v.HTTP, pathEnrol(next))
		return
	}
	visit.Redirect(v.HTTP, s.afterPassword(v, user, next))
}

// greet shows the form, and who is signed in already.
func (s *service) greet(v *visit.Visit) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return
	}
	p := s.loginPage(v)
	if len(visitors) > 0 {
		p.SignedIn, p.Stay = visit.AccountsOf(visitors[:1]), v.Home()
		if v.Pending != nil {
			p.Stay = v.Path(pages.PathAccounts)
		}
	}
	s.Show(v, fasthttp.StatusOK, p)
}

// showDisabled says that the account is disabled, to somebody who knows its password or code.
func (s *service) showDisabled(v *visit.Visit, err error) {
	problem := endpoint.ProblemOf(err)
	s.WriteMessage(v.HTTP, problem.Status,
		pages.Message{Title: texts.Of("login.disabled"), Text: visit.TextOf(err),
			Advice: texts.Of("login.ask_operator")})
}

// showLogin shows the form, with the address that was entered.
func (s *service) showLogin(v *visit.Visit, status int, problems ...pages.Problem) {
	p := s.loginPage(v)
	p.Problems = problems
	s.Show(v, status, p)
}

// loginPage returns the form, with the address that was entered.
func (s *service) loginPage(v *visit.Visit) pages.Login {
	p := pages.Login{
		Client: v.ClientName(), Device: v.Device != "", Action: v.Path(pages.PathLogin),
		FormToken: v.Bind("login").NewFormToken(v.Now),
		Email:     hinted(v, "email", isEmail), Notice: confirmed(v), Passkey: s.passkeyForm(v),
		Register: s.registerPath(v),
		Phone:    s.pathIf(v, account.SMS, pages.PathPhone),
		Reset:    s.pathIf(v, account.Email, pages.PathReset),
	}
	if w := s.waits(v); w != nil && w.UserID != 0 {
		p.Waits = pages.Waits{Provider: w.Provider.Name, Address: w.Address}
		p.Register = ""
		if !v.HTTP.IsPost() {
			p.Email = w.Address
		}
	} else {
		p.Providers = s.providers(v)
	}
	return p
}

// hinted returns what was entered in a field, or the request's login_hint if it fits there and the
// page is shown for the first time.
func hinted(v *visit.Visit, field string, fits func(string) bool) string {
	if v.HTTP.IsPost() || v.Pending == nil || v.Form != nil {
		return v.Shown(field)
	}
	hint := v.Pending.Request.LoginHint
	if len(hint) > visit.MaxSecretText || !fits(hint) {
		return ""
	}
	return hint
}

func isEmail(hint string) bool { return strings.Contains(hint, "@") }

func isPhone(hint string) bool {
	_, err := account.ParsePhone(hint)
	return err == nil
}
