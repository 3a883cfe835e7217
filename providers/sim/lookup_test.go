package sim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gatehouse/actors/geo"
	"gatehouse/providers/sim"
)

func TestAnswersAreStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{})
		for query, want := range map[string]string{
			"8.8.8.8": `{"status":"success","continent":"North America","country":"United States","countryCode":"US",` +
				`"regionName":"Hawaii","city":"Honolulu","zip":"96813","lat":21.3069,"lon":-157.8583,` +
				`"timezone":"Pacific/Honolulu","offset":-36000,"currency":"USD","isp":"Example Cloud (simulated)",` +
				`"org":"Example Cloud","as":"AS65538 Example Cloud","asname":"EXAMPLE-CLOUD",` +
				`"reverse":"host-8-8-8-8.example.net","mobile":false,"proxy":false,"hosting":true,"query":"8.8.8.8"}`,
			"2001:4860:4860::8888": `{"status":"success","continent":"Asia","country":"Japan","countryCode":"JP",` +
				`"regionName":"Tokyo","city":"Tokyo","zip":"100-0001","lat":35.6762,"lon":139.6503,` +
				`"timezone":"Asia/Tokyo","offset":32400,"currency":"JPY","isp":"Example Mobile (simulated)",` +
				`"org":"Example Mobile","as":"AS64505 Example Mobile","asname":"EXAMPLE-MOBILE",` +
				`"reverse":"host-2001-4860-4860-0000-0000-0000-0000-8888.example.net",` +
				`"mobile":true,"proxy":false,"hosting":false,"query":"2001:4860:4860::8888"}`,
			"example.com": `{"status":"success","continent":"Asia","country":"Thailand","countryCode":"TH",` +
				`"regionName":"Bangkok","city":"Bangkok","zip":"10100","lat":13.7563,"lon":100.5018,` +
				`"timezone":"Asia/Bangkok","offset":25200,"currency":"THB","isp":"Example Exchange (simulated)",` +
				`"org":"Example Exchange","as":"AS65539 Example Exchange","asname":"EXAMPLE-IX",` +
				`"reverse":"host-204-89-122-183.example.net",` +
				`"mobile":false,"proxy":false,"hosting":false,"query":"204.89.122.183"}`,
		} {
			if got := string(call(s, "GET", "/json/"+query+fields, "").Body()); got != want {
				t.Errorf("%s: got %s, want %s", query, got, want)
			}
		}
	})
}

func TestFieldsParameter(t *testing.T) {
	u := start(t, sim.Settings{})
	defaults := "as city country countryCode isp lat lon org query region regionName status timezone zip"
	for _, row := range []struct{ params, want string }{
		{"?fields=64225275", "as asname city continent country countryCode currency hosting isp lat lon mobile offset org proxy query regionName reverse status timezone zip"},
		{"?fields=66846719", "as asname city continent continentCode country countryCode currency district hosting isp lat lon mobile offset org proxy query region regionName reverse status timezone zip"},
		{"?fields=status,query,lat,nonsense&lang=de", "lat query status"},
		{"?fields=status%2Casname", "asname status"},
		{"?fields=nonsense", defaults},
		{"?fields=0", defaults},
		{"", defaults},
	} {
		got := decode[map[string]any](t, u.get("/json/8.8.8.8"+row.params))
		if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != row.want {
			t.Errorf("%q: got members %s, want %s", row.params, names, row.want)
		}
	}
}

func TestFieldBits(t *testing.T) {
	s := sim.New(sim.Config{})
	for name, bit := range map[string]int{
		"country": 1, "countryCode": 2, "region": 4, "regionName": 8, "city": 16, "zip": 32,
		"lat": 64, "lon": 128,
		"timezone": 256, "isp": 512, "org": 1024, "as": 2048, "reverse": 4096, "query": 8192,
		"status": 16384,
		"mobile": 65536, "proxy": 131072, "district": 524288, "continent": 1048576,
		"continentCode": 2097152,
		"asname":        4194304, "currency": 8388608, "hosting": 16777216, "offset": 33554432,
	} {
		for _, chosen := range []string{fmt.Sprint(bit), name} {
			body := string(call(s, "GET", "/json/8.8.8.8?fields="+chosen, "").Body())
			if !strings.HasPrefix(body, `{"`+name+`":`) || strings.Contains(body, `,"`) {
				t.Errorf("fields=%s: got %s, want %s alone", chosen, body, name)
			}
		}
	}
	if got, want := string(call(s, "GET", "/json/10.0.0.1?fields=32768",
		"").Body()), `{"message":"private range"}`; got != want {
		t.Errorf("fields=32768: got %s, want %s", got, want)
	}
}

