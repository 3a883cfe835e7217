package nodes

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	probeInterval = 200 * time.Millisecond
	probeTimeout  = time.Second
)

// Balancer passes each request to a node, as a common load balancer does:
//
//   - It takes a random node of those that are ready. With Sticky it takes the one that a
//     consistent hash of the Authorization header picks.
//   - A node is ready while its /readyz responds with 200, which it asks each 200 ms.
//   - It repeats a GET at another node if the connection fails, the response takes longer than
//     Timeout, or the response is 502 or 503. It tries each node that is ready once.
//   - A request with another method is never repeated: the client gets 502.
//
// Its methods may be called concurrently.
type Balancer struct {
	URL      string // where it serves
	Sticky   atomic.Bool
	Timeout  atomic.Int64 // time.Duration
	Repeated atomic.Int64 // requests that were sent to another node

	server   *fasthttp.Server
	served   chan error
	stop     context.CancelFunc
	ended    sync.WaitGroup
	probing  context.Context
	mu       sync.Mutex
	backends atomic.Pointer[[]*backend]
}

// backend is a node as the balancer sees it.
type backend struct {
	name   string
	client *fasthttp.HostClient
	ready  atomic.Bool
}

// defaultTimeout of a response only keeps a request from hanging.
const defaultTimeout = 30 * time.Second

// NewBalancer returns a balancer without nodes that serves at a HOST:PORT. Close ends it.
func NewBalancer(address string) (*Balancer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start a balancer: %w", err)
	}
	b := &Balancer{URL: "http://" + listener.Addr().String(), served: make(chan error, 1)}
	b.Timeout.Store(int64(defaultTimeout))
	b.backends.Store(new([]*backend))
	b.probing, b.stop = context.WithCancel(context.Background())
	b.server = &fasthttp.Server{Handler: b.serve, NoDefaultServerHeader: true,
		NoDefaultDate: true, NoDefaultContentType: true, CloseOnShutdown: true}
	go func() { b.served <- b.server.Serve(listener) }()
	return b, nil
}

// Add adds a node by the HOST:PORT of its public address and the URL of its admin address. The node
// is not ready until it has said so.
func (b *Balancer) Add(name, public, admin string) {
	never := func(*fasthttp.Request, int, error) (resetTimeout, retry bool) { return false, false }
	to := &backend{name: name, client: &fasthttp.HostClient{
		Addr: public, MaxConns: 4096, MaxIdemponentCallAttempts: 1, RetryIfErr: never,
		DisableHeaderNamesNormalizing: true, // response headers pass as they are
	}}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := append([]*backend{}, *b.backends.Load()...)
	all = append(all, to)
	b.backends.Store(&all)
	b.ended.Go(func() { b.probe(to, admin) })
}

// probe asks a node whether it is ready until the balancer ends.
func (b *Balancer) probe(to *backend, admin string) {
	client := &http.Client{Timeout: probeTimeout}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		to.ready.Store(isReady(b.probing, client, admin))
		select {
		case <-ticker.C:
		case <-b.probing.Done():
			return
		}
	}
}

// await waits until that many nodes are ready.
func (b *Balancer) await(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for b.Ready() < n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d ready nodes: %w", n, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Ready returns the number of nodes that are ready.
func (b *Balancer) Ready() int {
	n := 0
	for _, to := range *b.backends.Load() {
		if to.ready.Load() {
			n++
		}
	}
	return n
}

// pick returns a node that is ready and not among the tried ones; nil = there is none.
func (b *Balancer) pick(authorization []byte, tried []*backend) *backend {
	all := *b.backends.Load()
	var best *backend
	var highest uint64
	for _, to := range all {
		if !to.ready.Load() || slices.Contains(tried, to) {
			continue
		}
		weight := rand.Uint64()
		if b.Sticky.Load() {
			hash := fnv.New64a()
			hash.Write(authorization)
			hash.Write([]byte(to.name))
			weight = mix(hash.Sum64())
		}
		if best == nil || weight > highest {
			best, highest = to, weight
		}
	}
	return best
}

// mix spreads a hash: the last bytes change the low bits of FNV alone.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

var errNoNode = errors.New("no node is ready")

// Do passes a request on and returns the name of the node that responded. An error means that no
// node has.
func (b *Balancer) Do(request *fasthttp.Request, response *fasthttp.Response) (string, error) {
	var space [8]*backend
	tried, last := space[:0], errNoNode
	name := ""
	for {
		to := b.pick(request.Header.Peek("Authorization"), tried)
		if to == nil {
			return name, last
		}
		response.Reset()
		if len(tried) > 0 {
			b.Repeated.Add(1)
		}
		tried = append(tried, to)
		last = to.client.DoTimeout(request, response, time.Duration(b.Timeout.Load()))
		name = to.name
		if last == nil && response.StatusCode() != http.StatusBadGateway &&
			response.StatusCode() != http.StatusServiceUnavailable ||
			!request.Header.IsGet() {
			return name, last
		}
	}
}

// serve passes a request of a real connection on.
func (b *Balancer) serve(ctx *fasthttp.RequestCtx) {
	if _, err := b.Do(&ctx.Request, &ctx.Response); err != nil {
		ctx.Response.Reset()
		ctx.Response.SetStatusCode(http.StatusBadGateway)
		ctx.Response.SetBodyString("no node responds\n")
	}
}

// Close ends the balancer.
func (b *Balancer) Close() error {
	b.stop()
	b.ended.Wait()
	err := b.server.Shutdown()
	for _, to := range *b.backends.Load() {
		to.client.CloseIdleConnections()
	}
	return errors.Join(err, <-b.served)
}
