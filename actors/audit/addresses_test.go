package audit_test

import (
	"net/netip"
	"testing"

	"gatehouse/actors/audit"
)

func TestAddressesKeep(t *testing.T) {
	for _, row := range []struct {
		addresses    audit.Addresses
		caller, want string
	}{
		{audit.NoAddresses, "192.0.2.7", ""},
		{audit.AddressPrefixes, "192.0.2.7", "192.0.2.0/24"},
		{audit.AddressPrefixes, "::ffff:192.0.2.7", "192.0.2.0/24"},
		{audit.AddressPrefixes, "2001:db8:1:2::3", "2001:db8:1::/48"},
		{audit.AddressPrefixes, "fe80::1%eth0", "fe80::/48"},
		{audit.AddressPrefixes, "", ""},
		{audit.FullAddresses, "192.0.2.7", "192.0.2.7"},
		{audit.FullAddresses, "::ffff:192.0.2.7", "192.0.2.7"},
		{audit.FullAddresses, "fe80::1%eth0", "fe80::1"},
		{audit.FullAddresses, "", ""},
	} {
		caller, _ := netip.ParseAddr(row.caller)
		if got := row.addresses.Keep(caller); got != row.want {
			t.Errorf("%s of %q: got %q, want %q", row.addresses, row.caller, got, row.want)
		}
	}
}
