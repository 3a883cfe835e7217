package signin

import (
	"errors"
	"net/url"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// factorForm binds a form of the second step to the sign-in that waits.
func factorForm(v *visit.Visit, purpose, token string) visit.Binding {
	return v.Bind(purpose + " " + token)
}

// pendingFactor returns the sign-in of this browser that waits for a second factor. If there is none,
// it responds and returns false.
func (s *service) pendingFactor(v *visit.Visit) (
	token string, about *people.PendingFactor, ok bool) {
	token = s.FactorToken(v.HTTP)
	about, err := s.people.PendingFactor(v.Ctx, token, s.factorBrowser(v, nil), v.Now)
	switch {
	case err == nil:
		// A second look, now that the address is known by which the browser may be known.
		about, err = s.people.PendingFactor(v.Ctx, token, s.factorBrowser(v, about), v.Now)
		if err == nil {
			return token, about, true
		}
		s.WriteFailure(v.HTTP, "read a sign-in", err)
	case !errors.Is(err, people.ErrCodeExpired):
		s.WriteFailure(v.HTTP, "read a sign-in", err)
	case v.HTTP.IsPost() && s.resume(v):
	default:
		s.factorGone(v)
	}
	return "", nil, false
}

// factorGone begins anew after a sign-in that no longer waits.
func (s *service) factorGone(v *visit.Visit) {
	s.DropFactor(v.HTTP)
	if !v.HTTP.IsPost() {
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
		return
	}
	s.showLogin(v, fasthttp.StatusUnprocessableEntity,
		pages.Problem{Text: texts.Of("factor.gone")})
}

// factorBrowser returns the browser, which may be known to the account of a sign-in that waits.
func (s *service) factorBrowser(v *visit.Visit, about *people.PendingFactor) people.Browser {
	if about == nil {
		return s.Browser(v, "")
	}
	return s.Browser(v, about.Address)
}

// factor shows and handles the page that asks for the second factor, before there is a session.
func (s *service) factor(v *visit.Visit) {
	token, about, ok := s.pendingFactor(v)
	if !ok {
		return
	}
	code := v.Field("code")
	switch {
	case !v.HTTP.IsPost():
		s.showFactor(v, token, about, fasthttp.StatusOK)
	case !v.CheckForm(factorForm(v, "factor", token)):
		s.showFactor(v, token, about, fasthttp.StatusForbidden,
			pages.Problem{Text: visit.TextStaleForm})
	case code == "" || len(code) > visit.MaxSecretText:
		s.showFactor(v, token, about, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: "code", Text: visit.FactorText("missing", about.App)})
	default:
		s.confirmFactor(v, token, about, code)
	}
}

// factorKey uses a security key as the second factor, before there is a session. For the script of the
// page, it has a new challenge.
func (s *service) factorKey(v *visit.Visit) {
	token, about, ok := s.pendingFactor(v)
	switch {
	case !ok:
		return
	case v.WantsChallenge():
		s.SendChallenge(v, s.factorKeyForm(v, token, about))
		return
	case !v.HTTP.IsPost():
		visit.Redirect(v.HTTP, v.Path(pages.PathLoginFactor)) // a reload after the form was sent
		return
	}
	answer, _, err := s.PasskeyAnswer(v, factorForm(v, "factor key", token), 0)
	var in *people.SignedIn
	if err == nil {
		trust := v.Field("trust") == "true" && !about.Reset
		in, err = s.people.ConfirmFactorByKey(v.Ctx, token, answer, trust, s.factorBrowser(v, about),
			v.Now)
	}
	status, problems := visit.AgainByKey(v, err, "verify.too_many_wrong")
	switch {
	case err == nil:
		s.DropFactor(v.HTTP)
		s.finishSignIn(v, in)
	case errors.Is(err, people.ErrCodeExpired), errors.Is(err, people.ErrWrongCredentials):
		s.factorGone(v)
	case status != 0:
		s.showFactor(v, token, about, status, problems...)
	default:
		s.WriteFailure(v.HTTP, "check a security key", err)
	}
}

