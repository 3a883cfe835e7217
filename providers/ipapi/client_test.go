package ipapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/actors/geo"
	"gatehouse/providers/ipapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "KEY1marked2KEY"

// newClient returns a client of tier for an upstream that runs handler.
func newClient(t testing.TB, tier ipapi.Tier, handler http.HandlerFunc) *ipapi.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newClientAt(t, ipapi.Config{Base: server.URL, Tier: tier, Key: key})
}

func newClientAt(t testing.TB, config ipapi.Config) *ipapi.Client {
	t.Helper()
	c, err := ipapi.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// within returns a context with a deadline that no passing test reaches.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func query(t testing.TB, s string) geo.Query {
	t.Helper()
	q, err := geo.ParseQuery(s)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func queries(t testing.TB, all ...string) []geo.Query {
	t.Helper()
	qs := make([]geo.Query, len(all))
	for i, s := range all {
		qs[i] = query(t, s)
	}
	return qs
}

// always responds to every request with body.
func always(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

const full = `{"status":"success","continent":"North America","country":"United States","countryCode":"US",
"regionName":"Virginia","city":"Ashburn","zip":"20149","lat":39.03,"lon":-77.5,"timezone":"America/New_York",
"offset":-14400,"currency":"USD","isp":"Google LLC","org":"Google Public DNS","as":"AS15169 Google LLC",
"asname":"GOOGLE","reverse":"dns.google.","mobile":true,"proxy":true,"hosting":true,"query":"8.8.8.8","district":"x"}`

var fullResult = geo.Result{
	IP: netip.MustParseAddr("8.8.8.8"),
	Location: geo.Location{
		Continent: "North America", Country: "United States", CountryCode: "US",
		RegionName: "Virginia", City: "Ashburn",
		Zip: "20149", Lat: 39.03, Lon: -77.5, Timezone: "America/New_York",
		UTCOffsetSeconds: -14400, Currency: "USD",
	},
	Network: geo.Network{
		ISP: "Google LLC", Org: "Google Public DNS", AS: "AS15169 Google LLC", ASName: "GOOGLE",
		Reverse: "dns.google",
	},
	Flags: geo.Flags{Mobile: true, Proxy: true, Hosting: true},
}

func TestTerms(t *testing.T) {
	for tier, want := range map[ipapi.Tier]geo.Terms{
		ipapi.Free: {Source: "upstream", SinglesPerMinute: 45, BatchesPerMinute: 15, BatchSize: 100,
			LacksReverse: true},
		ipapi.Pro: {Source: "upstream", BatchSize: 100, Gather: 8 * time.Millisecond,
			LacksReverse: true},
		ipapi.Sim: {Source: "sim", BatchSize: 100, Gather: 8 * time.Millisecond,
			LacksReverse: true},
	} {
		var c geo.Provider = newClientAt(t, ipapi.Config{Base: "http://127.0.0.1", Tier: tier,
			Key: key})
		if got := c.Terms(); got != want {
			t.Errorf("%s: got %+v, want %+v", tier, got, want)
		}
	}
}

func TestSingleRequest(t *testing.T) {
	for _, row := range []struct {
		tier        ipapi.Tier
		query, want string
	}{
		{ipapi.Free, "8.8.8.8", "/json/8.8.8.8?fields=64225275"},
		{ipapi.Sim, "2001:4860:4860::8888", "/json/2001:4860:4860::8888?fields=64225275"},
		{ipapi.Pro, "Dns.Google.", "/json/dns.google?fields=64225275&key=" + key},
	} {
		seen := make(chan *http.Request, 1)
		c := newClient(t, row.tier, func(w http.ResponseWriter, r *http.Request) {
			seen <- r
			http.Error(w, "", http.StatusTeapot)
		})
		if _, err := c.Single(within(t), query(t, row.query)); err == nil {
			t.Errorf("%s: got no error", row.query)
		}
		r := <-seen
		if r.Method != "GET" || r.RequestURI != row.want || r.ContentLength != 0 ||
			r.TransferEncoding != nil {
			t.Errorf("%s: got %s %s with a body of %d %v, want GET %s and none",
				row.query, r.Method, r.RequestURI, r.ContentLength, r.TransferEncoding, row.want)
		}
	}
}

func TestBatchRequest(t *testing.T) {
	var path, contentType string
	var asked []string
	c := newClient(t, ipapi.Pro, func(w http.ResponseWriter, r *http.Request) {
		path, contentType = r.Method+" "+r.RequestURI, r.Header.Get("Content-Type")
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Errorf("body: %v", err)
		}
	})
	if _, err := c.Batch(within(t), queries(t, "8.8.8.8", "2606:4700::1111")); err == nil {
		t.Error("got no error for an empty response")
	}
	if want := "POST /batch?fields=64225275&key=" + key; path != want {
		t.Errorf("got %s, want %s", path, want)
	}
	if contentType != "application/json" {
		t.Errorf("got content type %q, want application/json", contentType)
	}
	if want := []string{"8.8.8.8", "2606:4700::1111"}; !slices.Equal(asked, want) {
		t.Errorf("got body %v, want %v", asked, want)
	}
}

func TestInvalidQueriesAreNotSent(t *testing.T) {
	c := newClient(t, ipapi.Free, func(http.ResponseWriter, *http.Request) {
		t.Error("a request was sent")
	})
	many := slices.Repeat(queries(t, "8.8.8.8"), 101)
	for _, qs := range [][]geo.Query{{}, many, queries(t, "8.8.8.8", "dns.google"), {geo.Query{}}} {
		if _, err := c.Batch(within(t), qs); err == nil {
			t.Errorf("batch of %d: got no error", len(qs))
		}
	}
	if _, err := c.Single(within(t), geo.Query{}); err == nil {
		t.Error("no query: got no error")
	}
}

func TestSingleAnswers(t *testing.T) {
	only := func(ip string) geo.Answer {
		return geo.Answer{Result: geo.Result{IP: netip.MustParseAddr(ip)}}
	}
	invalid := func(reason geo.Reason) geo.Answer {
		return geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery, Reason: reason}}
	}
	domain := fullResult
	domain.IP = netip.MustParseAddr("2001:4860:4860::8844")
	for _, row := range []struct {
		about, query, body string
		want               geo.Answer
	}{
		{"every member", "8.8.8.8", full, geo.Answer{Result: fullResult}},
		{"no members", "8.8.8.8", `{"status":"success","query":"8.8.8.8"}`, only("8.8.8.8")},
		{"null members", "8.8.8.8", `{"status":"success","query":"8.8.8.8","lat":null,"city":null,"mobile":null,"offset":null}`, only("8.8.8.8")},
		{"another spelling", "2001:db9::1", `{"status":"success","query":"2001:0DB9:0:0::1"}`, only("2001:db9::1")},
		{"IPv4-mapped", "8.8.8.8", `{"status":"success","query":"::ffff:8.8.8.8"}`, only("8.8.8.8")},
		{"domain", "dns.google", strings.Replace(full, "8.8.8.8", "2001:4860:4860::8844", 1), geo.Answer{Result: domain}},
		{"domain to IPv4-mapped", "dns.google", `{"status":"success","query":"::ffff:8.8.4.4"}`, only("8.8.4.4")},
		{"domain to a private address", "dns.google", `{"status":"success","query":"10.0.0.1"}`, invalid(geo.ReasonPrivateRange)},
		{"domain to loopback", "dns.google", `{"status":"success","query":"::1"}`, invalid(geo.ReasonReservedRange)},
		{"private range", "8.8.8.8", `{"status":"fail","message":"private range","query":"8.8.8.8"}`, invalid(geo.ReasonPrivateRange)},
		{"reserved range", "8.8.8.8", `{"status":"fail","message":"reserved range","query":"8.8.8.8"}`, invalid(geo.ReasonReservedRange)},
		{"invalid query", "8.8.8.8", `{"status":"fail","message":"invalid query","query":"8.8.8.8"}`, invalid(geo.ReasonNotFound)},
		{"another message", "8.8.8.8", `{"status":"fail","message":"no idea","query":"8.8.8.8"}`, geo.Answer{Err: &geo.Error{Code: geo.CodeProviderUnreachable}}},
		{"domain unknown", "nowhere.example", `{"status":"fail","message":"invalid query","query":"nowhere.example"}`, invalid(geo.ReasonNotFound)},
		{"domain, no message", "nowhere.example", `{"status":"fail"}`, geo.Answer{Err: &geo.Error{Code: geo.CodeProviderUnreachable}}},
	} {
		c := newClient(t, ipapi.Free, always(row.body))
		reply, err := c.Single(within(t), query(t, row.query))
		if err != nil || len(reply.Answers) != 1 {
			t.Errorf("%s: got %d answers and %v, want 1", row.about, len(reply.Answers), err)
			continue
		}
		checkAnswer(t, row.about, reply.Answers[0], row.want)
	}
}

