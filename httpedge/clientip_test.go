package httpedge_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge"
)

func prefixes(t *testing.T, list ...string) []netip.Prefix {
	t.Helper()
	var found []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		stacktest.Must(t, err)
		found = append(found, p)
	}
	return found
}

// The test's own address, 127.0.0.1, is the nearest proxy.
func TestCallersAddress(t *testing.T) {
	const xff, fwd = httpedge.XForwardedFor, httpedge.Forwarded
	type row struct{ header, value, want string }
	near := []string{"127.0.0.0/8"}
	far := []string{"127.0.0.0/8", "10.0.0.0/8", "2606:4700::/32", "::ffff:198.41.128.0/113"}
	for _, group := range []struct {
		name    string
		header  httpedge.ForwardedHeader
		trusted []string
		rows    []row
	}{
		{"nobody is trusted", "", nil, []row{
			{"X-Forwarded-For", "8.8.8.8", "127.0.0.1"},
		}},
		{"others are trusted", xff, []string{"10.0.0.0/8"}, []row{
			{"X-Forwarded-For", "8.8.8.8", "127.0.0.1"},
		}},
		{"X-Forwarded-For by one proxy", "", near, []row{
			{"X-Other", "", "127.0.0.1"},
			{"X-Forwarded-For", "", "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8", "8.8.8.8"},
			{"X-Forwarded-For", " \t8.8.8.8 ", "8.8.8.8"},
			{"X-Forwarded-For", "1.1.1.1, 8.8.8.8", "8.8.8.8"},
			{"X-Forwarded-For", "1.1.1.1,8.8.8.8", "8.8.8.8"},
			{"X-Forwarded-For", "1.1.1.1|8.8.8.8", "8.8.8.8"},
			{"X-Forwarded-For", "8.8.8.8|10.0.0.9", "10.0.0.9"},
			{"X-Forwarded-For", "8.8.8.8, 10.0.0.9", "10.0.0.9"},
			{"X-Forwarded-For", "8.8.8.8:1234", "8.8.8.8"},
			{"X-Forwarded-For", "2001:4860:4860::8888", "2001:4860:4860::8888"},
			{"X-Forwarded-For", "[2001:4860:4860::8888]", "2001:4860:4860::8888"},
			{"X-Forwarded-For", "[2001:4860:4860::8888]:443", "2001:4860:4860::8888"},
			{"X-Forwarded-For", "::ffff:8.8.8.8", "8.8.8.8"},
			{"X-Forwarded-For", "8.8.8.8, unknown", "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8,", "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8, 1.2.3", "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8, 01.2.3.4", "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8, fe80::1%eth0", "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8, [1.1.1.1]", "127.0.0.1"},
			{"X-Forwarded-For", `"8.8.8.8"`, "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8, 127.0.0.2", "8.8.8.8"},
			{"X-Forwarded-For", "127.0.0.3, 127.0.0.2", "127.0.0.3"},
			{"X-Forwarded-For", "8.8.8.8, unknown, 127.0.0.2", "127.0.0.2"},
			{"Forwarded", "for=8.8.8.8", "127.0.0.1"},
			{"X-Real-Ip", "8.8.8.8", "127.0.0.1"},
		}},
		{"X-Forwarded-For by several", xff, far, []row{
			{"X-Forwarded-For", "1.1.1.1, 8.8.8.8, 10.1.2.3", "8.8.8.8"},
			{"X-Forwarded-For", "1.1.1.1, 8.8.8.8, 2606:4700::1, 10.1.2.3", "8.8.8.8"},
			{"X-Forwarded-For", "1.1.1.1, 8.8.8.8, 198.41.200.1, 10.1.2.3", "8.8.8.8"},
			{"X-Forwarded-For", "8.8.8.8, 198.42.0.1", "198.42.0.1"},
			{"X-Forwarded-For", "1.1.1.1, x, 10.1.2.3", "10.1.2.3"},
		}},
		{"Forwarded", fwd, near, []row{
			{"Forwarded", "for=8.8.8.8", "8.8.8.8"},
			{"Forwarded", `For="8.8.8.8:47011"`, "8.8.8.8"},
			{"Forwarded", `for="[2001:4860:4860::8888]"`, "2001:4860:4860::8888"},
			{"Forwarded", `for="[2001:4860:4860::8888]:4711"`, "2001:4860:4860::8888"},
			{"Forwarded", "proto=https;for=8.8.8.8;by=203.0.113.43", "8.8.8.8"},
			{"Forwarded", `proto=https; for=8.8.8.8 ;by="_hid,den;for=1.1.1.1"`, "8.8.8.8"},
			{"Forwarded", `for=1.1.1.1, for=8.8.8.8`, "8.8.8.8"},
			{"Forwarded", `for=1.1.1.1|for=8.8.8.8`, "8.8.8.8"},
			{"Forwarded", `for=8.8.8.8, for=127.0.0.2`, "8.8.8.8"},
			{"Forwarded", `for="8.8\.8.8"`, "8.8.8.8"},
			{"Forwarded", `for="|for=8.8.8.8`, "8.8.8.8"},
			{"Forwarded", `for=", for=8.8.8.8`, "127.0.0.1"},
			{"Forwarded", "for=8.8.8.8, for=unknown", "127.0.0.1"},
			{"Forwarded", "for=8.8.8.8, for=_gazonk", "127.0.0.1"},
			{"Forwarded", "for=8.8.8.8, proto=http", "127.0.0.1"},
			{"Forwarded", "for=8.8.8.8;for=1.1.1.1", "127.0.0.1"},
			{"Forwarded", "for=8.8.8.8, ", "127.0.0.1"},
			{"Forwarded", "8.8.8.8", "127.0.0.1"},
			{"X-Forwarded-For", "8.8.8.8", "127.0.0.1"},
		}},
	} {
		t.Run(group.name, func(t *testing.T) {
			st := stacktest.NewLookups(t, func(c *stack.Config) {
				c.TrustedProxies, c.ForwardedHeader = prefixes(t, group.trusted...),
					string(group.header)
			})
			for _, row := range group.rows {
				a := st.Get(t, "/api/my-ip", lines(row.header, row.value)...)
				if got := a.Object(t)["query"]; got != row.want {
					t.Errorf("%s: %s: got %v, want %s", row.header, row.value, got, row.want)
				}
			}
		})
	}
}

