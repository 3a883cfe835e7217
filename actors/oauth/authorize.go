package oauth

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Prompts is a set of prompt values. The zero value is the empty set.
type Prompts uint8

// The prompt values (interface document, section 4.2). PromptNone is an extension from OpenID
// Connect Core section 3.1.2.1: where a page would be needed, there is an error. So is
// PromptSelectAccount an extension, for requests with the scope openid only.
const (
	PromptNone          Prompts = 1 << iota // "none": no page is shown
	PromptLogin                             // "login": the user signs in again
	PromptConsent                           // "consent": the user is asked despite a remembered consent
	PromptSelectAccount                     // "select_account": the user chooses an account
)

// ResponseMode is how the response of the authorization endpoint reaches the client. The zero value
// is a query.
type ResponseMode int

// FormPost sends the response in a form (OAuth 2.0 Form Post Response Mode).
const FormPost ResponseMode = 1

// Contains reports whether all of other is in p.
func (p Prompts) Contains(other Prompts) bool { return p&other == other }

// AuthorizationRequest is a request to the authorization endpoint (RFC 6749 section 4.1.1). Before
// acting on it, call CheckClient and then Check.
type AuthorizationRequest struct {
	ClientID           string
	RedirectURI        string
	Scopes             Scopes // requested or, after Check, default ones
	DefaultScopes      bool   // after Check: Scopes are not what the request named
	State              string // "" = none; returned unchanged
	CodeChallenge      string // S256; "" = none (RFC 7636 section 4.3)
	Prompt             Prompts
	SkipAccountChooser bool

	// The parameters of OpenID Connect Core section 3.1.2.1. A request without the scope openid has
	// none of these.
	ResponseMode ResponseMode
	Nonce        string // "" = none; returned unchanged in the id_token
	LoginHint    string // what the user may enter to sign in; "" = none
	IDTokenHint  string // not verified; "" = none

	// LimitsAge and MaxAge ask for a sign-in that is not older (RFC 9470 section 4), and ACR for a
	// class of it. Requests without the scope openid have them too.
	LimitsAge bool // MaxAge is set
	MaxAge    time.Duration
	ACR       ACRWish

	// The parameters of RFC 8707 section 2.1. Targets is set by Resolve.
	Resources      []string // as sent
	ResourceScopes []string // names in scope that are no scopes of this service
	Targets        Targets
	First          uint16 // resource that is named first; 0 = none is

	leftOut        *Error // why Resolve has left out a name; nil = it has not
	malformedScope bool   // the parameter scope has superfluous spaces or a malformed name
	asksOpenID     bool   // the parameter scope names openid, whether Check accepts it or not
	problem        *Error // first error of the other parameters, which Check returns
}

// ACRWish is what acr_values asks for. The zero value asks for nothing.
type ACRWish uint8

// The wishes.
const (
	PrefersACR2 ACRWish = iota + 1 // "2" before "1": two factors if the user has them
	NeedsACR2                      // "2" alone: two factors
	UnknownACR                     // no class of this service
)

// parseACR returns what acr_values asks for: its first class that the user can reach (OpenID Connect
// Core section 3.1.2.1, RFC 9470 section 5). Classes of others count for nothing.
func parseACR(text string) ACRWish {
	values := strings.Fields(text)
	one, two := slices.Index(values, ACR1), slices.Index(values, ACR2)
	switch {
	case len(values) == 0, one >= 0 && (two < 0 || one < two):
		return 0
	case one >= 0:
		return PrefersACR2
	case two >= 0:
		return NeedsACR2
	}
	return UnknownACR
}

// StepsUp reports whether the second factor is asked for at a sign-in for r, also in a browser that the
// person trusts.
func (r *AuthorizationRequest) StepsUp(c *Client) bool {
	return r.LimitsAge || r.ACR == PrefersACR2 || r.ACR == NeedsACR2 ||
		c != nil && c.Options.RequireSecondFactor
}

