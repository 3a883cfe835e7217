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

// maxInput is how long a query may be, in bytes: a name of 253 characters at four bytes each, and some space around.
const maxInput = 1024

// The refusals of a query, one value a reason: garbage comes fast and must cost nothing.
var (
	errEmpty         = &Error{Code: CodeInvalidQuery, Reason: ReasonEmpty}
	errMalformed     = &Error{Code: CodeInvalidQuery, Reason: ReasonMalformed}
	errHasScheme     = &Error{Code: CodeInvalidQuery, Reason: ReasonHasScheme}
	errHasPath       = &Error{Code: CodeInvalidQuery, Reason: ReasonHasPath}
	errPrivateRange  = &Error{Code: CodeInvalidQuery, Reason: ReasonPrivateRange}
	errReservedRange = &Error{Code: CodeInvalidQuery, Reason: ReasonReservedRange}
)

// ParseQuery reads an IPv4 address in four decimal parts, an IPv6 address (RFC 4291 section 2.2, no zone, no brackets)
// or a domain of at least two labels (UTS 46), with or without spaces around it. It refuses what is neither, and what
// is set aside for private networks and special use. The result shares memory with s.
func ParseQuery(s string) (Query, *Error) {
	if len(s) > maxInput {
		return Query{}, errMalformed
	}
	s = strings.Trim(s, " ")
	if s == "" {
		return Query{}, errEmpty
	}
	switch seen := scan(s); {
	case seen.within(digit | dot), seen.within(digit|hexLower|hexUpper|colon|dot) && seen&colon != 0:
		return parseAddr(s)
	case seen.within(letter | digit | hyphen | dot | nonASCII):
		return parseDomain(s, seen)
	}
	return Query{}, explain(s)
}

// AddrQuery asks about addr, as ParseQuery does about its text.
func AddrQuery(addr netip.Addr) (Query, *Error) {
	if !addr.IsValid() || addr.Zone() != "" {
		return Query{}, errMalformed
	}
	addr = addr.Unmap()
	switch useOf(addr) {
	case private:
		return Query{}, errPrivateRange
	case reserved:
		return Query{}, errReservedRange
	}
	return Query{addr: addr}, nil
}

const maxAddr = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

func parseAddr(s string) (Query, *Error) {
	if len(s) > maxAddr {
		return Query{}, errMalformed
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return Query{}, errMalformed
	}
	return AddrQuery(addr)
}

// explain finds the reason to refuse s, which holds a character that is in no address and in no domain. What follows a
// question mark or a hash tells nothing about it.
func explain(s string) *Error {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	slash := strings.IndexByte(s, '/')
	switch {
	case strings.HasPrefix(s, "//"), slash > 0 && strings.HasPrefix(s[slash-1:], "://"), hasOpaqueScheme(s):
		return errHasScheme
	case slash >= 0:
		return errHasPath
	}
	return errMalformed
}

// hasOpaqueScheme reports whether s begins with a scheme that no authority follows (RFC 3986 section 3), as in
// "mailto:" or "file:/". Other things have a colon, too: a host and its port, a user and a password, IPv6 gone wrong.
func hasOpaqueScheme(s string) bool {
	name, rest, ok := strings.Cut(s, ":")
	if !ok || !isSchemeName(name) || strings.HasPrefix(rest, ":") {
		return false
	}
	rest, _, _ = strings.Cut(rest, "/")
	if strings.Contains(rest, "@") {
		return takesAtSign(name)
	}
	return rest == "" || !scan(rest).within(digit)
}

// isSchemeName knows the names of RFC 3986 section 3.1 but for a plus, for a dot, which reads as
// a host, and for what reads as a group of an IPv6 address.
func isSchemeName(s string) bool {
	if s == "" || !scan(s[:1]).within(letter) {
		return false
	}
	seen := scan(s)
	return seen.within(letter|digit|hyphen) && (len(s) > 4 || !seen.within(digit|hexLower|hexUpper))
}

// takesAtSign reports whether an at sign is usual behind the scheme; behind any other word it ends a user's password.
func takesAtSign(scheme string) bool {
	for _, s := range [...]string{"mailto", "sip", "sips", "xmpp", "acct", "javascript", "data"} {
		if strings.EqualFold(scheme, s) {
			return true
		}
	}
	return false
}

// class is a set of kinds of bytes.
type class uint16

const (
	digit class = 1 << iota
	hexLower
	lower // behind f
	hexUpper
	upper // behind F
	dot
	colon
	hyphen
	nonASCII
	other

	letter = hexLower | lower | hexUpper | upper
)

var classes = func() (t [256]class) {
	for b := range t {
		t[b] = classify(byte(b))
	}
	return t
}()

func classify(b byte) class {
	switch {
	case '0' <= b && b <= '9':
		return digit
	case 'a' <= b && b <= 'f':
		return hexLower
	case 'g' <= b && b <= 'z':
		return lower
	case 'A' <= b && b <= 'F':
		return hexUpper
	case 'G' <= b && b <= 'Z':
		return upper
	case b == '.':
		return dot
	case b == ':':
		return colon
	case b == '-':
		return hyphen
	case b >= 0x80:
		return nonASCII
	}
	return other
}

// scan returns the kinds of bytes that s holds.
func scan(s string) class {
	var seen class
	for i := range len(s) {
		seen |= classes[s[i]]
	}
	return seen
}

func (c class) within(set class) bool { return c&^set == 0 }