func checkAnswer(t testing.TB, about string, got, want geo.Answer) {
	t.Helper()
	if got.Result != want.Result {
		t.Errorf("%s: got %+v, want %+v", about, got.Result, want.Result)
	}
	if (got.Err == nil) != (want.Err == nil) || got.Err != nil && *got.Err != *want.Err {
		t.Errorf("%s: got error %v, want %v", about, got.Err, want.Err)
	}
}

func TestTextsAreCleanedAndCut(t *testing.T) {
	for _, row := range []struct{ about, city, want string }{
		{"accents", "Zürich", "Zürich"},
		{"control characters", `a\u0000b\u001b[31mc\r\nd\u0085e\u007f`, "ab[31mcde"},
		{"a lone surrogate", `a\ud800b`, "a\ufffdb"},
		{"longest text", strings.Repeat("x", 256), strings.Repeat("x", 256)},
		{"too long", strings.Repeat("x", 257), strings.Repeat("x", 256)},
		{"too long, cut at a rune", strings.Repeat("x", 255) + "ü", strings.Repeat("x", 255)},
		{"bytes that are not UTF-8", "a\xffb", "a\ufffdb"},
	} {
		c := newClient(t, ipapi.Free, always(`{"status":"success","query":"8.8.8.8","city":"`+
			row.city+`"}`))
		reply, err := c.Single(within(t), query(t, "8.8.8.8"))
		if err != nil {
			t.Errorf("%s: %v", row.about, err)
			continue
		}
		if got := reply.Answers[0].Result.Location.City; got != row.want {
			t.Errorf("%s: got %q, want %q", row.about, got, row.want)
		}
	}
}

