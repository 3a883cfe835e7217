package httpedge

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/fair"
	"gatehouse/actors/ratelimit"
)

// connections tracks the open connections of a listener: it limits their number and closes those
// that would delay a shutdown.
type connections struct {
	max      int
	from     fair.Slots[ratelimit.Network] // open ones, without the exempt
	exempt   func(netip.Addr) bool         // from the limit of an address
	timeouts timeouts                      // of each
	log      *slog.Logger
	refused  [len(limitNames)]atomic.Uint64 // by limit

	mu      sync.Mutex
	open    map[*connection]struct{}
	closing bool // new connections are refused
}

// limit is a limit of connections that refuses one.
type limit int

const (
	noLimit limit = iota - 1
	limitAll
	limitAddress
)

var limitNames = [...]string{limitAll: "all", limitAddress: "address"}

func newConnections(limit int, t timeouts, log *slog.Logger) *connections {
	return &connections{max: limit, timeouts: t, log: log, open: make(map[*connection]struct{})}
}

// limitAddresses limits the connections of one IPv4 address or IPv6 /64. An IPv6 /56 may have twice
// as many, and a /48 four times: providers hand out such networks. Call it before there are
// connections.
func (c *connections) limitAddresses(most int, exempt func(netip.Addr) bool) {
	c.from.Share, c.from.Shares, c.exempt = most, sharesOf, exempt
}

// sharesOf returns how many times a network may have what one address may.
func sharesOf(n ratelimit.Network) int { return n.Wide }

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// busy returns how many have sent at least part of a request that has no response yet.
func (c *connections) busy() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for conn := range c.open {
		if conn.received.Load() && conn.times.readyAt.Load() == 0 {
			n++
		}
	}
	return n
}

// add tracks conn, or returns the limit that is reached.
func (c *connections) add(conn net.Conn) (*connection, limit) {
	from := c.counts(conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || len(c.open) >= c.max {
		return nil, limitAll
	}
	if !c.from.Take(1, from...) {
		return nil, limitAddress
	}
	held := &connection{Conn: conn, owner: c, from: from,
		times: connDeadlines{timeouts: &c.timeouts, arriving: true}}
	c.open[held] = struct{}{}
	return held, noLimit
}

// counts returns the networks that conn counts for; nil = none.
func (c *connections) counts(conn net.Conn) []ratelimit.Network {
	if c.from.Share == 0 {
		return nil
	}
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || c.exempt(peer(tcp)) {
		return nil
	}
	return ratelimit.Networks(peer(tcp))
}

func (c *connections) remove(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
	c.from.Give(1, conn.from...)
}

// closeSilent refuses new connections and closes those that never sent a byte: fasthttp would wait
// for them.
func (c *connections) closeSilent() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.closeWhere(func(conn *connection) bool { return !conn.received.Load() })
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
		conn.closeNow()
	}
}

// listener returns a listener that tracks the connections of ln.
func (c *connections) listener(ln net.Listener) *boundedListener {
	return &boundedListener{Listener: ln, conns: c}
}

type boundedListener struct {
	net.Listener
	conns *connections
	once  sync.Once
	err   error
}

// Close may be called again and returns the same error.
func (l *boundedListener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// Accept waits for the next connection and refuses those beyond the limit. When file descriptors
// run out, it waits and tries again.
func (l *boundedListener) Accept() (net.Conn, error) {
	for delay := time.Millisecond; ; {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			held, reached := l.conns.add(conn)
			if reached == noLimit {
				limitUnsent(conn)
				return held, nil
			}
			l.conns.refuse(conn, reached)
		case isTemporary(err):
			l.conns.log.Warn(
				"accept a connection: out of file descriptors or memory, or aborted by the peer",
				"retry_in", delay)
			time.Sleep(delay)
			delay = min(2*delay, time.Second)
		default:
			return nil, err
		}
	}
}

// isTemporary reports whether an error of accept(2) may go away; others end the listener.
func isTemporary(err error) bool {
	var passing interface{ Temporary() bool }
	return !errors.Is(err, net.ErrClosed) && errors.As(err, &passing) && passing.Temporary()
}

const fullBody = `{"error":"overloaded","message":"The server has too many open connections. Try again in a few seconds."}`

// full is the whole response to a connection beyond the limit. On a TLS port it just ends the
// handshake.
var full = fmt.Sprintf(
	"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\n"+
		"Cache-Control: no-store\r\nRetry-After: 1\r\nContent-Length: %d\r\n\r\n%s", len(fullBody),
	fullBody)

func (c *connections) refuse(conn net.Conn, reached limit) {
	c.refused[reached].Add(1)
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

// connection is an open connection that keeps its own deadlines. After a request was refused before
// its end, Close first reads and discards what the client still sends: closing with unread bytes
// would reset the connection, and the client might never see the response.
type connection struct {
	net.Conn
	owner    *connections
	from     []ratelimit.Network // that it counts for
	times    connDeadlines
	received atomic.Bool // a byte was received
	linger   atomic.Bool
	once     sync.Once
	err      error
}

// Read reads into p and notes that the client has sent something.
func (c *connection) Read(p []byte) (int, error) {
	if err := c.times.beforeRead(c.Conn); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.times.received()
		if !c.received.Load() {
			c.received.Store(true)
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

// SetReadDeadline sets the deadline of reads, and turns off the connection's own deadlines.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.times.release()
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writes, and turns off the connection's own deadlines.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.times.release()
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both, and turns off the connection's own deadlines.
func (c *connection) SetDeadline(t time.Time) error {
	c.times.release()
	return c.Conn.SetDeadline(t)
}

// Close closes the connection. After lingerAfter it first drains it.
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

// closeNow closes the connection at once; its server notices and calls Close.
func (c *connection) closeNow() {
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

// connectionOf returns the connection of a request; nil when no tracking listener accepted it.
func connectionOf(ctx *fasthttp.RequestCtx) *connection { return trackedBelow(ctx.Conn()) }

// networksOf returns the networks that a connection counts for.
func networksOf(conn net.Conn) []ratelimit.Network {
	if held := trackedBelow(conn); held != nil {
		return held.from
	}
	return nil
}

// trackedBelow returns the connection that is conn or below it; nil = there is none.
func trackedBelow(conn net.Conn) *connection {
	for {
		if held, ok := conn.(*connection); ok {
			return held
		}
		wrapped, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = wrapped.NetConn()
	}
}

// lingerAfter makes the request's connection linger when it is closed.
func lingerAfter(ctx *fasthttp.RequestCtx) {
	if held := connectionOf(ctx); held != nil {
		held.linger.Store(true)
	}
}