// lines makes a header line of each part of value, which are parted by |.
func lines(name, value string) []string {
	var headers []string
	for start, i := 0, 0; i <= len(value); i++ {
		if i == len(value) || value[i] == '|' {
			headers = append(headers, name, value[start:i])
			start = i + 1
		}
	}
	return headers
}

func TestMyIP(t *testing.T) {
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.TrustedProxies = prefixes(t, "127.0.0.1/32") })
	for range 2 {
		a := st.Get(t, "/api/my-ip", "X-Forwarded-For", "8.8.8.8")
		o := a.Object(t)
		if a.Status != 200 || o["ok"] != true || o["query"] != "8.8.8.8" || o["ip"] != "8.8.8.8" ||
			o["ipVersion"] != "IPv4" {
			t.Errorf("got %d %s, want 200 about 8.8.8.8", a.Status, a.Body)
		}
		a.Has(t, "Cache-Control", "no-store", "X-Geo-Source", "upstream", "X-Cache", "", "Age", "")
	}
	for address, reason := range map[string]string{"127.0.0.1": "reserved_range",
		"192.168.1.7": "private_range"} {
		a := st.Get(t, "/api/my-ip", "X-Forwarded-For", address)
		a.Fails(t, 400, "invalid_query", reason)
		a.Has(t, "Cache-Control", "no-store")
	}
	st.Get(t, "/api/lookup?q=8.8.8.8").Has(t, "X-Cache", "hit")
}

// A forwarding header from somebody who is not trusted is one warning, without an address.
func TestUntrustedForwardingHeadersWarn(t *testing.T) {
	for _, test := range []struct {
		trusted, header string
		warnings        int
	}{
		{"10.0.0.0/8", "X-Forwarded-For", 1},
		{"10.0.0.0/8", "Forwarded", 1},
		{"10.0.0.0/8", "X-Other", 0},
		{"127.0.0.0/8", "X-Forwarded-For", 0},
	} {
		st := stacktest.NewLookups(t, func(c *stack.Config) { c.TrustedProxies = prefixes(t, test.trusted) })
		for range 3 {
			st.Get(t, "/api/my-ip", test.header, "8.8.8.8")
		}
		got := strings.Count(st.Log.String(), "GATEHOUSE_TRUSTED_PROXIES")
		if got != test.warnings {
			t.Errorf("%s beside %s: got %d warnings, want %d", test.header, test.trusted, got,
				test.warnings)
		}
		if log := st.Log.String(); strings.Contains(log, "8.8.8.8") ||
			strings.Contains(log, "127.0.0.1") {
			t.Errorf("got an address in the log: %s", log)
		}
	}
}

func TestUnixSocketPeersAreLocal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.sock")
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.Listen = "unix:" + path },
		func(c *stack.Config) { c.TrustedProxies = prefixes(t, "127.0.0.1/32") })
	st.Client.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", path)
		}}
	if got := st.Get(t, "/api/my-ip").Object(t)["query"]; got != "127.0.0.1" {
		t.Errorf("got %v, want 127.0.0.1", got)
	}
	if got := st.Get(t, "/api/my-ip", "X-Forwarded-For",
		"8.8.8.8").Object(t)["query"]; got != "8.8.8.8" {
		t.Errorf("got %v, want 8.8.8.8", got)
	}
}
