package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

// clientActor is the single writer of one client's codes and tokens. It authenticates, checks what does not change and hands the
// store an operation that decides the rest; then it takes its next message, without waiting for the disk.
type clientActor struct {
	state     *clientState
	store     oauth.Store
	keys      *keyring
	lifetimes oauth.Lifetimes
}

// tokenAsk is what all token requests have in common on their way to a client's actor. The response is valid when the
// reply ended without an error.
type tokenAsk struct {
	reply
	request  *oauth.TokenRequest
	now      time.Time
	response oauth.TokenResponse
}

func newTokenAsk(r *oauth.TokenRequest, now time.Time) tokenAsk {
	return tokenAsk{reply: newReply(), request: r, now: now}
}

// The messages of a clientActor.
type (
	// issuance asks for an access token for the client itself.
	issuance struct {
		tokenAsk
		op oauth.Issue
	}
	// redemption asks for tokens for an authorization code.
	redemption struct {
		tokenAsk
		code *oauth.AuthorizationCode // nil = unknown
		op   oauth.Redeem
	}
	// rotation asks for tokens for a refresh token.
	rotation struct {
		tokenAsk
		token *oauth.RefreshToken // nil = unknown
		op    oauth.Rotate
	}
	// grant asks to keep a new authorization code.
	grant struct {
		reply
		op oauth.SaveCode
	}
	// revocation asks to end a token of the client.
	revocation struct {
		reply
		credentials oauth.Credentials
		owner       string // the client that the token was issued to; "" = it is unknown
		op          oauth.Revoke
	}
)

// Receive implements actor.Actor.
func (a *clientActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *issuance:
		a.issue(m)
	case *redemption:
		a.redeem(m)
	case *rotation:
		a.rotate(m)
	case *grant:
		a.keepCode(m)
	case *revocation:
		a.revoke(m)
	}
}

// admit authenticates the client and checks that it may use the grant; when not, it ends the ask and returns nil.
func (a *clientActor) admit(m *tokenAsk) *oauth.Client {
	c := a.state.client.Load()
	if fault := c.Authenticate(m.request.Credentials); fault != nil {
		m.end(fault)
		return nil
	}
	if fault := oauth.CheckGrant(c, m.request); fault != nil {
		m.end(fault)
		return nil
	}
	return c
}

func (a *clientActor) issue(m *issuance) {
	c := a.admit(&m.tokenAsk)
	if c == nil {
		return
	}
	scopes, fault := oauth.CheckClientCredentials(c, m.request)
	if fault != nil {
		m.end(fault)
		return
	}
	m.op.Token = a.accessToken(&m.tokenAsk, c, scopes)
	m.op.OnDone(m.end)
	a.store.Submit(&m.op)
}

func (a *clientActor) redeem(m *redemption) {
	c := a.admit(&m.tokenAsk)
	if c == nil {
		return
	}
	if fault := oauth.CheckRedeem(m.code, c, m.request, m.now); fault != nil {
		m.end(fault)
		return
	}
	scopes := m.code.Scopes & c.Scopes
	m.op.Code, m.op.Now = m.code.Hash, m.now
	m.op.Access = a.accessToken(&m.tokenAsk, c, scopes)
	m.op.Family = a.family(m, c)
	m.op.Access.UserID, m.op.Access.FamilyID = m.code.UserID, m.op.Family.ID
	if c.Grants.Contains(oauth.RefreshTokenGrant) {
		hash := m.refreshToken()
		m.op.Refresh = &hash
	}
	m.response.ShowScope = m.code.DefaultScopes || scopes != m.code.Scopes || differs(m.request.Scope, scopes)
	m.op.OnDone(m.end)
	a.store.Submit(&m.op)
}

// differs reports whether a scope parameter, which the grant has no use for, names other scopes.
func differs(asked string, granted oauth.Scopes) bool {
	scopes, fault := oauth.ParseScopes(asked)
	return asked != "" && (fault != nil || scopes != granted)
}

