// Package limits lets the nodes of a cluster count failed attempts together. The holder of a
// partition counts those whose keys are in it. A new holder begins to count anew. While the holder
// cannot be asked, each node counts for itself.
package limits

import (
	"sync"
	"time"

	"gatehouse/actors/partition"
	"gatehouse/actors/ratelimit"
)

var _ ratelimit.Nodes = (*Limits)(nil)

// Peers is the part of a node of the cluster that Limits needs. See cluster.Node.
type Peers interface {
	View() *partition.View
	Ask(service byte, part int, body []byte, until time.Time) ([]byte, int64, error)
}

const (
	// timeout is how long a holder may take to reply.
	timeout = time.Second
	// mostTold is how many requests whose reply nobody needs are under way at once. The sender of
	// another one waits.
	mostTold = 256
)

// Limits implements ratelimit.Nodes.
type Limits struct {
	peers Peers
	told  chan struct{} // one element for each request of Tell under way

	mu     sync.RWMutex
	served map[string]func(request []byte, now time.Time) []byte
}

// New returns the Limits of a node that has none yet.
func New(peers Peers) *Limits {
	return &Limits{
		peers: peers, told: make(chan struct{}, mostTold),
		served: map[string]func([]byte, time.Time) []byte{},
	}
}

// Serve implements ratelimit.Nodes. The name of a limit has at most 255 bytes.
func (l *Limits) Serve(limit string, count func(request []byte, now time.Time) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served[limit] = count
}

// Ask implements ratelimit.Nodes.
func (l *Limits) Ask(limit string, key, request []byte) (reply []byte, ok bool) {
	part, body := frame(limit, key, request)
	if l.isMine(part) {
		return nil, false
	}
	reply, _, err := l.peers.Ask(partition.ServiceThrottles, part, body, time.Now().Add(timeout))
	return reply, err == nil
}

// Tell implements ratelimit.Nodes.
func (l *Limits) Tell(limit string, key, request []byte, here func()) {
	part, _ := frame(limit, key, request)
	if l.isMine(part) {
		here()
		return
	}
	tell := func() {
		if _, ok := l.Ask(limit, key, request); !ok {
			here()
		}
	}
	select {
	case l.told <- struct{}{}:
		go func() {
			defer func() { <-l.told }()
			tell()
		}()
	default:
		tell()
	}
}

// isMine reports whether this node holds a partition, as far as it knows.
func (l *Limits) isMine(part int) bool {
	p := &l.peers.View().Parts[part]
	return p.Mine && !p.Moving
}

// frame returns the partition of a key, and a request with the name of its limit.
func frame(limit string, key, request []byte) (part int, body []byte) {
	body = append(append([]byte{byte(len(limit))}, limit...), request...)
	return partition.Of(append([]byte(limit+"\x00"), key...)), body
}

// HandlePeer handles an ask of another node, which it ends with reply. It does not block. reply is
// nil for a cast, which is ignored.
func (l *Limits) HandlePeer(
	m partition.Message, reply func(status partition.Status, epoch int64, body []byte),
) {
	if reply == nil {
		return
	}
	if m.Partition < 0 || m.Partition >= partition.Count || !l.isMine(m.Partition) {
		reply(partition.Elsewhere, 0, nil)
		return
	}
	reply(partition.Done, l.peers.View().Parts[m.Partition].Epoch, l.count(m.Body))
}

// count returns the reply to a request; nil = it cannot be read, so that the sender counts.
func (l *Limits) count(body []byte) []byte {
	if len(body) == 0 || len(body) <= int(body[0]) {
		return nil
	}
	end := 1 + int(body[0])
	l.mu.RLock()
	count := l.served[string(body[1:end])]
	l.mu.RUnlock()
	if count == nil {
		return nil
	}
	return count(body[end:], time.Now())
}
