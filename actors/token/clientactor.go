package token

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// clientActor serves the requests of one client in their order. It authenticates the client, checks
// what does not change and its quota, and hands the store an operation that decides the rest. Then
// it takes its next message, without waiting for the disk.
type clientActor struct {
	mailbox.Mailbox
	record  *clientRecord // keeps it in use
	service *Service
	window  ratelimit.Window // of the quota
	reached time.Duration    // Opened of the window whose use-up was recorded; -1 = none
	active  atomic.Int64     // access tokens in use
	issued  atomic.Int64     // access tokens since the start
	used    atomic.Int64     // Unix seconds of the request for the last of them; 0 = none
	failed  failureCount
}

// clientActors has the actor of each client in use. A registered client keeps its actor.
type clientActors struct {
	mu   sync.RWMutex
	byID map[string]*clientActor
}

// find returns the actor of a client, nil = there is none, and the client, nil = its record has to
// be read.
func (c *clientActors) find(id string) (*clientActor, *oauth.Client) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if a := c.byID[id]; a != nil {
		return a, a.record.current.Load()
	}
	return nil, nil
}

// use returns the actor of a client, and starts it if there is none. It returns nil when the client
// was changed since its record was loaded: it may have been deleted.
func (c *clientActors) use(s *Service, record *clientRecord) *clientActor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if record.current.Load() == nil {
		return nil
	}
	a := c.byID[record.key]
	if a == nil {
		if c.byID == nil {
			c.byID = map[string]*clientActor{}
		}
		a = &clientActor{record: record, service: s, reached: -1}
		s.spawner.Spawn(a)
		c.byID[record.key] = a
	}
	return a
}

// drop stops the actor of a client that was deleted.
func (c *clientActors) drop(id string) {
	c.mu.Lock()
	a := c.byID[id]
	delete(c.byID, id)
	c.mu.Unlock()
	if a != nil {
		a.Stop()
	}
}

// clientAsk is what all messages to a clientActor have in common. The write is to be awaited when
// fault is nil and there is an operation.
type clientAsk struct {
	client    *oauth.Client   // set by the actor
	operation oauth.Operation // that the actor submits; nil = nothing is written
	write     write
	fault     *oauth.Error // the reply when nothing was submitted
	outdated  bool         // the reply when the client was changed: load its record and ask again
}

// clientMessage is a message to a clientActor that has a reply.
type clientMessage interface{ base() *clientAsk }

// base implements clientMessage.
func (m *clientAsk) base() *clientAsk { return m }

// tokenAsk is what all token requests have in common. The response is valid when the write has
// ended without an error.
type tokenAsk struct {
	clientAsk
	request   *oauth.TokenRequest
	now       time.Time
	granted   granted
	resources *oauth.Resources // nil = neither the request nor its grant names a resource
	attached  attachment
	access    oauth.AccessToken
	result    *oauth.ExchangeResult // part of the operation, if there is one
	response  oauth.TokenResponse
	counted   bool          // the quota counts the access token
	opened    time.Duration // with counted: when the quota's window was opened
}

// granted is what the code or refresh token of a request grants. The zero value grants nothing.
type granted struct {
	scopes  oauth.Scopes
	userID  int64
	details oauth.GrantDetails
	used    bool // it was used before: it gets no tokens, and ends those of its first use
}

// The messages to a clientActor.
type (
	// issuance asks for an access token for the client itself.
	issuance struct {
		tokenAsk
		decided oauth.ExchangeResult // by the actor
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
	// exchange asks for an access token for a subject token, which is valid.
	exchange struct {
		tokenAsk
		subject oauth.AccessToken
		decided oauth.ExchangeResult // by the actor
	}
	// codeIssuance asks to save a new authorization code.
	codeIssuance struct {
		clientAsk
		op oauth.SaveCode
	}
	// revocation asks to end a token of the client.
	revocation struct {
		clientAsk
		credentials oauth.Credentials
		owner       string    // the client that the token was issued to; "" = there is nothing to end
		ended       string    // the client of an access token that has ended; "" = of none
		release     func()    // gives back the room for the end; nil = none was taken
		family      oauth.End // of the refresh token, as it was read; zero = none
		op          oauth.Revoke
	}
	// unissued tells that an access token which the quota counts was not issued.
	unissued struct {
		opened time.Duration // when the quota's window was opened
	}
)

// Receive implements actor.Actor.
func (a *clientActor) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*unissued)
	if ok && a.window.Used > 0 && a.window.Opened == m.opened {
		a.window.Used--
	}
}