// factorKeyForm returns the form that asks for a security key; zero = the person has none.
func (s *service) factorKeyForm(
	v *visit.Visit, token string, about *people.PendingFactor,
) pages.Passkey {
	p := s.SecurityKey(v, about.User, factorForm(v, "factor key", token), v.Path(pages.PathFactorKey))
	p.Trusts = !about.Reset && !about.NeedsCode
	return p
}

func (s *service) confirmFactor(v *visit.Visit, token string, about *people.PendingFactor,
	code string) {
	trust := v.Field("trust") == "true" && !about.Reset
	in, err := s.people.ConfirmFactor(v.Ctx, token, code, trust, s.factorBrowser(v, about), v.Now)
	status, problems := visit.Again(v, err, "code", "verify.too_many_wrong")
	switch {
	case err == nil:
		s.DropFactor(v.HTTP)
		s.finishSignIn(v, in)
	case errors.Is(err, people.ErrFactorCode):
		about.NeedsCode = true
		s.showFactor(v, token, about, fasthttp.StatusTooManyRequests)
	case errors.Is(err, people.ErrCodeExpired), errors.Is(err, people.ErrWrongCredentials):
		s.factorGone(v)
	case errors.Is(err, people.ErrWrongCode):
		s.showFactor(v, token, about, status,
			pages.Problem{Field: "code", Text: visit.FactorText("wrong", about.App)})
	case status != 0:
		s.showFactor(v, token, about, status, problems...)
	default:
		s.WriteFailure(v.HTTP, "check a second factor", err)
	}
}

// showFactor shows the page that asks for the second factor, or for a code to a channel first.
func (s *service) showFactor(v *visit.Visit, token string, about *people.PendingFactor, status int,
	problems ...pages.Problem) {
	p := pages.Factor{
		Client: v.ClientName(), Address: about.Address, Action: v.Path(pages.PathLoginFactor),
		FormToken:   factorForm(v, "factor", token).NewFormToken(v.Now),
		OffersTrust: !about.Reset, Back: v.Path(pages.PathLogin), Problems: problems,
		App: about.App, Key: s.factorKeyForm(v, token, about),
	}
	if about.NeedsCode {
		p.CodePath = v.Path(pages.PathFactorCode)
		p.CodeToken = factorForm(v, "factor code", token).NewFormToken(v.Now)
		for _, c := range about.Channels {
			p.Channels = append(p.Channels, string(c))
		}
	}
	s.Show(v, status, p)
}

// factorFlow sends a code to a channel of the account before the second factor, after too many wrong
// ones.
func (s *service) factorFlow() *visit.CodeFlow {
	return &visit.CodeFlow{
		Kind: pages.VerifyEmailProof, Purpose: account.ForFactor,
		Start: pages.PathLoginFactor, Path: pages.PathFactorVerify, Resend: pages.PathFactorResend,
		Restart: func(v *visit.Visit, status int, problems ...pages.Problem) {
			if token, about, ok := s.pendingFactor(v); ok {
				s.showFactor(v, token, about, status, problems...)
			}
		},
	}
}

// factorCode handles the form that requests such a code.
func (s *service) factorCode(v *visit.Visit) {
	token, about, ok := s.pendingFactor(v)
	switch {
	case !ok:
	case !v.HTTP.IsPost():
		visit.Redirect(v.HTTP, v.Path(pages.PathLoginFactor))
	case !v.CheckForm(factorForm(v, "factor code", token)):
		s.showFactor(v, token, about, fasthttp.StatusForbidden,
			pages.Problem{Text: visit.TextStaleForm})
	default:
		codeToken, err := s.people.BeginFactorCode(v.Ctx, token,
			account.Channel(v.Field("channel")), s.factorBrowser(v, about), v.Now)
		if errors.Is(err, people.ErrProofNeeded) {
			s.showFactor(v, token, about, fasthttp.StatusUnprocessableEntity,
				pages.Problem{Text: texts.Of("proof.choose")})
			return
		}
		s.GoToCode(v, s.factorFlow(), codeToken, err)
	}
}

