package token

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// attachment is what the JWTs of a token response need: the access token of a client that asks for
// JWTs (RFC 9068), and the id_token. It is prepared where a request may wait, reserved by the
// client's actor before anything is taken, signed when the tokens are issued, and released. The
// zero value has no JWT.
type attachment struct {
	accessToken *signature  // nil = the access token is no JWT
	idToken     *signature  // nil = no id_token
	claims      *userClaims // of the id_token; nil = it has none of the user's
	shared      *userClaims // of the access token; nil = it has none of the user's
}

// prepare does what may wait, before anything is taken: it reads the resources that the request or
// its grant names, and the user whose claims the JWTs have. The error is errNoAccess if the user is in
// no group that may use the client.
func (s *Service) prepare(ctx context.Context, c *oauth.Client, m *tokenAsk) (err error) {
	if len(m.granted.details.Targets) > 0 || len(m.request.Resources) > 0 ||
		len(m.request.ResourceScopes()) > 0 {
		if m.resources, err = s.Resources(ctx); err != nil {
			return err
		}
	}
	if m.granted.userID == 0 || m.granted.used {
		return nil
	}
	restricted := len(c.Options.RequireGroups) > 0
	inIDToken := m.granted.scopes.Contains(oauth.OpenID) && c.Options.ClaimsInIDToken
	shared := c.Options.JWTAccessTokens && m.resources != nil &&
		m.resources.ClaimsFor(m.granted.details.Targets) != nil
	if !restricted && !inIDToken && !shared {
		return nil
	}
	_, u, err := s.users.load(ctx, m.granted.userID)
	switch {
	case errors.Is(err, account.ErrNotFound):
		return nil // the store refuses the grant
	case err != nil:
		return fmt.Errorf("read the user of a grant: %w", err)
	case !u.mayUse(c):
		return errNoAccess
	}
	if inIDToken {
		m.attached.claims = u.claims()
	}
	if shared {
		m.attached.shared = u.claims()
	}
	return nil
}

// errNoAccess says that a person has left the groups that a client is for.
var errNoAccess = &oauth.Error{Code: oauth.InvalidGrant,
	Description: "The user may not use this client.",
	Hint:        "Ask the user to sign in again; the page says why there is no access."}

// reserve takes what a new access token needs: room for its signatures, and a place in the quota.
// If something is missing, it sets m.fault and returns false. Call it before anything is taken.
func (a *clientActor) reserve(m *tokenAsk) bool {
	if m.fault != nil {
		return false
	}
	by := payerOfClient(m.client, m.request.Caller)
	isJWT := m.client.Options.JWTAccessTokens
	if isJWT && !a.service.fitsJWT(m) {
		m.fault = errJWTTooLong
		return false
	}
	if isJWT {
		m.attached.accessToken = a.service.reserve(by, m.client.IDTokenAlg(), m.now)
	}
	hasIDToken := m.access.UserID != 0 && m.access.Scopes.Contains(oauth.OpenID) &&
		m.request.Grant != oauth.JWTBearerGrant // nobody has signed in
	if hasIDToken {
		m.attached.idToken = a.service.reserve(by, m.client.IDTokenAlg(), m.now)
	}
	if isJWT && m.attached.accessToken == nil || hasIDToken && m.attached.idToken == nil {
		m.fault = errUnavailable
		return false
	}
	return a.count(m)
}

// sign makes the access token of the response a JWT, if it is to be one. Then it adds the id_token,
// if there is to be one.
func (s *Service) sign(m *tokenAsk) (err error) {
	if room := m.attached.accessToken; room != nil {
		m.response.AccessToken, err = room.sign(oauth.JWTAccessTokenType,
			s.sharedClaims(m, s.accessClaims(m)))
	}
	if room := m.attached.idToken; room != nil && err == nil {
		m.response.IDToken, err = room.sign(IDTokenTyp, s.idClaims(m))
	}
	return err
}

// release gives back the room for signatures.
func (t *attachment) release() {
	t.accessToken.release()
	t.idToken.release()
}
