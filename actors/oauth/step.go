package oauth

// Step is what comes next in the browser, or the end of the flow.
type Step int

// The steps.
const (
	StepLogin         Step = iota + 1 // the user signs in
	StepChooseAccount                 // the user says with which account to go on
	StepConsent                       // the user is asked for consent
	StepIssue                         // a code is issued for the request's scopes
	StepRefuse                        // the error goes to the redirect URI
)

// Decision is what the user answered to the question for consent to this very request.
type Decision int

// The decisions; the zero value is none.
const (
	Allowed Decision = iota + 1
	Denied
)

// Browser is what is known of the browser that makes an authorization request.
type Browser struct {
	SignedIn bool     // it has a live session; the rest is about the account it goes on with, the last used or the chosen one
	Chosen   bool     // the user has picked the account in answer to this request
	Fresh    bool     // the user has signed in in answer to this request
	Consent  Scopes   // that the user has granted the client before
	Decision Decision // in answer to this request, not kept for others
}

// NextStep returns what comes next for a request that CheckClient and Check passed, with the error of StepRefuse. A remembered
// consent, and the bypass of the account chooser, do not count for a public client whose redirect URI is on loopback or of a private-use
// scheme: any program on the machine could pose as it (RFC 8252 section 8.6).
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
		return StepRefuse, &Error{Code: AccessDenied, Description: "The user denied access.", Hint: "Ask again when the user wants it."}
	case b.Decision == Allowed:
		return StepIssue, nil
	case r.Prompt.Contains(PromptConsent), !remembered.Contains(r.Scopes):
		return StepConsent, nil
	}
	return StepIssue, nil
}

// silentStep is NextStep without a page.
func silentStep(r *AuthorizationRequest, b Browser, remembered Scopes) (Step, *Error) {
	switch {
	case !b.SignedIn:
		return StepRefuse, &Error{Code: LoginRequired, Description: "The user has to sign in.", Hint: "Ask without prompt=none."}
	case !remembered.Contains(r.Scopes):
		return StepRefuse, &Error{Code: ConsentRequired, Description: "The user has to consent.", Hint: "Ask without prompt=none."}
	}
	return StepIssue, nil
}
