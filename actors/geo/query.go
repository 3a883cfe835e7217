package geo

import (
	"net/netip"
	"strings"
)

// Query is an address or a domain to look up, in normal form: two queries for the same thing are
// equal, so a Query can be a map key. The zero value is no query.
type Query struct {
	addr   netip.Addr
	domain string
}

// Addr returns the address, or the zero Addr when the query is a domain.
func (q Query) Addr() netip.Addr { return q.addr }

// IsDomain reports whether the query is a domain.
func (q Query) IsDomain() bool { return q.domain != "" }

// String returns the canonical form: an address in the form of RFC 5952, or a domain in lower case,
// as A-labels, without a trailing dot. It is safe in a URL path.
func (q Query) String() string {
	if q.IsDomain() {
		return q.domain
	}
	return q.addr.String()
}

// Clone returns a copy that shares no memory with the parsed string.
func (q Query) Clone() Query {
	q.domain = strings.Clone(q.domain)
	return q
}

// maxInput is the longest accepted query, in bytes: 253 characters of four bytes each, and spaces.
const maxInput = 1024

// The errors of a query, one value for each reason: rejecting an invalid query must not allocate.
var (
	errEmpty         = &Error{Code: CodeInvalidQuery, Reason: ReasonEmpty}
	errMalformed     = &Error{Code: CodeInvalidQuery, Reason: ReasonMalformed}
	errHasScheme     = &Error{Code: CodeInvalidQuery, Reason: ReasonHasScheme}
	errHasPath       = &Error{Code: CodeInvalidQuery, Reason: ReasonHasPath}
	errPrivateRange  = &Error{Code: CodeInvalidQuery, Reason: ReasonPrivateRange}
	errReservedRange = &Error{Code: CodeInvalidQuery, Reason: ReasonReservedRange}
)

// ParseQuery parses an IPv4 address in four decimal parts, an IPv6 address (RFC 4291 section 2.2,
// without zone and brackets) or a domain of at least two labels (UTS 46). It ignores spaces around
// it. Its error has CodeInvalidQuery. It rejects all else, and addresses and names that are set
// aside for private networks or special use. The result shares memory with s.
func ParseQuery(s string) (Query, *Error) {
	if len(s) > maxInput {
		return Query{}, errMalformed
	}
	s = strings.Trim(s, " ")
	if s == "" {
		return Query{}, errEmpty
	}
	switch seen := scan(s); {
	case seen.within(digit | dot), seen.within(digit|hexLower|hexUpper|colon|dot) &&
		seen&colon != 0:
		return parseAddr(s)
	case seen.within(letter | digit | hyphen | dot | nonASCII):
		return parseDomain(s, seen)
	}
	return Query{}, explain(s)
}

// AddrQuery returns the query for addr, as ParseQuery does for its text.
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

// explain returns the error for s, which contains a character that no address or domain may have.
// It ignores everything after a question mark or hash sign.
func explain(s string) *Error {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	slash := strings.IndexByte(s, '/')
	switch {
	case strings.HasPrefix(s, "//"), slash > 0 &&
		strings.HasPrefix(s[slash-1:], "://"), hasOpaqueScheme(s):
		return errHasScheme
	case slash >= 0:
		return errHasPath
	}
	return errMalformed
}

// hasOpaqueScheme reports whether s begins with a scheme without an authority (RFC 3986 section 3),
// as in "mailto:" or "file:/". It must not mistake other texts with a colon for one: a host with
// port, a user with password, or a malformed IPv6 address.
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

// isSchemeName reports whether s is a scheme name (RFC 3986 section 3.1). It excludes names with a
// plus sign, names with a dot, which look like a host, and names that look like a group of an IPv6
// address.
func isSchemeName(s string) bool {
	if s == "" || !scan(s[:1]).within(letter) {
		return false
	}
	seen := scan(s)
	return seen.within(letter|digit|hyphen) && (len(s) > 4 || !seen.within(digit|hexLower|hexUpper))
}

// takesAtSign reports whether an at sign is usual after the scheme. After any other name it ends a
// password, as in "user:password@host".
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
	lower // g to z
	hexUpper
	upper // G to Z
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

// scan returns the kinds of bytes in s.
func scan(s string) class {
	var seen class
	for i := range len(s) {
		seen |= classes[s[i]]
	}
	return seen
}

func (c class) within(set class) bool { return c&^set == 0 }
