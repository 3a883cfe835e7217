package httpedge

import (
	"net"
	"sync/atomic"
	"time"
)

// timeouts are those of Config.
type timeouts struct{ read, write, idle time.Duration }

// connDeadlines sets the read and write deadlines of one connection. A request must arrive within
// the read timeout of its first byte; the first one, and a TLS handshake before it, within the read
// timeout of the connection's first use. The response must be sent within the write timeout. Then
// the next request must begin within the idle timeout.
//
// fasthttp has such timeouts as well, but it reads the clock and moves a timer three times a
// request, which costs more than parsing the request. Here the clock is read once for the response
// and the log, and a deadline is moved only when it changes by a grain.
type connDeadlines struct {
	timeouts *timeouts
	readyAt  atomic.Int64 // Unix nanoseconds of the last response; 0 = a request is in progress
	arriving bool         // a request has begun to arrive and has no deadline yet
	released atomic.Bool
	reads    deadline
	writes   deadline
}

// release leaves the deadlines to the caller of SetDeadline.
func (d *connDeadlines) release() { d.released.Store(true) }

// responseReady is called with the time at which a response is ready.
func (d *connDeadlines) responseReady(now time.Time) { d.readyAt.Store(now.UnixNano()) }

// beforeRead is called by the goroutine that serves the connection, like received and
// responseReady.
func (d *connDeadlines) beforeRead(conn net.Conn) error {
	if d.released.Load() {
		return nil
	}
	if ready := d.readyAt.Load(); ready != 0 {
		return d.reads.set(ready+int64(d.timeouts.idle), conn.SetReadDeadline)
	}
	if !d.arriving {
		return nil
	}
	d.arriving = false
	return d.reads.set(time.Now().UnixNano()+int64(d.timeouts.read), conn.SetReadDeadline)
}

// received is called when something was read.
func (d *connDeadlines) received() {
	if d.readyAt.Load() != 0 {
		d.readyAt.Store(0)
		d.arriving = true
	}
}

// beforeWrite may be called by any goroutine.
func (d *connDeadlines) beforeWrite(conn net.Conn) error {
	if d.released.Load() {
		return nil
	}
	from := d.readyAt.Load()
	if from == 0 { // a handshake, or a response of fasthttp itself
		from = time.Now().UnixNano()
	}
	return d.writes.set(from+int64(d.timeouts.write), conn.SetWriteDeadline)
}

// deadlineGrain is the precision of deadlines; they are rounded up to it.
const deadlineGrain = int64(250 * time.Millisecond)

// deadline is a deadline of a connection, in grains since 1970; 0 = none yet.
type deadline struct{ grain atomic.Int64 }

// set moves the deadline to the grain of at, in Unix nanoseconds, unless it is there already.
func (l *deadline) set(at int64, move func(time.Time) error) error {
	grain := at/deadlineGrain + 1
	if grain == l.grain.Load() {
		return nil
	}
	l.grain.Store(grain)
	return move(time.Unix(0, grain*deadlineGrain))
}
