package mmdb_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"go.uber.org/goleak"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

func TestMain(m *testing.M) {
	time.Local = time.FixedZone("elsewhere", 3600) // makes tests fail that use the machine's zone
	goleak.VerifyTestMain(m)
}

var boxford = geo.Location{
	Continent: "Europe", Country: "United Kingdom", CountryCode: "GB", RegionName: "England",
	City: "Boxford",
	Zip:  "OX1", Lat: 51.75, Lon: -1.25, Timezone: "Europe/London",
}

// open opens the files with config. The provider is closed at the end of the test.
func open(t testing.TB, config mmdb.Config, files ...string) *mmdb.Provider {
	t.Helper()
	config.Files = files
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	p, err := mmdb.Open(config)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// cityAndASN writes two files, each with an IPv4 and an IPv6 network.
func cityAndASN(t testing.TB) (city, asn string) {
	t.Helper()
	city, asn = filepath.Join(t.TempDir(), "city.mmdb"), filepath.Join(t.TempDir(), "asn.mmdb")
	mmdbtest.WriteCity(t, city, map[string]geo.Location{"2.125.160.0/24": boxford,
		"2a02:ffc0::/32": boxford})
	as := mmdbtest.AS{Number: 15169, Organization: "Google LLC"}
	mmdbtest.WriteASN(t, asn, map[string]mmdbtest.AS{"2.125.160.0/20": as, "2a02:ffc0::/32": as})
	return city, asn
}

func query(t testing.TB, s string) geo.Query {
	t.Helper()
	q, err := geo.ParseQuery(s)
	if err != nil {
		t.Fatalf("parse %s: %v", s, err)
	}
	return q
}

// single returns the answer to s. It checks that Find has the same of an address.
func single(t testing.TB, p *mmdb.Provider, s string) geo.Answer {
	t.Helper()
	q, a := query(t, s), ask(t, p, s)
	if q.IsDomain() {
		return a
	}
	now := time.Now()
	for range 2 { // rendered, and from what was rendered before
		o := p.Find(q.Addr(), now)
		if o.Err != a.Err {
			t.Fatalf("find %s: got error %v, want %v", s, o.Err, a.Err)
		}
		if a.Err == nil {
			entry := geo.Outcome{Entry: geo.NewEntry(geo.ResultTTL, q, a, geo.SourceMMDB, now)}
			got, want := string(o.AppendDetails(nil, " "+s)), string(entry.AppendDetails(nil, " "+s))
			if got != want {
				t.Fatalf("find %s: got %s, want %s", s, got, want)
			}
		}
	}
	return a
}

// place returns the answer to s without its data.
func place(t testing.TB, p *mmdb.Provider, s string) geo.Answer {
	t.Helper()
	a := single(t, p, s)
	a.Result.Data = geo.Data{}
	return a
}

// ask returns the answer to s of Single.
func ask(t testing.TB, p *mmdb.Provider, s string) geo.Answer {
	t.Helper()
	reply, err := p.Single(context.Background(), query(t, s))
	if err != nil || len(reply.Answers) != 1 {
		t.Fatalf("single %s: got %d answers, error %v, want 1 and none", s, len(reply.Answers), err)
	}
	return reply.Answers[0]
}

func wantCity(t *testing.T, p *mmdb.Provider, addr, want string) {
	t.Helper()
	if got := single(t, p, addr); got.Err != nil || got.Result.Location.City != want {
		t.Errorf("city of %s: got %q, error %v, want %q", addr,
			got.Result.Location.City, got.Err, want)
	}
}

func wantError(t *testing.T, got geo.Answer, code geo.Code, reason geo.Reason) {
	t.Helper()
	if got.Err == nil || got.Err.Code != code || got.Err.Reason != reason {
		t.Errorf("got %+v, error %v, want error %s %s", got.Result, got.Err, code, reason)
	}
}

// writeIPv4Only writes a City file of IP version 4 in which network is in Boxford.
func writeIPv4Only(t *testing.T, path, network string) {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-City", IPVersion: 4})
	if err != nil {
		t.Fatal(err)
	}
	_, block, err := net.ParseCIDR(network)
	if err != nil {
		t.Fatal(err)
	}
	names := mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String("Boxford")}}
	if err := tree.Insert(block, mmdbtype.Map{"city": names}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := tree.WriteTo(f); err != nil {
		t.Fatal(err)
	}
}

func addrs(list ...string) []netip.Addr {
	var parsed []netip.Addr
	for _, s := range list {
		parsed = append(parsed, netip.MustParseAddr(s))
	}
	return parsed
}
