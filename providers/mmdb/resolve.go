package mmdb

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

const (
	maxResolving   = 32              // names resolved at once, over all callers
	maxOfCaller    = 8               // of them, for one caller
	resolveTimeout = 2 * time.Second // for one name, so that a batch has time for others
)

// callers counts the names of each caller, so that one caller's slow names leave room for others.
type callers struct {
	mu     sync.Mutex
	shares map[netip.Prefix]*share // of those who have names
}

// share is what one caller may resolve at once.
type share struct {
	slots chan struct{} // one element for each name
	names int           // including those that wait
}

// join returns the caller's share until leave.
func (c *callers) join(caller netip.Prefix) *share {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shares[caller]
	if s == nil {
		s = &share{slots: make(chan struct{}, maxOfCaller)}
		if c.shares == nil {
			c.shares = map[netip.Prefix]*share{}
		}
		c.shares[caller] = s
	}
	s.names++
	return s
}

func (c *callers) leave(caller netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.shares[caller]; s.names > 1 {
		s.names--
	} else {
		delete(c.shares, caller)
	}
}

// take waits for an element's place in slots and reports whether it came before ctx ended.
func take(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// resolve returns the first public address of domain, IPv4 before IPv6. Its error is errUnreachable
// if the name cannot be resolved in time, or else errNotFound. A name that has only addresses of
// private or reserved networks is not found either: nobody must learn which internal names exist.
func (p *Provider) resolve(ctx context.Context, domain string) (netip.Addr, *geo.Error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	if caller := geo.CallerOf(ctx); caller.IsValid() {
		own := p.callers.join(caller)
		defer p.callers.leave(caller)
		if !take(ctx, own.slots) {
			return netip.Addr{}, errUnreachable
		}
		defer func() { <-own.slots }()
	}
	if !take(ctx, p.resolving) {
		return netip.Addr{}, errUnreachable
	}
	defer func() { <-p.resolving }()
	for _, network := range []string{"ip4", "ip6"} {
		addrs, err := p.resolver(ctx, network, domain+".") // the dot prevents search domains
		if err != nil && !isNoAddress(err) {
			return netip.Addr{}, errUnreachable
		}
		for _, addr := range addrs {
			if q, special := geo.AddrQuery(addr.WithZone("")); special == nil {
				return q.Addr(), nil
			}
		}
	}
	return netip.Addr{}, errNotFound
}

// isNoAddress reports whether err means that the name has no address of the requested family.
func isNoAddress(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	var family *net.AddrError
	return errors.As(err, &family)
}
