package mmdb_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

// mmdbOf returns a value of JSON as one of a file.
func mmdbOf(value any) mmdbtype.DataType {
	switch v := value.(type) {
	case map[string]any:
		m := mmdbtype.Map{}
		for key, element := range v {
			m[mmdbtype.String(key)] = mmdbOf(element)
		}
		return m
	case []any:
		s := mmdbtype.Slice{}
		for _, element := range v {
			s = append(s, mmdbOf(element))
		}
		return s
	case bool:
		return mmdbtype.Bool(v)
	case float64:
		if v == math.Trunc(v) {
			return mmdbtype.Uint32(v)
		}
		return mmdbtype.Float64(v)
	case string:
		return mmdbtype.String(v)
	}
	panic(fmt.Sprintf("%T", value))
}

// membersOf returns the members of a result that are known, by the names in testdata.
func membersOf(r *geo.Result) map[string]any {
	l, n, d := r.Location, r.Network, r.Data
	all := map[string]any{
		"continentCode": d.ContinentCode, "country": l.Country, "countryCode": l.CountryCode,
		"region": d.RegionCode, "regionName": l.RegionName, "city": l.City, "zip": l.Zip, "lat": l.Lat,
		"lon": l.Lon, "timezone": l.Timezone, "isp": n.ISP, "org": n.Org, "as": n.AS,
		"asname": n.ASName, "asDomain": d.ASDomain, "geonameId": float64(d.GeonameID),
		"accuracyRadius": float64(d.AccuracyRadiusKm), "connectionType": d.ConnectionType,
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == "" || v == 0.0 })
	for name, truth := range map[string]geo.Truth{"proxy": d.IsProxy, "hosting": d.IsHosting,
		"vpn": d.IsVPN, "tor": d.IsTor, "isEU": d.IsEU} {
		if truth != geo.Unknown {
			all[name] = truth == geo.Yes
		}
	}
	if r.Flags.Mobile {
		all["mobile"] = true
	}
	return all
}

// recordFile writes a file with one record, for 81.2.69.0/24, and returns its path.
func recordFile(t *testing.T, databaseType string, record any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.mmdb")
	mmdbtest.Write(t, path, databaseType,
		map[string]mmdbtype.Map{"81.2.69.0/24": mmdbOf(record).(mmdbtype.Map)})
	return path
}

// TestLayouts compares all members of records of many makers.
func TestLayouts(t *testing.T) {
	text, err := os.ReadFile("testdata/layouts.json")
	if err != nil {
		t.Fatal(err)
	}
	var layouts map[string][]struct {
		Type             string
		Record, Expected map[string]any
	}
	if err := json.Unmarshal(text, &layouts); err != nil {
		t.Fatal(err)
	}
	if len(layouts) != 22 {
		t.Fatalf("got %d layouts, want 22", len(layouts))
	}
	for name, examples := range layouts {
		for _, e := range examples {
			got := single(t, open(t, mmdb.Config{}, recordFile(t, e.Type, e.Record)), "81.2.69.142")
			if e.Expected["mobile"] == false { // the result does not tell it from unknown
				delete(e.Expected, "mobile")
			}
			if have := membersOf(&got.Result); !reflect.DeepEqual(have, e.Expected) {
				t.Errorf("%s %v:\ngot  %v, error %v\nwant %v", name, e.Record, have, got.Err, e.Expected)
			}
		}
	}
}

