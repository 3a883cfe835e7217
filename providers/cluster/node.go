package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
)

const (
	tickEvery    = 50 * time.Millisecond
	refreshEvery = time.Second     // of the certificates
	leaseTimeout = 2 * time.Second // of beats and readings: a lease lasts for two of them
	storeTimeout = 3 * time.Second
	applyTimeout = 2 * time.Minute
	retryApply   = 250 * time.Millisecond
	// confirmTimeout is more than the Member takes.
	confirmTimeout = 30 * time.Second
)

// Errors of a Node.
var (
	ErrUnconfirmed = errors.New("not every node has confirmed the change")
	errStopped     = errors.New("the node has stopped")
	errAddress     = errors.New("other nodes need an address of this one: a host and a port")
)

// Config is what a Node needs.
type Config struct {
	Store  partition.Store
	Listen string // host:port for other nodes
	// Advertise is the address where other nodes reach this one; "" = Listen.
	Advertise string
	Name      string // for people
	Version   string // of the program
	Egress    string // label of the address that the node asks the upstream from
	// Authority returns the secrets of the cluster's certificate authority. The first one signs,
	// and all are trusted. It is called often and must not block.
	Authority func() []oauth.Key
	Logger    *slog.Logger
	Metrics   prometheus.Registerer // nil = none
}

// Services are the services of the process. Export and ReceiveCounts are called while the Node is
// locked: they must not block, and may call View and Decides only.
type Services struct {
	// Follow applies the changes since the last ones, Reload reads everything again. They return
	// the number of the last change that is applied.
	Follow, Reload func(context.Context) (seen int64, err error)
	// Export returns the counts of a partition of access tokens that no longer decides, in pieces
	// of at most 256 KiB.
	Export func(part int) [][]byte
	// ReceiveCounts keeps a piece of counts for when this node holds the partition at that epoch.
	// first drops earlier pieces.
	ReceiveCounts func(part int, epoch int64, first bool, counts []byte)
}

// Handler handles the asks and casts of one service. It must not block. It calls reply once, at
// once or later, from any goroutine; reply does not keep body. reply is nil for a cast.
type Handler func(ask partition.Message, reply func(status partition.Status, epoch int64, body []byte))

// Node is this process in its cluster. Its methods may be called by many goroutines.
type Node struct {
	config    Config
	began     time.Time
	id        *identity
	transport *transport
	metrics   *nodeMetrics
	handlers  [256]Handler
	services  Services

	reply, wait time.Duration // replyTime and waitTime, but in tests

	view    atomic.Pointer[partition.View]
	outdate func()       // tells who waits for a View after the first one, which no Member has made
	lease   atomic.Int64 // end of the lease by clock; 0 = none
	roster  atomic.Pointer[roster]
	peers   peers

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	left   chan struct{} // closed when the node has left

	mu       sync.Mutex
	member   *partition.Member
	journal  *journal
	started  bool
	stopped  bool
	hasLeft  bool
	ticket   int64
	tickets  map[int64]chan struct{}
	applying bool
	reload   bool // Services.Reload is due
	follow   bool // Services.Follow is due
}

// New makes the node's certificate and listens for other nodes. The node joins with Start.
func New(c Config) (*Node, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	if err := n.transport.listen(n.config.Listen); err != nil {
		n.cancel()
		n.metrics.unregister()
		return nil, err
	}
	return n, nil
}

func newNode(c Config) (*Node, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		config: c, began: time.Now(),
		left: make(chan struct{}), tickets: map[int64]chan struct{}{},
		reply: replyTime, wait: waitTime,
	}
	listen, address, err := addresses(c.Listen, c.Advertise)
	if err != nil {
		return nil, err
	}
	n.config.Listen, n.config.Advertise = listen, address
	if n.id, err = newIdentity(c.Authority, n.began); err != nil {
		return nil, err
	}
	if n.metrics, err = newNodeMetrics(n); err != nil {
		return nil, err
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	changed := make(chan struct{})
	n.outdate = sync.OnceFunc(func() { close(changed) })
	n.view.Store(&partition.View{
		Up: 1, Parts: make([]partition.Part, partition.Count), Changed: changed,
	})
	n.roster.Store(&roster{})
	n.transport = &transport{
		address: address, links: map[string]*link{},
		shakes: &handshakes{id: n.id, known: n.knows, isNode: n.isNode, refused: n.refused},
		speaks: n.speaks, receive: n.receive, ended: n.ended, room: n.room, refused: n.refused,
		failed: n.failed,
	}
	n.member = partition.NewMember(partition.MemberConfig{
		Node: partition.Node{
			Name: c.Name, Address: address, Certificates: n.id.hashes(),
			Speaks: partition.Version, Version: c.Version, Egress: c.Egress,
		},
		NewID: newID, Actions: actions{n},
	})
	n.journal = newJournal(c.Logger, n.member, n.view.Load())
	return n, nil
}

// addresses returns where to listen and where others reach this node. It checks that the port is
// free, and picks one for the port 0.
func addresses(listen, advertise string) (string, string, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return "", "", fmt.Errorf("listen for other nodes: %w", err)
	}
	actual := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", "", fmt.Errorf("listen for other nodes: %w", err)
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return "", "", fmt.Errorf("listen for other nodes: %w", err)
	}
	_, port, err := net.SplitHostPort(actual)
	if err != nil {
		return "", "", fmt.Errorf("listen for other nodes: %w", err)
	}
	listen = net.JoinHostPort(host, port)
	if advertise == "" {
		advertise = listen
	}
	host, _, err = net.SplitHostPort(advertise)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		return "", "", errAddress
	}
	return listen, advertise, nil
}