// ParseAuthorizationRequest parses the query of an authorization request. chooser is the name of
// the parameter that skips the account chooser. The error is about client_id or redirect_uri: show
// it on a page, and never redirect. Check returns the errors of all other parameters.
func ParseAuthorizationRequest(params []Parameter, chooser string) (*AuthorizationRequest, *Error) {
	f := form{params: params}
	r := &AuthorizationRequest{ClientID: f.value("client_id"), RedirectURI: f.value("redirect_uri")}
	switch {
	case f.err != nil:
		return nil, f.err
	case r.ClientID == "":
		return nil, invalidRequest("The parameter client_id is missing.",
			"Send the identifier of the client.")
	case r.RedirectURI == "":
		return nil, invalidRequest("The parameter redirect_uri is missing.",
			"Send a redirect URI that is registered for the client.")
	}
	r.State = firstState(params)
	r.asksOpenID = AsksOpenID(params)
	r.problem = r.parse(params, chooser)
	return r, nil
}

// AsksOpenID reports whether the parameters of an authorization request name the scope openid.
func AsksOpenID(params []Parameter) bool {
	return slices.ContainsFunc(params, func(p Parameter) bool {
		return p.Name == "scope" && slices.Contains(strings.Fields(p.Value), "openid")
	})
}

// Reauthenticates reports whether the user may have to sign in for this request.
func (r *AuthorizationRequest) Reauthenticates() bool {
	return r.LimitsAge || r.Prompt.Contains(PromptLogin)
}

// IsOutdated reports whether a sign-in is too long ago at now (OpenID Connect Core section 3.1.2.1,
// max_age). Both times count in whole seconds, as in auth_time. A MaxAge of 0 accepts none.
func (r *AuthorizationRequest) IsOutdated(signedIn, now time.Time) bool {
	age := time.Duration(now.Unix()-signedIn.Unix()) * time.Second
	return r.LimitsAge && (r.MaxAge == 0 || age > r.MaxAge)
}

// firstState returns the state, even a malformed one: a client must get it back unchanged. It
// returns "" if the parameter repeats.
func firstState(params []Parameter) string {
	state, seen := "", false
	for _, p := range params {
		if p.Name != "state" {
			continue
		}
		if seen {
			return ""
		}
		state, seen = p.Value, true
	}
	return state
}

// parse reads the parameters whose errors go to the redirect URI.
func (r *AuthorizationRequest) parse(params []Parameter, chooser string) *Error {
	f := form{params: params}
	f.value("state")
	responseType, scope, prompt := f.value("response_type"), f.value("scope"), f.value("prompt")
	challenge, method := f.value("code_challenge"), f.value("code_challenge_method")
	r.SkipAccountChooser = f.value(chooser) == "true"
	r.Resources = f.values("resource")
	r.ACR = parseACR(f.value("acr_values"))
	maxAge := f.value("max_age")
	if r.asksOpenID {
		if err := r.parseOpenID(&f); err != nil {
			return err
		}
	}
	f.rest()
	if f.err != nil {
		return f.err
	}
	if err := r.parseMaxAge(maxAge); err != nil {
		return err
	}
	if err := checkResponseType(responseType); err != nil {
		return err
	}
	if err := r.parseChallenge(challenge, method); err != nil {
		return err
	}
	var ok bool
	r.Scopes, r.ResourceScopes, ok = splitScopes(scope)
	r.malformedScope = !ok
	var err *Error
	r.Prompt, err = parsePrompt(prompt, r.asksOpenID)
	return err
}

