package mmdb

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"gatehouse/actors/geo"
)

const (
	maxResolving   = 32              // names resolved at once, over all callers
	resolveTimeout = 2 * time.Second // for one name, so that a batch has time for others
)

// resolve returns the first public address of domain, IPv4 before IPv6. Its error is errNotFound if
// the name has no address, errUnreachable if it cannot be resolved in time, or else the error of
// its first address.
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
		addrs, err := p.resolver(ctx, network, domain+".") // the dot prevents search domains
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

// isNoAddress reports whether err means that the name has no address of the requested family.
func isNoAddress(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	var family *net.AddrError
	return errors.As(err, &family)
}
