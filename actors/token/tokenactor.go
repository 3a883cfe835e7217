package token

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

const (
	idleTime = time.Minute     // a token that is not used for so long loses its actor
	lateTime = 5 * time.Second // how late a request may reach its actor
)

// limitOf is how many requests a minute an access token has at each endpoint (interface document,
// section 8).
var limitOf = [...]int{BasicProfile: 100, DetailedProfile: 50, UserInfo: 100}

// scopeOf is the scope that each endpoint requires (interface document, section 2.6).
var scopeOf = [...]oauth.Scopes{
	BasicProfile: oauth.ViewUser, DetailedProfile: oauth.DetailUser, UserInfo: oauth.OpenID,
	adminAPI: oauth.ServerOperations, introspection: 0,
}

// session is what an access token stands for. It and the actor are small, since there may be a
// million of them. It is not changed.
type session struct {
	client  *clientActor
	user    *userRecord // nil = none
	expires uint32      // Unix seconds
	auth    uint32      // Unix seconds of the user's sign-in; 0 = not known
	epochs  oauth.Epochs
	family  uuid.UUID // uuid.Nil = none
	origin  *origin   // what the token was exchanged for; nil = it was not
	lasts   uint32    // seconds from the issue to expires
	key     uint16    // number of the key that sealed it
	packed  packedScopes
}

// packedScopes are the scopes of a token, with bits about its targets and its sign-in: a session has no room for
// the targets themselves.
type packedScopes oauth.Scopes

// The bits that are no scopes.
const (
	hasTargets packedScopes = 1 << 15 // the token is for resources: open it to learn which
	isForeign  packedScopes = 1 << 14 // this service is not among them
	twoFactors packedScopes = 1 << 13 // the user has signed in with two factors
)

// The scopes leave those bits alone, or this does not compile.
const _ = uint16(twoFactors-1) - uint16(oauth.AllScopes)

func packScopes(t *oauth.AccessToken) packedScopes {
	packed := packedScopes(t.Scopes & oauth.AllScopes)
	if targets := t.Targets(); targets != nil {
		packed |= hasTargets
		if targets.AreForeign() {
			packed |= isForeign
		}
	}
	if t.TwoFactors {
		packed |= twoFactors
	}
	return packed
}

// scopes returns the scopes alone.
func (p packedScopes) scopes() oauth.Scopes { return oauth.Scopes(p) & oauth.AllScopes }

// tokenActor owns the rate limits of one access token. It never blocks and runs on the goroutines
// of the requests. Its fields fill few cache lines: with thousands of tokens in use, requests wait
// for memory more than for anything else.
type tokenActor struct {
	mailbox.Mailbox
	id      oauth.TokenID
	text    string
	service *Service
	session session
	seen    time.Duration               // when the latest request came, by Service.clock
	opened  [len(limitOf)]time.Duration // when each endpoint's window was opened, by Service.clock
	used    [len(limitOf)]uint16        // of each window; 0 = none is open
	checked uint32                      // the version of the ends that did not have the token
	shared  *counts                     // in a cluster, in place of opened and used
	jwt     atomic.Pointer[string]      // the token as a JWT; nil = it was not seen as one
}

// is reports whether token is the actor's, byte for byte. It takes the same time for all tokens of
// that length.
func (a *tokenActor) is(token string) bool {
	if len(token) != len(a.text) {
		return a.isJWT(token)
	}
	if len(token) > oauth.MaxAccessToken { // it was exchanged
		return isSame(token, a.text)
	}
	var given, difference [oauth.MaxAccessToken + 1]byte
	n := copy(given[:], token)
	subtle.XORBytes(difference[:n], given[:n], unsafe.Slice(unsafe.StringData(a.text), n))
	var any uint64
	for i := 0; i < n; i += 8 {
		any |= binary.LittleEndian.Uint64(difference[i:])
	}
	return any == 0
}

