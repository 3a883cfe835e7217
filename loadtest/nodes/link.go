package nodes

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
)

// Direction is one of the two directions of a Link.
type Direction int

// The directions of a Link.
const (
	ToTarget Direction = iota
	FromTarget
)

// Link is a TCP proxy on loopback that can be cut. A cut link is a black hole: connections stay
// open, new ones are accepted, and no byte passes. The bytes of before and meanwhile pass after
// Heal, as TCP repeats them.
type Link struct {
	Address string // HOST:PORT where it listens
	target  string
	// peer names the process at the other end of a connection; nil = all are the same.
	peer     func(remote net.Addr) string
	listener net.Listener
	ended    sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	cut     map[way]bool
	pairs   map[*pair]struct{}
	closed  bool
}

// way is a direction of the connections of one peer; "" = of all of them.
type way struct {
	peer      string
	direction Direction
}

// pair is a connection through a link.
type pair struct {
	peer         string
	from, target net.Conn
}

// NewLink listens on a free port and passes connections on to target, a HOST:PORT.
func NewLink(target string, peer func(remote net.Addr) string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a link: %w", err)
	}
	l := &Link{Address: listener.Addr().String(), target: target, peer: peer, listener: listener,
		cut: map[way]bool{}, pairs: map[*pair]struct{}{}}
	l.changed = sync.NewCond(&l.mu)
	l.ended.Go(l.serve)
	return l, nil
}

// Cut stops a direction of the connections of that peer; "" = of all peers.
func (l *Link) Cut(peer string, direction Direction) { l.set(way{peer, direction}, true) }

// CutBoth stops both directions.
func (l *Link) CutBoth(peer string) {
	l.Cut(peer, ToTarget)
	l.Cut(peer, FromTarget)
}

// Heal ends all cuts.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cut)
	l.changed.Broadcast()
}

// Peers returns the names of the peers that have connections, sorted.
func (l *Link) Peers() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := map[string]bool{}
	for p := range l.pairs {
		names[p.peer] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (l *Link) set(w way, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[w] = cut
	l.changed.Broadcast()
}

// Close ends all connections.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	for p := range l.pairs {
		p.close()
	}
	l.changed.Broadcast()
	l.mu.Unlock()
	err := l.listener.Close()
	l.ended.Wait()
	return err
}

func (l *Link) serve() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.ended.Go(func() { l.pass(from) })
	}
}

// pass passes the bytes of one connection until either end closes it.
func (l *Link) pass(from net.Conn) {
	p := &pair{from: from}
	if l.peer != nil {
		p.peer = l.peer(from.RemoteAddr())
	}
	if !l.open(p) {
		return
	}
	defer l.forget(p)
	var directions sync.WaitGroup
	directions.Go(func() { l.copy(p, p.target, p.from, ToTarget) })
	directions.Go(func() { l.copy(p, p.from, p.target, FromTarget) })
	directions.Wait()
}

// open connects a pair to the target, unless the link is closed.
func (l *Link) open(p *pair) bool {
	if !l.wait(p.peer, ToTarget) {
		p.close()
		return false
	}
	target, err := net.Dial("tcp", l.target)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || l.closed {
		p.target = target
		p.close()
		return false
	}
	p.target = target
	l.pairs[p] = struct{}{}
	return true
}

func (l *Link) forget(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, p)
}

// copy passes one direction. It holds back what it has read while that direction is cut.
func (l *Link) copy(p *pair, to io.Writer, from io.Reader, direction Direction) {
	defer p.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !l.wait(p.peer, direction) || err != nil { // an end does not pass either
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// wait blocks while a direction is cut. It returns false once the link is closed.
func (l *Link) wait(peer string, direction Direction) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && (l.cut[way{"", direction}] || l.cut[way{peer, direction}]) {
		l.changed.Wait()
	}
	return !l.closed
}

// close ends both connections, which ends both directions.
func (p *pair) close() {
	for _, c := range []net.Conn{p.from, p.target} {
		if c != nil {
			c.Close()
		}
	}
}
