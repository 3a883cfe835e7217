package compat_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ipinfo/go/v2/ipinfo"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/mmdb/mmdbtest"
)

func TestMain(m *testing.M) {
	os.Exit(stacktest.Run(m, map[string]string{
		"TestShapes":          "a listener of one server",
		"TestLanguage":        "a listener of one server",
		"TestKeys":            "--geo-limit, which each node counts",
		"TestIPInfosGoClient": "a listener of one server",
		"TestRecorded":        "a listener of one server",
		"TestRecordedFields":  "a listener of one server",
	}))
}

// known is what the provider of the tests knows: ip-api's example, Google's resolver, and a country.
var known = map[string]geo.Result{
	"24.48.0.1": {
		Location: geo.Location{Continent: "North America", Country: "Canada", CountryCode: "CA",
			RegionName: "Quebec", City: "Montreal", Zip: "H1K", Lat: 45.6085, Lon: -73.5493,
			Timezone: "America/Toronto", UTCOffsetSeconds: -14400, Currency: "CAD"},
		Network: geo.Network{ISP: "Le Groupe Videotron Ltee", Org: "Videotron, \"Ltee\"",
			AS: "AS5769 Videotron Telecom Ltee", ASName: "VIDEOTRON", Reverse: "a.example"},
		Data: geo.Data{RegionCode: "QC", ASN: 5769, ASDomain: "videotron.com"},
	},
	"2001:4860:4860::8888": {Location: geo.Location{Country: "United States", CountryCode: "US"},
		Flags: geo.Flags{Hosting: true}},
}

// start starts a server with the paths of services, and returns it and the base URL of those paths.
func start(t *testing.T, services string, options ...stacktest.Option) (*stacktest.Stack, string) {
	t.Helper()
	provider := stacktest.NewProvider()
	provider.Ask = func(_ context.Context, q geo.Query) (geo.Answer, error) {
		if r, ok := known[q.String()]; ok {
			r.IP = q.Addr()
			return geo.Answer{Result: r}, nil
		}
		if q.String() == "example.com" {
			r := known["24.48.0.1"]
			r.IP = netip.MustParseAddr("24.48.0.1")
			return geo.Answer{Result: r}, nil
		}
		return geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNoLocation}}, nil
	}
	st := stacktest.New(t, append([]stacktest.Option{stacktest.BehindProxy, func(c *stack.Config) {
		c.Lookups.Provider = provider
		c.CompatListen, c.Compat = "127.0.0.1:0", strings.Split(services, ",")
	}}, options...)...)
	return st, st.CompatURL
}

const montreal = `{"status":"success","country":"Canada","countryCode":"CA","region":"QC","regionName":"Quebec","city":"Montreal","zip":"H1K","lat":45.6085,"lon":-73.5493,"timezone":"America/Toronto","isp":"Le Groupe Videotron Ltee","org":"Videotron, \"Ltee\"","as":"AS5769 Videotron Telecom Ltee","query":"24.48.0.1"}`

const classicMontreal = `{"ip":"24.48.0.1","hostname":"a.example","city":"Montreal","region":"Quebec","country":"CA","loc":"45.6085,-73.5493","org":"AS5769 Videotron Telecom Ltee","postal":"H1K","timezone":"America/Toronto"}`

const liteMontreal = `{"ip":"24.48.0.1","asn":"AS5769","as_name":"Videotron Telecom Ltee","as_domain":"videotron.com","country_code":"CA","country":"Canada","continent_code":"NA","continent":"North America"}`