// parseOpenID reads the parameters of OpenID Connect. The response mode comes first, since it is
// also that of errors. ui_locales, claims and others are ignored.
func (r *AuthorizationRequest) parseOpenID(f *form) *Error {
	switch f.value("response_mode") {
	case "", "query":
	case "form_post":
		if !strings.HasPrefix(r.RedirectURI, "https://") &&
			!strings.HasPrefix(r.RedirectURI, "http://") {
			return invalidRequest("A browser cannot post a form to this redirect_uri.",
				"Send response_mode=query, or leave it out.")
		}
		if !fitsForm(r.State) {
			return invalidRequest("A form cannot return this state unchanged.",
				"Send a state without control characters, as UTF-8, or response_mode=query.")
		}
		r.ResponseMode = FormPost
	default:
		return invalidRequest("The response_mode is not supported.",
			"Send query or form_post, or leave it out.")
	}
	switch {
	case f.value("request") != "":
		return &Error{Code: RequestNotSupported, Description: "Request objects are not supported.",
			Hint: "Send the parameters in the query."}
	case f.value("request_uri") != "":
		return &Error{Code: RequestURINotSupported,
			Description: "Request objects are not supported.",
			Hint:        "Send the parameters in the query."}
	}
	r.Nonce, r.LoginHint = f.value("nonce"), f.value("login_hint")
	r.IDTokenHint = f.value("id_token_hint")
	return nil
}

// fitsForm reports whether a browser posts a text of a page as it is: it replaces bytes that are not
// UTF-8 and NUL, and makes CR LF of line ends (HTML sections 4.10.22.4 and 13.2.3.5).
func fitsForm(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsAny(text, "\x00\r\n")
}

func (r *AuthorizationRequest) parseMaxAge(text string) *Error {
	if text == "" {
		return nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return invalidRequest("The max_age is not a number of seconds.",
			"Send a whole number from 0 to 2147483647, or leave it out.")
	}
	r.LimitsAge, r.MaxAge = true, time.Duration(seconds)*time.Second
	return nil
}

func checkResponseType(s string) *Error {
	const hint = "Send response_type=code."
	switch s {
	case "code":
		return nil
	case "":
		return invalidRequest("The parameter response_type is missing.", hint)
	}
	return &Error{Code: UnsupportedResponseType, Description: "The response type is not supported.",
		Hint: hint}
}

func (r *AuthorizationRequest) parseChallenge(challenge, method string) *Error {
	const hint = "Send the base64url form of the verifier's SHA-256 as code_challenge, and code_challenge_method=S256."
	switch {
	case challenge == "" && method == "":
		return nil
	case challenge == "":
		return invalidRequest("The parameter code_challenge is missing.", hint)
	case method != "S256":
		return invalidRequest("The code_challenge_method must be S256.", hint)
	case !ValidCodeChallenge(challenge):
		return invalidRequest("The code_challenge is malformed.", hint)
	}
	r.CodeChallenge = challenge
	return nil
}

func parsePrompt(s string, openID bool) (Prompts, *Error) {
	hint := "Send none alone, or login, consent or both separated by a space."
	if openID {
		hint = "Send none alone, or some of login, consent and select_account separated by spaces."
	}
	var set Prompts
	for _, value := range strings.Fields(s) {
		switch value {
		case "none":
			set |= PromptNone
		case "login":
			set |= PromptLogin
		case "consent":
			set |= PromptConsent
		case "select_account":
			if !openID {
				return 0, invalidRequest("The prompt is not supported.", hint)
			}
			set |= PromptSelectAccount
		default:
			return 0, invalidRequest("The prompt is not supported.", hint)
		}
	}
	if set.Contains(PromptNone) && set != PromptNone {
		return 0, invalidRequest("The prompt none cannot be combined.", hint)
	}
	return set, nil
}

// CheckClient returns an error if the browser must not be redirected: the client is unknown (nil)
// or disabled, or the redirect URI is not registered. Show it on a page (RFC 6749 section 4.1.2.1).
func (r *AuthorizationRequest) CheckClient(c *Client) *Error {
	switch {
	case c == nil || c.WireID() != r.ClientID:
		return &Error{Code: InvalidClient, Description: "The client is unknown.",
			Hint: "Check client_id."}
	case c.Disabled:
		return &Error{Code: InvalidClient, Description: "The client is disabled.",
			Hint: "Ask the operator to enable it."}
	case !c.AllowsRedirect(r.RedirectURI):
		return invalidRequest("The redirect_uri is not registered for the client.",
			"Send a registered URI; it must match byte for byte.")
	}
	return nil
}

