package oauth

// Step is the next step of the browser flow, or its end.
type Step int

// The steps.
const (
	StepLogin         Step = iota + 1 // ask the user to sign in
	StepChooseAccount                 // ask the user to choose an account
	StepEnrol                         // have the user set up a second factor
	StepFactor                        // ask the user for the second factor
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
	TwoFactors  bool     // the user has used two factors in the session
	HasFactor   bool     // the user has a second factor
	MustEnrol   bool     // the user has to set up a second factor first
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
		return silentStep(r, c, b, skips, before, remembered)
	}
	switch {
	case r.ACR == UnknownACR:
		return StepRefuse, errUnmet
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
	case b.MustEnrol:
		return StepEnrol, nil
	case b.stepsUp(r, c) && b.HasFactor:
		return StepFactor, nil
	case b.isUnmet(r, c):
		return StepRefuse, errUnmet
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

// errUnmet is the error of a request for a class of sign-ins that the user cannot reach.
var errUnmet = &Error{Code: UnmetAuthenticationRequirements,
	Description: "The user cannot sign in as acr_values asks for.",
	Hint:        "Ask for 1 or 2. For 2, the user needs a second factor."}

// stepsUp reports whether r, or its client, asks for a second factor that was not used.
func (b *Browser) stepsUp(r *AuthorizationRequest, c *Client) bool {
	return !b.TwoFactors && (r.ACR == NeedsACR2 || r.ACR == PrefersACR2 ||
		c.Options.RequireSecondFactor)
}

// isUnmet reports whether r, or its client, insists on a second factor that was not used.
func (b *Browser) isUnmet(r *AuthorizationRequest, c *Client) bool {
	return !b.TwoFactors && (r.ACR == NeedsACR2 || c.Options.RequireSecondFactor)
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
func silentStep(r *AuthorizationRequest, c *Client, b Browser, skips bool,
	before, remembered granted) (Step, *Error) {
	switch {
	case r.ACR == UnknownACR:
		return StepRefuse, errUnmet
	case !b.SignedIn, b.HintDiffers, b.Outdated:
		return StepRefuse, loginRequired("The user has to sign in.")
	case r.Scopes.Contains(OpenID) && mustChoose(r, b, skips):
		return StepRefuse, &Error{Code: AccountSelectionRequired,
			Description: "The user has to choose an account.", Hint: "Ask without prompt=none."}
	case b.MustEnrol, b.stepsUp(r, c) && b.HasFactor:
		return StepRefuse, &Error{Code: InteractionRequired,
			Description: "The user has to use a second factor.", Hint: "Ask without prompt=none."}
	case b.isUnmet(r, c):
		return StepRefuse, errUnmet
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