// verifyFactor shows and handles the page that asks for such a code.
func (s *service) verifyFactor(f *visit.CodeFlow) func(*visit.Visit) {
	return func(v *visit.Visit) {
		token, about, ok := s.pendingFactor(v)
		if !ok {
			return
		}
		codeToken, c, ok := s.Challenge(v, f)
		if !ok {
			return
		}
		code, ok := s.EnteredCode(v, f, codeToken, c)
		if !ok {
			return
		}
		err := s.people.ConfirmFactorCode(v.Ctx, token, codeToken, code, s.factorBrowser(v, about),
			v.Now)
		if err != nil {
			s.RefuseCode(v, f, codeToken, c, err)
			return
		}
		s.DropCode(v.HTTP)
		visit.Redirect(v.HTTP, v.Path(pages.PathLoginFactor))
	}
}

// stepsUp returns who uses a second factor in a session, for a request that needs it. If nobody can, it
// responds and returns false.
func (s *service) stepsUp(v *visit.Visit) (who visit.Visitor, ok bool) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return who, false
	}
	who, ok = visit.FindVisitor(visitors, v.Chosen)
	if v.Pending == nil && len(visitors) > 0 {
		who, ok = visitors[0], true
	}
	if !ok || !who.User.HasSecondFactor() {
		visit.Redirect(v.HTTP, afterStepUp(v, who))
		return who, false
	}
	v.By(who.User.ID)
	return who, true
}

// stepUp asks for the second factor in a session, for a request that needs it, as use does.
func (s *service) stepUp(use func(*visit.Visit, *visit.SessionFactor)) func(*visit.Visit) {
	return func(v *visit.Visit) {
		who, ok := s.stepsUp(v)
		if !ok {
			return
		}
		use(v, &visit.SessionFactor{Visitor: who, Client: v.ClientName(),
			Path:    v.PathChosen(pages.PathStepUp, who.User.ID),
			KeyPath: v.PathChosen(pages.PathStepUpKey, who.User.ID),
			Form:    v.Bind("step up " + who.Token), KeyForm: v.Bind("step up key " + who.Token),
			TooMany: "verify.too_many_wrong", Next: afterStepUp(v, who)})
	}
}

// afterStepUp returns the path and query that go on with the request.
func afterStepUp(v *visit.Visit, who visit.Visitor) string {
	switch {
	case v.Pending == nil:
		return v.Home()
	case who.User == nil:
		return v.Path(pages.PathAuthorize)
	}
	return v.PathChosen(pages.PathAuthorize, who.User.ID)
}

// pathEnrol returns the path of the page that sets up an authenticator app, and then goes on to a path
// of ours.
func pathEnrol(then string) string {
	return pages.PathMeApp + "?then=" + url.QueryEscape(then)
}

// goToEnrol has the person set up a second factor, in the account that continues.
func (s *service) goToEnrol(v *visit.Visit, who visit.Visitor) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.RefuseFailure(v, "read sessions", err)
		return
	}
	s.putFirst(v, visitors, who)
	visit.Redirect(v.HTTP, pathEnrol(v.PathChosen(pages.PathAuthorize, who.User.ID)))
}

// stepsUpForDevice responds and returns true if the client of a device needs a second factor that was
// not used.
func (s *service) stepsUpForDevice(v *visit.Visit, who visit.Visitor, client *oauth.Client) bool {
	always := client.Options.RequireSecondFactor
	switch {
	case s.people.MustEnrol(who.User, who.Session, always):
		visit.Redirect(v.HTTP, pathEnrol(v.Path(pages.PathDevice)))
	case always && !who.Session.HasTwoFactors():
		visit.Redirect(v.HTTP, v.Path(pages.PathStepUp))
	default:
		return false
	}
	return true
}
