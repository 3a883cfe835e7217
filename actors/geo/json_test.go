package geo_test

import (
	"bytes"
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"

	"gatehouse/actors/geo"
)

func TestAppendQuoted(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"Zürich 東京 💩", `"Zürich 東京 💩"`},
		{`"`, `"\""`},
		{`a\b"c`, `"a\\b\"c"`},
		{"\n\r\t", `"\n\r\t"`},
		{"\x00\x01\x08\x0c\x1f \x7f", `"\u0000\u0001\u0008\u000c\u001f ` + "\x7f\""},
		{"<a href='/'>&</a>", `"<a href='/'>&</a>"`},
		{"\u2028\u2029", "\"\u2028\u2029\""},
		{"\xff", "\"\ufffd\""},
		{"a\xc0\xaeb", "\"a\ufffd\ufffdb\""},
		{"\xed\xa0\x80", "\"\ufffd\ufffd\ufffd\""},
		{"é\xc3", "\"é\ufffd\""},
		{"\ufffd", "\"\ufffd\""},
	} {
		if got := string(geo.AppendQuoted(nil, row.in)); got != row.want {
			t.Errorf("%q: got %s, want %s", row.in, got, row.want)
		}
		if got := string(geo.AppendQuoted([]byte("x"), row.in)); got != "x"+row.want {
			t.Errorf("%q after x: got %s, want x%s", row.in, got, row.want)
		}
	}
}

func TestAppendQuotedRoundTrip(t *testing.T) {
	for b := range 256 {
		for _, s := range []string{string([]byte{byte(b)}), "ab" + string([]byte{byte(b)}) + "c"} {
			checkRoundTrip(t, s)
		}
	}
}

// checkRoundTrip checks that encoding/json decodes the quoted s to s, with U+FFFD for invalid
// bytes.
func checkRoundTrip(t *testing.T, s string) {
	t.Helper()
	var got string
	if err := json.Unmarshal(geo.AppendQuoted(nil, s), &got); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	if want := string([]rune(s)); got != want {
		t.Fatalf("%q: got %q, want %q", s, got, want)
	}
}

func FuzzAppendQuoted(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\x00", "é\xff\u2028<", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(checkRoundTrip)
}

func google() geo.Result {
	return geo.Result{
		IP: netip.MustParseAddr("8.8.8.8"),
		Location: geo.Location{
			Continent: "North America", Country: "United States", CountryCode: "US",
			RegionName: "Virginia", City: "Ashburn",
			Zip: "20149", Lat: 39.03, Lon: -77.5, Timezone: "America/New_York",
			UTCOffsetSeconds: -18000, Currency: "USD",
		},
		Network: geo.Network{
			ISP: "Google LLC", Org: "Google Public DNS", AS: "AS15169 Google LLC", ASName: "GOOGLE",
			Reverse: "dns.google",
		},
		Flags: geo.Flags{Hosting: true},
	}
}

func TestAppendJSON(t *testing.T) {
	quoted := google()
	quoted.IP = netip.MustParseAddr("2001:4860::8888")
	quoted.Location.City, quoted.Network.ISP = "San \"José\"", "a\\b\x00\xff"
	quoted.Location.Lat, quoted.Location.Lon = 1e-7, 1e21
	quoted.Flags = geo.Flags{Mobile: true, Proxy: true}
	for _, row := range []struct {
		name   string
		result geo.Result
		want   string
	}{
		{"full", google(), `,"ip":"8.8.8.8","ipVersion":"IPv4",` +
			`"location":{"continent":"North America","country":"United States","countryCode":"US","regionName":"Virginia",` +
			`"city":"Ashburn","zip":"20149","lat":39.03,"lon":-77.5,"timezone":"America/New_York","utcOffsetSeconds":-18000,` +
			`"currency":"USD"},"network":{"isp":"Google LLC","org":"Google Public DNS","as":"AS15169 Google LLC",` +
			`"asname":"GOOGLE","reverse":"dns.google"},"flags":{"mobile":false,"proxy":false,"hosting":true}}`},
		{"escapes", quoted, `,"ip":"2001:4860::8888","ipVersion":"IPv6",` +
			`"location":{"continent":"North America","country":"United States","countryCode":"US","regionName":"Virginia",` +
			`"city":"San \"José\"","zip":"20149","lat":0.0000001,"lon":1000000000000000000000,"timezone":"America/New_York",` +
			`"utcOffsetSeconds":-18000,"currency":"USD"},"network":{"isp":"a\\b\u0000` + "\ufffd" +
			`","org":"Google Public DNS",` +
			`"as":"AS15169 Google LLC","asname":"GOOGLE","reverse":"dns.google"},` +
			`"flags":{"mobile":true,"proxy":true,"hosting":false}}`},
		{"nothing known", geo.Result{}, `,"ip":"","ipVersion":"",` +
			`"location":{"continent":"","country":"","countryCode":"","regionName":"","city":"","zip":"","lat":0,"lon":0,` +
			`"timezone":"","utcOffsetSeconds":0,"currency":""},"network":{"isp":"","org":"","as":"","asname":"","reverse":""},` +
			`"flags":{"mobile":false,"proxy":false,"hosting":false}}`},
	} {
		if got := string(row.result.AppendJSON([]byte("x"))); got != "x"+row.want {
			t.Errorf("%s: got  %s\nwant x%s", row.name, got, row.want)
		}
	}
}