// TestShapes plays the requests that clients of ip-api and ipinfo send, and compares the responses
// with recorded shapes.
func TestShapes(t *testing.T) {
	const ipapi, ipinfo, both = "ip-api", "ipinfo", "ip-api,ipinfo"
	const wrongIP = `{"status":404,"error":{"title":"Wrong ip","message":"Please provide a valid IP address"}}`
	bases := map[string]string{}
	st := map[string]*stacktest.Stack{}
	for _, services := range []string{ipapi, ipinfo, both} {
		st[services], bases[services] = start(t, services)
	}
	for _, c := range []struct {
		services, request, body string
		status                  int
		want                    string
	}{
		{both, "/json/24.48.0.1", "", 200, montreal},
		{both, "/json/example.com", "", 200, montreal},
		{ipapi, "/json", "", 200, montreal}, {ipapi, "/json/", "", 200, montreal},
		{ipapi, "/line?fields=country", "", 200, "Canada\n"}, {both, "/csv/?fields=country", "", 200, "Canada\n"},
		{both, "/json/", "", 200, montreal},
		{both, "/json/24.48.0.1?fields=country", "", 200, `{"country":"Canada"}`},
		{both, "/json/24.48.0.1?fields=147456", "", 200, `{"status":"success","proxy":false}`},
		{both, "/json/24.48.0.1?fields=211&lang=de", "", 200, `{"country":"Canada","countryCode":"CA","city":"Montreal","lat":45.6085,"lon":-73.5493}`},
		{both, "/json/24.48.0.1?fields=nonsense", "", 200, montreal},
		{both, "/json/24.48.0.1?fields=status,message,query,country,city", "", 200, `{"status":"success","country":"Canada","city":"Montreal","query":"24.48.0.1"}`},
		{both, "/json/24.48.0.1?fields=66846719", "", 200, `{"status":"success","continent":"North America","continentCode":"NA","country":"Canada","countryCode":"CA","region":"QC","regionName":"Quebec","city":"Montreal","zip":"H1K","lat":45.6085,"lon":-73.5493,"timezone":"America/Toronto","offset":-14400,"currency":"CAD","isp":"Le Groupe Videotron Ltee","org":"Videotron, \"Ltee\"","as":"AS5769 Videotron Telecom Ltee","asname":"VIDEOTRON","reverse":"a.example","mobile":false,"proxy":false,"hosting":false,"query":"24.48.0.1"}`},
		{both, "/json/2001%3a4860:4860::8888?fields=66846719", "", 200, `{"status":"success","country":"United States","countryCode":"US","mobile":false,"proxy":false,"hosting":true,"query":"2001:4860:4860::8888"}`},
		{both, "/json/10.0.0.1", "", 200, `{"status":"fail","message":"private range","query":"10.0.0.1"}`},
		{both, "/json/127.0.0.1", "", 200, `{"status":"fail","message":"reserved range","query":"127.0.0.1"}`},
		{both, "/json/nonsense..?fields=status,country", "", 200, `{"status":"fail"}`},
		{both, "/json/24.48.0.1?fields=country&callback=f", "", 200, `f({"country":"Canada"});`},
		{both, "/json/24.48.0.1?fields=country&callback=f()", "", 200, `{"country":"Canada"}`},
		{both, "/csv/24.48.0.1?fields=status,org,district&header=true", "", 200, "status,district,org\nsuccess,,\"Videotron, \"\"Ltee\"\"\"\n"},
		{both, "/line/24.48.0.1?fields=status,country", "", 200, "success\nCanada\n"},
		{both, "/csv/10.0.0.1", "", 200, "fail,private range,10.0.0.1\n"},
		{both, "POST /batch?fields=query", `[{"query":"24.48.0.1","fields":"city,query","lang":"ru"},"10.0.0.1",{"query":"x","fields":16384}]`, 200, `[{"city":"Montreal","query":"24.48.0.1"},{"query":"10.0.0.1"},{"status":"fail"}]`},
		{both, "POST /batch", `[]`, 200, `[]`},
		{both, "POST /batch", `["1.1.1.1"` + strings.Repeat(`,"1.1.1.1"`, 100) + `]`, 422, "the body must be a JSON array of at most 100 queries\n"},
		{both, "POST /batch", `{}`, 422, "the body must be a JSON array of at most 100 queries\n"},
		{both, "POST /batch", `[[]]`, 422, "each element must be a query or an object with query, fields and lang\n"},

		{both, "/", "", 200, classicMontreal}, {both, "/json", "", 200, classicMontreal},
		{both, "/24.48.0.1", "", 200, classicMontreal}, {both, "/24.48.0.1/json", "", 200, classicMontreal},
		{both, "/24.48.0.1/country", "", 200, "CA\n"}, {both, "/loc", "", 200, "45.6085,-73.5493\n"},
		{both, "/2001:4860:4860::8888/city", "", 200, "\n"},
		{both, "/2001:4860:4860::8888", "", 200, `{"ip":"2001:4860:4860::8888","country":"US"}`},
		{both, "/1.1.1.1", "", 200, `{"ip":"1.1.1.1"}`},
		{both, "/192.168.1.1/json", "", 200, `{"ip":"192.168.1.1","bogon":true}`},
		{both, "/nonsense", "", 404, wrongIP}, {both, "/example.com/json", "", 404, wrongIP},
		{both, "/8.8.8.8/nonsense", "", 400, `{"title":"Wrong module or field type","message":"Use one of ip, hostname, city, region, country, loc, postal, timezone, org."}`},
		{both, "/lite/24.48.0.1", "", 200, liteMontreal}, {both, "/lite/me", "", 200, liteMontreal},
		{both, "/lite/24.48.0.1/as_name", "", 200, "Videotron Telecom Ltee\n"},
		{both, "/lite/192.168.1.1", "", 200, `{"ip":"192.168.1.1","bogon":true}`},
		{both, "/lite/nonsense", "", 400, `{"error":"Please provide a valid IP address"}`},
		{both, "/lite/8.8.8.8/nonsense", "", 404, `{"error":"nonsense is not a valid field."}`},
		{both, "/lookup/24.48.0.1", "", 200, `{"ip":"24.48.0.1","hostname":"a.example","geo":{"city":"Montreal","region":"Quebec","region_code":"QC","country":"Canada","country_code":"CA","continent":"North America","continent_code":"NA","latitude":45.6085,"longitude":-73.5493,"timezone":"America/Toronto","postal_code":"H1K"},"as":{"asn":"AS5769","name":"Videotron Telecom Ltee","domain":"videotron.com"},"is_anonymous":false,"is_hosting":false,"is_mobile":false}`},
		{both, "/lookup/1.1.1.1", "", 200, `{"ip":"1.1.1.1"}`},
		{both, "/me", "", 400, `{"error":"Invalid API token"}`},
		{ipinfo, "/json/24.48.0.1", "", 404, wrongIP},
		{ipinfo, "POST /batch", `["24.48.0.1/country","10.0.0.1","x","24.48.0.1"]`, 200, `{"10.0.0.1":{"ip":"10.0.0.1","bogon":true},"24.48.0.1":` + classicMontreal + `,"24.48.0.1/country":"CA","x":{"error":{"title":"Wrong ip","message":"Please provide a valid IP address"}}}`},
		{ipapi, "/24.48.0.1", "", 404, `{"error":"not_found","message":"There is nothing at this path."}`},
		{both, "POST /json/24.48.0.1", "", 405, `{"error":"method_not_allowed","message":"Use one of these methods: GET, HEAD, OPTIONS."}`},
	} {
		method, path, hasMethod := strings.Cut(c.request, " ")
		if !hasMethod {
			method, path = "GET", c.request
		}
		got := st[c.services].Send(t, method, bases[c.services]+path, c.body, "X-Forwarded-For", "24.48.0.1")
		if got.Status != c.status || got.Body != c.want {
			t.Errorf("%s %s %s: got %d %s, want %d %s", c.services, c.request, c.body, got.Status,
				got.Body, c.status, c.want)
		}
		if !strings.Contains(c.want, "not_found") {
			got.Has(t, "Access-Control-Allow-Origin", "*")
		}
		got.Has(t, "Cache-Control", "no-store")
	}
	metrics := st[both].Send(t, "GET", st[both].AdminURL+"/metrics", "")
	if !strings.Contains(metrics.Body, `gatehouse_http_requests_total{method="GET",route="/lite/{ip}",status="200"}`) {
		t.Errorf("got %.300s, want a counter of the route", metrics.Body)
	}
}

