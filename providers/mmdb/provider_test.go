package mmdb_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

func TestCityAndASNAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the fake clock starts on 1 January 2000
		city, asn := cityAndASN(t)
		const year = 365 * 24 * time.Hour
		p := open(t, mmdb.Config{Check: year}, city, asn)
		defer p.Close()
		for _, addr := range []string{"2.125.160.216", "2a02:ffc0::1"} {
			want := geo.Result{
				IP:       netip.MustParseAddr(addr),
				Location: boxford,
				Network: geo.Network{
					ISP: "Google LLC", Org: "Google LLC", AS: "AS15169 Google LLC",
					ASName: "Google LLC",
				},
			}
			want.Location.Currency = "GBP"
			if got := place(t, p, addr); got.Err != nil || got.Result != want {
				t.Errorf("%s:\ngot  %+v, error %v\nwant %+v", addr, got.Result, got.Err, want)
			}
		}
		time.Sleep(year / 2)
		if got := single(t, p, "2.125.160.216").Result.Location.UTCOffsetSeconds; got != 3600 {
			t.Errorf("offset in summer: got %d, want 3600", got)
		}
	})
}

func TestAddressInOneFileOnly(t *testing.T) {
	city, asn := cityAndASN(t)
	p := open(t, mmdb.Config{}, city, asn)
	got := place(t, p, "2.125.161.1") // only in the /20 of the ASN file
	want := geo.Result{
		IP: netip.MustParseAddr("2.125.161.1"),
		Network: geo.Network{ISP: "Google LLC", Org: "Google LLC", AS: "AS15169 Google LLC",
			ASName: "Google LLC"},
	}
	if got.Err != nil || got.Result != want {
		t.Errorf("got %+v, error %v, want %+v", got.Result, got.Err, want)
	}
	wantError(t, single(t, p, "9.9.9.9"), geo.CodeInvalidQuery, geo.ReasonNoLocation)
	wantError(t, single(t, p, "2620:fe::fe"), geo.CodeInvalidQuery, geo.ReasonNoLocation)
}

