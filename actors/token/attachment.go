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
}

// prepare does what may wait, before anything is taken: it reads the resources that the request or
// its grant names, and the user whose claims the id_token has.
func (s *Service) prepare(ctx context.Context, c *oauth.Client, m *tokenAsk) (err error) {
	if len(m.granted.details.Targets) > 0 || len(m.request.Resources) > 0 ||
		len(m.request.ResourceScopes()) > 0 {
		if m.resources, err = s.Resources(ctx); err != nil {
			return err
		}
	}
	if !m.granted.scopes.Contains(oauth.OpenID) || m.granted.used || !c.Options.ClaimsInIDToken {
		return nil
	}
	_, u, err := s.users.load(ctx, m.granted.userID)
	switch {
	case err == nil:
		m.attached.claims = u.claims()
	case !errors.Is(err, account.ErrNotFound): // else the store refuses the grant
		return fmt.Errorf("read the user of an id_token: %w", err)
	}
	return nil
}

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
	hasIDToken := m.access.UserID != 0 && m.access.Scopes.Contains(oauth.OpenID)
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
		m.response.AccessToken, err = room.sign(oauth.JWTAccessTokenType, s.accessClaims(m))
	}
	if room := m.attached.idToken; room != nil && err == nil {
		m.response.IDToken, err = room.sign(IDTokenType, s.idClaims(m))
	}
	return err
}

// release gives back the room for signatures.
func (t *attachment) release() {
	t.accessToken.release()
	t.idToken.release()
}
