package geo

import (
	"net/netip"
	"strings"
)

// Query is a normalized question about an address or a domain. Two queries that ask the same are equal, so that it
// serves as a key. The zero value asks nothing.
type Query struct {
	addr   netip.Addr
	domain string
}

// Addr returns the address asked about, or the zero Addr when the query is a domain.
func (q Query) Addr() netip.Addr { return q.addr }

// IsDomain reports whether a domain is asked about.
func (q Query) IsDomain() bool { return q.domain != "" }

// String returns the canonical form: an address as RFC 5952 prints it, a domain in lower case as A-labels with no
// trailing dot. It is safe in a URL path.
func (q Query) String() string {
	if q.IsDomain() {
		return q.domain
	}
	return q.addr.String()
}

// Clone returns a copy that shares no memory with the string that was parsed.
func (q Query) Clone() Query {
	q.domain = strings.Clone(q.domain)
	return q
}

// ParseQuery reads an IPv4 or IPv6 address or a bare domain, however it was written. The result shares memory with s.
func ParseQuery(s string) (Query, *Error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return Query{domain: s}, nil
	}
	return Query{addr: addr}, nil
}

// AddrQuery asks about addr, as ParseQuery does about its text.
func AddrQuery(addr netip.Addr) (Query, *Error) { return Query{addr: addr}, nil }
