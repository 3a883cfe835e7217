package contracts_test

import (
	"bytes"
	"flag"
	"maps"
	"net"
	"os"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
)

var update = flag.Bool("update", false, "write STATES.md and offline.mmdb")

func TestStatesAreDocumented(t *testing.T) {
	const file = "STATES.md"
	want := contracts.Document()
	if *update {
		stacktest.Must(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	stacktest.Must(t, err)
	if string(got) != want {
		t.Errorf("%s is not what the catalogue says: go test ./contracts -run %s -update writes it",
			file, t.Name())
	}
}

// TestOfflineFile: the file of the state is what this test writes.
func TestOfflineFile(t *testing.T) {
	const file = "offline.mmdb"
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoIP2-Enterprise",
		BuildEpoch: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC).Unix(), Languages: []string{"en"}})
	stacktest.Must(t, err)
	named := func(id uint32, name string, more mmdbtype.Map) mmdbtype.Map {
		record := mmdbtype.Map{"geoname_id": mmdbtype.Uint32(id),
			"names": mmdbtype.Map{"en": mmdbtype.String(name)}}
		maps.Copy(record, more)
		return record
	}
	record := mmdbtype.Map{
		"city":      named(2643743, "London", mmdbtype.Map{"confidence": mmdbtype.Uint16(80)}),
		"continent": named(6255148, "Europe", mmdbtype.Map{"code": mmdbtype.String("EU")}),
		"country": named(2635167, "United Kingdom", mmdbtype.Map{"iso_code": mmdbtype.String("GB"),
			"is_in_european_union": mmdbtype.Bool(true)}),
		"subdivisions": mmdbtype.Slice{named(6269131, "England",
			mmdbtype.Map{"iso_code": mmdbtype.String("ENG")})},
		"postal": mmdbtype.Map{"code": mmdbtype.String("WC2")},
		"location": mmdbtype.Map{"latitude": mmdbtype.Float64(51.5), "longitude": mmdbtype.Float64(-0.125),
			"time_zone": mmdbtype.String("Europe/London"), "accuracy_radius": mmdbtype.Uint16(20)},
		"traits": mmdbtype.Map{"isp": mmdbtype.String("Example Net"),
			"organization":                   mmdbtype.String("Example Ltd"),
			"autonomous_system_number":       mmdbtype.Uint32(64500),
			"autonomous_system_organization": mmdbtype.String("Example AS"),
			"connection_type":                mmdbtype.String("Cable/DSL")},
		"as_domain":           mmdbtype.String("as.example"),
		"is_anonymous_vpn":    mmdbtype.Bool(true),
		"is_hosting_provider": mmdbtype.Bool(true),
		"is_public_proxy":     mmdbtype.Bool(true),
		"is_tor_exit_node":    mmdbtype.Bool(true),
	}
	for _, network := range []string{"81.2.69.0/24", "2a02:da80::/29"} {
		stacktest.Must(t, tree.Insert(prefix(t, network), record))
	}
	var want bytes.Buffer
	if _, err := tree.WriteTo(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		stacktest.Must(t, os.WriteFile(file, want.Bytes(), 0o644))
	}
	got, err := os.ReadFile(file)
	stacktest.Must(t, err)
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is another file: go test ./contracts -run %s -update writes it", file, t.Name())
	}
}

func prefix(t *testing.T, network string) *net.IPNet {
	t.Helper()
	_, n, err := net.ParseCIDR(network)
	stacktest.Must(t, err)
	return n
}
