package cluster

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	// maxMessage bounds a message of the library, with a frame in it.
	maxMessage = 4 << 20
	// window is how much of a stream is sent before its reader has taken it.
	window = 1 << 20
	// closeTimeout bounds the end of the streams to others.
	closeTimeout = 2 * time.Second
)

// transport carries frames between nodes over the library's remote actors.
//
// The library's defects are answered here. It takes nothing from the wire that inspect has not
// passed. A connect does not fail but waits, since the library sleeps after a failure and leaks the
// connection. Its queues get at most maxPending frames. It is stopped with no stream left, since it
// closes channels that it writes to.
type transport struct {
	shakes  *handshakes
	speaks  func(certificate string) bool      // the row of a node names it still
	receive func(certificate string, b []byte) // a frame has arrived; on the stream's goroutine
	ended   func(address string)               // the stream to a node has ended unexpectedly
	room    func(address string)               // a frame to a node may be sent again
	failed  func(recovered any)                // receive has panicked
	// post hands a frame for an address to the library.
	post    func(to *actor.PID, frame []byte)
	refused func(error) // something that others have sent

	system  *actor.ActorSystem
	remote  *remote.Remote
	address string // of this node, for others
	self    *actor.PID
	streams sync.WaitGroup // to others

	mu     sync.RWMutex
	links  map[string]*link // by address
	closed bool
}

// listen starts the server on an address, as host:port.
func (t *transport) listen(listen string) (err error) {
	host, port, err := split(listen)
	if err != nil {
		return err
	}
	t.system = actor.NewActorSystem(
		// It would print messages. Its throttle of them outlives the system by the interval.
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		}),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	t.self = actor.NewPID(t.address, targetName)
	t.system.ProcessRegistry.Add(receiver{t}, targetName)
	config := remote.Configure(host, port,
		remote.WithAdvertisedHost(t.address),
		// One frame a message: each is near the limit.
		remote.WithEndpointWriterBatchSize(1),
		remote.WithEndpointWriterQueueSize(2*maxPending),
		remote.WithServerOptions(
			grpc.Creds(t.shakes),
			grpc.ConnectionTimeout(handshakeTimeout),
			grpc.MaxConcurrentStreams(2),
			grpc.MaxRecvMsgSize(maxMessage),
			grpc.MaxHeaderListSize(8<<10),
			grpc.InitialWindowSize(window),
			grpc.InitialConnWindowSize(window),
			grpc.StreamInterceptor(t.accept),
			grpc.UnaryInterceptor(t.refuseUnary),
			grpc.WaitForHandlers(true),
		),
		remote.WithDialOptions(
			grpc.WithTransportCredentials(t.shakes),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{
					BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
					MaxDelay: 250 * time.Millisecond,
				},
				MinConnectTimeout: handshakeTimeout,
			}),
			grpc.WithNoProxy(),
			grpc.WithDisableServiceConfig(),
			grpc.WithDisableRetry(),
			grpc.WithIdleTimeout(0),
			grpc.WithInitialWindowSize(window),
			grpc.WithInitialConnWindowSize(window),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<10)),
			grpc.WithStreamInterceptor(t.open),
		))
	config.MaxRetryCount = 1
	t.remote = remote.NewRemote(t.system, config)
	if err := t.start(); err != nil {
		t.system.Shutdown()
		return err
	}
	t.post = func(to *actor.PID, frame []byte) { t.system.Root.Send(to, wrapperspb.Bytes(frame)) }
	// The library has subscribed before, so that it has dropped the stream when ended is called.
	t.system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(*remote.EndpointTerminatedEvent); ok {
			t.terminated(e.Address)
		}
	})
	return nil
}

// start starts the library's server. It panics where another server has the port.
func (t *transport) start() (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("listen for other nodes: %v", recovered)
		}
	}()
	t.remote.Start()
	return nil
}

// split returns host and port of an address to listen at. The host of an IPv6 address keeps its
// brackets, as the library wants them.
func split(listen string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("address to listen at: %w", err)
	}
	port, err = strconv.Atoi(number)
	if err != nil {
		return "", 0, fmt.Errorf("port to listen at: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		host = "[" + host + "]"
	}
	return host, port, nil
}

// stop sends what was to be sent, ends all streams and stops the server.
func (t *transport) stop() {
	t.mu.Lock()
	t.closed = true
	for _, k := range t.links {
		go k.finish()
	}
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.streams.Wait()
		close(done)
	}()
	for range 2 {
		select {
		case <-done:
		case <-time.After(closeTimeout):
			t.keep(nil)
		}
	}
	if t.remote == nil {
		return // it does not listen
	}
	t.remote.Shutdown(false)
	for _, name := range []string{"activator", "EndpointSupervisor"} {
		_ = t.system.Root.StopFuture(t.system.NewLocalPID(name)).Wait()
	}
	t.system.Shutdown()
}
