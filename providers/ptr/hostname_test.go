package ptr_test

import (
	"strings"
	"testing"

	"gatehouse/providers/ptr"
)

func TestHostname(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Join([]string{label, label, label, strings.Repeat("b", 61)}, ".")
	for _, row := range []struct {
		name, want string
		ok         bool
	}{
		{"dns.example.", "dns.example", true},
		{"DNS.Example", "dns.example", true},
		{"_sip._tcp.example", "_sip._tcp.example", true},
		{"4-3-2-1.dyn.example", "4-3-2-1.dyn.example", true},
		{"host", "host", true},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", true},
		{long, long, true},
		{long + ".", long, true},
		{"b" + long, "", false},
		{label + "a.example", "", false},
		{"", "", false},
		{".", "", false},
		{"a..example", "", false},
		{"example..", "", false},
		{".example", "", false},
		{"-a.example", "", false},
		{"a-.example", "", false},
		{"192.0.2.1", "", false},
		{"a b.example", "", false},
		{"a\nb.example", "", false},
		{"a\x00.example", "", false},
		{`a\032b.example`, "", false},
		{"<b>.example", "", false},
		{`"quoted".example`, "", false},
		{"bücher.example", "", false},
		{"\u212a.example", "", false}, // the Kelvin sign, which lower-cases to an ASCII k
		{"a/b.example", "", false},
		{"a:80", "", false},
	} {
		if got, ok := ptr.Hostname(row.name); got != row.want || ok != row.ok {
			t.Errorf("%q: got %q %v, want %q %v", row.name, got, ok, row.want, row.ok)
		}
	}
}