// The messages to a tokenActor.
type (
	// admission asks about a request, and takes the reply.
	admission struct {
		endpoint Endpoint
		now      time.Time
		remote   *remoteCount // in a cluster; else nil

		stale  bool // a record has to be read again, then the actor asked again
		result Admission
	}
	// sweep has the actor stop if it is idle.
	sweep struct{ now time.Time }
)

// Receive implements actor.Actor.
func (a *tokenActor) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*sweep); ok {
		a.stopIfIdle(m.now)
	}
}

// Handle implements mailbox.Actor.
func (a *tokenActor) Handle(message any) {
	switch m := message.(type) {
	case *admission:
		a.admit(m)
	case *export:
		a.export(m)
	case *reporting:
		a.report(m)
	case *reported:
		a.takeReport(m)
	case *closing:
		a.close(m)
	case *givingBack:
		a.giveBack(m)
	}
}

// askToken asks an actor about a request. stale says that the records have to be loaded first. The
// error is one of mailbox.
func (s *Service) askToken(
	a *tokenActor, endpoint Endpoint, now time.Time,
) (result Admission, stale bool, err error) {
	m := s.asks.Get().(*admission)
	m.endpoint, m.now = endpoint, now
	err = a.Ask(m)
	if m.remote != nil {
		if m.remote.elsewhere && err == nil {
			err = s.countElsewhere(a, m)
		}
		result, stale = m.result, m.stale
		*m.remote = remoteCount{}
	} else {
		result, stale = m.result, m.stale
	}
	*m = admission{remote: m.remote}
	s.asks.Put(m)
	return result, stale, err
}

// admit decides about a request, unless a record has to be read again first.
func (a *tokenActor) admit(m *admission) {
	now := ratelimit.Now{Clock: a.service.clock(m.now), Unix: m.now.UnixNano()}
	a.seen = max(a.seen, now.Clock)
	if version := uint32(a.service.ended.version.Load()); a.checked != version {
		if a.service.hasEnded(&a.id, &a.session) {
			m.result = Admission{Verdict: TokenInvalid}
			return
		}
		a.checked = version
	}
	client := a.session.client.record.current.Load()
	var u *user
	if a.session.user != nil {
		u = a.session.user.current.Load()
	}
	m.stale = client == nil || u == nil && a.session.user != nil || a.session.isAhead(client, u)
	if !m.stale {
		m.result = a.decide(m, client, u, now)
	}
}

// isAhead reports whether a token was issued after a change that client or user do not show.
func (x *session) isAhead(client *oauth.Client, u *user) bool {
	return x.epochs.Client > client.Epoch || u != nil && x.epochs.User > u.epoch ||
		x.origin.isAhead()
}

// isLive reports whether neither client nor user has ended a token. One that was exchanged is live
// only while its user may use all clients that it came through.
func (x *session) isLive(client *oauth.Client, u *user) bool {
	return !client.Disabled && x.epochs.Client >= client.Epoch &&
		(u == nil || !u.disabled && x.epochs.User >= u.epoch) &&
		(x.origin == nil || u != nil && u.mayUse(client) && x.origin.isLive(u))
}

// isFor reports whether a token is for an endpoint. Introspection describes all tokens (RFC 8707
// section 2), and userinfo is among the audience of all that have its scope.
func (x *session) isFor(endpoint Endpoint) bool {
	return x.packed&isForeign == 0 || endpoint == introspection ||
		endpoint == UserInfo && x.packed.scopes().Contains(scopeOf[UserInfo])
}

