package geo

import (
	"net/netip"
	"slices"
)

// use is the purpose of an address.
type use uint8

const (
	public   use = iota // on the public Internet
	private             // in a private network
	reserved            // for special use: it has no location
)

// specialRanges holds the address ranges whose use differs from that of the range around them:
// ranges that the IANA special-purpose registries list as not globally reachable, multicast, and
// globally reachable exceptions within them. The longest prefix counts. An address without a prefix
// is public.
var specialRanges = []struct {
	prefix string
	use    use
	source string
}{
	{"0.0.0.0/8", reserved, "this network: RFC 791 section 3.2"},
	{"10.0.0.0/8", private, "RFC 1918"},
	{"100.64.0.0/10", reserved, "shared address space: RFC 6598"},
	{"127.0.0.0/8", reserved, "loopback: RFC 1122 section 3.2.1.3"},
	{"169.254.0.0/16", reserved, "link-local: RFC 3927"},
	{"172.16.0.0/12", private, "RFC 1918"},
	{"192.0.0.0/24", reserved, "IETF protocol assignments: RFC 6890"},
	{"192.0.0.9/32", public, "Port Control Protocol anycast: RFC 7723"},
	{"192.0.0.10/32", public, "TURN anycast: RFC 8155"},
	{"192.0.2.0/24", reserved, "documentation: RFC 5737"},
	{"192.88.99.0/24", reserved, "6to4 relay anycast, deprecated: RFC 7526"},
	{"192.168.0.0/16", private, "RFC 1918"},
	{"198.18.0.0/15", reserved, "benchmarking: RFC 2544"},
	{"198.51.100.0/24", reserved, "documentation: RFC 5737"},
	{"203.0.113.0/24", reserved, "documentation: RFC 5737"},
	{"224.0.0.0/4", reserved, "multicast: RFC 5771"},
	{"240.0.0.0/4", reserved, "future use and limited broadcast: RFC 1112 section 4, RFC 8190"},

	// Only 2000::/3 is allocated as global unicast (RFC 4291 section 2.4). Outside of it are
	// loopback, IPv4-compatible and IPv4-mapped addresses, NAT64 (RFC 6052, RFC 8215), discard and
	// dummy prefix (RFC 6666, RFC 9780), SRv6 segment identifiers (RFC 9602), link-local,
	// site-local and multicast.
	{"::/3", reserved, "RFC 4291"},
	{"4000::/2", reserved, "RFC 4291"},
	{"8000::/1", reserved, "RFC 4291"},
	{"fc00::/7", private, "unique local: RFC 4193"},

	{"2001::/23", reserved, "IETF protocol assignments, Teredo and ORCHID among them: RFC 2928, RFC 4380, RFC 7343, RFC 9374"},
	{"2001:1::1/128", public, "Port Control Protocol anycast: RFC 7723"},
	{"2001:1::2/128", public, "TURN anycast: RFC 8155"},
	{"2001:1::3/128", public, "DNS-SD service registration anycast: RFC 9665"},
	{"2001:3::/32", public, "AMT: RFC 7450"},
	{"2001:4:112::/48", public, "AS112: RFC 7535"},
	{"2001:db8::/32", reserved, "documentation: RFC 3849"},
	{"2002::/16", reserved, "6to4: RFC 3056"},
	{"3fff::/20", reserved, "documentation: RFC 9637"},
}

// segment is a range of addresses with one use. It ends before the next segment's first address.
type segment struct {
	first netip.Addr
	use   use
}

// segments covers all addresses in ascending order, IPv4 first. It is derived from specialRanges.
var segments = func() []segment {
	firsts := []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	for _, r := range specialRanges {
		p := netip.MustParsePrefix(r.prefix)
		firsts = append(firsts, p.Addr())
		if next := lastOf(p).Next(); next.IsValid() {
			firsts = append(firsts, next)
		}
	}
	slices.SortFunc(firsts, netip.Addr.Compare)
	var all []segment
	for _, first := range slices.Compact(firsts) {
		all = append(all, segment{first, longestMatch(first)})
	}
	return all
}()

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// longestMatch returns the use of addr by comparing it with every range.
func longestMatch(addr netip.Addr) use {
	found, bits := public, -1
	for _, r := range specialRanges {
		if p := netip.MustParsePrefix(r.prefix); p.Contains(addr) && p.Bits() > bits {
			found, bits = r.use, p.Bits()
		}
	}
	return found
}

// useOf returns the use of addr, which must be valid and not IPv4-mapped.
func useOf(addr netip.Addr) use {
	low, high := 0, len(segments)
	for high-low > 1 {
		if middle := (low + high) / 2; addr.Less(segments[middle].first) {
			high = middle
		} else {
			low = middle
		}
	}
	return segments[low].use
}

// IsSpecialUse reports whether label, as a top-level domain or alone, is not part of the public
// DNS.
func IsSpecialUse(label string) bool {
	switch label {
	case "localhost", "test", "invalid", // RFC 6761
		"local",       // RFC 6762
		"onion",       // RFC 7686
		"arpa",        // RFC 3172
		"internal",    // set aside by ICANN in 2024
		"localdomain": // usual in hosts files for loopback
		return true
	}
	return false
}

// IsPublic reports whether addr is an address on the public Internet: not in a private network, and
// not for special use.
func IsPublic(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsValid() && addr.Zone() == "" && useOf(addr) == public
}
