package oauthapp

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// Tokens is the response to a grant (RFC 6749 section 5.1).
type Tokens struct {
	AccessToken  string
	Lifetime     time.Duration // of the access token, from now
	RefreshToken string        // "" = none was issued
	Scope        string        // granted scope, "" = as requested
	IDToken      string        // a signed JWT; "" = none was issued
	Type         string        // of the access token, after an exchange
}

// Exchange redeems the code that Callback returned. verifier is that of the authorization request,
// "" = none.
func (a *App) Exchange(ctx context.Context, code, verifier string) (*Tokens, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {a.RedirectURI}}
	if verifier != "" {
		form.Set("code_verifier", verifier)
	}
	return a.tokens(ctx, form)
}

// Refresh returns new tokens for a refresh token, which is then used up. scope requests a part of
// the granted scope, "" = all of it.
func (a *App) Refresh(ctx context.Context, refreshToken, scope string) (*Tokens, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refreshToken}}
	if scope != "" {
		form.Set("scope", scope)
	}
	return a.tokens(ctx, form)
}

// ClientCredentials returns an access token for the client itself. scope "" requests none.
func (a *App) ClientCredentials(ctx context.Context, scope string) (*Tokens, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if scope != "" {
		form.Set("scope", scope)
	}
	return a.tokens(ctx, form)
}

// TokenExchange returns an access token for the resource server, in place of one for another that
// came to the app (RFC 8693). scope requests a part of what the app may have there, "" = all of it.
func (a *App) TokenExchange(ctx context.Context, token, scope string) (*Tokens, error) {
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token": {token}, "subject_token_type": {accessTokenType}}
	if scope != "" {
		form.Set("scope", scope)
	}
	return a.exchanged(ctx, form)
}

// TokenExchangeFor is TokenExchange for an app that names the resource server as audience, and the
// type of token that it wants.
func (a *App) TokenExchangeFor(ctx context.Context, token, audience string) (*Tokens, error) {
	return a.exchanged(ctx, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token": {token}, "subject_token_type": {accessTokenType}, "audience": {audience},
		"requested_token_type": {accessTokenType}})
}

func (a *App) exchanged(ctx context.Context, form url.Values) (*Tokens, error) {
	got, err := a.tokens(ctx, form)
	if err == nil && got.Type != accessTokenType {
		return nil, errors.New("got another type of token than an access token")
	}
	return got, err
}

// accessTokenType is the type of access tokens (RFC 8693 section 3).
const accessTokenType = "urn:ietf:params:oauth:token-type:access_token"

func (a *App) tokens(ctx context.Context, form url.Values) (*Tokens, error) {
	if a.Resource != "" {
		form.Set("resource", a.Resource)
	}
	response, err := a.post(ctx, "/oauth/token", form)
	if err != nil {
		return nil, err
	}
	var body struct {
		AccessToken  string `json:"access_token"`
		TokenType    string `json:"token_type"`
		ExpiresIn    int    `json:"expires_in"`
		RefreshToken string `json:"refresh_token"`
		Scope        string `json:"scope"`
		IDToken      string `json:"id_token"`
		Type         string `json:"issued_token_type"`
	}
	if err := response.decode(&body); err != nil {
		return nil, err
	}
	if body.AccessToken == "" || body.TokenType != "Bearer" || body.ExpiresIn < 1 {
		return nil, errors.New("got a token response without a bearer token")
	}
	return &Tokens{body.AccessToken, time.Duration(body.ExpiresIn) * time.Second, body.RefreshToken,
		body.Scope, body.IDToken, body.Type}, nil
}

// Revoke revokes an access token, or a refresh token with its whole token family (RFC 7009). An
// unknown token is not an error. hint is as for Introspect.
func (a *App) Revoke(ctx context.Context, token, hint string) error {
	response, err := a.post(ctx, "/oauth/revoke", about(token, hint))
	if err != nil {
		return err
	}
	return response.decode(&struct{}{})
}

// Introspection describes a token (RFC 7662 section 2.2). Only Active is set for an inactive token.
type Introspection struct {
	Active   bool   `json:"active"`
	Scope    string `json:"scope"` // "" = none
	ClientID string `json:"client_id"`
	Type     string `json:"token_type"` // "Bearer" for an access token, "" for a refresh token
	Subject  string `json:"sub"`        // the user's id; "" = the token is for the client itself
	Issued   int64  `json:"iat"`        // Unix seconds; 0 = unknown
	Expires  int64  `json:"exp"`        // Unix seconds
	// ACR is "1" for a sign-in with one factor, "2" for one with two, and "" if that is not known.
	ACR      string `json:"acr"`
	AuthTime int64  `json:"auth_time"` // of the sign-in, in Unix seconds; 0 = unknown
	// Audience has the resource servers that the token is for; nil = the service itself.
	Audience []string `json:"aud"`
	Groups   []string `json:"groups"` // of the user
	Actor    *Actor   `json:"act"`    // that uses the token in the name of the user; nil = it was not exchanged
}

// Actor is a client that uses an exchanged token (RFC 8693 section 4.1).
type Actor struct {
	ClientID string `json:"sub"`
	Before   *Actor `json:"act"` // that used the token which was exchanged; nil = none
}

// Introspect returns the description of a token. hint is "access_token", "refresh_token" or "".
func (a *App) Introspect(ctx context.Context, token, hint string) (*Introspection, error) {
	response, err := a.post(ctx, "/oauth/introspect", about(token, hint))
	if err != nil {
		return nil, err
	}
	known := new(Introspection)
	return known, response.decode(known)
}

func about(token, hint string) url.Values {
	form := url.Values{"token": {token}}
	if hint != "" {
		form.Set("token_type_hint", hint)
	}
	return form
}
