package httpedge

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"
)

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from netip.Addr
}

// RemoteAddr implements net.Conn.
func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: a.from.AsSlice(), Port: 1} }

// TestConnectionLimitOfIPv6Networks opens connections from many /64s of a network, which somebody
// may have alone: a /56 takes two shares, a /48 four. All end, and can be opened again.
func TestConnectionLimitOfIPv6Networks(t *testing.T) {
	c := newConnections(1000, timeouts{time.Second, time.Second, time.Second},
		slog.New(slog.DiscardHandler))
	c.limitAddresses(10, func(netip.Addr) bool { return false })
	for range 2 {
		var open []*connection
		for _, row := range []struct {
			network string
			subnet  int // index of the byte that differs
			want    int
		}{
			{"2001:db8:1::1", 15, 10}, // one /64
			{"2001:db8:2::1", 7, 20},  // a /56
			{"2001:db8:3::1", 6, 40},  // a /48
			{"2001:db9::1", 5, 256},   // /48s of their own
		} {
			allowed := 0
			for i := range 256 {
				address := netip.MustParseAddr(row.network).As16()
				address[row.subnet] = byte(i)
				held, reached := c.add(addressed{from: netip.AddrFrom16(address)})
				if reached == noLimit {
					open = append(open, held)
					allowed++
				}
			}
			if allowed != row.want {
				t.Errorf("%s: got %d connections, want %d", row.network, allowed, row.want)
			}
		}
		for _, conn := range open {
			c.remove(conn)
		}
		if n, networks := c.from.Used(); n != 0 || networks != 0 {
			t.Errorf("got %d connections of %d networks after all ended, want none", n, networks)
		}
	}
}
