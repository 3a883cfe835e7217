package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"

	"gatehouse/actors/oauth"
)

// What others may hold open.
const (
	MaxHandshakes     = maxHandshakes
	MaxHandshakesEach = maxHandshakesEach
	MaxAsks           = maxAsks
	MaxMessage        = maxMessage
)

// The names that frames go by.
const (
	TargetName = targetName
	FrameType  = frameType
)

// Issue returns a certificate that the authority of keys has made at a time, and its hash.
func Issue(keys []oauth.Key, made time.Time) (tls.Certificate, string, error) {
	a, err := newAuthority(keys)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	l, err := a.issue(made)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	return l.Certificate, l.hash, nil
}

// Identity is what a process presents.
type Identity struct{ id *identity }

// NewIdentity makes an identity.
func NewIdentity(keys func() []oauth.Key, now time.Time) (Identity, error) {
	id, err := newIdentity(keys, now)
	return Identity{id}, err
}

// Refresh is called each second.
func (i Identity) Refresh(now time.Time) error { return i.id.refresh(now) }

// Hashes returns what the row names.
func (i Identity) Hashes() []string { return i.id.hashes() }

// Presents returns the hash of the certificate that is presented.
func (i Identity) Presents(now time.Time) string { return i.id.current(now).hash }

// Inspect returns the error that a message of another node causes, and whether b is a message.
func Inspect(b []byte, greeted bool) (m *remote.RemoteMessage, err error, ok bool) {
	m = &remote.RemoteMessage{}
	if proto.Unmarshal(b, m) != nil {
		return nil, nil, false
	}
	return m, inspect(m, greeted, actor.NewPID("127.0.0.1:7946", targetName)), true
}

// Shaking are connections whose handshake is under way.
type Shaking struct {
	s    shaking
	Node netip.Addr // the row of a node names it
}

// Add adds a connection. The result reports at its end whether it was still there.
func (s *Shaking) Add(conn net.Conn) (end func() bool) {
	h := s.s.add(conn, func(a netip.Addr) bool { return a == s.Node })
	return func() bool { return s.s.end(h) }
}

// Open returns how many connections to the node are open or shaking hands.
func (n *Node) Open() int { return int(n.transport.shakes.open.Load()) }

// Check checks certificates against the authorities of keys.
func Check(keys []oauth.Key, certificates []*x509.Certificate, usage x509.ExtKeyUsage,
	now time.Time) error {
	a, err := newAuthority(keys)
	if err != nil {
		return err
	}
	return a.check(certificates, usage, now)
}

// AuthorityCertificate returns the certificate of the current authority.
func AuthorityCertificate(keys []oauth.Key) *x509.Certificate {
	a, err := newAuthority(keys)
	if err != nil {
		panic(err)
	}
	return a.ca
}

// PresentAfter sets the time between making a certificate and presenting it.
func (n *Node) PresentAfter(d time.Duration) {
	n.id.mu.Lock()
	defer n.id.mu.Unlock()
	n.id.presentAfter = d
}

// Streams returns the hashes of the certificates by which the streams to other nodes began.
func (n *Node) Streams() (list []string) {
	n.transport.mu.RLock()
	defer n.transport.mu.RUnlock()
	for _, k := range n.transport.links {
		if s := k.stream.Load(); s != nil {
			list = append(list, s.certificate)
		}
	}
	return list
}

// Network carries frames between nodes without the library, which must not run with the race
// detector: each start of its server writes a global of gRPC that other servers read.
type Network struct {
	mu    sync.Mutex
	nodes map[string]*Node
	wg    sync.WaitGroup
}

// New is New for a node of the network.
func (w *Network) New(c Config) (*Node, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[string]*Node{}
	}
	w.nodes[n.Address()] = n
	queues := map[string]chan []byte{}
	var queuesMu sync.Mutex
	n.transport.post = func(to *actor.PID, frame []byte) {
		queuesMu.Lock()
		defer queuesMu.Unlock()
		if queues[to.Address] == nil {
			queue := make(chan []byte, 2*maxPending)
			queues[to.Address] = queue
			w.wg.Go(func() { w.carry(n, to.Address, queue) })
		}
		select {
		case queues[to.Address] <- frame:
		default:
		}
	}
	return n, nil
}

// carry delivers frames to an address until their sender stops.
func (w *Network) carry(from *Node, address string, queue chan []byte) {
	for {
		select {
		case <-from.ctx.Done():
			return
		case frame := <-queue:
			from.transport.mu.RLock()
			k := from.transport.links[address]
			from.transport.mu.RUnlock()
			w.mu.Lock()
			to := w.nodes[address]
			w.mu.Unlock()
			if to == nil || to.ctx.Err() != nil {
				from.transport.terminated(address)
				continue
			}
			sum := from.id.current(time.Now()).hash
			if to.knows(sum, "") && to.speaks(sum) {
				to.receive(sum, frame)
			}
			if k != nil {
				k.written()
				k.hasRoom()
			}
		}
	}
}

// Wait waits until nothing is carried any more. All nodes must have stopped.
func (w *Network) Wait() { w.wg.Wait() }

// BePatient changes how long the node waits for replies and for partitions that move. It is called
// before Start.
func (n *Node) BePatient(d time.Duration) { n.reply, n.wait = d, d }
