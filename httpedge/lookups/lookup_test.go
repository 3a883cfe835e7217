package lookups_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

func TestLookupIsCached(t *testing.T) {
	provider := stacktest.NewProvider()
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	const want = `{"ok":true,"query":"8.8.8.8","ip":"8.8.8.8","ipVersion":"IPv4","location":{"continent":"","country":"Testland",` +
		`"countryCode":"TL","regionName":"","city":"8.8.8.8","zip":"","lat":1.5,"lon":-2.25,"timezone":"Etc/UTC",` +
		`"utcOffsetSeconds":0,"currency":""},"network":{"isp":"Test ISP","org":"","as":"AS64500 Test","asname":"","reverse":""},` +
		`"flags":{"mobile":false,"proxy":false,"hosting":false}}`
	for _, cache := range []string{"miss", "hit"} {
		a := st.Get(t, "/api/lookup?q=8.8.8.8")
		if a.Status != 200 || a.Body != want {
			t.Errorf("got %d %s, want 200 %s", a.Status, a.Body, want)
		}
		a.Has(t, "X-Cache", cache, "Cache-Control", "private, max-age=600", "Age", "0",
			"X-Geo-Source", "upstream", "Content-Type", "application/json",
			"X-Content-Type-Options", "nosniff", "Access-Control-Allow-Origin", "*", "Server", "")
	}
	if n := provider.Asked("8.8.8.8"); n != 1 {
		t.Errorf("got %d upstream queries, want 1", n)
	}
}

func TestLookupEchoesTheQuery(t *testing.T) {
	st := stacktest.NewLookups(t)
	for target, want := range map[string]string{
		"/api/lookup?q=8.8.8.8":                         "8.8.8.8",
		"/api/lookup?q=%208.8.8.8%20":                   " 8.8.8.8 ",
		"/api/lookup?q=+8.8.8.8":                        " 8.8.8.8",
		"/api/lookup?q=2001:4860:4860:0:0:0:0:8888":     "2001:4860:4860:0:0:0:0:8888",
		"/api/lookup?q=EXAMPLE.com.":                    "EXAMPLE.com.",
		"/api/lookup?q=b%C3%BCcher.example.com&lang=de": "bücher.example.com",
		"/api/lookup?%71=example.com":                   "example.com",
		"/api/lookup?q=" + strings.Repeat("%20", 2000):  strings.Repeat(" ", 2000),
		"/api/lookup?q=%22%3E%3Cscript%3E%0A%00.com":    "\"><script>\n\x00.com",
		"/api/lookup?q=%ff.com":                         "\uFFFD.com",
		"/api/lookup?q=http://example.com/a?b=c://d":    "http://example.com/a?b=c://d",
	} {
		if got := st.Get(t, target).Object(t)["query"]; got != want {
			t.Errorf("%s: got query %q, want %q", target, got, want)
		}
	}
}

func TestInvalidQueries(t *testing.T) {
	st := stacktest.NewLookups(t)
	for target, reason := range map[string]string{
		"/api/lookup":                               "empty",
		"/api/lookup?":                              "empty",
		"/api/lookup?Q=8.8.8.8":                     "empty",
		"/api/lookup?q=":                            "empty",
		"/api/lookup?q=8.8.8.8&q=8.8.8.8":           "malformed",
		"/api/lookup?q=&q=8.8.8.8":                  "malformed",
		"/api/lookup?q=8.8.8":                       "malformed",
		"/api/lookup?q=http://example.com":          "has_scheme",
		"/api/lookup?q=https%3A%2F%2Fexample.com":   "has_scheme",
		"/api/lookup?q=example.com/":                "has_path",
		"/api/lookup?q=10.0.0.1":                    "private_range",
		"/api/lookup?q=127.0.0.1":                   "reserved_range",
		"/api/lookup?q=printer.local":               "reserved_range",
		"/api/lookup?q=https://example.com/a?b#%23": "has_scheme",
	} {
		a := st.Get(t, target)
		a.Fails(t, 400, "invalid_query", reason)
		a.Has(t, "Cache-Control", "no-store", "X-Cache", "")
	}
}

func TestNotFoundIsCachedForAMinute(t *testing.T) {
	provider := stacktest.NewProvider()
	provider.Ask = func(context.Context, geo.Query) (geo.Answer, error) {
		return geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}},
			nil
	}
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	for _, cache := range []string{"miss", "hit"} {
		a := st.Get(t, "/api/lookup?q=nowhere.example.com")
		a.Fails(t, 400, "invalid_query", "not_found")
		a.Has(t, "Cache-Control", "private, max-age=60", "Age", "0", "X-Cache", cache,
			"X-Geo-Source", "upstream")
	}
}

func TestHead(t *testing.T) {
	st := stacktest.NewLookups(t)
	want := st.Get(t, "/api/lookup?q=8.8.8.8")
	got := st.Send(t, "HEAD", st.URL+"/api/lookup?q=8.8.8.8", "")
	if got.Status != 200 || got.Body != "" {
		t.Errorf("got %d %q, want 200 and no body", got.Status, got.Body)
	}
	got.Has(t, "Content-Length", want.Header.Get("Content-Length"), "X-Cache", "hit")
}