func TestQueriesWithoutLocation(t *testing.T) {
	u := start(t, sim.Settings{})
	for query, want := range map[string]string{
		"10.1.2.3":               "private range",
		"192.168.0.1":            "private range",
		"fc00::1":                "private range",
		"127.0.0.1":              "reserved range",
		"224.0.0.1":              "reserved range",
		"2001:db8::1":            "reserved range",
		"5.255.255.7":            "invalid query",
		"2a0f:ffff::1":           "invalid query",
		"nxdomain.example.com":   "invalid query",
		"a.nxdomain.example.com": "invalid query",
		"256.1.1.1":              "invalid query",
		"%22%5C%0A":              "invalid query",
		"a/b":                    "invalid query",
	} {
		got := u.lookup(query)
		if got["status"] != "fail" || got["message"] != want || len(got) != 3 {
			t.Errorf("%s: got %v, want fail, %s and the query", query, got, want)
		}
	}
	if got := u.get("/json/" + fields); !strings.Contains(string(got.body),
		`"reserved range","query":"127.0.0.1"`) {
		t.Errorf("the caller's own address: got %s, want the loopback address as reserved",
			got.body)
	}
}

func TestOwnAddress(t *testing.T) {
	u := start(t, sim.Settings{})
	for _, path := range []string{"/json", "/json/"} {
		if got := decode[map[string]any](t, u.get(path)); got["query"] != "127.0.0.1" {
			t.Errorf("%s: got %v, want the caller's address", path, got)
		}
	}
}

func TestDomainsHavePublicAddresses(t *testing.T) {
	s := sim.New(sim.Config{})
	versions := map[bool]int{}
	for i := range 500 {
		uri := fmt.Sprintf("/json/host%d.example.com?fields=query,status", i)
		var got struct{ Status, Query string }
		if err := json.Unmarshal(call(s, "GET", uri, "").Body(), &got); err != nil {
			t.Fatal(err)
		}
		addr, err := netip.ParseAddr(got.Query)
		if err != nil || got.Status != "success" {
			t.Fatalf("%s: got %v, want an address", uri, got)
		}
		if _, err := geo.AddrQuery(addr); err != nil {
			t.Errorf("%s: got %v, want a public address", uri, addr)
		}
		versions[addr.Is4()]++
	}
	if versions[true] < 300 || versions[false] < 60 {
		t.Errorf("got %d IPv4 and %d IPv6 addresses, want about three to one", versions[true],
			versions[false])
	}
}

func TestNeighboursShareLocation(t *testing.T) {
	u := start(t, sim.Settings{})
	place := func(query string) string {
		got := u.lookup(query)
		return fmt.Sprint(got["city"], got["as"], got["proxy"])
	}
	for _, row := range [][3]string{
		{"93.184.216.1", "93.184.216.254", "93.184.217.1"},
		{"2a00:1450:4001::1", "2a00:1450:4001:ffff::1", "2a00:1450:4002::1"},
	} {
		if near, far := place(row[1]), place(row[2]); near != place(row[0]) || far == near {
			t.Errorf("%s: got %s near and %s far, want one and another", row[0], near, far)
		}
	}
}

func TestAnswersAreVaried(t *testing.T) {
	s := sim.New(sim.Config{})
	seen := map[string]map[any]bool{}
	for i := range 2000 {
		var got map[string]any
		uri := fmt.Sprintf("/json/%d.%d.7.1%s", 11+i%80, i/80, fields)
		if err := json.Unmarshal(call(s, "GET", uri, "").Body(), &got); err != nil {
			t.Fatal(err)
		}
		if isp, _ := got["isp"].(string); !strings.HasSuffix(isp, " (simulated)") {
			t.Fatalf("%s: got isp %q, want one that says it is simulated", uri, isp)
		}
		for name, value := range got {
			if seen[name] == nil {
				seen[name] = map[any]bool{}
			}
			seen[name][value] = true
		}
	}
	for name, want := range map[string]int{"city": 42, "continent": 6, "as": 11, "mobile": 2,
		"proxy": 2, "hosting": 2} {
		if got := len(seen[name]); got != want {
			t.Errorf("%s: got %d different values, want %d", name, got, want)
		}
	}
}