func TestDatabaseTypes(t *testing.T) {
	names := func(s string) mmdbtype.Map {
		return mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String(s)}}
	}
	country := func(code, name string) mmdbtype.Map {
		m := names(name)
		m["iso_code"] = mmdbtype.String(code)
		return m
	}
	tests := []struct {
		databaseType string
		record       mmdbtype.Map
		want         geo.Result
	}{
		{"DBIP-City-Lite", mmdbtype.Map{
			"continent":    names("Europe"),
			"country":      country("DE", "Germany"),
			"subdivisions": mmdbtype.Slice{names("Hesse"), names("Darmstadt")},
			"city":         names("Frankfurt am Main"),
			"location": mmdbtype.Map{"latitude": mmdbtype.Float32(50.25),
				"longitude": mmdbtype.Float32(8.5)},
		}, geo.Result{Location: geo.Location{Continent: "Europe", Country: "Germany",
			CountryCode: "DE", Currency: "EUR", RegionName: "Hesse", City: "Frankfurt am Main",
			Lat: 50.25, Lon: 8.5}}},
		{"GeoLite2-Country", mmdbtype.Map{"country": country("JP", "Japan")},
			geo.Result{Location: geo.Location{Country: "Japan", CountryCode: "JP",
				Currency: "JPY"}}},
		{"GeoLite2-City", mmdbtype.Map{"registered_country": country("AU", "Australia")},
			geo.Result{Location: geo.Location{Country: "Australia", CountryCode: "AU",
				Currency: "AUD"}}},
		{"GeoLite2-City", mmdbtype.Map{"location": mmdbtype.Map{"time_zone": mmdbtype.String("Nowhere/Land")}},
			geo.Result{Location: geo.Location{Timezone: "Nowhere/Land"}}},
		{"GeoLite2-City", mmdbtype.Map{"location": mmdbtype.Map{"time_zone": mmdbtype.String("Asia/Kathmandu")}},
			geo.Result{Location: geo.Location{Timezone: "Asia/Kathmandu",
				UTCOffsetSeconds: 20700}}},
		{"GeoLite2-City", mmdbtype.Map{"location": mmdbtype.Map{"time_zone": mmdbtype.String("Local")}},
			geo.Result{Location: geo.Location{Timezone: "Local"}}},
		{"DBIP-Location-ISP (compat=Enterprise)", mmdbtype.Map{
			"country": country("IR", "Iran"),
			"traits": mmdbtype.Map{
				"autonomous_system_number":       mmdbtype.Uint32(44244),
				"autonomous_system_organization": mmdbtype.String("IRANCELL-AS"),
				"isp":                            mmdbtype.String("Iran Cell"),
				"organization":                   mmdbtype.String("Iran Cell Service"),
				"connection_type":                mmdbtype.String("Cellular"),
			},
		}, geo.Result{Location: geo.Location{Country: "Iran", CountryCode: "IR", Currency: "IRR"},
			Network: geo.Network{ISP: "Iran Cell", Org: "Iran Cell Service",
				AS: "AS44244 IRANCELL-AS", ASName: "IRANCELL-AS"},
			Flags: geo.Flags{Mobile: true}}},
		{"GeoIP2-ISP", mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(7018), "isp": mmdbtype.String("AT&T")},
			geo.Result{Network: geo.Network{ISP: "AT&T", AS: "AS7018"}}},
		{"DBIP-ASN-Lite (compat=GeoLite2-ASN)", mmdbtype.Map{
			"autonomous_system_organization": mmdbtype.String("Example")},
			geo.Result{Network: geo.Network{ISP: "Example", Org: "Example", ASName: "Example"}}},
		{"GeoIP2-Connection-Type", mmdbtype.Map{"connection_type": mmdbtype.String("Cellular")},
			geo.Result{Flags: geo.Flags{Mobile: true}}},
		{"GeoIP2-Connection-Type", mmdbtype.Map{"connection_type": mmdbtype.String("Cable/DSL")}, geo.Result{}},
		{"GeoIP2-Anonymous-IP", mmdbtype.Map{
			"is_anonymous": mmdbtype.Bool(true), "is_hosting_provider": mmdbtype.Bool(true)},
			geo.Result{Flags: geo.Flags{Hosting: true}}},
		{"GeoIP2-Anonymous-IP", mmdbtype.Map{"is_tor_exit_node": mmdbtype.Bool(true)},
			geo.Result{Flags: geo.Flags{Proxy: true}}},
		{"GeoIP2-Enterprise", mmdbtype.Map{"traits": mmdbtype.Map{"is_anonymous_proxy": mmdbtype.Bool(true)}},
			geo.Result{Flags: geo.Flags{Proxy: true}}},
		{"GeoIP2-Enterprise", mmdbtype.Map{"traits": mmdbtype.Map{"user_type": mmdbtype.String("hosting")}},
			geo.Result{Flags: geo.Flags{Hosting: true}}},
	}
	for _, test := range tests {
		path := filepath.Join(t.TempDir(), "some.mmdb")
		mmdbtest.Write(t, path, test.databaseType,
			map[string]mmdbtype.Map{"81.2.69.0/24": test.record})
		test.want.IP = netip.MustParseAddr("81.2.69.142")
		p := open(t, mmdb.Config{}, path)
		if got := place(t, p, "81.2.69.142"); got.Err != nil || got.Result != test.want {
			t.Errorf("%s %v:\ngot  %+v, error %v\nwant %+v", test.databaseType, test.record,
				got.Result, got.Err, test.want)
		}
	}
}

func TestLocationWithCoordinatesIsPreferred(t *testing.T) {
	dir := t.TempDir()
	country, city, other := filepath.Join(dir, "country"), filepath.Join(dir,
		"city"), filepath.Join(dir, "other")
	mmdbtest.Write(t, country, "GeoLite2-Country", map[string]mmdbtype.Map{"2.125.160.0/20": {
		"country": mmdbtype.Map{"iso_code": mmdbtype.String("FR")},
		"traits":  mmdbtype.Map{"is_anonymous_proxy": mmdbtype.Bool(true)},
	}})
	mmdbtest.WriteCity(t, city, map[string]geo.Location{"2.125.160.0/24": boxford})
	mmdbtest.WriteCity(t, other, map[string]geo.Location{"2.125.160.0/24": {City: "Paris",
		Lat: 48.85, Lon: 2.35}})
	p := open(t, mmdb.Config{}, country, city, other)
	got := single(t, p, "2.125.160.1").Result
	if got.Location.City != "Boxford" || got.Location.CountryCode != "GB" || !got.Flags.Proxy {
		t.Errorf("got %+v, want Boxford in GB with the traits of the first file", got)
	}
	if got := single(t, p, "2.125.161.1").Result.Location.CountryCode; got != "FR" {
		t.Errorf("address in the first file only: got %q, want FR", got)
	}
}

