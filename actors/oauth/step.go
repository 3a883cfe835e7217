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
// are about one account: the chosen one, or else the last used.
type Browser struct {
	SignedIn bool     // it has a live session
	Chosen   bool     // the user chose the account for this request
	Fresh    bool     // the user signed in for this request
	Consent  Scopes   // scopes that the user has granted the client before
	Decision Decision // on the consent page, for this request only
}

// NextStep returns the next step for a request that CheckClient and Check passed, and with
// StepRefuse the error. A remembered consent and the bypass of the account chooser do not count for
// a public client whose redirect URI is on loopback or has a private-use scheme: any program on the
// machine could impersonate it (RFC 8252 section 8.6).
func NextStep(r *AuthorizationRequest, c *Client, b Browser) (Step, *Error) {
	remembered := b.Consent
	if c.Public && impersonable(r.RedirectURI) {
		remembered = 0
	}
	if r.Prompt == PromptNone {
		return silentStep(r, b, remembered)
	}
	chosen := b.Chosen || b.Fresh
	switch {
	case !b.SignedIn, r.Prompt.Contains(PromptLogin) && !b.Fresh:
		return StepLogin, nil
	case !chosen && !(r.SkipAccountChooser && remembered != 0):
		return StepChooseAccount, nil
	case b.Decision == Denied:
		return StepRefuse, &Error{Code: AccessDenied, Description: "The user denied access.",
			Hint: "Ask again when the user wants it."}
	case b.Decision == Allowed:
		return StepIssue, nil
	case r.Prompt.Contains(PromptConsent), !remembered.Contains(r.Scopes):
		return StepConsent, nil
	}
	return StepIssue, nil
}

// silentStep is NextStep for prompt=none, which must not show a page.
func silentStep(r *AuthorizationRequest, b Browser, remembered Scopes) (Step, *Error) {
	switch {
	case !b.SignedIn:
		return StepRefuse, &Error{Code: LoginRequired, Description: "The user has to sign in.",
			Hint: "Ask without prompt=none."}
	case !remembered.Contains(r.Scopes):
		return StepRefuse, &Error{Code: ConsentRequired, Description: "The user has to consent.",
			Hint: "Ask without prompt=none."}
	}
	return StepIssue, nil
}
