package oauthapp

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
)

// Authorization is a request for a person's permission to read their profile (RFC 6749 section
// 4.1.1).
type Authorization struct {
	Scope              string // "" = the service's default
	State              string // a new secret per browser; "" = none, which allows request forgery
	Verifier           string // a new secret for PKCE (RFC 7636); "" = no PKCE
	Prompt             string // "login", "consent", "login consent", "none" or ""
	SkipAccountChooser bool   // use the account that has allowed the application
	Nonce              string // a new secret for the id_token; "" = none
	// More has further parameters of OpenID Connect, such as max_age or login_hint.
	More url.Values
}

// AuthorizationPath returns the path and query of the authorization request.
func (a *App) AuthorizationPath(r Authorization) string {
	query := url.Values{"response_type": {"code"}, "client_id": {a.ClientID},
		"redirect_uri": {a.RedirectURI}}
	for name, value := range map[string]string{"scope": r.Scope, "state": r.State,
		"prompt": r.Prompt} {
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
	if r.Nonce != "" {
		query.Set("nonce", r.Nonce)
	}
	if a.Resource != "" {
		query.Set("resource", a.Resource)
	}
	for name, values := range r.More {
		query[name] = values
	}
	return "/oauth/authorize?" + query.Encode()
}

// Challenge returns the code_challenge of a verifier (RFC 7636 section 4.2).
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// AuthorizationError is the error in a redirect to the application (RFC 6749 section 4.1.2.1).
type AuthorizationError struct {
	Code        string // such as "access_denied"
	Description string
}

// Error returns the code and the description.
func (e *AuthorizationError) Error() string { return e.Code + ": " + e.Description }

// Denied reports whether the person denied the request.
func (e *AuthorizationError) Denied() bool { return e.Code == "access_denied" }

// Callback returns the code of the redirect to location. state is that of the authorization
// request. An error of the service is an *AuthorizationError. Code and error are accepted only with
// the right state and from the right issuer (RFC 9207).
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
