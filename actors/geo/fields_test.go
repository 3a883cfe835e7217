package geo_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

func TestSelectKeepsTheNamedMembers(t *testing.T) {
	for names, want := range map[string]string{
		"ip":                `{"ok":true,"query":"a\"b","ip":"8.8.8.8"}`,
		"city":              `{"ok":true,"query":"a\"b","location":{"city":"X\"},{\\"}}`,
		"lat":               `{"ok":true,"query":"a\"b","location":{"lat":-1.5}}`,
		"currency,country":  `{"ok":true,"query":"a\"b","location":{"country":"Y","currency":""}}`,
		"hosting,as,ip,as":  `{"ok":true,"query":"a\"b","ip":"8.8.8.8","network":{"as":"AS1 Z"},"flags":{"hosting":true}}`,
		"flags":             `{"ok":true,"query":"a\"b","flags":{"mobile":false,"proxy":false,"hosting":true}}`,
		"network":           `{"ok":true,"query":"a\"b","network":{"isp":"","org":"","as":"AS1 Z","asname":"","reverse":""}}`,
		"data":              `{"ok":true,"query":"a\"b","data":{"prefix":"8.8.8.0/24","accuracyRadiusKm":5,"asn":null,"source":"mmdb","asOf":"2026-01-02","regionCode":"ENG","continentCode":"EU","connectionType":"Cellular","asDomain":"a.b","geonameId":7,"confidence":9,"isEU":false,"isVPN":true,"isTor":false,"isProxy":true,"isHosting":true}}`,
		"asn,prefix,mobile": `{"ok":true,"query":"a\"b","flags":{"mobile":false},"data":{"prefix":"8.8.8.0/24","asn":null}}`,
		"isTor,geonameId":   `{"ok":true,"query":"a\"b","data":{"geonameId":7,"isTor":false}}`,
		"ipVersion,asOf":    `{"ok":true,"query":"a\"b","ipVersion":"IPv4","data":{"asOf":"2026-01-02"}}`,
	} {
		f, ok := geo.ParseFields(names)
		if !ok {
			t.Errorf("%s: got an unknown name, want none", names)
			continue
		}
		o := detailed(t)
		if got := string(f.Select(o.AppendDetails(nil, `a"b`))); got != want {
			t.Errorf("%s: got %s, want %s", names, got, want)
		}
		if f.HasData() != strings.Contains(want, `"data"`) {
			t.Errorf("%s: got HasData %t, want %t", names, f.HasData(), !f.HasData())
		}
	}
}

// detailed is the outcome of a result with all kinds of values.
func detailed(t *testing.T) *geo.Outcome {
	t.Helper()
	q, err := geo.ParseQuery("8.8.8.8")
	if err != nil {
		t.Fatal(err)
	}
	return &geo.Outcome{Entry: geo.NewEntry(geo.ResultTTL, q, geo.Answer{Result: geo.Result{
		IP:       netip.MustParseAddr("8.8.8.8"),
		Location: geo.Location{Country: "Y", City: `X"},{\`, Lat: -1.5},
		Network:  geo.Network{AS: "AS1 Z"},
		Flags:    geo.Flags{Hosting: true},
		Data: geo.Data{Prefix: netip.MustParsePrefix("8.8.8.0/24"), AccuracyRadiusKm: 5, RegionCode: "ENG", GeonameID: 7,
			ContinentCode: "EU", ConnectionType: "Cellular", ASDomain: "a.b", Confidence: 9,
			IsEU: geo.No, IsVPN: geo.Yes, IsProxy: geo.Yes,
			IsTor: geo.No, IsHosting: geo.Yes,
			AsOf: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}}, geo.SourceMMDB, time.Now())}
}

// TestEveryMemberHasAName selects each member of a result alone.
func TestEveryMemberHasAName(t *testing.T) {
	var result map[string]any
	if err := json.Unmarshal(detailed(t).AppendDetails(nil, "x"), &result); err != nil {
		t.Fatal(err)
	}
	names := 0
	for name, value := range result {
		members := map[string]any{name: value}
		if object, ok := value.(map[string]any); ok {
			members = object
		} else if name == "ok" || name == "query" {
			if _, ok := geo.ParseFields(name); ok {
				t.Errorf("got a name for %s, want none: it is always there", name)
			}
			continue
		}
		for member, value := range members {
			names++
			f, ok := geo.ParseFields(member)
			if !ok {
				t.Errorf("got no name for %s, want one", member)
				continue
			}
			var got map[string]any
			if err := json.Unmarshal(f.Select(detailed(t).AppendDetails(nil, "x")), &got); err != nil {
				t.Fatal(err)
			}
			if object, ok := got[name].(map[string]any); ok {
				got = object
			}
			if len(got) > 3 || got[member] != value {
				t.Errorf("%s: got %v, want it alone with %v", member, got, value)
			}
		}
	}
	if names != 37 {
		t.Errorf("got %d members, want 37", names)
	}
}

func TestUnknownFields(t *testing.T) {
	for _, names := range []string{"", ",", "ip,", ",ip", "IP", "ip, city", "location.city", "x", "ok",
		"query", "error"} {
		if f, ok := geo.ParseFields(names); ok {
			t.Errorf("%q: got %b, want it refused", names, f)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	o, buf := detailed(&testing.T{}), make([]byte, 0, 1024)
	f, _ := geo.ParseFields("country,city,as")
	b.ReportAllocs()
	for b.Loop() {
		f.Select(o.AppendJSON(buf, "8.8.8.8"))
	}
}