// A connection's memory is used again for its next request: what the cache and the log keep must be
// copies.
func TestCachedQueriesAreCopies(t *testing.T) {
	st := stacktest.NewLookups(t)
	conn := st.Dial(t)
	ask := func(domain string) stacktest.Response {
		conn.Say("GET /api/lookup?q=" + domain + " HTTP/1.1\r\nHost: x\r\n\r\n")
		return conn.Hear()
	}
	first := ask("aaaaaaaaaa.example.com")
	for _, other := range []string{"bbbbbbbbbb.example.com", "cccccccccc.example.com",
		"dddddddddd.example.com"} {
		ask(other)
	}
	again := ask("aaaaaaaaaa.example.com")
	again.Has(t, "X-Cache", "hit")
	if again.Body != first.Body ||
		!strings.Contains(first.Body, `"city":"aaaaaaaaaa.example.com"`) {
		t.Errorf("got %s, then %s, want the same", first.Body, again.Body)
	}
	if a := ask("bbbbbbbbbb.example.com"); !strings.Contains(a.Body,
		`"city":"bbbbbbbbbb.example.com"`) {
		t.Errorf("got %s, want the response about the same domain", a.Body)
	}
}

// Nobody learns from the files which internal names exist.
func TestInternalNamesAreNotFound(t *testing.T) {
	city := filepath.Join(t.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(t, city, map[string]geo.Location{"8.8.8.0/24": {City: "Boxford"}})
	addresses := map[string]string{"public.example.com.": "8.8.8.8",
		"internal.example.com.": "10.0.0.1", "looped.example.com.": "127.0.0.1"}
	var asked sync.Map // "caller name"
	resolver := func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		asked.Store(geo.CallerOf(ctx).String()+" "+host, true)
		if text, ok := addresses[host]; ok && network == "ip4" {
			return []netip.Addr{netip.MustParseAddr(text)}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for name, option := range map[string]stacktest.Option{
		"the source": func(c *stack.Config) { c.Lookups.Upstream.Tier = "" },
		"a fallback": func(c *stack.Config) {
			c.Lookups.Provider = stacktest.NewProvider()
			c.Lookups.Provider.(*stacktest.Provider).Ask = func(context.Context,
				geo.Query) (geo.Answer, error) {
				return geo.Answer{}, fmt.Errorf("planted: %w", geo.ErrForbidden)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Clear()
			st := stacktest.New(t, option, func(c *stack.Config) {
				c.Lookups.Files = mmdb.Config{Files: []string{city}, Resolver: resolver}
				stacktest.BehindProxy(c)
			})
			get := func(name string) stacktest.Response {
				a := st.Get(t, "/api/lookup?q="+name, "X-Forwarded-For", "9.9.9.9")
				a.Body = strings.ReplaceAll(a.Body, name, "NAME")
				return a
			}
			if a := get("public.example.com"); a.Status != 200 {
				t.Errorf("got %d %s for a public name, want 200", a.Status, a.Body)
			}
			absent := get("absent.example.com")
			for _, name := range []string{"internal.example.com", "looped.example.com"} {
				if a := get(name); a.Status != absent.Status || a.Body != absent.Body ||
					a.Header.Get("Cache-Control") != absent.Header.Get("Cache-Control") {
					t.Errorf("got %d %s for %s, want %d %s as for an absent name", a.Status,
						a.Body, name, absent.Status, absent.Body)
				}
				if _, ok := asked.Load("9.9.9.9/32 " + name + "."); !ok {
					t.Errorf("got no resolution of %s for its caller", name)
				}
			}
		})
	}
}

// TestLookupInFiles looks up addresses in the files at each request.
func TestLookupInFiles(t *testing.T) {
	city := filepath.Join(t.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(t, city, map[string]geo.Location{"8.8.0.0/16": {City: "Boxford"}})
	st := stacktest.New(t, func(c *stack.Config) {
		c.Lookups.Upstream.Tier, c.Lookups.Files = "", mmdb.Config{Files: []string{city}}
	})
	for _, c := range []struct {
		query, age string
		status     int
		want       string
	}{
		{"8.8.8.8", "600", 200, `{"ok":true,"query":"8.8.8.8","ip":"8.8.8.8","ipVersion":"IPv4",`},
		{"8.8.4.4", "600", 200, `{"ok":true,"query":"8.8.4.4","ip":"8.8.4.4","ipVersion":"IPv4",`},
		{"::ffff:8.8.8.8", "600", 200,
			`{"ok":true,"query":"::ffff:8.8.8.8","ip":"8.8.8.8","ipVersion":"IPv4",`},
		{"9.9.9.9", "60", 400,
			`{"ok":false,"query":"9.9.9.9","error":"invalid_query",`},
	} {
		for range 2 {
			a := st.Get(t, "/api/lookup?q="+c.query)
			if a.Status != c.status || !strings.HasPrefix(a.Body, c.want) {
				t.Errorf("%s: got %d %s, want %d %s", c.query, a.Status, a.Body, c.status, c.want)
			}
			a.Has(t, "X-Cache", "miss", "Cache-Control", "private, max-age="+c.age, "Age", "0",
				"X-Geo-Source", "mmdb")
		}
	}
	a := st.PostBulk(t, stacktest.BulkBody(t, "8.8.8.8", "9.9.9.9", "8.8.8.8", "10.0.0.1"))
	a.BulkItems(t, 4, 2)
	a.Has(t, "X-Geo-Source", "mmdb")
	if got := strings.Count(a.Body, `"query":"8.8.8.8","ip":"8.8.8.8","ipVersion":"IPv4"`); got != 2 {
		t.Errorf("got %s, want 8.8.8.8 twice", a.Body)
	}
	const want = "gatehouse_geo_file_answers_total 11"
	if m := st.MetricsText(t); !strings.Contains(m, want) {
		t.Errorf("got no %s", want)
	}
}