// decide checks in the documented order: token, window, scope, approval. u is nil when the token
// has no user. It decides nothing when another node has to count the request first.
func (a *tokenActor) decide(
	m *admission, client *oauth.Client, u *user, now ratelimit.Now,
) Admission {
	endpoint := m.endpoint
	if now.Unix >= int64(a.session.expires)*int64(time.Second) {
		return Admission{Verdict: TokenExpired}
	}
	if !a.session.isLive(client, u) {
		return Admission{Verdict: TokenInvalid}
	}
	if !a.session.isFor(endpoint) {
		return Admission{Verdict: WrongAudience}
	}
	var rate ratelimit.Decision
	if endpoint.isLimited() {
		if a.shared == nil {
			rate = a.count(endpoint, now)
		} else if rate = a.countShared(m, now); m.remote.elsewhere {
			return Admission{}
		}
		if !rate.Allowed {
			return Admission{Verdict: RateLimited, Rate: rate}
		}
	}
	verdict := Admitted
	var profile []byte
	switch {
	case endpoint == introspection:
	case !a.session.packed.scopes().Contains(scopeOf[endpoint]):
		verdict = InsufficientScope
	case endpoint == adminAPI:
		if !client.Operator {
			verdict = InsufficientScope
		}
	case u == nil:
		verdict = InsufficientScope // only a user can grant these scopes
	case client.Options.RequireSecondFactor && a.session.packed&twoFactors == 0:
		verdict = InsufficientAuthentication
	case endpoint == BasicProfile:
		profile = u.basic
	case endpoint == DetailedProfile && !client.DetailApproved:
		verdict = UnapprovedScope
	case endpoint == DetailedProfile:
		profile = u.detailed
	case endpoint == UserInfo:
		profile = u.userInfo(a.session.user.key, releasedTo(a.session.packed.scopes(), client),
			a.service.claims.Load())
	}
	return Admission{Verdict: verdict, Rate: rate, Profile: profile}
}

// count counts a request against the endpoint's limit.
func (a *tokenActor) count(endpoint Endpoint, now ratelimit.Now) ratelimit.Decision {
	w := a.window(endpoint)
	decision := w.Take(limitOf[endpoint], now)
	a.opened[endpoint], a.used[endpoint] = w.Opened, uint16(w.Used)
	return decision
}

func (a *tokenActor) window(endpoint Endpoint) ratelimit.Window {
	if a.shared != nil {
		w := a.shared.windows[endpoint]
		if w == nil {
			return ratelimit.Window{}
		}
		return ratelimit.Window{Opened: w.Opened, Used: w.Used + w.Extra}
	}
	return ratelimit.Window{Opened: a.opened[endpoint], Used: int(a.used[endpoint])}
}

// stopIfIdle stops the actor when nothing would be lost: it is idle and its windows have ended, or
// its token has expired.
func (a *tokenActor) stopIfIdle(now time.Time) {
	clock := a.service.clock(now)
	idle := clock-a.seen >= idleTime
	for endpoint := range limitOf {
		w := a.window(Endpoint(endpoint))
		idle = idle && w.Over(clock-lateTime)
	}
	if !idle && now.Add(-lateTime).Unix() < int64(a.session.expires) {
		return
	}
	if a.service.directory.remove(a) {
		a.Stop()
	}
}

// hasStopped reports whether err says that the actor has stopped: another takes its place.
func hasStopped(err error) bool { return errors.Is(err, mailbox.ErrStopped) }

// describe returns what introspection says of a live token.
func (x *session) describe() oauth.Introspection {
	about := oauth.Introspection{
		Active: true, Scopes: x.packed.scopes(), ClientID: x.client.record.key,
		Issued:  time.Unix(int64(x.expires)-int64(x.lasts), 0),
		Expires: time.Unix(int64(x.expires), 0),
	}
	if x.user != nil {
		about.UserID = x.user.key
	}
	if about.AuthTime = int64(x.auth); x.auth != 0 {
		about.ACR = oauth.ACR1
		if x.packed&twoFactors != 0 {
			about.ACR = oauth.ACR2
		}
	}
	return about
}

// sweepInterval is the time between two shards of the directory, so that each is swept about once a
// minute.
const sweepInterval = idleTime / 256

// sweep tells the actors of one shard after the other to stop if they are idle, and forgets ends
// whose tokens have expired, until the Service stops.
func (s *Service) sweep() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	var members []*tokenActor
	for n := 0; ; n = (n + 1) % len(s.directory.shards) {
		select {
		case <-s.lifetime.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		s.ended.drop(n, now)
		s.directory.dropHanded(n, s.clock(now))
		members = s.directory.members(n, members[:0])
		for _, a := range members {
			a.Tell(&sweep{now: now})
		}
		clear(members)
	}
}
