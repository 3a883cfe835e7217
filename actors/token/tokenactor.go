package token

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

const (
	idleTime   = time.Minute     // a token that is not used for so long loses its actor
	lateTime   = 5 * time.Second // how late a request may reach its actor
	staleAfter = time.Second     // when records are read again, in stores that others write to
)

// limitOf is how many requests a minute an access token has at each endpoint (interface document,
// section 8).
var limitOf = [...]int{BasicProfile: 100, DetailedProfile: 50}

// scopeOf is the scope that each endpoint requires (interface document, section 2.6).
var scopeOf = [...]oauth.Scopes{
	BasicProfile: oauth.ViewUser, DetailedProfile: oauth.DetailUser,
	adminAPI: oauth.ServerOperations, introspection: 0,
}

// session is what an access token stands for. It and the actor are small, since there may be a
// million of them. It is not changed while the actor is in the directory, but for read.
type session struct {
	expires int64         // Unix seconds
	read    time.Duration // what the stores said is no older than that, by Service.clock
	client  *clientRecord
	user    *userRecord // nil = none
	lasts   uint32      // seconds from the issue to expires
	scopes  oauth.Scopes
}

// tokenActor owns the rate limits of one access token. It never blocks and runs on the goroutines of
// the requests. Its fields fill few cache lines: with thousands of tokens in use, requests wait for
// memory more than for anything else.
type tokenActor struct {
	hash    oauth.Hash // of the token
	mailbox *mailbox.Mailbox
	service *Service
	session session
	seen    time.Duration               // when the latest request came, by Service.clock
	opened  [len(limitOf)]time.Duration // when each endpoint's window was opened, by Service.clock
	used    [len(limitOf)]uint16        // of each window; 0 = none is open
}

// The messages to a tokenActor.
type (
	// admission asks about a request, and takes the reply.
	admission struct {
		endpoint Endpoint
		now      time.Time

		stale  bool // a record has to be read again, then the actor asked again
		result Admission
	}
	// confirmed says that the stores stood by the session at that time, by Service.clock.
	confirmed struct{ read time.Duration }
	// sweep has the actor stop if it is idle.
	sweep struct{ now time.Time }
)

// Receive implements actor.Actor.
func (a *tokenActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *admission:
		a.admit(m)
	case *confirmed:
		a.session.read = m.read
	case *sweep:
		a.stopIfIdle(m.now)
	}
}

// askToken asks an actor about a request. stale says that the records have to be loaded first. The
// error is one of mailbox.
func (s *Service) askToken(a *tokenActor, endpoint Endpoint, now time.Time) (result Admission, stale bool, err error) {
	m := s.asks.Get().(*admission)
	m.endpoint, m.now = endpoint, now
	err = a.mailbox.Ask(m)
	result, stale = m.result, m.stale
	*m = admission{}
	s.asks.Put(m)
	return result, stale, err
}

// admit decides about a request, unless a record has to be read again first.
func (a *tokenActor) admit(m *admission) {
	now := ratelimit.Now{Clock: a.service.clock(m.now), Unix: m.now.UnixNano()}
	a.seen = max(a.seen, now.Clock)
	client := a.session.client.current.Load()
	var u *user
	if a.session.user != nil {
		if record := a.session.user.current.Load(); record != nil {
			u = &record.value
		}
	}
	m.stale = client == nil || u == nil && a.session.user != nil ||
		a.service.config.Shared && now.Clock-a.session.read > staleAfter
	if !m.stale {
		m.result = a.decide(m.endpoint, &client.value, u, now)
	}
}

// decide checks in the documented order: token, window, scope, approval. u is nil when the token has
// no user.
func (a *tokenActor) decide(endpoint Endpoint, client *oauth.Client, u *user, now ratelimit.Now) Admission {
	if now.Unix >= a.session.expires*int64(time.Second) {
		return Admission{Verdict: TokenExpired}
	}
	if client.Disabled || u != nil && u.disabled {
		return Admission{Verdict: TokenInvalid}
	}
	var rate ratelimit.Decision
	if int(endpoint) < len(limitOf) {
		if rate = a.count(endpoint, now); !rate.Allowed {
			return Admission{Verdict: RateLimited, Rate: rate}
		}
	}
	verdict := Admitted
	var profile []byte
	switch {
	case endpoint == introspection:
	case !a.session.scopes.Contains(scopeOf[endpoint]):
		verdict = InsufficientScope
	case endpoint == adminAPI:
		if !client.Operator {
			verdict = InsufficientScope
		}
	case u == nil:
		verdict = InsufficientScope // only a user can grant these scopes
	case endpoint == BasicProfile:
		profile = u.basic
	case endpoint == DetailedProfile && !client.DetailApproved:
		verdict = UnapprovedScope
	case endpoint == DetailedProfile:
		profile = u.detailed
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
	if !idle && now.Add(-lateTime).Unix() < a.session.expires {
		return
	}
	if a.service.directory.remove(a) {
		a.mailbox.Stop()
	}
}

// hasStopped reports whether err says that the actor has stopped: another takes its place.
func hasStopped(err error) bool { return errors.Is(err, mailbox.ErrStopped) }

// describe returns what introspection says of the token. It may be called by any goroutine.
func (a *tokenActor) describe() oauth.Introspection {
	about := oauth.Introspection{
		Active: true, Scopes: a.session.scopes, ClientID: a.session.client.key,
		Issued:  time.Unix(a.session.expires-int64(a.session.lasts), 0),
		Expires: time.Unix(a.session.expires, 0),
	}
	if a.session.user != nil {
		about.UserID = a.session.user.key
	}
	return about
}

// sweepInterval is the time between two shards of the directory, so that each is swept about once a
// minute.
const sweepInterval = idleTime / 256

// sweep tells the actors of one shard after the other to stop if they are idle, until the Service
// stops.
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
		members = s.directory.members(n, members[:0])
		now := time.Now()
		for _, a := range members {
			a.mailbox.Tell(&sweep{now: now})
		}
		clear(members)
	}
}
