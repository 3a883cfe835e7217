package geo

import (
	"math"
	"time"
)

// The upstream counts in fixed windows and tells the rest of one in whole seconds, rounded we do not know how: a
// window is taken to be over only a second after what was told.
const (
	budgetWindow   = time.Minute
	budgetRounding = time.Second
)

// Budget counts what may still be sent to one endpoint of the upstream in the current window. It never lets more out
// than the upstream allows: every request is charged before it is sent; the first of a window is a probe, and nothing
// follows before it is answered; what the upstream tells later can only lower the count within a window; and requests
// in flight while a window ends are charged to the next one too. A Budget has one owner.
type Budget struct {
	most     int       // requests a window that we may spend, as configured; 0 = no such number
	limit    int       // requests a window, as the upstream last told it; 0 = not known
	charged  int       // to the current window
	rest     int       // of the current window, the least that was told; untold = nothing was
	inFlight int       // charged, not yet settled
	heard    bool      // the upstream has answered a request of this window
	window   uint64    // counts the windows
	reset    time.Time // when the window ends; zero while none is open
	paused   time.Time // without a limit: nothing leaves before
	last     time.Time // when the latest request was charged
}

// Ticket stands for one charged request.
type Ticket struct {
	window uint64
	sent   time.Time
}

// NewBudget returns the budget of an endpoint that allows perMinute requests (0 = not known: not limited before the
// upstream tells a number), of which share, above 0 and at most 1, is ours; at least one request is.
func NewBudget(perMinute int, share float64) Budget {
	b := Budget{rest: untold}
	if perMinute > 0 {
		b.most = max(1, int(float64(perMinute)*share))
		b.limit = b.most
	}
	return b
}

// untold stands for a rest that the upstream has not told in the current window.
const untold = math.MaxInt

// Limited reports whether the number of requests is known to be limited.
func (b *Budget) Limited() bool { return b.limit > 0 }

// Left returns how many requests the current window still allows; math.MaxInt when there is no limit.
func (b *Budget) Left(now time.Time) int {
	switch {
	case b.Limited():
		b.roll(now)
		left := b.limit - b.charged
		if b.rest != untold {
			left = min(left, b.rest-b.inFlight) // what is in flight may not have been counted yet
		}
		return max(0, left)
	case now.Before(b.paused):
		return 0
	}
	return math.MaxInt
}

// MaySend reports whether a request may leave at now.
func (b *Budget) MaySend(now time.Time) bool { return b.Left(now) > 0 && !b.probing() }

// probing reports whether a window's first request is out.
func (b *Budget) probing() bool { return b.Limited() && !b.heard && b.inFlight > 0 }

// Next returns the earliest time at which the budget has room for a request: now, or the end of the window.
func (b *Budget) Next(now time.Time) time.Time {
	if b.Left(now) > 0 {
		return now
	}
	return b.End(now)
}

// End returns when the window ends that a request sent at now belongs to.
func (b *Budget) End(now time.Time) time.Time {
	switch {
	case !b.Limited():
		return b.paused
	case b.reset.IsZero():
		return now.Add(budgetWindow + budgetRounding)
	}
	return b.reset
}

// Room returns how many requests may leave until deadline; math.MaxInt when there is no limit.
func (b *Budget) Room(now, deadline time.Time) int {
	left := b.Left(now)
	switch {
	case left == math.MaxInt || b.End(now).After(deadline):
		return left
	case !b.Limited():
		return math.MaxInt
	}
	return left + b.limit
}

// Paced returns when the next request leaves if those left are spread evenly over the rest of the window.
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

// Charge takes one request out of the budget; call it before the request is sent, and Settle after.
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

// Settle takes in what the exchange of t told at now. answered says whether the upstream answered at all, throttled
// that it refused for its rate limit.
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
		b.hear(t, q, now)
	case b.rest != untold:
		b.rest-- // nobody knows whether it was counted in this window
	}
}

// roll ends the window when its time is over. The next one opens with the next charge, or at once when requests are
// in flight that may fall into it.
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

// pause lets nothing out until the time that a refusal told, or else for a whole window.
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
		b.hear(t, q, now)
	case end.After(b.reset):
		b.reset = end
	}
	b.rest = 0
}

// hear takes in what the upstream told beside an answer.
func (b *Budget) hear(t Ticket, q Quota, now time.Time) {
	end := now.Add(q.Reset + budgetRounding)
	switch {
	case b.rest == untold:
		b.learn(q, end)
	case t.sent.Add(q.Reset).After(b.reset.Add(budgetRounding)):
		b.window++ // the upstream has begun a new window before we thought that it would
		b.charged = b.inFlight + 1
		b.learn(q, end)
	default:
		b.rest = min(b.rest, q.Remaining)
		if end.Before(b.reset) {
			b.reset = end
		}
	}
}

// learn takes the first word in a window for what the upstream allows. What it says early in a window is its limit;
// later, others may have spent a part.
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
