package signin

import (
	"errors"
	"slices"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// providers returns the buttons of the providers with which people sign in. Without them, the page
// offers the other ways.
func (s *service) providers(v *visit.Visit) []pages.Provider {
	choices, err := s.people.ProviderChoices(v.Ctx)
	if err != nil {
		s.LogFailure(v, "read providers", err)
		return nil
	}
	return visit.ProviderButtons(v, choices, v.Bind,
		func(id string) string { return v.Path(people.PathWith + id) })
}

// vouching returns the buttons of the providers whose verified addresses accept an invitation.
func (s *service) vouching(v *visit.Visit) []pages.Provider {
	choices, err := s.people.ProviderChoices(v.Ctx)
	if err != nil {
		s.LogFailure(v, "read providers", err)
		return nil
	}
	choices = slices.DeleteFunc(choices, func(p people.ProviderChoice) bool { return !p.Vouches })
	return visit.ProviderButtons(v, choices, v.Bind,
		func(id string) string { return people.PathWith + id })
}

// waits returns the connection that is made when the person has signed in; nil = none is.
func (s *service) waits(v *visit.Visit) *people.Waiting {
	token := s.WaitingToken(v.HTTP)
	if token == "" {
		return nil
	}
	w, err := s.people.Waiting(v.Ctx, token, v.Secret, v.Now)
	if err != nil {
		if !errors.Is(err, people.ErrAttemptEnded) {
			s.LogFailure(v, "read a connection that waits", err)
		}
		s.DropWaiting(v.HTTP)
		return nil
	}
	return w
}

// beginWith sends the browser to a provider.
func (s *service) beginWith(v *visit.Visit) {
	id, _ := v.HTTP.UserValue("id").(string)
	if !v.CheckToken(v.Bind(visit.StartWith(id)), visit.ParamStart) {
		s.showLogin(v, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
		return
	}
	w := people.With{Provider: id, Purpose: people.WithSignIn, Secret: v.Secret,
		Caller: s.Caller(v), Query: v.Query()}
	if v.Pending != nil {
		w.Again, w.LoginHint = v.Pending.Request.Reauthenticates(), v.Pending.Request.LoginHint
	}
	url, err := s.people.BeginWith(v.Ctx, w, v.Now)
	if err != nil {
		s.refuseWith(v, id, err)
		return
	}
	visit.Redirect(v.HTTP, url)
}

// refuseWith shows the sign-in page after a sign-in with a provider that has failed.
func (s *service) refuseWith(v *visit.Visit, id string, err error) {
	name := s.providerName(v, id)
	key, status := "", fasthttp.StatusUnprocessableEntity
	switch {
	case errors.Is(err, people.ErrAttemptEnded):
		s.showWithEnded(v)
		return
	case errors.Is(err, oauth.ErrProviderAway):
		key, status = "with.away", fasthttp.StatusServiceUnavailable
	case errors.As(err, new(*oauth.ProviderError)):
		key = "with.failed"
	case errors.Is(err, oauth.ErrBusy):
		key, status = "with.busy", fasthttp.StatusServiceUnavailable
	case errors.Is(err, people.ErrNotLet):
		key, status = "with.not_let", fasthttp.StatusForbidden
	case errors.Is(err, people.ErrNotConnected):
		key, status = "with.not_connected", fasthttp.StatusForbidden
		if s.people.Invites() && !s.people.Registers() {
			key = "with.not_invited"
		}
	case errors.Is(err, people.ErrDisabled):
		problem := endpoint.ProblemOf(err)
		s.WriteMessage(v.HTTP, problem.Status, pages.Message{Title: texts.Of("login.disabled"),
			Text: visit.TextOf(err), Advice: texts.Of("login.ask_operator")})
		return
	default:
		status, problems := visit.Again(v, err, "", "with.too_many")
		if status == 0 {
			s.WriteFailure(v.HTTP, "sign in with a provider", err)
			return
		}
		s.showLogin(v, status, problems...)
		return
	}
	if status == fasthttp.StatusServiceUnavailable {
		v.HTTP.Response.Header.Set(fasthttp.HeaderRetryAfter, "5")
	}
	s.showLogin(v, status, pages.Problem{Text: texts.Of(key, "provider", name)})
}

// providerName returns the name of a provider for people.
func (s *service) providerName(v *visit.Visit, id string) string {
	choices, err := s.people.ProviderChoices(v.Ctx)
	if err != nil {
		s.LogFailure(v, "read providers", err)
	}
	for _, p := range choices {
		if p.ID == id {
			return p.Name
		}
	}
	return id
}

func (s *service) showWithEnded(v *visit.Visit) {
	minutes := int(oauth.ProviderAttemptEnd.Minutes())
	s.WriteMessage(v.HTTP, fasthttp.StatusGone, pages.Message{Title: texts.Of("with.ended"),
		Text: texts.Of("with.ended_text", "n", minutes), Advice: texts.Of("with.ended_advice"),
		Link: pages.PathLogin, LinkText: texts.Of("login.heading")})
}

// endWith goes on when the browser comes back from a provider.
func (s *service) endWith(v *visit.Visit) {
	v.Secret = s.BrowserSecret(v.HTTP)
	id, _ := v.HTTP.UserValue("id").(string)
	params, ok := endpoint.ParseParameters(v.HTTP.URI().QueryString())
	if !ok {
		s.RefusePage(v, texts.Of("message.malformed"), texts.Of("message.start_again"))
		return
	}
	r := people.Returned{State: endpoint.Value(params, "state"), Code: endpoint.Value(params, "code"),
		Issuer: endpoint.Value(params, "iss"), Secret: v.Secret}
	a, err := s.people.TakeWith(v.Ctx, id, r.State, v.Secret, v.Now)
	switch {
	case errors.Is(err, people.ErrAttemptEnded):
		s.showWithEnded(v)
		return
	case err != nil:
		s.WriteFailure(v.HTTP, "read a sign-in with a provider", err)
		return
	}
	fault := endpoint.Value(params, "error")
	if a.Purpose != people.WithSignIn {
		s.endWithSession(v, a, r, fault)
		return
	}
	// The pages go on as if the browser had never left.
	v.HTTP.URI().SetQueryString(a.Query)
	if !s.readPending(v) {
		return
	}
	v.OpenPending()
	if v.Pending == nil {
		v.OpenDevice()
	}
	if fault != "" || r.Code == "" {
		key := "with.failed"
		if oauth.Code(fault) == oauth.AccessDenied {
			key = "with.cancelled"
		}
		s.showLogin(v, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of(key, "provider", s.providerName(v, id))})
		return
	}
	r.By = s.Browser(v, "")
	result, err := s.people.FinishWith(v.Ctx, a, r, nil,
		func(address string) string { return s.KnownMark(v.HTTP, address) }, v.Now)
	var factor *people.FactorNeededError
	switch {
	case errors.As(err, &factor):
		s.GoToFactor(v, factor.Token)
	case err != nil:
		s.refuseWith(v, id, err)
	case result.SignedIn != nil:
		s.finishSignIn(v, result.SignedIn)
	case result.NeedsAddress:
		s.KeepWaiting(v.HTTP, result.Waiting)
		visit.Redirect(v.HTTP, v.Path(pages.PathConnect))
	default:
		s.KeepWaiting(v.HTTP, result.Waiting)
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	}
}

// endWithSession is endWith for a connection that is added to an account, or proves who a person is.
func (s *service) endWithSession(
	v *visit.Visit, a *oauth.ProviderAttempt, r people.Returned, fault string,
) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return
	}
	var session *account.Session
	for _, who := range visitors {
		if who.Session.Hash == a.Session {
			session = who.Session
			v.By(who.User.ID)
		}
	}
	result := visit.WithFailed
	switch {
	case session == nil:
		s.showWithEnded(v)
		return
	case oauth.Code(fault) == oauth.AccessDenied:
		result = visit.WithCancelled
	case fault == "" && r.Code != "":
		r.By = s.Browser(v, "")
		_, err = s.people.FinishWith(v.Ctx, a, r, session, nil, v.Now)
		result, err = resultOf(err)
	}
	if err != nil {
		s.WriteFailure(v.HTTP, "connect an account", err)
		return
	}
	if result == visit.WithConnected && a.Purpose == people.WithProof {
		visit.Redirect(v.HTTP, a.Query)
		return
	}
	visit.Redirect(v.HTTP, v.PathResult(a.Query, result))
}