// TestLanguage asks for names in languages, which only files have.
func TestLanguage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	names := func(names ...string) mmdbtype.Map {
		all := mmdbtype.Map{}
		for i := 0; i < len(names); i += 2 {
			all[mmdbtype.String(names[i])] = mmdbtype.String(names[i+1])
		}
		return mmdbtype.Map{"names": all}
	}
	mmdbtest.Write(t, path, "GeoLite2-City", map[string]mmdbtype.Map{"24.48.0.0/24": {
		"country":      names("en", "Germany", "de", "Deutschland", "pt-BR", "Alemanha"),
		"subdivisions": mmdbtype.Slice{names("en", "Bavaria", "de", "Bayern")},
		"city":         names("en", "Munich", "de", "München"),
	}})
	st, base := start(t, "ip-api", func(c *stack.Config) {
		c.Lookups.Provider, c.Lookups.Upstream = nil, ipapi.Config{}
		c.Lookups.Files.Files = []string{path}
	})
	for _, c := range []struct{ request, body, want string }{
		{"/line/24.48.0.1?fields=city,country,regionName", "", "Germany\nBavaria\nMunich\n"},
		{"/line/24.48.0.1?fields=city,country,regionName&lang=de", "", "Deutschland\nBayern\nMünchen\n"},
		{"/line/24.48.0.1?fields=city,country,regionName&lang=pt-BR", "", "Alemanha\nBavaria\nMunich\n"},
		{"/line/24.48.0.1?fields=country&lang=ja", "", "Germany\n"}, {"/line/24.48.0.1?fields=country&lang=xx", "", "Germany\n"},
		{"/json/24.48.9.1?fields=status&lang=de", "", `{"status":"fail"}`},
		{"/batch?fields=city&lang=de", `["24.48.0.1",{"query":"24.48.0.2","lang":"en"}]`, `[{"city":"München"},{"city":"Munich"}]`},
	} {
		method := map[bool]string{true: "GET", false: "POST"}[c.body == ""]
		if got := st.Send(t, method, base+c.request, c.body); got.Body != c.want {
			t.Errorf("%s %s: got %s, want %s", c.request, c.body, got.Body, c.want)
		}
	}
}