// TestMapping reads a file that needs a mapping, and one that does not.
func TestMapping(t *testing.T) {
	dir := t.TempDir()
	own := recordFile(t, "City", map[string]any{
		"geo": map[string]any{"cc": "gb", "towns": []any{map[string]any{"name": "Boxford"}}, "at": "51.5"},
		"net": map[string]any{"nr": "AS5", "name": "-", "alias": "Five", "kinds": map[string]any{"v": "yes"}},
	})
	lite := recordFile(t, "x", map[string]any{"country_code": "GB", "city": "London", "is_tor": true})
	for _, c := range []struct {
		mapping, file string
		want          map[string]any
	}{
		{"country_code: geo.cc\ncity: geo.towns[0].name\nlat: geo.at\nasn: net.nr # a number\n" +
			"as_name: net.name, net.alias\nisVPN: net.kinds.v\n", own, map[string]any{
			"countryCode": "GB", "city": "Boxford", "lat": 51.5, "as": "AS5 Five", "asname": "Five",
			"isp": "Five", "org": "Five", "vpn": true}},
		{"as_name: [net.name, net.alias]", own,
			map[string]any{"asname": "Five", "isp": "Five", "org": "Five"}},
		{"countryCode: geo.cc\ncity: geo.cc", lite, // leads to nothing
			map[string]any{"countryCode": "GB", "city": "London", "tor": true, "proxy": true}},
		{"tor:\nregion_name: city", lite, map[string]any{"countryCode": "GB", "city": "London",
			"regionName": "London", "proxy": true}},
	} {
		path := filepath.Join(dir, "mapping")
		if err := os.WriteFile(path, []byte(c.mapping), 0o600); err != nil {
			t.Fatal(err)
		}
		mapping, err := mmdb.ReadMapping(path)
		if err != nil {
			t.Fatal(err)
		}
		p := open(t, mmdb.Config{Options: mmdb.Options{Mapping: mapping}}, c.file)
		got := single(t, p, "81.2.69.142").Result
		if have := membersOf(&got); !reflect.DeepEqual(have, c.want) {
			t.Errorf("%s: got %v, want %v", c.mapping, have, c.want)
		}
	}
	for mapping, want := range map[string]string{
		"":                       "empty",
		"just text":              "want lines",
		"contry: a":              `line 1: unknown member "contry"`,
		"city: a\ncity: b":       "line 2: city is there twice",
		"isp: a\n\ncity: a..b":   `line 3: city: "a..b" is no path`,
		"city: {a: b}":           "want a path",
		"city: [a, [b]]":         "want a path",
		"city: a[x]":             `"a[x]" is no path`,
		"city: a\ncountry: b: c": "line 2",
	} {
		path := filepath.Join(dir, "mapping")
		if err := os.WriteFile(path, []byte(mapping), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := mmdb.ReadMapping(path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), path) {
			t.Errorf("%q: got %v, want the file's name and %s", mapping, err, want)
		}
	}
}

// TestUnrecognizedFile expects an error that helps to write a mapping.
func TestUnrecognizedFile(t *testing.T) {
	for _, c := range []struct {
		record any
		want   string
	}{
		{map[string]any{"geo": map[string]any{"cc": "GB", "town": "Boxford"}},
			`"country_code: geo.cc", "city: geo.town"`},
		{map[string]any{"a": map[string]any{"b": "c"}}, `lines such as "country_code: a.b"`},
		{map[string]any{"domain": "a.b"}, `"as_domain: domain"`},
		{map[string]any{"organization": map[string]any{"country": "US", "city": "Boxford",
			"latitude": 1.5}}, `"country_code: organization.country"`}, // the seat of a company
		{map[string]any{"country_code": "", "city": "-"}, `"country_code":""`},
	} {
		path := recordFile(t, "GeoLite2-City", c.record)
		_, err := mmdb.Open(mmdb.Config{Files: []string{path}})
		if _, same := mmdb.Map(path); err == nil || same == nil {
			t.Errorf("%v: got errors %v and %v, want some", c.record, err, same)
			continue
		}
		for _, want := range []string{path, `"GeoLite2-City"`, "81.2.69.0/24", "--mmdb-map", c.want} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want one with %s", c.record, err, want)
			}
		}
	}
}

// TestLanguage expects names in the language of which a file has them, else in English.
func TestLanguage(t *testing.T) {
	path := recordFile(t, "x", map[string]any{
		"country": map[string]any{"iso_code": "DE", "names": map[string]any{"en": "Germany",
			"de": "Deutschland"}},
		"city": map[string]any{"names": map[string]any{"en": "Munich"}},
	})
	for language, want := range map[string]string{"": "Germany", "en": "Germany",
		"de": "Deutschland", "fr": "Germany"} {
		p := open(t, mmdb.Config{Options: mmdb.Options{Language: language}}, path)
		if got := single(t, p, "81.2.69.1").Result.Location; got.Country != want || got.City != "Munich" {
			t.Errorf("%q: got %s, %s, want %s, Munich", language, got.Country, got.City, want)
		}
	}
}