func TestOpenErrorNamesFile(t *testing.T) {
	dir := t.TempDir()
	city, _ := cityAndASN(t)
	whole, err := os.ReadFile(city)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	unfit := filepath.Join(dir, "domain.mmdb")
	mmdbtest.Write(t, unfit, "GeoIP2-Domain",
		map[string]mmdbtype.Map{"1.0.0.0/24": {"domain": mmdbtype.String("a.b")}})
	pipe := filepath.Join(dir, "pipe.mmdb")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		filepath.Join(dir, "absent.mmdb"),
		write("empty.mmdb", nil),
		write("text.mmdb", []byte("<html>404 Not Found</html>")),
		write("half.mmdb", whole[:len(whole)/2]),
		unfit, pipe, dir,
	} {
		p, err := mmdb.Open(mmdb.Config{Files: []string{city, path}})
		if err == nil {
			p.Close()
			t.Errorf("%s: got no error", path)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want an error that names %s", err, path)
		}
	}
	if _, err := mmdb.Open(mmdb.Config{}); err == nil {
		t.Error("no files: got no error")
	}
}

func TestIPv6QueryInIPv4File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v4.mmdb")
	writeIPv4Only(t, path, "2.125.160.0/24")
	p := open(t, mmdb.Config{}, path)
	wantError(t, single(t, p, "2a02:ffc0::1"), geo.CodeInvalidQuery, geo.ReasonNoLocation)
	wantCity(t, p, "2.125.160.1", "Boxford")
}

func TestDamagedRecordIsLoggedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "damaged.mmdb")
	mmdbtest.WriteCity(t, path, map[string]geo.Location{"81.2.69.0/24": {City: "not a city"},
		"2.125.160.0/24": boxford})
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The text becomes a pointer to behind the end of the file.
	file[bytes.Index(file, []byte("not a city"))-1] = 0x38
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	logger, logged := recorder()
	p := open(t, mmdb.Config{Logger: logger}, path)
	for range 3 {
		got := single(t, p, "81.2.69.142")
		wantError(t, got, geo.CodeProviderUnreachable, "")
		found := p.Find(netip.MustParseAddr("81.2.69.142"), time.Now())
		if !got.Err.Damaged || found.Err == nil || !found.Err.Damaged {
			t.Errorf("got %+v and %+v, want errors that a retry has too", got.Err, found.Err)
		}
	}
	if got := logged(); strings.Count(got, "damaged.mmdb") != 1 || strings.Contains(got, "81.2.") ||
		strings.Contains(got, "city") {
		t.Errorf("got log %q, want one line with the file's name and no address", got)
	}
	asn := filepath.Join(t.TempDir(), "asn.mmdb")
	mmdbtest.WriteASN(t, asn, map[string]mmdbtest.AS{"81.2.69.0/24": {Number: 1}})
	if got := single(t, open(t, mmdb.Config{}, path, asn), "81.2.69.142"); got.Err != nil ||
		got.Result.Network.AS != "AS1" {
		t.Errorf("with an undamaged file: got %+v, error %v, want AS1", got.Result, got.Err)
	}
}

func TestCancelledContext(t *testing.T) {
	city, _ := cityAndASN(t)
	p := open(t, mmdb.Config{}, city)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Single(ctx, query(t, "2.125.160.1")); !errors.Is(err, context.Canceled) {
		t.Errorf("single: got %v, want %v", err, context.Canceled)
	}
	if _, err := p.Batch(ctx, []geo.Query{query(t, "2.125.160.1")}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("batch: got %v, want %v", err, context.Canceled)
	}
}

func BenchmarkSingle(b *testing.B) {
	city, asn := cityAndASN(b)
	p := open(b, mmdb.Config{}, city, asn)
	q := query(b, "2.125.160.216")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Single(ctx, q); err != nil {
			b.Fatal(err)
		}
	}
}
