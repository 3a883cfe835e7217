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
var scopeOf = [...]oauth.Scopes{BasicProfile: oauth.ViewUser, DetailedProfile: oauth.DetailUser, adminAPI: oauth.ServerOperations}

// session is what an access token stands for.
type session struct {
	hash    oauth.Hash
	expires time.Time
	client  *clientState
	user    *userState // nil = none
	read    time.Time  // what the stores said is no older than that
	scopes  oauth.Scopes
}

// limitActor owns the windows of one access token. It never blocks and runs on the goroutines of those who ask. Asks are
// answered as the last act: see callMailbox.
type limitActor struct {
	limits  *limits
	session session
	windows [2]ratelimit.Window
	seen    time.Time // of the latest request
}

// The messages to a limitActor beside *admitAsk.
type (
	// begin is the first: it gives the session.
	begin struct{ session session }
	// confirmed says that the stores stand by the session.
	confirmed struct{ read time.Time }
	// sweep tells an idle actor to leave.
	sweep struct{ now time.Time }
)

// Receive implements actor.Actor.
func (a *limitActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *admitAsk:
		m.answer(a.consider(m.endpoint, m.now))
	case *begin:
		a.session, a.seen = m.session, time.Now()
	case *confirmed:
		a.session.read = m.read
	case *sweep:
		a.leave(ctx, m.now)
	}
}

// consider answers a request, unless what the actor knows has to be read again first.
func (a *limitActor) consider(endpoint Endpoint, now time.Time) askReply {
	if now.After(a.seen) {
		a.seen = now
	}
	var user *userSnapshot
	if a.session.user != nil {
		if user = a.session.user.current.Load(); user == nil {
			return askReply{outcome: askStale}
		}
	}
	if a.limits.shared && now.Sub(a.session.read) > staleAfter {
		return askReply{outcome: askStale}
	}
	return askReply{outcome: askDecided, admission: a.decide(endpoint, a.session.client.client.Load(), user, now)}
}

// decide checks in the documented order: token, window, scope, approval.
func (a *limitActor) decide(endpoint Endpoint, client *oauth.Client, user *userSnapshot, now time.Time) Admission {
	if !now.Before(a.session.expires) {
		return Admission{Verdict: TokenExpired}
	}
	if client.Disabled || user != nil && user.disabled {
		return Admission{Verdict: TokenInvalid}
	}
	var rate ratelimit.Decision
	if endpoint != adminAPI {
		if rate = a.windows[endpoint].Take(limitOf[endpoint], now); !rate.Allowed {
			return Admission{Verdict: RateLimited, Rate: rate}
		}
	}
	verdict := Admitted
	var profile []byte
	switch {
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

// leave ends the actor when nothing would be lost: it is idle and its windows have ended, or its token has expired.
func (a *limitActor) leave(ctx actor.Context, now time.Time) {
	late := now.Add(-lateTime)
	idle := now.Sub(a.seen) >= idleTime && a.windows[BasicProfile].Over(late) && a.windows[DetailedProfile].Over(late)
	if !idle && late.Before(a.session.expires) {
		return
	}
	if a.limits.directory.remove(&a.session.hash, ctx.Self()) {
		ctx.Stop(ctx.Self())
	}
}