// Resolve finds the resources of a request that CheckClient passed. Call it before Check, which
// returns its error.
func (r *AuthorizationRequest) Resolve(known *Resources, c *Client) {
	if r.problem != nil {
		return
	}
	r.Targets, r.problem = known.Resolve(c, r.Resources, r.ResourceScopes)
	if len(r.Targets) > 0 {
		r.First, _ = known.number(r.Resources[0], c)
	}
	names := known.ScopeNames(r.Targets)
	for _, name := range r.ResourceScopes {
		if !slices.Contains(names, name) && r.leftOut == nil && r.problem == nil {
			r.leftOut, r.DefaultScopes = known.unknownScope(name, c), true
		}
	}
	r.ResourceScopes = names
}

// leaveOut leaves out the scopes that a client may not have which registered itself: many such
// clients ask for all that the metadata names.
func (r *AuthorizationRequest) leaveOut(c *Client) {
	scopes := r.Scopes & c.Scopes & GrantableScopes
	r.DefaultScopes = r.DefaultScopes || scopes != r.Scopes
	r.Scopes, r.malformedScope = scopes, false
}

// Check returns the error, if any, of a request that CheckClient passed; it goes to the redirect
// URI. A request without scope gets the scopes of defaults that the client is registered for, or all
// that a client has registered itself for if none of those is a default. If there are none, the error
// is InvalidScope.
func (r *AuthorizationRequest) Check(c *Client, defaults Scopes) *Error {
	switch {
	case r.problem != nil:
		return r.problem
	case !c.Grants.Contains(AuthorizationCodeGrant):
		return &Error{Code: UnauthorizedClient,
			Description: "The client is not registered for authorization codes.",
			Hint:        "Ask the operator to add the grant authorization_code."}
	case (c.Options.RequirePKCE || c.Options.MetadataURL != "") && !c.Public && r.CodeChallenge == "":
		return invalidRequest("The client must use PKCE.",
			"Send code_challenge and code_challenge_method=S256.")
	case c.Public && r.CodeChallenge == "":
		return invalidRequest("A public client must use PKCE.",
			"Send code_challenge and code_challenge_method=S256.")
	}
	none := r.Scopes == 0 && !r.DefaultScopes // it names no scope, but perhaps those of resources
	if c.Options.SelfRegistered {
		r.leaveOut(c)
	}
	switch {
	case r.malformedScope, len(r.ResourceScopes) > 0 && len(r.Targets) == 0:
		return errUnknownScope
	case r.Scopes == 0 && (len(r.ResourceScopes) > 0 || r.Targets.AreForeign()):
		return nil // what is asked for is at resources alone
	case none:
		r.Scopes, r.DefaultScopes = defaults&c.Scopes&UserScopes, true
		if r.Scopes == 0 && defaults != 0 && c.Options.SelfRegistered {
			r.Scopes = c.Scopes & GrantableScopes
		}
	case r.Scopes == 0 && r.leftOut != nil:
		return r.leftOut
	case r.Scopes == 0:
		return invalidScope("The client may have none of the scopes that it asks for.",
			"Send scopes that the metadata names. Scopes of a resource need the parameter resource.")
	}
	return checkGrantable(r.Scopes, c)
}

// checkGrantable returns an InvalidScope error unless a client may ask a user for scopes.
func checkGrantable(scopes Scopes, c *Client) *Error {
	switch {
	case scopes == 0:
		return invalidScope("The scope is missing.",
			"Send the scopes that you need, such as view-user.")
	case !GrantableScopes.Contains(scopes):
		return invalidScope("A user cannot grant this scope.",
			"Send scopes that a user can grant, such as view-user or openid.")
	case !c.Scopes.Contains(scopes):
		return invalidScope("The client is not registered for this scope.",
			"Ask for less, or ask the operator to add the scope.")
	}
	return nil
}
