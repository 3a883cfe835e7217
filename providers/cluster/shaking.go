package cluster

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// shaking are the connections to this node whose handshake is under way. There are few, so that
// strangers cost little. A new one is never refused but takes the place of an older one: who holds
// many open must not keep nodes out.
type shaking struct {
	mu   sync.Mutex
	list []*handshake // the oldest first
}

type handshake struct {
	conn net.Conn
	site netip.Prefix
	node bool // the row of a node names the address
}

// add adds a connection. It closes the oldest of the same site if there are too many of those, or
// else of the site with most, except those of nodes.
func (s *shaking) add(conn net.Conn, isNode func(netip.Addr) bool) *handshake {
	address := addressOf(conn)
	h := &handshake{conn: conn, site: siteOf(address), node: isNode(address)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if former := s.inTheWay(h.site); former != nil {
		s.remove(former)
		_ = former.conn.Close()
	}
	s.list = append(s.list, h)
	return h
}

// inTheWay returns the connection whose place one of a site takes; nil = there is room.
func (s *shaking) inTheWay(site netip.Prefix) *handshake {
	of, most := map[netip.Prefix]int{}, 0
	for _, h := range s.list {
		of[h.site]++
		if !h.node {
			most = max(most, of[h.site])
		}
	}
	full := len(s.list) >= maxHandshakes
	for _, h := range s.list {
		if of[site] >= maxHandshakesEach && h.site == site ||
			of[site] < maxHandshakesEach && full && !h.node && of[h.site] >= most {
			return h
		}
	}
	return nil
}

// end takes a connection out, and reports whether it was still there.
func (s *shaking) end(h *handshake) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(h)
}

func (s *shaking) remove(h *handshake) bool {
	i := slices.Index(s.list, h)
	if i < 0 {
		return false
	}
	s.list = slices.Delete(s.list, i, i+1)
	return true
}

// addressOf returns the IP address of the other side.
func addressOf(conn net.Conn) netip.Addr {
	if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return to.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// siteOf returns what one stranger may have of addresses: an IPv4 address or an IPv6 /64.
func siteOf(address netip.Addr) netip.Prefix {
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	site, _ := address.Prefix(bits)
	return site
}
