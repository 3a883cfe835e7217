package oauthapp

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
)

// Authorization is a request that a person let the application read their profile (RFC 6749 section 4.1.1).
type Authorization struct {
	Scope              string // "" = what the service assumes
	State              string // a fresh secret of the browser's; "" = none, which leaves the application open to forgery
	Verifier           string // a fresh secret for PKCE (RFC 7636); "" = no PKCE
	Prompt             string // "login", "consent", both with a space between them, "none" or ""
	SkipAccountChooser bool   // go on with the account that allowed the application before
}

// AuthorizationPath returns where the browser goes, from the service's URL.
func (a *App) AuthorizationPath(r Authorization) string {
	query := url.Values{"response_type": {"code"}, "client_id": {a.ClientID}, "redirect_uri": {a.RedirectURI}}
	for name, value := range map[string]string{"scope": r.Scope, "state": r.State, "prompt": r.Prompt} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if r.Verifier != "" {
		query.Set("code_challenge", Challenge(r.Verifier))
		query.Set("code_challenge_method", "S256")
	}
	if r.SkipAccountChooser {
		query.Set("skip_account_chooser", "true")
	}
	return "/oauth/authorize?" + query.Encode()
}

// Challenge returns the code_challenge of a verifier (RFC 7636 section 4.2).
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// AuthorizationError is what the service sends the browser back with when there is no code (RFC 6749 section 4.1.2.1).
type AuthorizationError struct {
	Code        string // such as "access_denied"
	Description string
}

// Error returns the code and the description.
func (e *AuthorizationError) Error() string { return e.Code + ": " + e.Description }

// Denied reports whether the person said no.
func (e *AuthorizationError) Denied() bool { return e.Code == "access_denied" }

// Callback returns the code with which the browser came back to location. state is that of the authorization request. The error is
// an *AuthorizationError when the service sent one; that and a code are believed only from the right issuer (RFC 9207) and with the
// right state.
func (a *App) Callback(location, state string) (code string, err error) {
	u, err := url.Parse(location)
	if err != nil {
		return "", fmt.Errorf("read the redirect: %w", err)
	}
	query := u.Query()
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1 {
		return "", errors.New("the redirect has another state than the request")
	}
	issuer := a.Issuer
	if issuer == "" {
		issuer = a.Service
	}
	if query.Get("iss") != issuer {
		return "", errors.New("the redirect is from another issuer")
	}
	if code := query.Get("error"); code != "" {
		return "", &AuthorizationError{code, query.Get("error_description")}
	}
	if query.Get("code") == "" {
		return "", errors.New("the redirect has neither a code nor an error")
	}
	return query.Get("code"), nil
}
