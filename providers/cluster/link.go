package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
)

const (
	// maxPending is how many frames of a link may wait in the library, which has no bound.
	maxPending = 8
	// retireTimeout is how long the other node may take to read the rest of a stream that is
	// replaced.
	retireTimeout = time.Second
	// flushTimeout bounds how long a node that stops sends what is to be sent.
	flushTimeout = 250 * time.Millisecond
)

var errEnded = errors.New("the stream has ended")

// link is the way to one address.
type link struct {
	t      *transport
	target *actor.PID
	ctx    context.Context
	cancel context.CancelFunc
	// stream is the last one that the other node has accepted; nil = none yet.
	stream atomic.Pointer[outgoing]
	// pending counts the frames that the library has not written yet. It is maxPending while the
	// stream is being replaced.
	pending atomic.Int32
	// retired is when the replacement of the stream began, by transport.clock; 0 = it did not.
	retired atomic.Int64
	// blocked says that a lane waits for room.
	blocked atomic.Bool
}

// link returns the link to an address, made if needed; nil = the transport is stopped.
func (t *transport) link(address string) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	k := t.links[address]
	if k == nil {
		k = &link{t: t, target: actor.NewPID(address, targetName)}
		k.ctx, k.cancel = context.WithCancel(context.Background())
		t.links[address] = k
	}
	return k
}

// keep ends the links to all addresses but those.
func (t *transport) keep(addresses map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for address, k := range t.links {
		if !addresses[address] {
			k.cancel()
			delete(t.links, address)
		}
	}
}

// renew replaces the streams that began with another certificate than the current one. Frames that
// were written arrive.
func (t *transport) renew(certificate string, clock time.Duration) {
	t.mu.RLock()
	links := slices.Collect(maps.Values(t.links))
	t.mu.RUnlock()
	for _, k := range links {
		k.renew(certificate, clock)
	}
}

func (k *link) renew(certificate string, clock time.Duration) {
	s := k.stream.Load()
	switch began := k.retired.Load(); {
	case began != 0 && clock-time.Duration(began) > retireTimeout:
		// Either the node does not read, or the stream had ended before.
		if s != nil {
			s.cancel()
		}
		k.retired.Store(0)
		k.pending.Store(0)
		k.hasRoom()
	case began == 0 && s != nil && s.certificate != certificate &&
		k.pending.CompareAndSwap(0, maxPending):
		k.retired.Store(int64(clock))
		s.half()
	}
}

// reserve reports whether send may be called once.
func (k *link) reserve() bool {
	for {
		n := k.pending.Load()
		if n >= maxPending {
			return false
		}
		if k.pending.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// reserveOrWait is reserve, but makes transport.room be called if there is no room.
func (k *link) reserveOrWait() bool {
	if k.reserve() {
		return true
	}
	k.blocked.Store(true)
	return k.reserve()
}

// hasRoom calls transport.room if a lane waits for that.
func (k *link) hasRoom() {
	if k.blocked.CompareAndSwap(true, false) {
		k.t.room(k.target.Address)
	}
}

// send sends a frame, which may be lost. It does not wait. The caller has called reserve.
func (k *link) send(frame []byte) {
	k.t.mu.RLock()
	defer k.t.mu.RUnlock()
	if !k.t.closed && k.ctx.Err() == nil {
		k.t.post(k.target, frame)
	}
}

// finish ends the stream when the library has written all frames, but within a moment.
func (k *link) finish() {
	for end := time.Now().Add(flushTimeout); k.pending.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if s := k.stream.Load(); s != nil && k.pending.Load() == 0 {
		s.half()
		return
	}
	k.cancel()
}

// written takes a frame off pending.
func (k *link) written() {
	for {
		n := k.pending.Load()
		if n == 0 || k.pending.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// terminated is called when the library has dropped the stream to an address.
func (t *transport) terminated(address string) {
	t.mu.RLock()
	k := t.links[address]
	t.mu.RUnlock()
	if k == nil {
		return
	}
	planned := k.retired.Swap(0) != 0
	k.pending.Store(0)
	if !planned {
		t.ended(address)
	}
	k.hasRoom()
}

// open is the interceptor of streams to others. It waits until the other node is there, or the link
// is ended.
func (t *transport) open(_ context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn,
	method string, streamer grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	t.mu.RLock()
	k := t.links[conn.Target()]
	if k == nil || t.closed {
		t.mu.RUnlock()
		return &outgoing{err: errEnded}, nil
	}
	t.streams.Add(1)
	t.mu.RUnlock()
	s := &outgoing{link: k, certificate: t.shakes.id.current(time.Now()).hash}
	ctx, cancel := context.WithCancel(k.ctx)
	s.cancel = cancel
	s.done = sync.OnceFunc(t.streams.Done)
	s.ClientStream, s.err = streamer(ctx, d, conn, method,
		append(options, grpc.WaitForReady(true))...)
	return s, nil
}

// outgoing is a stream to another node. To the library, connecting always succeeds. It gets errors
// from RecvMsg only, after the reply to its first message.
type outgoing struct {
	grpc.ClientStream // nil = there is none
	link              *link
	certificate       string // hash of the own one when the stream began
	err               error
	greeted           bool
	halved            sync.Once
	cancel            context.CancelFunc
	done              func()
}

// SendMsg implements grpc.ClientStream.
func (s *outgoing) SendMsg(m any) error {
	if s.ClientStream == nil {
		return nil
	}
	err := s.ClientStream.SendMsg(m)
	if message, ok := m.(*remote.RemoteMessage); ok && message.GetMessageBatch() != nil {
		s.link.written()
		s.link.hasRoom()
		return err
	}
	return nil
}

// RecvMsg implements grpc.ClientStream. The first call succeeds. The next one ends with the stream
// and never with io.EOF, after which the library would go on without a stream.
func (s *outgoing) RecvMsg(m any) error {
	if s.err == nil {
		s.err = s.ClientStream.RecvMsg(m)
	}
	if s.greeted {
		if s.link != nil {
			s.link.stream.CompareAndSwap(s, nil)
		}
		return errEnded
	}
	s.greeted = true
	message, ok := m.(*remote.RemoteMessage)
	if !ok {
		return errEnded
	}
	switch {
	case s.err != nil:
	case message.GetConnectResponse() == nil:
		s.err = errEnded
	default:
		s.link.stream.Store(s)
	}
	message.MessageType = &remote.RemoteMessage_ConnectResponse{
		ConnectResponse: &remote.ConnectResponse{},
	}
	return nil
}

// CloseSend implements grpc.ClientStream. The library closes the connection afterwards.
func (s *outgoing) CloseSend() error {
	if s.ClientStream == nil {
		if s.done != nil {
			s.cancel()
			s.done()
		}
		return nil
	}
	s.half()
	s.cancel()
	s.done()
	return nil
}

// half says that nothing more is sent. The other node ends the stream when it has read the rest.
// No SendMsg may run.
func (s *outgoing) half() {
	s.halved.Do(func() { _ = s.ClientStream.CloseSend() })
}