// family returns the family that begins with a redemption. One without refresh tokens ends with its access token.
func (a *clientActor) family(m *redemption, c *oauth.Client) oauth.Family {
	f := oauth.Family{
		ID: familyID(), ClientID: c.ID, UserID: m.code.UserID, Scopes: m.code.Scopes,
		Generation: 1, Advanced: m.now, Expires: m.op.Access.Expires, Ends: m.op.Access.Expires,
	}
	if c.Grants.Contains(oauth.RefreshTokenGrant) {
		f.Ends = m.now.Add(a.lifetimes.RefreshFamily)
		f.Expires = earlier(m.now.Add(a.lifetimes.RefreshToken), f.Ends)
	}
	return f
}

func (a *clientActor) rotate(m *rotation) {
	c := a.admit(&m.tokenAsk)
	if c == nil {
		return
	}
	scopes, fault := oauth.CheckRotate(m.token, c, m.request, m.now)
	if fault != nil && !(fault.Code == oauth.InvalidScope && m.token.Outdated(m.now, a.lifetimes.RefreshGrace)) {
		m.end(fault)
		return
	}
	f := &m.token.Family
	m.op.FamilyID, m.op.Generation = f.ID, m.token.Generation
	m.op.Now, m.op.Grace = m.now, a.lifetimes.RefreshGrace
	m.op.Expires = earlier(m.now.Add(a.lifetimes.RefreshToken), f.Ends)
	m.op.Access = a.accessToken(&m.tokenAsk, c, scopes)
	m.op.Access.UserID, m.op.Access.FamilyID = f.UserID, f.ID
	m.op.Refresh = m.refreshToken()
	m.response.ShowScope = m.request.Scope == "" && scopes != 0
	m.op.OnDone(m.end)
	a.store.Submit(&m.op)
}

func (a *clientActor) keepCode(m *grant) {
	c := a.state.client.Load()
	if c.Disabled {
		m.end(&oauth.Error{Code: oauth.UnauthorizedClient, Description: "The client is disabled.", Hint: "Ask the operator to enable it."})
		return
	}
	m.op.OnDone(m.end)
	a.store.Submit(&m.op)
}

func (a *clientActor) revoke(m *revocation) {
	c := a.state.client.Load()
	if fault := c.Authenticate(m.credentials); fault != nil {
		m.end(fault)
		return
	}
	if m.owner != c.ID {
		m.end(nil)
		return
	}
	m.op.OnDone(m.end)
	a.store.Submit(&m.op)
}

// familyID returns a UUID that grows with time (version 7), so that new rows lie side by side on disk.
func familyID() string { return uuid.Must(uuid.NewV7()).String() }

// operatorTokens last no longer than this: scripts ask for one at each call.
const operatorTokens = 5 * time.Minute

// accessToken puts a new access token into the response and returns what is kept of it. Its time counts from the second in which it was
// issued, so that it never lasts longer than the response says, and what introspection tells of it adds up.
func (a *clientActor) accessToken(m *tokenAsk, c *oauth.Client, scopes oauth.Scopes) oauth.AccessToken {
	lifetime := a.lifetimes.AccessToken
	if scopes.Contains(oauth.ServerOperations) {
		lifetime = min(lifetime, operatorTokens)
	}
	expires := m.now.Truncate(time.Second).Add(lifetime)
	m.response.AccessToken = a.keys.newAccessToken(expires, m.now)
	m.response.ExpiresIn = lifetime
	m.response.Scopes = scopes
	return oauth.AccessToken{
		Hash: oauth.HashOf(m.response.AccessToken), ClientID: c.ID, Scopes: scopes, Issued: m.now, Expires: expires,
	}
}

// refreshToken puts a new refresh token into the response and returns what is kept of it.
func (m *tokenAsk) refreshToken() oauth.Hash {
	m.response.RefreshToken = oauth.NewRefreshToken()
	return oauth.HashOf(m.response.RefreshToken)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
