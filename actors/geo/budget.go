package geo

import (
	"math"
	"time"
)

// The upstream counts in fixed windows and reports the rest of one in whole seconds, with unknown
// rounding. So a window ends one second after the reported time.
const (
	budgetWindow   = time.Minute
	budgetRounding = time.Second
)

// Budget counts the requests that may still be sent to one endpoint of the upstream in the current
// window. It never sends more than the upstream allows:
//   - Every request is charged before it is sent.
//   - The first request of a window is a probe: no other is sent before its response.
//   - Later responses can only lower the count within a window.
//   - Requests in flight when a window ends are charged to the next one too.
//
// A Budget has one owner.
type Budget struct {
	most     int       // requests a window that we may spend, from the configuration; 0 = not set
	limit    int       // requests a window, as the upstream last reported; 0 = not known
	charged  int       // requests charged to the current window
	rest     int       // least rest of the current window that was reported; untold = none was
	inFlight int       // requests charged and not yet settled
	heard    bool      // the upstream has responded to a request of this window
	window   uint64    // number of the current window
	reset    time.Time // end of the window; zero while none is open
	paused   time.Time // without a limit: no request is sent before
	last     time.Time // when the latest request was charged
}

// Ticket identifies a charged request.
type Ticket struct {
	window uint64
	sent   time.Time
}

// NewBudget returns the budget of an endpoint that allows perMinute requests, of which we may spend
// share, above 0 and at most 1, but at least one request. With perMinute 0 there is no limit until
// the upstream reports one.
func NewBudget(perMinute int, share float64) Budget {
	b := Budget{rest: untold}
	if perMinute > 0 {
		b.most = max(1, int(float64(perMinute)*share))
		b.limit = b.most
	}
	return b
}

// untold is the rest of a window for which the upstream has reported none.
const untold = math.MaxInt

// Limited reports whether a limit is known.
func (b *Budget) Limited() bool { return b.limit > 0 }

// Left returns how many requests the current window still allows; math.MaxInt when there is no
// limit.
func (b *Budget) Left(now time.Time) int {
	switch {
	case b.Limited():
		b.roll(now)
		left := b.limit - b.charged
		if b.rest != untold {
			// The upstream may not have counted the requests in flight yet.
			left = min(left, b.rest-b.inFlight)
		}
		return max(0, left)
	case now.Before(b.paused):
		return 0
	}
	return math.MaxInt
}

// MaySend reports whether a request may be sent at now.
func (b *Budget) MaySend(now time.Time) bool { return b.Left(now) > 0 && !b.probing() }

// probing reports whether a window's probe is in flight.
func (b *Budget) probing() bool { return b.Limited() && !b.heard && b.inFlight > 0 }

// Next returns the earliest time at which the budget has room for a request: now, or the end of the
// window.
func (b *Budget) Next(now time.Time) time.Time {
	if b.Left(now) > 0 {
		return now
	}
	return b.End(now)
}

// End returns the end of the window that a request sent at now belongs to.
func (b *Budget) End(now time.Time) time.Time {
	switch {
	case !b.Limited():
		return b.paused
	case b.reset.IsZero():
		return now.Add(budgetWindow + budgetRounding)
	}
	return b.reset
}

// Room returns how many requests may be sent until deadline; math.MaxInt when there is no limit. It
// assumes that the upstream has counted the requests in flight, so Left may grow to it.
func (b *Budget) Room(now, deadline time.Time) int {
	left := b.Left(now)
	if b.Limited() {
		left = max(0, min(b.limit-b.charged, b.rest))
	}
	switch {
	case left == math.MaxInt || b.End(now).After(deadline):
		return left
	case !b.Limited():
		return math.MaxInt
	}
	return left + b.limit
}

// Paced returns when to send the next request so that the remaining requests are spread evenly over
// the rest of the window.
func (b *Budget) Paced(now time.Time) time.Time {
	left := b.Left(now)
	switch {
	case left == 0:
		return b.End(now)
	case !b.Limited() || b.last.IsZero():
		return now
	}
	end := b.reset
	if end.IsZero() {
		end = b.last.Add(budgetWindow + budgetRounding)
	}
	slot := b.last.Add(end.Sub(b.last) / time.Duration(left+1))
	if slot.Before(now) {
		return now
	}
	return slot
}