// Handle implements mailbox.Actor.
func (a *clientActor) Handle(message any) {
	m := message.(clientMessage).base()
	known := a.record.current.Load()
	if known == nil {
		m.outdated = true
		return
	}
	m.client = known
	switch m := message.(type) {
	case *issuance:
		a.issue(m)
	case *redemption:
		a.redeem(m)
	case *rotation:
		a.rotate(m)
	case *exchange:
		a.exchange(m)
	case *codeIssuance:
		a.saveCode(m)
	case *revocation:
		a.revoke(m)
	}
}

// submit hands the operation to the store.
func (a *clientActor) submit(m *clientAsk) {
	m.write.begin(m.operation)
	a.service.config.Tokens.Submit(m.operation)
}

// authorize authenticates the client and checks that it may use the grant. If not, it sets m.fault
// and returns false.
func (a *clientActor) authorize(m *tokenAsk) bool {
	if m.fault = m.client.Authenticate(m.request.Credentials); m.fault == nil {
		m.fault = oauth.CheckGrant(m.client, m.request)
	}
	return m.fault == nil
}

func (a *clientActor) issue(m *issuance) {
	if !a.authorize(&m.tokenAsk) {
		return
	}
	scopes, fault := oauth.CheckClientCredentials(m.client, m.request)
	if fault != nil {
		m.fault = fault
		return
	}
	var targets oauth.Targets
	if m.resources != nil {
		targets, m.fault = m.resources.OfClient(m.client, m.request.Resources,
			m.request.ResourceScopes())
		if m.fault != nil {
			return
		}
	}
	a.grant(&m.tokenAsk, scopes)
	m.direct(targets)
	if !a.reserve(&m.tokenAsk) {
		return
	}
	m.decided.Outcome, m.decided.Epochs.Client = oauth.OutcomeDone, m.client.Epoch
}

func (a *clientActor) redeem(m *redemption) {
	if !a.authorize(&m.tokenAsk) {
		return
	}
	if m.fault = oauth.CheckRedeem(m.code, m.client, m.request, m.now); m.fault != nil {
		return
	}
	scopes := m.code.Scopes & m.client.Scopes
	a.grant(&m.tokenAsk, scopes)
	m.direct(m.narrow(nil))
	if !m.granted.used && !a.reserve(&m.tokenAsk) {
		return
	}
	m.fault = nil // a code that is used again gets no token, whatever it asks for
	m.op.Code, m.op.Now = m.code.Hash, m.now
	m.op.Family = a.family(m)
	m.access.FamilyID = m.op.Family.ID
	if m.client.Grants.Contains(oauth.RefreshTokenGrant) {
		hash := m.refreshToken()
		m.op.Refresh = &hash
	}
	m.response.ShowScope = m.code.DefaultScopes || scopes != m.code.Scopes ||
		differs(m.request.Scope, scopes) || m.hasFewerScopes()
	a.submit(&m.clientAsk)
}

// differs reports whether a scope parameter, which the grant does not use, names other scopes.
func differs(requested string, granted oauth.Scopes) bool {
	scopes, fault := oauth.ParseScopes(requested)
	return requested != "" && (fault != nil || scopes != granted)
}

// family returns the family that begins with a redemption. One without refresh tokens ends with its
// access token.
func (a *clientActor) family(m *redemption) oauth.Family {
	expires := time.Unix(m.access.Expires, 0)
	f := oauth.Family{
		ID:       uuid.Must(uuid.NewV7()), // it grows with time, so that new rows are neighbors on disk
		ClientID: m.client.ID, UserID: m.code.UserID, Scopes: m.code.Scopes, Generation: 1,
		Advanced: m.now, Expires: expires, Ends: expires, AccessExpires: expires,
		Details: m.code.Details,
	}
	if !f.Scopes.Contains(oauth.OfflineAccess) {
		f.Session = m.code.Session
	}
	f.Details.Nonce = "" // only the first id_token has it
	if m.client.Grants.Contains(oauth.RefreshTokenGrant) {
		lifetimes := &a.service.config.Lifetimes
		f.Ends = m.now.Add(lifetimes.RefreshFamily)
		f.Expires = earlier(m.now.Add(lifetimes.RefreshToken), f.Ends)
	}
	return f
}

