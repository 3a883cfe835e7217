package mmdb_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
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
