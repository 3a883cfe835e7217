package oauth

// Step is the next step of the browser flow, or its end.
type Step int

// The steps.
const (
	StepLogin         Step = iota + 1 // ask the user to sign in
	StepChooseAccount                 // ask the user to choose an account
	StepConsent                       // ask the user for consent
	StepIssue                         // issue a code for the request's scopes
	StepRefuse                        // redirect with the error
)

// Decision is the user's decision on the consent page for this request.
type Decision int

// The decisions; the zero value is none.
const (
	Allowed Decision = iota + 1
	Denied
)

// Browser is the state of the browser that makes an authorization request. All fields but SignedIn
// and Several are about one account: the chosen one, or else the one that a verified id_token_hint
// names, or else the last used.
type Browser struct {
	SignedIn    bool     // it has a live session
	Several     bool     // it has live sessions of several accounts
	Chosen      bool     // the user chose the account for this request
	Fresh       bool     // the user signed in for this request
	Outdated    bool     // the sign-in is longer ago than max_age allows
	HintAgrees  bool     // it is the account that id_token_hint names
	HintDiffers bool     // id_token_hint names another account
	Consent     Scopes   // scopes that the user has granted the client before
	Targets     Targets  // resources that the user has granted the client before
	Decision    Decision // on the consent page, for this request only
}

// NextStep returns the next step for a request that CheckClient and Check passed, and with
// StepRefuse the error. A remembered consent and the bypass of the account chooser do not count for
// a public client whose redirect URI is on loopback or has a private-use scheme: any program on the
// machine could impersonate it (RFC 8252 section 8.6).
func NextStep(r *AuthorizationRequest, c *Client, b Browser) (Step, *Error) {
	before := granted{b.Consent, b.Targets}
	if c.needsNoConsent(r) {
		before = granted{r.Scopes, r.Targets}
	}
	remembered := before
	if c.Public && impersonable(r.RedirectURI) {
		remembered = granted{}
	}
	skips := r.SkipAccountChooser && remembered.scopes != 0
	if r.Prompt.Contains(PromptNone) {
		return silentStep(r, b, skips, before, remembered)
	}
	switch {
	case !b.SignedIn, r.Prompt.Contains(PromptLogin) && !b.Fresh:
		return StepLogin, nil
	case b.HintDiffers && b.Chosen:
		return StepRefuse, loginRequired("Another user signed in than the one of id_token_hint.")
	case b.HintDiffers:
		return StepLogin, nil
	case mustChoose(r, b, skips):
		return StepChooseAccount, nil
	case b.Outdated && !b.Fresh:
		return StepLogin, nil
	case b.Decision == Denied:
		return StepRefuse, &Error{Code: AccessDenied, Description: "The user denied access.",
			Hint: "Ask again when the user wants it."}
	case b.Decision == Allowed:
		return StepIssue, nil
	case r.Prompt.Contains(PromptConsent), !remembered.covers(r):
		return StepConsent, nil
	}
	return StepIssue, nil
}

// granted is what a consent allows.
type granted struct {
	scopes  Scopes
	targets Targets
}

// covers reports whether it allows all that r asks for.
func (g granted) covers(r *AuthorizationRequest) bool {
	return g.scopes.Contains(r.Scopes) && g.targets.Contains(r.Targets)
}

// Remembers reports whether the user has granted the client before all that r asks for.
func (b *Browser) Remembers(r *AuthorizationRequest) bool {
	return granted{b.Consent, b.Targets}.covers(r)
}

// needsNoConsent reports whether the client is one of the operator's own, and asks for nothing but
// what it is registered for.
func (c *Client) needsNoConsent(r *AuthorizationRequest) bool {
	return c.Options.FirstParty && (len(c.Options.Resources) > 0 || Targets(nil).Contains(r.Targets))
}

// mustChoose reports whether the user has to choose an account first. Without the scope openid,
// that is so whenever the browser has a session. With it, the user is asked if there is a choice,
// unless id_token_hint has made it, or if the client wants it.
func mustChoose(r *AuthorizationRequest, b Browser, skips bool) bool {
	switch {
	case b.Chosen || b.Fresh:
		return false
	case r.Prompt.Contains(PromptSelectAccount):
		return true
	case r.Scopes.Contains(OpenID):
		return b.Several && !b.HintAgrees && !skips
	}
	return !skips
}

// silentStep is NextStep for prompt=none, which must not show a page.
func silentStep(r *AuthorizationRequest, b Browser, skips bool, before, remembered granted) (
	Step, *Error) {
	switch {
	case !b.SignedIn, b.HintDiffers, b.Outdated:
		return StepRefuse, loginRequired("The user has to sign in.")
	case r.Scopes.Contains(OpenID) && mustChoose(r, b, skips):
		return StepRefuse, &Error{Code: AccountSelectionRequired,
			Description: "The user has to choose an account.", Hint: "Ask without prompt=none."}
	case !before.covers(r), !r.Scopes.Contains(OpenID) && !remembered.covers(r):
		return StepRefuse, &Error{Code: ConsentRequired, Description: "The user has to consent.",
			Hint: "Ask without prompt=none."}
	case !remembered.covers(r):
		return StepRefuse, &Error{Code: InteractionRequired,
			Description: "The user has to confirm each request of this client.",
			Hint:        "Ask without prompt=none."}
	}
	return StepIssue, nil
}

func loginRequired(description string) *Error {
	return &Error{Code: LoginRequired, Description: description, Hint: "Ask without prompt=none."}
}
