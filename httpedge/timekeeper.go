package httpedge

import (
	"net"
	"sync/atomic"
	"time"
)

// timeouts are what Config says of them.
type timeouts struct{ read, write, idle time.Duration }

// timekeeper sets the deadlines of one connection by what happens there: a request has to arrive in the read time-out, from its
// first byte on (the first one, and a TLS handshake before it, from the moment that the connection is used), its answer has to be
// sent in the write time-out, and then the next one has to begin in the idle time-out.
//
// fasthttp can do that as well, but reads the clock and moves a timer three times a request, which costs more than parsing the
// request does. Here the clock is read once for the answer and the log, and a deadline is moved when that changes its grain.
type timekeeper struct {
	timeouts *timeouts
	ready    atomic.Int64 // when the answer was ready, in nanoseconds since 1970; 0 = a request arrives, or is being answered
	begun    bool         // a request arrives and has no deadline yet: most come whole and need none
	resigned atomic.Bool
	reads    deadline
	writes   deadline
}

// resign leaves the deadlines to somebody else.
func (k *timekeeper) resign() { k.resigned.Store(true) }

// answered is called with the time when an answer is ready.
func (k *timekeeper) answered(now time.Time) { k.ready.Store(now.UnixNano()) }

// beforeRead is called by the goroutine that serves the connection, like received and answered.
func (k *timekeeper) beforeRead(conn net.Conn) error {
	if k.resigned.Load() {
		return nil
	}
	if ready := k.ready.Load(); ready != 0 {
		return k.reads.set(ready+int64(k.timeouts.idle), conn.SetReadDeadline)
	}
	if !k.begun {
		return nil
	}
	k.begun = false
	return k.reads.set(time.Now().UnixNano()+int64(k.timeouts.read), conn.SetReadDeadline)
}

// received is called when something was read.
func (k *timekeeper) received() {
	if k.ready.Load() != 0 {
		k.ready.Store(0)
		k.begun = true
	}
}

// beforeWrite may be called by any goroutine.
func (k *timekeeper) beforeWrite(conn net.Conn) error {
	if k.resigned.Load() {
		return nil
	}
	from := k.ready.Load()
	if from == 0 { // a handshake, or an answer that fasthttp gives itself
		from = time.Now().UnixNano()
	}
	return k.writes.set(from+int64(k.timeouts.write), conn.SetWriteDeadline)
}

// deadlineGrain is how exactly deadlines are kept; they are rounded up to it.
const deadlineGrain = int64(250 * time.Millisecond)

// deadline is the one that a connection has, in grains since 1970; 0 = none yet.
type deadline struct{ grain atomic.Int64 }

// set moves the deadline to the grain of at, in nanoseconds since 1970, if it is at another.
func (d *deadline) set(at int64, move func(time.Time) error) error {
	grain := at/deadlineGrain + 1
	if grain == d.grain.Load() {
		return nil
	}
	d.grain.Store(grain)
	return move(time.Unix(0, grain*deadlineGrain))
}