// resultOf returns what err means to a person, or err itself.
func resultOf(err error) (visit.Result, error) {
	for _, row := range []struct {
		err    error
		result visit.Result
	}{
		{people.ErrConnectionTaken, visit.WithTaken}, {people.ErrTooManyConnections, visit.WithTooMany},
		{people.ErrProofNeeded, visit.WithProofNeeded},
		{people.ErrFactorNeeded, visit.WithProofNeeded}, {oauth.ErrProviderAway, visit.WithAway},
		{oauth.ErrBusy, visit.WithAway}, {people.ErrNotLet, visit.WithFailed},
		{people.ErrAttemptEnded, visit.WithFailed},
	} {
		if errors.Is(err, row.err) {
			return row.result, nil
		}
	}
	if errors.As(err, new(*oauth.ProviderError)) {
		return visit.WithFailed, nil
	}
	return visit.WithConnected, err
}

// connectWaiting makes the connection that waits for this sign-in, if one does. It returns what the
// person has to know of it; 0 = nothing.
func (s *service) connectWaiting(v *visit.Visit, session *account.Session) visit.Result {
	token := s.WaitingToken(v.HTTP)
	if token == "" {
		return 0
	}
	s.DropWaiting(v.HTTP)
	err := s.people.ConnectWaiting(v.Ctx, token, v.Secret, session, v.Now)
	if errors.Is(err, people.ErrAttemptEnded) {
		return 0
	}
	result, err := resultOf(err)
	if err != nil { // the person is signed in all the same
		s.LogFailure(v, "connect an account", err)
		return visit.WithFailed
	}
	return result
}

