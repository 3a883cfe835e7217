package audit

import "net/netip"

// Addresses says how much of a caller's address the trail keeps. "" = AddressPrefixes.
type Addresses string

// The amounts.
const (
	NoAddresses     Addresses = "off"
	AddressPrefixes Addresses = "prefix" // the /24 of an IPv4 address, the /48 of an IPv6 address
	FullAddresses   Addresses = "full"
)

// Keep returns what the trail keeps of an address: "" for nothing, an address, or a prefix such as
// 192.0.2.0/24.
func (a Addresses) Keep(caller netip.Addr) string {
	caller = caller.Unmap().WithZone("")
	if !caller.IsValid() || a == NoAddresses {
		return ""
	}
	if a == FullAddresses {
		return caller.String()
	}
	return Network(caller).String()
}

// Network returns the network of a caller: the /24 of an IPv4 address, the /48 of an IPv6 address.
// The zero Addr has the zero Prefix.
func Network(caller netip.Addr) netip.Prefix {
	caller = caller.Unmap()
	bits := 48
	if caller.Is4() {
		bits = 24
	}
	network, _ := caller.Prefix(bits) // without the zone
	return network
}
