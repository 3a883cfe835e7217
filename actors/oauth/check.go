package oauth

import "time"

// CheckGrant returns an error unless an authenticated client may use the request's grant type and
// the request has all parameters of it (RFC 6749 sections 4.1.3, 4.4.2, 5.2 and 6).
func CheckGrant(c *Client, r *TokenRequest) *Error {
	switch {
	case c.Public && r.Grant == ClientCredentialsGrant:
		return &Error{Code: UnauthorizedClient,
			Description: "A public client cannot use client_credentials.",
			Hint:        "Use authorization_code with PKCE, or register a confidential client."}
	case !c.Grants.Contains(r.Grant):
		return &Error{Code: UnauthorizedClient,
			Description: "The client is not registered for this grant type.",
			Hint:        "Use a registered grant type, or ask the operator to add this one."}
	case r.Grant == AuthorizationCodeGrant && r.Code == "":
		return invalidRequest("The parameter code is missing.", "Send the code from the redirect.")
	case r.Grant == AuthorizationCodeGrant && r.RedirectURI == "":
		return invalidRequest("The parameter redirect_uri is missing.",
			"Send the redirect_uri of the authorization request.")
	case r.Grant == RefreshTokenGrant && r.RefreshToken == "":
		return invalidRequest("The parameter refresh_token is missing.", "Send the refresh token.")
	case r.Grant == DeviceCodeGrant && r.DeviceCode == "":
		return invalidRequest("The parameter device_code is missing.",
			"Send the device_code of the device authorization response.")
	case r.Grant == TokenExchangeGrant:
		return r.checkExchange()
	}
	return nil
}

// CheckRedeem returns an InvalidGrant error unless the client may redeem the code at now (RFC 6749
// section 4.1.3, RFC 7636 section 4.6). It does not check whether the code was used: the Store
// decides that atomically, also for a used code that has expired since. A nil code is an unknown
// one.
func CheckRedeem(code *AuthorizationCode, c *Client, r *TokenRequest, now time.Time) *Error {
	if r.Grant == DeviceCodeGrant {
		return checkDeviceCode(code, c, now)
	}
	switch {
	case code == nil || code.ClientID != c.ID:
		return errWrongCode
	case code.RedirectURI != r.RedirectURI:
		return invalidGrant("The redirect_uri differs from the authorization request.",
			"Send the same redirect_uri, byte for byte.")
	case code.CodeChallenge == "" && r.CodeVerifier != "":
		return invalidGrant("The authorization request had no code_challenge.",
			"Send code_challenge with the authorization request, or leave code_verifier out.")
	case code.CodeChallenge != "" && r.CodeVerifier == "":
		return invalidGrant("The code_verifier is missing.",
			"Send the verifier for the authorization request's code_challenge.")
	case code.CodeChallenge == "" && c.Public:
		return invalidGrant("A public client must use PKCE.",
			"Start again with code_challenge and code_challenge_method=S256.")
	case code.CodeChallenge != "" && !verifies(r.CodeVerifier, code.CodeChallenge):
		return invalidGrant("The code_verifier does not match the code_challenge.",
			"Send the verifier that you hashed, with 43 to 128 letters, digits or -._~ characters.")
	case code.Used.IsZero() && !now.Before(code.Expires):
		return ErrGrantGone
	}
	return nil
}

// CheckRotate returns the scopes of the new access token (RFC 6749 section 6). The error is
// InvalidGrant if the refresh token is not the client's, and InvalidScope if the request asks for
// more than was granted. For a client that registered itself, what is more is left out. It does not
// check generation and idle expiry: the Store decides them atomically. A nil token is an unknown
// one.
func CheckRotate(token *RefreshToken, c *Client, r *TokenRequest, now time.Time) (Scopes, *Error) {
	if token == nil || token.Family.ClientID != c.ID {
		return 0, errWrongRefreshToken
	}
	if token.Family.Revoked || !now.Before(token.Family.Ends) {
		return 0, ErrGrantGone
	}
	granted := token.Family.Scopes & c.Scopes
	asked, names, ok := splitScopes(r.Scope)
	switch {
	case r.Scope == "":
		return granted, nil
	case c.Options.SelfRegistered &&
		(granted&asked != 0 || len(names) > 0 && len(token.Family.Details.Targets) > 0):
		return granted & asked, nil
	case !ok:
		return 0, errUnknownScope
	case c.Options.SelfRegistered, !granted.Contains(asked):
		return 0, errScopeNotGranted
	}
	return asked, nil
}

// Outdated reports whether the token was replaced by a newer one more than grace ago, or by two
// newer ones. Using such a token counts as reuse and ends the family (RFC 9700 section 4.14), even
// if the request has other errors.
func (t *RefreshToken) Outdated(now time.Time, grace time.Duration) bool {
	behind := t.Family.Generation - t.Generation
	return behind > 1 || behind == 1 && !now.Before(t.Family.Advanced.Add(grace))
}

// ResourceScopes returns the names in the request's scope that are no scopes of this service; nil =
// it has no scope.
func (r *TokenRequest) ResourceScopes() []string {
	if r.Scope == "" {
		return nil
	}
	_, names, _ := splitScopes(r.Scope)
	return append([]string{}, names...)
}

// CheckClientCredentials returns the requested scopes, possibly none, if the client may have them
// for itself (RFC 6749 section 4.4), or an InvalidScope error.
func CheckClientCredentials(c *Client, r *TokenRequest) (Scopes, *Error) {
	asked, _, ok := splitScopes(r.Scope)
	switch {
	case !ok:
		return 0, errUnknownScope
	case asked&GrantableScopes != 0:
		return 0, invalidScope("Only a user can grant this scope.",
			"Use authorization_code for it, or leave scope out.")
	case !c.Scopes.Contains(asked), asked.Contains(ServerOperations) && !c.Operator:
		return 0, invalidScope("The client is not registered for this scope.",
			"Ask the operator to add it, or leave scope out.")
	}
	return asked, nil
}

// InvalidGrant errors. They are shared and must not be modified.
var (
	// ErrGrantReused is the error for OutcomeReused.
	ErrGrantReused = invalidGrant("The code or refresh token was used before; its tokens have been revoked.",
		"Ask the user to authorize again, and use each code and refresh token once.")
	// ErrGrantGone is the error for OutcomeGone.
	ErrGrantGone = invalidGrant("The code or refresh token has expired or was revoked.",
		"Ask the user to authorize again.")

	errWrongCode = invalidGrant("The code is unknown, or was issued to another client.",
		"Send the code from the redirect, with the client_id of the authorization request.")
	errWrongRefreshToken = invalidGrant("The refresh token is unknown, or was issued to another client.",
		"Send the newest refresh token, with the client_id that received it.")
)
