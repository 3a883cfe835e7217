// Package ptr looks up reverse DNS names in the background. It limits concurrent lookups and its
// queue, and returns no name if the name is invalid or comes too late.
package ptr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// System is the Config.Server for the machine's resolvers (resolv.conf).
const System = "system"

// Defaults of Config, and the size of the queue.
const (
	DefaultConcurrency = 16
	DefaultTimeout     = 2 * time.Second
	QueueSize          = 1024 // addresses
)

// Config configures a Pool.
type Config struct {
	Server      string        // required: System, or HOST:PORT of a DNS server
	Concurrency int           // limit of concurrent lookups; 0 = DefaultConcurrency
	Timeout     time.Duration // of one lookup; 0 = DefaultTimeout
}

// Pool looks up names. Its methods may be called by many goroutines. It uses the machine's hosts
// file before DNS if nsswitch.conf says so.
type Pool struct {
	resolver net.Resolver
	timeout  time.Duration
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	workers  sync.WaitGroup

	mu     sync.RWMutex // read-locked to enqueue a job, write-locked to set closed
	closed bool
	jobs   chan job

	inFlight                  atomic.Int64
	resolved, failed, dropped atomic.Uint64
}

type job struct {
	addr netip.Addr
	done func(name string)
}

// New starts a Pool; close it after use. The error says in one line what is wrong with config.
func New(config Config) (*Pool, error) {
	dial, err := dialer(config.Server)
	if err != nil {
		return nil, err
	}
	if config.Concurrency < 0 || config.Timeout < 0 {
		return nil, errors.New("concurrency and timeout of reverse lookups must not be negative")
	}
	if config.Concurrency == 0 {
		config.Concurrency = DefaultConcurrency
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	p := &Pool{
		resolver: net.Resolver{PreferGo: true, Dial: dial},
		timeout:  config.Timeout,
		jobs:     make(chan job, QueueSize),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for range config.Concurrency {
		p.workers.Go(p.work)
	}
	return p, nil
}

// dialer returns the function that connects to the DNS server. It closes a connection when its
// context ends, because the resolver only observes deadlines.
func dialer(server string) (func(ctx context.Context, network, address string) (net.Conn, error),
	error) {
	if server != System {
		host, port, err := net.SplitHostPort(server)
		if err != nil || host == "" {
			return nil, fmt.Errorf("DNS server %q: must be %q or HOST:PORT", server, System)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("DNS server %q: the port must be 1 to 65535", server)
		}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if server != System {
			address = server
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		return conn, nil
	}, nil
}

// Resolve calls done exactly once with a valid name of addr, or with "" if there is none in time.
// If the queue is full or the pool closed, it calls done("") before it returns. Otherwise a worker
// calls done, so done must not take long.
func (p *Pool) Resolve(addr netip.Addr, done func(name string)) {
	if !p.enqueue(job{addr, done}) {
		p.dropped.Add(1)
		done("")
	}
}

// enqueue returns false if the queue is full or the pool closed.
func (p *Pool) enqueue(j job) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return false
	}
	select {
	case p.jobs <- j:
		return true
	default:
		return false
	}
}

// Close cancels the lookups in flight, calls done("") for all queued addresses, and returns when
// every done has returned. Do not call it from a done.
func (p *Pool) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.jobs)
	}
	p.mu.Unlock()
	p.cancel()
	p.workers.Wait()
}

func (p *Pool) work() {
	for j := range p.jobs {
		if p.ctx.Err() != nil {
			p.dropped.Add(1)
			j.done("")
			continue
		}
		p.inFlight.Add(1)
		name := p.lookup(j.addr)
		p.inFlight.Add(-1)
		j.done(name)
	}
}

func (p *Pool) lookup(addr netip.Addr) string {
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	// LookupAddr returns valid names together with an error about invalid ones.
	names, err := p.resolver.LookupAddr(ctx, addr.String())
	for _, name := range names {
		if name, ok := Hostname(name); ok {
			p.resolved.Add(1)
			return name
		}
	}
	var missing *net.DNSError
	if errors.As(err, &missing) && missing.IsNotFound {
		p.resolved.Add(1)
	} else {
		p.failed.Add(1)
	}
	return ""
}

// Stats holds the values of a pool's counters.
type Stats struct {
	InFlight int    // lookups in progress
	Queued   int    // addresses in the queue
	Resolved uint64 // lookups that found a name, or that there is none
	Failed   uint64 // lookups that timed out, failed or found only invalid names
	Dropped  uint64 // addresses not looked up: the queue was full or the pool closed
}

// Stats returns the values of the counters.
func (p *Pool) Stats() Stats {
	return Stats{
		InFlight: int(p.inFlight.Load()),
		Queued:   len(p.jobs),
		Resolved: p.resolved.Load(),
		Failed:   p.failed.Load(),
		Dropped:  p.dropped.Load(),
	}
}