func (a *clientActor) rotate(m *rotation) {
	if !a.authorize(&m.tokenAsk) {
		return
	}
	lifetimes := &a.service.config.Lifetimes
	scopes, fault := oauth.CheckRotate(m.token, m.client, m.request, m.now)
	if fault != nil && !(m.granted.used && fault.Code == oauth.InvalidScope) {
		m.fault = fault
		return
	}
	f := &m.token.Family
	a.grant(&m.tokenAsk, scopes)
	if m.resources != nil && len(m.request.Resources) == 0 {
		m.granted.details.Targets = m.resources.First(&f.Details, m.client)
	}
	m.direct(m.narrow(m.request.ResourceScopes()))
	if !m.granted.used && !a.reserve(&m.tokenAsk) {
		return
	}
	m.fault = nil // nor does a refresh token
	m.op.FamilyID, m.op.Generation = f.ID, m.token.Generation
	m.op.Grant = oauth.Grant{UserID: f.UserID, ClientID: f.ClientID}
	m.op.Now, m.op.Grace = m.now, lifetimes.RefreshGrace
	m.op.Expires = earlier(m.now.Add(lifetimes.RefreshToken), f.Ends)
	m.access.FamilyID = f.ID
	m.op.AccessExpires = time.Unix(m.access.Expires, 0)
	m.op.Refresh = m.refreshToken()
	m.response.ShowScope = !oauth.Asks(m.request.Scope, scopes, m.response.ResourceScopes)
	a.submit(&m.clientAsk)
}

func (a *clientActor) saveCode(m *codeIssuance) {
	if m.client.Disabled {
		m.fault = &oauth.Error{Code: oauth.UnauthorizedClient,
			Description: "The client is disabled.", Hint: "Ask the operator to enable it."}
		return
	}
	a.submit(&m.clientAsk)
}

func (a *clientActor) revoke(m *revocation) {
	if m.fault = m.client.Authenticate(m.credentials); m.fault != nil {
		return
	}
	if m.owner != m.client.ID {
		m.write.skip()
		return
	}
	if m.op.Token != nil {
		var ok bool
		if m.release, ok = a.service.ended.reserve(m.owner); !ok && m.op.Token.UserID == 0 {
			m.fault = errTooManyEnds
			return
		}
		m.op.ByEpoch = !ok // so that others who have used up the room keep nobody from ending a token
	}
	a.submit(&m.clientAsk)
}

// count counts the access token that m asks for against the client's quota. When that is used up,
// it sets m.fault and returns false. Call it last, before anything is taken.
func (a *clientActor) count(m *tokenAsk) bool {
	quota := m.client.TokensPerMinute
	if quota == 0 {
		return true
	}
	clock := a.service.clock(m.now)
	decision := a.window.Take(quota, ratelimit.Now{Clock: clock, Unix: m.now.UnixNano()})
	if !decision.Allowed {
		m.fault = quotaUsed(decision)
		a.recordQuota(m)
		return false
	}
	m.counted, m.opened = true, a.window.Opened
	return true
}

// recordQuota records once for each window that the client has used up its quota. It does not wait
// for the write.
func (a *clientActor) recordQuota(m *tokenAsk) {
	if a.reached == a.window.Opened {
		return
	}
	a.reached = a.window.Opened
	ctx := audit.WithSource(context.Background(), audit.Source{
		Actor:  audit.Actor{Kind: audit.Client, ID: m.client.ID},
		Caller: m.request.Caller,
	})
	op := &oauth.Record{}
	op.Context = audit.With(ctx, audit.Event{Action: audit.BudgetReached, Outcome: audit.Refused,
		Subject: audit.OfClient(m.client.ID), Details: []string{"tokens_per_minute"}})
	a.service.config.Tokens.Submit(op)
}

// operatorTokenLifetime is the longest lifetime of a token with oauth.ServerOperations: scripts
// request one at each call.
const operatorTokenLifetime = 5 * time.Minute

// grant sets what the access token and its response say, but for the family and the epochs. The
// token's lifetime counts from the second of its issue, so that it never outlives expires_in, and
// introspection agrees with it.
func (a *clientActor) grant(m *tokenAsk, scopes oauth.Scopes) {
	lifetime := a.service.config.Lifetimes.AccessToken
	if scopes.Contains(oauth.ServerOperations) {
		lifetime = min(lifetime, operatorTokenLifetime)
	}
	m.access = oauth.AccessToken{
		ClientID: m.client.ID, UserID: m.granted.userID, Scopes: scopes,
		Issued: m.now.Unix(), Expires: m.now.Truncate(time.Second).Add(lifetime).Unix(),
		AuthTime: m.granted.details.AuthTime, TwoFactors: m.granted.details.ACR() == oauth.ACR2,
	}
	m.response.ExpiresIn, m.response.Scopes = lifetime, scopes
}

// refreshToken puts a new refresh token into the response and returns its hash.
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
