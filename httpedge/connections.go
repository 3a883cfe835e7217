package httpedge

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// connections knows the open public connections: it bounds their number and closes those that would hold up a
// shutdown.
type connections struct {
	max      int
	timeouts timeouts // of each
	log      *slog.Logger
	refused  atomic.Uint64

	mu      sync.Mutex
	open    map[*connection]struct{}
	closing bool // what is accepted now came too late
}

func newConnections(limit int, t timeouts, log *slog.Logger) *connections {
	return &connections{max: limit, timeouts: t, log: log, open: make(map[*connection]struct{})}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// busy returns how many wait for an answer to what they have sent, in part or whole.
func (c *connections) busy() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for conn := range c.open {
		if conn.spoke.Load() && conn.times.ready.Load() == 0 {
			n++
		}
	}
	return n
}

// add takes conn in, or reports that there are too many.
func (c *connections) add(conn net.Conn) (*connection, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || len(c.open) >= c.max {
		return nil, false
	}
	held := &connection{Conn: conn, owner: c, times: timekeeper{timeouts: &c.timeouts, begun: true}}
	c.open[held] = struct{}{}
	return held, true
}

func (c *connections) remove(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// closeSilent takes no more connections and closes those that never sent a byte: fasthttp would wait for them.
func (c *connections) closeSilent() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.closeWhere(func(conn *connection) bool { return !conn.spoke.Load() })
}

func (c *connections) closeAll() {
	c.closeWhere(func(conn *connection) bool { conn.linger.Store(false); return true })
}

func (c *connections) closeWhere(match func(*connection) bool) {
	c.mu.Lock()
	var found []*connection
	for conn := range c.open {
		if match(conn) {
			found = append(found, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range found {
		conn.abandon()
	}
}

// listener hands out the connections of ln to one server.
func (c *connections) listener(ln net.Listener) *boundedListener {
	return &boundedListener{Listener: ln, conns: c}
}

type boundedListener struct {
	net.Listener
	conns *connections
	once  sync.Once
	err   error
}

// Close may be called again and returns the same.
func (l *boundedListener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// Accept waits for the next connection that there is room for. A lack of file descriptors ends no server: it waits
// until there are some.
func (l *boundedListener) Accept() (net.Conn, error) {
	for delay := time.Millisecond; ; {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			if held, ok := l.conns.add(conn); ok {
				return held, nil
			}
			l.conns.refuse(conn)
		case isTemporary(err):
			l.conns.log.Warn("accept a connection: out of file descriptors or memory, or aborted by the peer", "retry_in", delay)
			time.Sleep(delay)
			delay = min(2*delay, time.Second)
		default:
			return nil, err
		}
	}
}

// isTemporary tells the errors of accept(2) that pass from the end of the listener.
func isTemporary(err error) bool {
	var passing interface{ Temporary() bool }
	return !errors.Is(err, net.ErrClosed) && errors.As(err, &passing) && passing.Temporary()
}

const fullBody = `{"error":"overloaded","message":"The server has too many open connections. Try again in a few seconds."}`

// full is the whole answer to a connection that there is no room for. On a TLS port it just ends the handshake.
var full = fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\n"+
	"Cache-Control: no-store\r\nRetry-After: 1\r\nContent-Length: %d\r\n\r\n%s", len(fullBody), fullBody)

func (c *connections) refuse(conn net.Conn) {
	c.refused.Add(1)
	err := conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if err == nil {
		_, err = io.WriteString(conn, full)
	}
	if err := errors.Join(err, conn.Close()); err != nil {
		c.log.Debug("refuse a connection", "cause", errorClass(err))
	}
}

// Bounds of a lingering close.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// connection is an open connection, which keeps its time-outs itself. What a client still sends when its request was refused
// half-way is read and thrown away for a moment before the close, since closing over unread bytes would reset the connection, and
// the client might never see the answer.
type connection struct {
	net.Conn
	owner  *connections
	times  timekeeper
	spoke  atomic.Bool // a byte was received
	linger atomic.Bool
	once   sync.Once
	err    error
}

// Read notes that the client speaks.
func (c *connection) Read(p []byte) (int, error) {
	if err := c.times.beforeRead(c.Conn); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.times.received()
		if !c.spoke.Load() {
			c.spoke.Store(true)
		}
	}
	return n, err
}

// Write sends p.
func (c *connection) Write(p []byte) (int, error) {
	if err := c.times.beforeWrite(c.Conn); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetReadDeadline sets the deadline of reads, and ends the connection's own time-outs.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.times.resign()
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writes, and ends the connection's own time-outs.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.times.resign()
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both, and ends the connection's own time-outs.
func (c *connection) SetDeadline(t time.Time) error {
	c.times.resign()
	return c.Conn.SetDeadline(t)
}

// Close ends the connection, gently if a request was refused.
func (c *connection) Close() error {
	c.once.Do(func() {
		if c.linger.Load() {
			c.drain()
		}
		c.owner.remove(c)
		c.err = c.Conn.Close()
	})
	return c.err
}

// abandon ends the connection at once, whatever goes on there; its server notices and calls Close.
func (c *connection) abandon() {
	if err := c.Conn.Close(); err != nil {
		c.owner.log.Debug("close a connection", "cause", errorClass(err))
	}
}

func (c *connection) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return
	}
	err := half.CloseWrite()
	if err == nil {
		err = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	if err != nil {
		c.owner.log.Debug("linger on a refused connection", "cause", errorClass(err))
	}
}

// heldBy returns the connection of a request; nil when the listener of connections did not accept it.
func heldBy(ctx *fasthttp.RequestCtx) *connection {
	conn := ctx.Conn()
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn()
	}
	held, _ := conn.(*connection)
	return held
}

// lingerOn makes the close of the request's connection a lingering one.
func lingerOn(ctx *fasthttp.RequestCtx) {
	if held := heldBy(ctx); held != nil {
		held.linger.Store(true)
	}
}