// TestSharedObjects reads records that point to the same objects again and again, in turn and in
// other languages, and expects of each what a file has that was just opened.
func TestSharedObjects(t *testing.T) {
	object := func(code, name, local string, number float64) map[string]any {
		return map[string]any{"iso_code": code, "geoname_id": number,
			"names": map[string]any{"en": name, "de": local}}
	}
	germany, france := object("DE", "Germany", "Deutschland", 1), object("FR", "France", "Frankreich", 2)
	hesse := object("HE", "Hesse", "Hessen", 3)
	records := map[string]mmdbtype.Map{}
	for network, record := range map[string]map[string]any{
		"81.2.1.0/24": {"country": germany, "registered_country": germany, "subdivisions": []any{hesse}},
		"81.2.2.0/24": {"country": germany, "registered_country": france, "subdivisions": []any{hesse, germany}},
		"81.2.3.0/24": {"registered_country": germany, "continent": map[string]any{"code": "EU"}},
		"81.2.4.0/24": {"country": france, "continent": map[string]any{"code": "EU"}},
	} {
		records[network] = mmdbOf(record).(mmdbtype.Map)
	}
	path := filepath.Join(t.TempDir(), "some.mmdb")
	mmdbtest.Write(t, path, "x", records)
	p := open(t, mmdb.Config{Rendered: 1}, path)
	for range 4 {
		for network := range records {
			addr := strings.TrimSuffix(network, "0/24") + "9"
			got, want := single(t, p, addr), single(t, open(t, mmdb.Config{}, path), addr)
			if have, first := membersOf(&got.Result), membersOf(&want.Result); !reflect.DeepEqual(have, first) {
				t.Errorf("%s: got %v, want %v", addr, have, first)
			}
			for _, language := range []string{"de", "fr"} {
				fresh := open(t, mmdb.Config{Options: mmdb.Options{Language: language}}, path)
				local, want := p.Names(netip.MustParseAddr(addr), language).Country,
					single(t, fresh, addr).Result.Location.Country
				if local != want {
					t.Errorf("%s in %s: got the name %s, want %s", addr, language, local, want)
				}
			}
		}
	}
}

// TestFilesAreJoined expects of each file what it is for.
func TestFilesAreJoined(t *testing.T) {
	file := func(network string, record map[string]any) string {
		path := filepath.Join(t.TempDir(), "some.mmdb")
		mmdbtest.Write(t, path, "x", map[string]mmdbtype.Map{network: mmdbOf(record).(mmdbtype.Map)})
		return path
	}
	registry := file("81.2.64.0/20", map[string]any{"asn": "5", "country": "us", "org": "Five",
		"descr": "FIVE", "rir": "ARIN"})
	named := file("81.2.0.0/16", map[string]any{"country_code": "GB", "country_name": "United Kingdom"})
	city := file("81.2.69.0/24", map[string]any{"country_code": "GB", "city": "London",
		"latitude": "51.5", "longitude": "-0.1"})
	flags := file("81.2.69.128/25", map[string]any{"is_anonymous": true, "is_tor_exit_node": true})
	p := open(t, mmdb.Config{}, registry, named, city, flags)
	for addr, want := range map[string]string{
		"81.2.69.129": `{"countryCode":"GB","country":"United Kingdom","city":"London","lat":51.5,` +
			`"lon":-0.1,"as":"AS5 Five","asname":"Five","isp":"Five","org":"Five","proxy":true,` +
			`"hosting":false,"vpn":false,"tor":true}81.2.69.128/25`,
		"81.2.70.1": `{"countryCode":"GB","country":"United Kingdom","as":"AS5 Five",` +
			`"asname":"Five","isp":"Five","org":"Five","proxy":false,"hosting":false,"vpn":false,` +
			`"tor":false}81.2.70.0/23`,
		"81.2.80.1": `{"countryCode":"GB","country":"United Kingdom","proxy":false,` +
			`"hosting":false,"vpn":false,"tor":false}81.2.80.0/20`,
	} {
		members, prefix, _ := strings.Cut(want, "}")
		var expected map[string]any
		if err := json.Unmarshal([]byte(members+"}"), &expected); err != nil {
			t.Fatal(err)
		}
		got := single(t, p, addr).Result
		if have := membersOf(&got); !reflect.DeepEqual(have, expected) ||
			got.Data.Prefix.String() != prefix {
			t.Errorf("%s: got %v and %s, want %s", addr, have, got.Data.Prefix, want)
		}
	}
	wantError(t, single(t, p, "9.9.9.9"), geo.CodeInvalidQuery, geo.ReasonNoLocation)
	got := single(t, open(t, mmdb.Config{}, registry), "81.2.69.1").Result.Location.CountryCode
	if got != "US" {
		t.Errorf("registry alone: got %q, want US", got)
	}
}
