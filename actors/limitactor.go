package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

const (
	idleTime   = time.Minute     // how long a token is not used before its actor leaves
	lateTime   = 5 * time.Second // how much later than its time a request may be looked at
	staleAfter = time.Second     // when what was read is read again, in stores that others write to
)

// limitOf is how many requests a minute an access token has at each endpoint (interface document, section 8).
var limitOf = [...]int{BasicProfile: 100, DetailedProfile: 50}

// scopeOf is the scope that each endpoint requires (interface document, section 2.6).
var scopeOf = [...]oauth.Scopes{BasicProfile: oauth.ViewUser, DetailedProfile: oauth.DetailUser, adminAPI: oauth.ServerOperations, introspection: 0}

// session is what an access token stands for. It and the actor are small, since there may be a million of them.
type session struct {
	expires int64         // Unix seconds
	read    time.Duration // what the stores said is no older than that, by limits.clock
	client  *clientState
	user    *userState // nil = none
	lasts   uint32     // seconds from the issue to expires
	scopes  oauth.Scopes
}

// describe returns what introspection tells of the token. It may be called by any goroutine: what it reads is never changed.
func (s *session) describe() oauth.Introspection {
	about := oauth.Introspection{
		Active: true, Scopes: s.scopes, ClientID: s.client.client.Load().ID,
		Issued: time.Unix(s.expires-int64(s.lasts), 0), Expires: time.Unix(s.expires, 0),
	}
	if s.user != nil {
		about.UserID = s.user.id
	}
	return about
}

// limitActor owns the windows of one access token. It never blocks and runs on the goroutines of those who ask. Asks are
// answered as the last act: see callMailbox. It fills two cache lines: with thousands of tokens in use, requests wait for memory
// more than for anything else.
type limitActor struct {
	hash    oauth.Hash // of the token; set before the actor is in the directory, and never changed
	mailbox *callMailbox
	limits  *limits
	session session
	seen    time.Duration               // when the latest request came, by limits.clock
	opened  [len(limitOf)]time.Duration // when each endpoint's window was opened, by limits.clock
	used    [len(limitOf)]uint16        // of each window; 0 = none is open
	turn    callTurn
}

// The messages to a limitActor beside *admitAsk.
type (
	// begin is the first: it gives the token and its session.
	begin struct {
		hash    oauth.Hash
		session session
	}
	// confirmed says that the stores stand by the session.
	confirmed struct{ read time.Duration }
	// sweep tells the actor to leave if it is idle.
	sweep struct{ now time.Time }
)

// Receive implements actor.Actor.
func (a *limitActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *admitAsk:
		m.answer(a.consider(m.endpoint, m.now))
	case *begin:
		a.hash, a.session, a.seen = m.hash, m.session, a.limits.clock(time.Now())
	case *confirmed:
		a.session.read = m.read
	case *sweep:
		a.leave(ctx, m)
	}
}

// answerNow answers a request at once, which nearly all need, since nobody else asks with the token at the same time. It is the
// actor's turn like any other, without a message. False says that somebody has the turn, or that the actor was told to stop.
func (a *limitActor) answerNow(endpoint Endpoint, now time.Time) (reply askReply, answered bool) {
	if !a.turn.mu.TryLock() {
		return askReply{}, false
	}
	defer a.turn.mu.Unlock()
	if a.turn.running || a.turn.stopped {
		return askReply{}, false
	}
	defer func() {
		if reason := recover(); reason != nil {
			a.mailbox.calls.panicked()
			reply, answered = askReply{outcome: askFailed}, true
		}
	}()
	return a.consider(endpoint, now), true
}

// consider answers a request, unless what the actor knows has to be read again first.
func (a *limitActor) consider(endpoint Endpoint, now time.Time) askReply {
	moment := ratelimit.Now{Clock: a.limits.clock(now), Unix: now.UnixNano()}
	a.seen = max(a.seen, moment.Clock)
	var user *userSnapshot
	if a.session.user != nil {
		if user = a.session.user.current.Load(); user == nil {
			return askReply{outcome: askStale}
		}
	}
	if a.limits.shared && moment.Clock-a.session.read > staleAfter {
		return askReply{outcome: askStale}
	}
	return askReply{outcome: askDecided, admission: a.decide(endpoint, a.session.client.client.Load(), user, moment)}
}

// decide checks in the documented order: token, window, scope, approval.
func (a *limitActor) decide(endpoint Endpoint, client *oauth.Client, user *userSnapshot, now ratelimit.Now) Admission {
	if now.Unix >= a.session.expires*int64(time.Second) {
		return Admission{Verdict: TokenExpired}
	}
	if client.Disabled || user != nil && user.disabled {
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
	case user == nil:
		verdict = InsufficientScope // only a user can grant these scopes
	case endpoint == BasicProfile:
		profile = user.basic
	case !client.DetailApproved:
		verdict = UnapprovedScope
	default:
		profile = user.detailed
	}
	return Admission{Verdict: verdict, Rate: rate, Profile: profile}
}

// count counts a request against the endpoint's limit.
func (a *limitActor) count(endpoint Endpoint, now ratelimit.Now) ratelimit.Decision {
	w := a.window(endpoint)
	decision := w.Take(limitOf[endpoint], now)
	a.opened[endpoint], a.used[endpoint] = w.Opened, uint16(w.Used)
	return decision
}

func (a *limitActor) window(endpoint Endpoint) ratelimit.Window {
	return ratelimit.Window{Opened: a.opened[endpoint], Used: int(a.used[endpoint])}
}

// leave ends the actor when nothing would be lost: it is idle and its windows have ended, or its token has expired.
func (a *limitActor) leave(ctx actor.Context, m *sweep) {
	late := a.limits.clock(m.now) - lateTime
	basic, detailed := a.window(BasicProfile), a.window(DetailedProfile)
	idle := a.limits.clock(m.now)-a.seen >= idleTime && basic.Over(late) && detailed.Over(late)
	if !idle && m.now.Add(-lateTime).Unix() < a.session.expires {
		return
	}
	if a.limits.directory.remove(a) {
		ctx.Stop(ctx.Self())
	}
}