func TestBadElementFailsAlone(t *testing.T) {
	bad := geo.Answer{Err: &geo.Error{Code: geo.CodeProviderUnreachable}}
	good := geo.Answer{Result: geo.Result{IP: netip.MustParseAddr("9.9.9.9")}}
	for _, row := range []struct {
		about, element string
		want           geo.Answer
	}{
		{"good", full, geo.Answer{Result: fullResult}},
		{"fail", `{"status":"fail","message":"reserved range","query":"8.8.8.8"}`,
			geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery,
				Reason: geo.ReasonReservedRange}}},
		{"null", `null`, bad},
		{"a string", `"success"`, bad},
		{"an array", `[]`, bad},
		{"no status", `{"query":"8.8.8.8"}`, bad},
		{"another status", `{"status":"SUCCESS","query":"8.8.8.8"}`, bad},
		{"status of a wrong type", `{"status":true,"query":"8.8.8.8"}`, bad},
		{"no address", `{"status":"success"}`, bad},
		{"not an address", `{"status":"success","query":"dns.google"}`, bad},
		{"another address", `{"status":"success","query":"8.8.4.4"}`, bad},
		{"another address, failed", `{"status":"fail","message":"private range","query":"10.0.0.1"}`, bad},
		{"number for a string", `{"status":"success","query":"8.8.8.8","city":1}`, bad},
		{"string for a number", `{"status":"success","query":"8.8.8.8","lat":"1"}`, bad},
		{"string for a flag", `{"status":"success","query":"8.8.8.8","proxy":"no"}`, bad},
		{"number out of range", `{"status":"success","query":"8.8.8.8","lat":1e999}`, bad},
		{"beyond the pole", `{"status":"success","query":"8.8.8.8","lat":90.1}`, bad},
		{"beyond the date line", `{"status":"success","query":"8.8.8.8","lon":-180.1}`, bad},
		{"offset of a fraction", `{"status":"success","query":"8.8.8.8","offset":0.5}`, bad},
		{"offset of a day", `{"status":"success","query":"8.8.8.8","offset":-86400}`, bad},
	} {
		c := newClient(t, ipapi.Free, always("["+row.element+
			`,{"status":"success","query":"9.9.9.9"}]`))
		reply, err := c.Batch(within(t), queries(t, "8.8.8.8", "9.9.9.9"))
		if err != nil || len(reply.Answers) != 2 {
			t.Errorf("%s: got %d answers and %v, want 2", row.about, len(reply.Answers), err)
			continue
		}
		checkAnswer(t, row.about, reply.Answers[0], row.want)
		checkAnswer(t, row.about+", next element", reply.Answers[1], good)
		if row.want == bad {
			single := newClient(t, ipapi.Free, always(row.element))
			if _, err := single.Single(within(t), query(t, "8.8.8.8")); err == nil {
				t.Errorf("%s in a single response: got no error", row.about)
			}
		}
	}
}
