package mmdb

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"gatehouse/actors/geo"
)

// Bounds of the resolution of names.
const (
	maxResolving   = 32              // names at once, over all callers
	resolveTimeout = 2 * time.Second // a name, so that dead ones leave time for the rest of a batch
)

// resolve returns the first public address of domain, IPv4 before IPv6, or why there is none: nothing known of the
// name, no answer in time, or what is wrong with the first of its addresses.
func (p *Provider) resolve(ctx context.Context, domain string) (netip.Addr, *geo.Error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	select {
	case p.resolving <- struct{}{}:
		defer func() { <-p.resolving }()
	case <-ctx.Done():
		return netip.Addr{}, errUnreachable
	}
	var refused *geo.Error
	for _, network := range []string{"ip4", "ip6"} {
		addrs, err := p.resolver(ctx, network, domain+".") // the dot keeps search domains away
		if err != nil && !isNoAddress(err) {
			return netip.Addr{}, errUnreachable
		}
		for _, addr := range addrs {
			q, special := geo.AddrQuery(addr.WithZone(""))
			if special == nil {
				return q.Addr(), nil
			}
			if refused == nil {
				refused = special
			}
		}
	}
	if refused == nil {
		refused = errNotFound
	}
	return netip.Addr{}, refused
}

// isNoAddress reports whether err says that the name, or an address of the wanted family, does not exist.
func isNoAddress(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	var family *net.AddrError
	return errors.As(err, &family)
}
