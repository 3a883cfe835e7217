package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"gatehouse/actors/geo"
)

// errAddress is the error of a connection to an address that may not be reached.
var errAddress = errors.New("the address may not be reached")

// dialTimeout is how long a connection may take, and lookupTimeout how long the lookup of a name.
const (
	dialTimeout   = 5 * time.Second
	lookupTimeout = time.Second
)

// Dialer returns what opens connections to addresses that allow allows. It asks for each address
// that is tried, when the name has been resolved. So a name cannot resolve to another one afterwards.
func Dialer(
	allow func(netip.Addr) bool,
) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !allow(at.Addr().Unmap()) {
			return errAddress
		}
		return nil
	}}
	return dialer.DialContext
}

// CheckURL returns an error for people to read if the host of a URL is known to have no address that
// may be reached. With lookup it resolves a name, for a second at most. A name that cannot be
// resolved passes: it may have an address later.
func (f *Fetcher) CheckURL(ctx context.Context, address string, lookup bool) error {
	u, err := url.Parse(address)
	if err != nil {
		return errURL
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		return f.checkAddresses(host, addr)
	case last == "localhost":
		return f.checkAddresses(host, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	case last == "" || last[0] >= '0' && last[0] <= '9': // as some resolvers read 127.1
		return fmt.Errorf("%s is neither a name nor an address", host)
	case !lookup && (last == host || geo.IsSpecialUse(last)):
		return fmt.Errorf("%s is not a name of the public Internet", host)
	case !lookup:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	return f.checkAddresses(host, addrs...)
}

// checkAddresses returns an error unless one of the addresses of a host may be reached.
func (f *Fetcher) checkAddresses(host string, addrs ...netip.Addr) error {
	for _, addr := range addrs {
		if f.allow(addr.Unmap()) {
			return nil
		}
	}
	return fmt.Errorf("%s has no public address: only public addresses are fetched from", host)
}
