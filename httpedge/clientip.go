package httpedge

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// ForwardedHeader is the one header in which trusted proxies name the client. The other one is
// never read, since proxies pass on what a client wrote into it.
type ForwardedHeader string

// The headers.
const (
	XForwardedFor ForwardedHeader = "x-forwarded-for"
	Forwarded     ForwardedHeader = "forwarded" // RFC 7239
)

// The names as fasthttp keeps them: Peek would write them anew for each request.
var (
	headerXForwardedFor = []byte(fasthttp.HeaderXForwardedFor)
	headerForwarded     = []byte(fasthttp.HeaderForwarded)
)

// clientAddresses finds the address of the client. It is code of ours because realclientip-go does
// not check that the peer is trusted, returns nothing at an entry that it cannot parse, and splits
// lists inside quoted strings.
type clientAddresses struct {
	trusted []netip.Prefix
	header  string
	parse   func(lines [][]byte) []netip.Addr
	log     *slog.Logger
	warned  atomic.Bool // that somebody who is not trusted names an address
}

func newClientAddresses(trusted []netip.Prefix, header ForwardedHeader,
	log *slog.Logger) (*clientAddresses, error) {
	c := &clientAddresses{header: fasthttp.HeaderXForwardedFor, parse: parseXForwardedFor, log: log}
	for _, p := range trusted {
		if !p.IsValid() {
			return c, fmt.Errorf("httpedge: %v is not a network", p)
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		c.trusted = append(c.trusted, p.Masked())
	}
	switch header {
	case "", XForwardedFor:
	case Forwarded:
		c.header, c.parse = fasthttp.HeaderForwarded, parseForwarded
	default:
		return c, fmt.Errorf("httpedge: forwarded header %q is neither %s nor %s", header,
			XForwardedFor, Forwarded)
	}
	return c, nil
}

// caller returns the address of the client: the rightmost untrusted one among the header's entries
// and the peer. An entry that is not an address ends the walk, and the last trusted address counts.
// A peer without an address has the zero Addr.
func (c *clientAddresses) caller(ctx *fasthttp.RequestCtx) netip.Addr {
	addr := peer(ctx.RemoteAddr())
	if !c.trusts(addr) {
		c.warn(&ctx.Request.Header)
		return addr
	}
	for _, hop := range slices.Backward(c.parse(ctx.Request.Header.PeekAll(c.header))) {
		if !hop.IsValid() {
			break
		}
		addr = hop
		if !c.trusts(addr) {
			break
		}
	}
	return addr
}

// warn logs, once, that a peer who is no trusted proxy has sent a forwarding header. It may be a
// proxy that the settings forgot, or a client that tries to evade a limit.
func (c *clientAddresses) warn(h *fasthttp.RequestHeader) {
	if c.warned.Load() || len(h.PeekCanonical(headerXForwardedFor)) == 0 &&
		len(h.PeekCanonical(headerForwarded)) == 0 || c.warned.Swap(true) {
		return
	}
	c.log.Warn("a request names its client in X-Forwarded-For or Forwarded, but comes from no " +
		"trusted proxy: if there is a proxy, name it in GATEHOUSE_TRUSTED_PROXIES, or all its " +
		"clients count as one caller")
}

func (c *clientAddresses) trusts(addr netip.Addr) bool {
	for _, p := range c.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// peerOf returns the address that a request comes from, a proxy's too. Operators are known by it: a
// program on a trusted proxy must not name another.
func peerOf(ctx *fasthttp.RequestCtx) netip.Addr { return peer(ctx.RemoteAddr()) }

// peer returns the address at the other end of a connection. A Unix socket's peer is on this
// machine.
func peer(addr net.Addr) netip.Addr {
	switch a := addr.(type) {
	case *net.TCPAddr:
		ip, _ := netip.AddrFromSlice(a.IP)
		return ip.Unmap()
	case *net.UnixAddr:
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.Addr{}
}

// parseXForwardedFor returns the addresses of X-Forwarded-For lines in order. An entry that is not
// an address is the zero Addr.
func parseXForwardedFor(lines [][]byte) []netip.Addr {
	var hops []netip.Addr
	for _, line := range lines {
		for entry := range strings.SplitSeq(string(line), ",") {
			hops = append(hops, parseNode(strings.Trim(entry, " \t")))
		}
	}
	return hops
}

// parseForwarded returns the "for" parameters of Forwarded lines in order. An element without an
// address is the zero Addr.
func parseForwarded(lines [][]byte) []netip.Addr {
	var hops []netip.Addr
	for _, line := range lines {
		rest, more := string(line), true
		for more {
			var element string
			element, rest, more = cutUnquoted(rest, ',')
			hops = append(hops, parseElement(element))
		}
	}
	return hops
}

// parseElement returns the "for" address of one forwarded-element (RFC 7239 section 4). A repeated
// parameter counts as none.
func parseElement(element string) netip.Addr {
	var addr netip.Addr
	times := 0
	for more := true; more; {
		var pair string
		pair, element, more = cutUnquoted(element, ';')
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if strings.EqualFold(name, "for") {
			addr = parseNode(unquote(value))
			times++
		}
	}
	if times != 1 {
		return netip.Addr{}
	}
	return addr
}

// cutUnquoted cuts s at the first sep outside of quoted strings.
func cutUnquoted(s string, sep byte) (before, after string, found bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == sep && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// unquote returns the content of a quoted-string (RFC 9110 section 5.6.4), a token unchanged, and
// "" for a malformed one.
func unquote(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	if len(s) < 2 || !strings.HasSuffix(s, `"`) {
		return ""
	}
	s = s[1 : len(s)-1]
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseNode parses an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1,
// [2001:db8::1], [2001:db8::1]:80. Names such as "unknown" or "_hidden", and addresses with a zone,
// are the zero Addr.
func parseNode(s string) netip.Addr {
	addr, err := netip.ParseAddr(s)
	if inner, ok := strings.CutPrefix(s, "["); err != nil && ok && strings.HasSuffix(inner, "]") {
		if addr, err = netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil && addr.Is4() {
			return netip.Addr{}
		}
	}
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}
		}
		addr = withPort.Addr()
	}
	if addr.Zone() != "" {
		return netip.Addr{}
	}
	return addr.Unmap()
}