// Charge takes one request out of the budget. Call it before the request is sent, and Settle after.
func (b *Budget) Charge(now time.Time) Ticket {
	b.roll(now)
	if b.Limited() && b.reset.IsZero() {
		b.reset = now.Add(budgetWindow + budgetRounding)
	}
	b.inFlight++
	b.charged++
	b.last = now
	return Ticket{window: b.window, sent: now}
}

// Settle ends the exchange of t at now with the quota that the upstream reported. answered says
// whether it responded at all, throttled whether it refused because of its rate limit.
func (b *Budget) Settle(t Ticket, q Quota, answered, throttled bool, now time.Time) {
	b.roll(now)
	b.inFlight--
	if t.window == b.window && answered {
		b.heard = true
	}
	switch {
	case throttled:
		b.pause(t, q, now)
	case q.Known && (!b.Limited() || t.window == b.window):
		b.apply(t, q, now)
	case b.rest != untold:
		b.rest-- // the upstream may have counted it in this window
	}
}

// roll ends the window if its time is over. The next window opens with the next charge, or at once
// if requests are in flight: the upstream may count them in it.
func (b *Budget) roll(now time.Time) {
	if !b.Limited() || b.reset.IsZero() || now.Before(b.reset) {
		return
	}
	b.window++
	b.charged, b.rest, b.heard = b.inFlight, untold, false
	b.reset = time.Time{}
	if b.inFlight > 0 {
		b.reset = now.Add(budgetWindow + budgetRounding)
	}
}

// pause stops sending until the time that a refusal reported, or for a whole window.
func (b *Budget) pause(t Ticket, q Quota, now time.Time) {
	rest := budgetWindow
	if q.Known {
		rest = q.Reset
	}
	end := now.Add(rest + budgetRounding)
	switch {
	case !b.Limited():
		b.paused = end
		return
	case q.Known && t.window == b.window:
		b.apply(t, q, now)
	case end.After(b.reset):
		b.reset = end
	}
	b.rest = 0
}

// apply uses the quota that came with a response.
func (b *Budget) apply(t Ticket, q Quota, now time.Time) {
	end := now.Add(q.Reset + budgetRounding)
	switch {
	case b.rest == untold:
		b.learn(q, end)
	case t.sent.Add(q.Reset).After(b.reset.Add(budgetRounding)):
		b.window++ // the upstream has begun a new window earlier than expected
		b.charged = b.inFlight + 1
		b.learn(q, end)
	default:
		b.rest = min(b.rest, q.Remaining)
		if end.Before(b.reset) {
			b.reset = end
		}
	}
}

// learn applies the first quota that is reported in a window. Early in a window it shows the
// upstream's limit; later, others may have spent a part.
func (b *Budget) learn(q Quota, end time.Time) {
	total := max(1, q.Remaining+b.charged)
	switch {
	case b.most == 0:
		b.limit = total
	case q.Reset >= budgetWindow-2*budgetRounding:
		b.limit = min(b.most, total)
	default:
		b.limit = b.most
	}
	b.rest, b.reset, b.heard = q.Remaining, end, true
}

// Usage is what the next owner of a Budget has to know of its current window.
type Usage struct {
	Left int       // requests that the window still allows; math.MaxInt when there is no limit
	Ends time.Time // of the window; zero when none is open
}

// Usage returns the usage at now.
func (b *Budget) Usage(now time.Time) Usage { return Usage{Left: b.Left(now), Ends: b.End(now)} }

// Adopt makes b the budget of an owner that goes on after another one, whose usage is u. What b
// knows itself stays valid. The first request is a probe, and the pace goes on.
func (b *Budget) Adopt(u Usage, now time.Time) {
	left, rest := min(u.Left, b.Left(now)), u.Ends.Sub(now)
	switch {
	case rest <= 0:
		return
	case !b.Limited():
		if left == 0 {
			b.paused = now.Add(max(rest, b.paused.Sub(now)))
		}
		return
	}
	b.window++ // what responses to earlier requests say is older than u
	b.charged, b.rest, b.heard = b.limit-max(0, left), untold, false
	b.reset, b.last = now.Add(max(rest, b.reset.Sub(now))), now
}