// response has the members that the interface document promises.
type response struct {
	OK            bool
	IP, IPVersion string
	Location      struct {
		Continent, Country, CountryCode, RegionName, City, Zip string
		Lat, Lon                                               float64
		Timezone                                               string
		UTCOffsetSeconds                                       int
		Currency                                               string
	}
	Network struct{ ISP, Org, AS, ASName, Reverse string }
	Flags   struct{ Mobile, Proxy, Hosting bool }
}

func TestAppendJSONRoundTrip(t *testing.T) {
	r := google()
	decoder := json.NewDecoder(bytes.NewReader(r.AppendJSON([]byte(`{"ok":true`))))
	decoder.DisallowUnknownFields()
	var a response
	if err := decoder.Decode(&a); err != nil {
		t.Fatal(err)
	}
	if a.IP != r.IP.String() || a.IPVersion != "IPv4" {
		t.Errorf("got %s %s, want 8.8.8.8 IPv4", a.IP, a.IPVersion)
	}
	if geo.Location(a.Location) != r.Location {
		t.Errorf("got %+v, want %+v", a.Location, r.Location)
	}
	if geo.Network(a.Network) != r.Network {
		t.Errorf("got %+v, want %+v", a.Network, r.Network)
	}
	if geo.Flags(a.Flags) != r.Flags {
		t.Errorf("got %+v, want %+v", a.Flags, r.Flags)
	}
}

func TestDegrees(t *testing.T) {
	for _, row := range []struct {
		degrees float64
		want    string
	}{
		{0, "0"}, {math.Copysign(0, -1), "0"}, {math.NaN(), "0"}, {math.Inf(1), "0"}, {math.Inf(-1), "0"},
		{-90, "-90"}, {180, "180"}, {0.1, "0.1"}, {-77.4874, "-77.4874"}, {1e-9, "0.000000001"}, {1.0 / 3, "0.3333333333333333"},
	} {
		for member, r := range map[string]geo.Result{
			"lat": {Location: geo.Location{Lat: row.degrees}},
			"lon": {Location: geo.Location{Lon: row.degrees}},
		} {
			if got, want := string(r.AppendJSON(nil)), `"`+member+`":`+row.want+
				`,"`; !strings.Contains(got, want) {
				t.Errorf("%s of %v: got %s, want %s", member, row.degrees, got, want)
			}
		}
	}
}

// TestAppendJSONAllocatesExactly checks the capacity of the JSON: the cache keeps it for a long
// time.
func TestAppendJSONAllocatesExactly(t *testing.T) {
	r := google()
	r.IP = netip.MustParseAddr("2001:4860:1111:2222:3333:4444:5555:8888")
	r.Location.Lat, r.Location.Lon = -39.0438, -177.4874
	if b := r.AppendJSON(nil); cap(b)-len(b) > 64 {
		t.Errorf("got %d bytes of %d unused, want at most 64", cap(b)-len(b), cap(b))
	}
	buf := make([]byte, 0, 1024)
	if got := testing.AllocsPerRun(10, func() { r.AppendJSON(buf) }); got != 0 {
		t.Errorf("into a buffer: got %v allocations, want 0", got)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	r, buf := google(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		r.AppendJSON(buf)
	}
}

func BenchmarkAppendQuoted(b *testing.B) {
	buf := make([]byte, 0, 1024)
	for _, row := range []struct{ name, text string }{
		{"ascii", "2001:4860:4860::8888"},
		{"utf8", "Zürich, Genève, 東京"},
		{"escapes", "a\"b\\c\nd\x00e\xff"},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				geo.AppendQuoted(buf, row.text)
			}
		})
	}
}
