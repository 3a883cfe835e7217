package geo_test

import (
	"net/netip"
	"testing"

	"gatehouse/actors/geo"
)

func TestIsPublic(t *testing.T) {
	for _, row := range []struct {
		addr string
		want bool
	}{
		{"8.8.8.8", true}, {"::ffff:8.8.8.8", true}, {"2606:4700::1111", true},
		{"127.0.0.1", false}, {"::ffff:127.0.0.1", false}, {"::1", false}, {"0.0.0.0", false},
		{"10.1.2.3", false}, {"169.254.169.254", false}, {"100.64.0.1", false},
		{"fd00::1", false}, {"fe80::1%eth0", false}, {"2606:4700::1111%eth0", false},
		{"64:ff9b::7f00:1", false}, {"2002:7f00:1::", false}, {"224.0.0.1", false},
	} {
		if got := geo.IsPublic(netip.MustParseAddr(row.addr)); got != row.want {
			t.Errorf("%s: got %t, want %t", row.addr, got, row.want)
		}
	}
	if geo.IsPublic(netip.Addr{}) {
		t.Error("got true for no address, want false")
	}
}
