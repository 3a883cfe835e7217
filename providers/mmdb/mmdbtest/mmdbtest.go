// Package mmdbtest writes small databases in MaxMind's format for tests.
package mmdbtest

import (
	"bytes"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/actors/geo"
)

// AS is an autonomous system.
type AS struct {
	Number       uint32
	Organization string
}

// WriteCity writes a GeoLite2-City file with the Location of each network ("81.2.69.0/24"). Such a
// file has no UTCOffsetSeconds and Currency; they are ignored.
func WriteCity(t testing.TB, path string, places map[string]geo.Location) {
	t.Helper()
	records := map[string]mmdbtype.Map{}
	for network, l := range places {
		records[network] = city(l)
	}
	Write(t, path, "GeoLite2-City", records)
}

// WriteASN writes a GeoLite2-ASN file with the autonomous system of each network.
func WriteASN(t testing.TB, path string, systems map[string]AS) {
	t.Helper()
	records := map[string]mmdbtype.Map{}
	for network, as := range systems {
		records[network] = mmdbtype.Map{
			"autonomous_system_number":       mmdbtype.Uint32(as.Number),
			"autonomous_system_organization": mmdbtype.String(as.Organization),
		}
	}
	Write(t, path, "GeoLite2-ASN", records)
}

// Write writes a file of any database type, in place: not to a temporary file that is then renamed.
// Of overlapping networks the smaller one counts. IPv4 and IPv6 may be mixed.
func Write(t testing.TB, path, databaseType string, records map[string]mmdbtype.Map) {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: databaseType,
		IncludeReservedNetworks: true})
	if err != nil {
		t.Fatalf("new database: %v", err)
	}
	for _, key := range largestFirst(records) {
		prefix := netip.MustParsePrefix(key).Masked()
		network := &net.IPNet{
			IP:   prefix.Addr().AsSlice(),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		}
		if err := tree.Insert(network, records[key]); err != nil {
			t.Fatalf("insert %s: %v", prefix, err)
		}
	}
	var data bytes.Buffer
	if _, err := tree.WriteTo(&data); err != nil {
		t.Fatalf("print database: %v", err)
	}
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatalf("write database: %v", err)
	}
}

func largestFirst(records map[string]mmdbtype.Map) []string {
	bits := func(network string) int { return netip.MustParsePrefix(network).Bits() }
	return slices.SortedFunc(maps.Keys(records), func(a, b string) int { return bits(a) - bits(b) })
}

func city(l geo.Location) mmdbtype.Map {
	location := mmdbtype.Map{"latitude": mmdbtype.Float64(l.Lat),
		"longitude": mmdbtype.Float64(l.Lon)}
	if l.Timezone != "" {
		location["time_zone"] = mmdbtype.String(l.Timezone)
	}
	country := named(l.Country)
	country["iso_code"] = mmdbtype.String(l.CountryCode)
	record := mmdbtype.Map{
		"continent": named(l.Continent),
		"country":   country,
		"city":      named(l.City),
		"location":  location,
		"postal":    mmdbtype.Map{"code": mmdbtype.String(l.Zip)},
	}
	if l.RegionName != "" {
		record["subdivisions"] = mmdbtype.Slice{named(l.RegionName)}
	}
	return record
}

func named(name string) mmdbtype.Map {
	return mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String(name),
		"de": mmdbtype.String(name + " (de)")}}
}