// newID returns an ID of a node.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Handle makes f handle the asks and casts of a service. It is called before Start.
func (n *Node) Handle(service byte, f Handler) { n.handlers[service] = f }

// Start makes the node join. It tries until it succeeds or is stopped.
func (n *Node) Start(s Services) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.services, n.started = s, true
	n.wg.Go(n.run)
}

// Address returns where other nodes reach this one.
func (n *Node) Address() string { return n.config.Advertise }

// View returns what the node knows of the cluster. It is never nil.
func (n *Node) View() *partition.View { return n.view.Load() }

// Decides reports whether the node may decide at now, a time of time.Now: its lease is valid.
func (n *Node) Decides(now time.Time) bool {
	return int64(now.Sub(n.began)) < n.lease.Load()
}

// clock returns the time that the node's durations count from its start.
func (n *Node) clock() time.Duration { return time.Since(n.began) }

// do calls f with the Member locked, unless the node has stopped.
func (n *Node) do(f func(now partition.Now)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped || !n.started {
		return
	}
	wall := time.Now()
	f(partition.Now{Clock: wall.Sub(n.began), Wall: wall.Round(0)})
	n.lease.Store(int64(n.member.LeaseEnd()))
	if n.member.HasLeft() && !n.hasLeft {
		n.hasLeft = true
		n.config.Logger.Info("this node has left the cluster")
		close(n.left)
	}
}

// run drives the Member until the node stops.
func (n *Node) run() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	refreshed := time.Duration(0)
	for {
		n.do(n.member.Tick)
		clock := n.clock()
		for _, l := range n.roster.Load().lanes {
			l.tick(clock)
		}
		if clock-refreshed >= refreshEvery {
			refreshed = clock
			n.refresh(clock)
		}
		select {
		case <-ticker.C:
		case <-n.ctx.Done():
			return
		}
	}
}

// refresh renews the certificates and forgets nodes that only a reading beside the Member's has
// shown.
func (n *Node) refresh(clock time.Duration) {
	now := time.Now()
	if err := n.id.refresh(now); err != nil {
		n.config.Logger.Error("the cluster's certificate cannot be renewed", slog.Any("error", err))
	}
	hashes := n.id.hashes()
	n.do(func(partition.Now) {
		n.member.SetCertificates(hashes)
		n.journal.look(n.roster.Load().lanes, clock)
	})
	n.transport.renew(n.id.current(now).hash, clock)
	n.meet(nil, nil)
}

// HandOver hands over what the node holds and takes nothing more, until it leaves. The node still
// serves requests. It returns an error if ctx ends before.
func (n *Node) HandOver(ctx context.Context) error {
	n.do(n.member.HandOver)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		done := true
		n.do(func(partition.Now) { done = n.member.HasHandedOver() })
		if done {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("hand over partitions: %w", ctx.Err())
		}
	}
}

// Leave hands over what the node holds and deletes its row. It returns an error if ctx ends before.
func (n *Node) Leave(ctx context.Context) error {
	n.mu.Lock()
	idle := !n.started || n.stopped
	n.mu.Unlock()
	if idle {
		return nil
	}
	n.do(n.member.Leave)
	select {
	case <-n.left:
		return nil
	case <-n.ctx.Done():
		return fmt.Errorf("leave the cluster: %w", errStopped)
	case <-ctx.Done():
		return fmt.Errorf("leave the cluster: %w", ctx.Err())
	}
}

// Stop ends all that the node does. Its row stays, unless Leave has deleted it. Nothing may be
// asked afterwards.
func (n *Node) Stop() {
	n.mu.Lock()
	if n.stopped {
		n.mu.Unlock()
		return
	}
	n.stopped = true
	n.mu.Unlock()
	n.lease.Store(0)
	n.cancel()
	n.peers.close(n)
	n.wg.Wait()
	n.transport.stop()
	n.metrics.unregister()
}

// Confirm returns nil when no other node admits a request any more against what is committed: each
// has applied it, or its row is gone.
func (n *Node) Confirm(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	confirmed := make(chan struct{})
	ticket := int64(0)
	n.do(func(now partition.Now) {
		n.ticket++
		ticket = n.ticket
		n.tickets[ticket] = confirmed
		n.member.Change(now, ticket)
	})
	select {
	case <-confirmed:
		n.metrics.confirm.Observe(time.Since(began).Seconds())
		return nil
	case <-n.ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnconfirmed, errStopped)
	case <-ctx.Done():
		n.mu.Lock()
		delete(n.tickets, ticket)
		n.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnconfirmed, ctx.Err())
	}
}

// refused counts and logs what others have sent and this node does not take.
func (n *Node) refused(err error) {
	n.metrics.refused.WithLabelValues(reason(err)).Inc()
	n.config.Logger.Debug("refused another node", slog.Any("error", err))
}

// failed logs a panic in the handling of a frame.
func (n *Node) failed(recovered any) {
	n.config.Logger.Error("panic in the handling of a frame", slog.Any("panic", recovered),
		slog.String("stack", string(debug.Stack())))
}