// connectFlow asks a person who comes from a provider for an address, and for the code that goes
// there. Its responses do not reveal whether the address has an account before the code is entered.
func (s *service) connectFlow() *codeFlow {
	return &codeFlow{
		CodeFlow: visit.CodeFlow{
			Kind: pages.VerifyRegistration, Purpose: account.ForConnection, Channel: account.Email,
			Start: pages.PathConnect, Path: pages.PathConnectVerify, Resend: pages.PathConnectResend,
			Restart: s.showConnect, Resume: s.resume,
		},
		confirm: func(v *visit.Visit, token, code string,
			by people.Browser) (*people.SignedIn, error) {
			in, err := s.people.ConfirmConnection(v.Ctx, s.WaitingToken(v.HTTP), v.Secret, token, code,
				by, v.Now)
			if err == nil {
				s.DropWaiting(v.HTTP)
			}
			return in, err
		},
	}
}

// connect shows and handles the form for the address.
func (s *service) connect(v *visit.Visit) {
	switch {
	case !v.HTTP.IsPost():
		s.showConnect(v, fasthttp.StatusOK)
	case !v.CheckForm(v.Bind("connect")):
		s.showConnect(v, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		token, err := s.people.BeginConnection(v.Ctx, s.WaitingToken(v.HTTP), v.Secret,
			v.Field("email"), s.Browser(v, v.Field("email")), v.Now)
		if errors.Is(err, people.ErrAttemptEnded) {
			s.showConnect(v, fasthttp.StatusUnprocessableEntity)
			return
		}
		s.GoToCode(v, &s.connectFlow().CodeFlow, token, err)
	}
}

func (s *service) showConnect(v *visit.Visit, status int, problems ...pages.Problem) {
	w := s.waits(v)
	if w == nil || w.UserID != 0 {
		s.showLogin(v, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("with.waiting_ended")})
		return
	}
	email := w.Address
	if v.HTTP.IsPost() {
		email = v.Shown("email")
	}
	s.Show(v, status, pages.Connect{
		Client: v.ClientName(), Provider: w.Provider.Name, Action: v.Path(pages.PathConnect),
		FormToken: v.Bind("connect").NewFormToken(v.Now), Email: email,
		Login: v.Path(pages.PathLogin), Problems: problems,
	})
}
