// Package ptr finds reverse DNS names in the background: a few look-ups at once, a bounded queue, and no name at all
// rather than a late or a strange one.
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

// System is the Config.Server that stands for the resolvers of the machine (resolv.conf).
const System = "system"

// What an empty Config field means, and how many addresses may wait.
const (
	DefaultConcurrency = 16
	DefaultTimeout     = 2 * time.Second
	QueueSize          = 1024
)

// Config says whom a Pool asks.
type Config struct {
	Server      string        // required: System, or HOST:PORT of a DNS server
	Concurrency int           // look-ups at once; 0 = DefaultConcurrency
	Timeout     time.Duration // of one look-up; 0 = DefaultTimeout
}

// Pool looks names up. Its methods may be called by many goroutines. Names in the machine's hosts file go before those
// of the DNS, where its nsswitch.conf says so.
type Pool struct {
	resolver net.Resolver
	timeout  time.Duration
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	workers  sync.WaitGroup

	mu     sync.RWMutex // held to read while a job is queued, to write while closed turns true
	closed bool
	jobs   chan job

	inFlight                  atomic.Int64
	resolved, failed, dropped atomic.Uint64
}

type job struct {
	addr netip.Addr
	done func(name string)
}

// New starts a Pool. Close ends it. The error says in one line what is wrong with config.
func New(config Config) (*Pool, error) {
	dial, err := dialer(config.Server)
	if err != nil {
		return nil, err
	}
	if config.Concurrency < 0 || config.Timeout < 0 {
		return nil, errors.New("concurrency and time-out of reverse look-ups must not be negative")
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

// dialer returns how connections to the DNS server are made. A connection is closed with its context, since the
// resolver minds deadlines only.
func dialer(server string) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
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

// Resolve calls done exactly once, with the name of addr as Hostname accepts it, or with "" when there is none, it was
// not found in time, the queue is full or the pool closed; in the last two cases before Resolve returns, else on
// another goroutine. A done that takes long holds up other look-ups.
func (p *Pool) Resolve(addr netip.Addr, done func(name string)) {
	if !p.queue(job{addr, done}) {
		p.dropped.Add(1)
		done("")
	}
}

// queue reports whether a worker will see j.
func (p *Pool) queue(j job) bool {
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

// Close ends the look-ups in flight, answers what is pending with "" and returns when every done was called. It must
// not be called from a done.
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
	names, err := p.resolver.LookupAddr(ctx, addr.String()) // good names may stand beside the error that others are bad
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

// Stats is a reading of a pool's counters.
type Stats struct {
	InFlight int    // look-ups under way
	Queued   int    // addresses that wait for a worker
	Resolved uint64 // look-ups that the DNS answered: with a name, or that there is none
	Failed   uint64 // look-ups that timed out, were broken off or brought nothing usable
	Dropped  uint64 // addresses never looked up: the queue was full or the pool closed
}

// Stats reads the counters.
func (p *Pool) Stats() Stats {
	return Stats{
		InFlight: int(p.inFlight.Load()),
		Queued:   len(p.jobs),
		Resolved: p.resolved.Load(),
		Failed:   p.failed.Load(),
		Dropped:  p.dropped.Load(),
	}
}