// TestKeys sends API keys the way the clients of both services do. They share the limit of
// /api/lookup, and no log has them.
func TestKeys(t *testing.T) {
	key, line, err := stack.NewLookupKey("shop")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st, base := start(t, "ip-api,ipinfo", func(c *stack.Config) {
		c.Lookups.KeyFile, c.Lookups.KeysRequired, c.Lookups.CallerLimit = file, true, 5
	})
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))
	send := func(path string, headers ...string) stacktest.Response {
		return st.Send(t, "GET", base+path, "", headers...)
	}
	for i, got := range []stacktest.Response{
		send("/json/1.0.0.1?key=" + key), send("/1.0.0.2?token=" + key), send("/1.0.0.3", "Authorization", "Bearer "+key),
		send("/lite/1.0.0.4", "Authorization", basic),
	} {
		if got.Status != 200 {
			t.Errorf("%d: got %d %s, want 200", i, got.Status, got.Body)
		}
		if i == 0 && (got.Header.Get("X-Rl") != "4" || got.Header.Get("X-Ttl") == "") {
			t.Errorf("got %v, want 4 requests left", got.Header)
		}
	}
	me := send("/me?token=" + key)
	if want := `{"token":"` + key + `","requests":{"minute":4,"limit":5,"remaining":1,`; me.Status != 200 || !strings.HasPrefix(me.Body, want) {
		t.Errorf("got %d %s, want %s", me.Status, me.Body, want)
	}
	if got := st.Get(t, "/api/lookup?q=1.0.0.5", "X-Api-Key", key); got.Status != 400 && got.Status != 404 {
		t.Errorf("got %d %s, want an answer", got.Status, got.Body)
	}
	for path, want := range map[string]string{
		"/1.0.0.6?token=" + key:       `429 {"title":"Rate limit exceeded",`,
		"/lite/1.0.0.6?token=" + key:  `429 {"status":429,"error":{"title":"Rate limit exceeded"`,
		"/json/1.0.0.6?key=" + key:    "429 ",
		"/1.0.0.6":                    `403 {"title":"Unknown token",`,
		"/lite/1.0.0.6?token=a":       `403 {"status":403,"error":{"title":"Unknown token"`,
		"/json/1.0.0.6?key=a":         "403 invalid or missing API key",
		"/1.0.0.6?token=a&key=" + key: `403 {"title":"Unknown token",`,
		"/json/10.0.0.1?key=" + key:   `200 {"status":"fail","message":"private range"`,
		"/me?token=a":                 `400 {"error":"Invalid API token","token":"a"}`,
	} {
		got := send(path)
		if text := fmt.Sprintf("%d %s", got.Status, got.Body); !strings.HasPrefix(text, want) {
			t.Errorf("%s: got %s, want %s", path, text, want)
		}
	}
	if limited := send("/json/1.0.0.6?key=" + key); limited.Header.Get("X-Rl") != "0" || limited.Header.Get("X-Ttl") == "" || len(limited.Body) > 0 {
		t.Errorf("got %v %s, want X-Rl 0, X-Ttl and no body", limited.Header, limited.Body)
	}
	if text := st.Log.String(); strings.Contains(text, key) || strings.Contains(text, "1.0.0.6") {
		t.Errorf("got a key or an address in the log: %s", text)
	}
}

