package sim

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"gatehouse/actors/geo"
)

// The messages of an answer with status "fail".
const (
	messagePrivate  = "private range"
	messageReserved = "reserved range"
	messageInvalid  = "invalid query"
)

// answer is the answer to one query.
type answer struct {
	query   string     // the address, or the query's text if there is no address
	addr    netip.Addr // valid unless message is set
	message string     // why there is no result; "" with status "success"
	key     uint64     // hash of the query
	domain  bool       // the query was a domain
}

// answerText returns the answer to the query in text.
func answerText(text string) answer {
	q, err := geo.ParseQuery(text)
	if err != nil {
		return answer{query: text, message: message(err)}
	}
	return answerQuery(q, text)
}

// answerAddr returns the answer to a query for addr, the caller's own address.
func answerAddr(addr netip.Addr) answer {
	q, err := geo.AddrQuery(addr)
	if err != nil {
		return answer{query: addr.String(), message: message(err)}
	}
	return answerQuery(q, addr.String())
}

func answerQuery(q geo.Query, text string) answer {
	if q.IsDomain() {
		domain := q.String()
		if noDomain(domain) {
			return answer{query: text, message: messageInvalid, domain: true}
		}
		addr := resolve(domain)
		return answer{query: addr.String(), addr: addr, key: hashString(domain), domain: true}
	}
	if unknown(q.Addr()) {
		return answer{query: text, message: messageInvalid}
	}
	return answer{query: q.String(), addr: q.Addr(), key: hashAddr(q.Addr())}
}

func message(err *geo.Error) string {
	switch err.Reason {
	case geo.ReasonPrivateRange:
		return messagePrivate
	case geo.ReasonReservedRange:
		return messageReserved
	}
	return messageInvalid
}

var unknownNets = [...]netip.Prefix{netip.MustParsePrefix("5.255.255.0/24"),
	netip.MustParsePrefix("2a0f:ffff::/32")}

// unknown reports whether the simulator has no result for addr.
func unknown(addr netip.Addr) bool {
	return unknownNets[0].Contains(addr) || unknownNets[1].Contains(addr)
}

// noDomain reports whether domain does not exist in the simulator.
func noDomain(domain string) bool {
	return domain == "nxdomain.example.com" || strings.HasSuffix(domain, ".nxdomain.example.com")
}

// resolve returns the address of a domain: a known public one, IPv6 for one domain in four.
func resolve(domain string) netip.Addr {
	for h := hashString(domain); ; h = mix(h + 1) {
		addr := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(h))))
		if h>>62 == 0 {
			a16 := [16]byte{0: 0x26, 1: 0x00}
			binary.BigEndian.PutUint64(a16[2:], h)
			a16[15] = 1
			addr = netip.AddrFrom16(a16)
		}
		if _, err := geo.AddrQuery(addr); err == nil && !unknown(addr) {
			return addr
		}
	}
}