// TestIPInfosGoClient has the published Go client of ipinfo, with another base URL.
func TestIPInfosGoClient(t *testing.T) {
	_, base := start(t, "ipinfo")
	client := ipinfo.NewClient(nil, nil, "token")
	var err error
	if client.BaseURL, err = client.BaseURL.Parse(base + "/"); err != nil {
		t.Fatal(err)
	}
	info, err := client.GetIPInfo(net.ParseIP("24.48.0.1"))
	if err != nil || info.City != "Montreal" || info.Country != "CA" || info.CountryName != "Canada" ||
		info.Location != "45.6085,-73.5493" || info.Org != "AS5769 Videotron Telecom Ltee" {
		t.Errorf("got %+v, %v, want Montreal", info, err)
	}
	if six, err := client.GetIPInfo(net.ParseIP("2001:4860:4860::8888")); err != nil || six.Country != "US" {
		t.Errorf("got %+v, %v, want the country of an IPv6 address", six, err)
	}
	batch, err := client.GetBatch([]string{"24.48.0.1", "10.0.0.1"}, ipinfo.BatchReqOpts{TimeoutPerBatch: int64(time.Minute / time.Second)})
	if one, ok := batch["24.48.0.1"].(*ipinfo.Core); err != nil || !ok || one.City != "Montreal" {
		t.Errorf("got %v, %v, want Montreal", batch, err)
	}
	lite := ipinfo.NewLiteClient(nil, nil, "token")
	if lite.BaseURL, err = lite.BaseURL.Parse(base + "/lite/"); err != nil {
		t.Fatal(err)
	}
	if found, err := lite.GetIPInfo(net.ParseIP("24.48.0.1")); err != nil || found.ASN != "AS5769" || found.Country != "Canada" {
		t.Errorf("got %+v, %v, want the shape of Lite", found, err)
	}
	core := ipinfo.NewCoreClient(nil, nil, "token")
	if core.BaseURL, err = core.BaseURL.Parse(base + "/lookup/"); err != nil {
		t.Fatal(err)
	}
	if found, err := core.GetIPInfo(net.ParseIP("24.48.0.1")); err != nil || found.Geo.City != "Montreal" {
		t.Errorf("got %+v, %v, want the shape of Core", found, err)
	}
}
