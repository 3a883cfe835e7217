package mmdb_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

// find returns the JSON of the outcome for an address, with its data.
func find(p *mmdb.Provider, addr string, now time.Time) string {
	o := p.Find(netip.MustParseAddr(addr), now)
	if o.Err != nil {
		return o.Err.Error()
	}
	return string(o.AppendDetails(nil, addr))
}

// TestFindHasItsOwnAnswers compares Find with Single where many networks have few records, and
// where few of the answers are kept.
func TestFindHasItsOwnAnswers(t *testing.T) {
	places, systems := map[string]geo.Location{}, map[string]mmdbtest.AS{}
	for i := range 200 {
		l := boxford
		l.City = fmt.Sprint("City ", i%7)
		places[fmt.Sprintf("2.%d.0.0/%d", i, 9+i%16)] = l
		places[fmt.Sprintf("2a02:%x::/%d", i, 25+i%24)] = l
		systems[fmt.Sprintf("2.%d.%d.0/%d", i, i, 12+i%17)] = mmdbtest.AS{Number: uint32(1 + i%5)}
	}
	dir := t.TempDir()
	city, asn := filepath.Join(dir, "city"), filepath.Join(dir, "asn")
	mmdbtest.WriteCity(t, city, places)
	mmdbtest.WriteASN(t, asn, systems)
	for _, rendered := range []int{0, 1, 3} {
		p := open(t, mmdb.Config{Rendered: rendered}, city, asn)
		r := rand.New(rand.NewPCG(1, uint64(rendered)))
		for range 5000 {
			b := r.Uint32()
			single(t, p, netip.AddrFrom4([4]byte{2, byte(b), byte(b >> 8), byte(b >> 16)}).String())
			single(t, p, fmt.Sprintf("2a02:%x:%x::%x", b%200, b>>8%0xffff, b>>24))
		}
	}
}

// TestPrefix checks the addresses that an answer holds for: those of the narrowest network of all
// files, also where a file has none.
func TestPrefix(t *testing.T) {
	city, asn := cityAndASN(t)
	p := open(t, mmdb.Config{}, city, asn)
	v4 := filepath.Join(t.TempDir(), "v4")
	writeIPv4Only(t, v4, "2.125.160.0/26")
	with4 := open(t, mmdb.Config{}, city, asn, v4)
	for _, c := range []struct {
		provider   *mmdb.Provider
		addr, want string
	}{
		{p, "2.125.160.77", "2.125.160.0/24"},
		{p, "2.125.161.77", "2.125.161.0/24"}, // the City file ends at 2.125.160.255
		{p, "2.125.175.1", "2.125.168.0/21"},
		{p, "2a02:ffc0::1", "2a02:ffc0::/32"},
		{with4, "2.125.160.1", "2.125.160.0/26"},
		{with4, "2.125.160.77", "2.125.160.64/26"},
		{with4, "2a02:ffc0::1", "2a02:ffc0::/32"},
	} {
		got := find(c.provider, c.addr, time.Now())
		if !strings.Contains(got, `"data":{"prefix":"`+c.want+`",`) {
			t.Errorf("%s: got %s, want prefix %s", c.addr, got, c.want)
		}
	}
}

// TestData checks what an answer says of itself. Its date is that of the oldest file with a record.
func TestData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the fake clock starts on 1 January 2000
		dir := t.TempDir()
		city, asn := filepath.Join(dir, "city"), filepath.Join(dir, "asn")
		mmdbtest.Write(t, city, "GeoLite2-City", map[string]mmdbtype.Map{"2.125.160.0/24": {
			"location": mmdbtype.Map{
				"accuracy_radius": mmdbtype.Uint16(500), "latitude": mmdbtype.Float64(51.75),
			},
		}})
		time.Sleep(48 * time.Hour)
		mmdbtest.WriteASN(t, asn, map[string]mmdbtest.AS{"2.125.160.0/20": {Number: 15169}})
		for _, files := range [][]string{{city, asn}, {asn, city}} {
			p := open(t, mmdb.Config{}, files...)
			defer p.Close()
			for addr, want := range map[string]string{
				"2.125.160.1": `{"prefix":"2.125.160.0/24","accuracyRadiusKm":500,"asn":15169,` +
					`"source":"mmdb","asOf":"2000-01-01"}}`,
				"2.125.161.1": `{"prefix":"2.125.161.0/24","accuracyRadiusKm":null,"asn":15169,` +
					`"source":"mmdb","asOf":"2000-01-03"}}`,
			} {
				if got := find(p, addr, time.Now()); !strings.HasSuffix(got, `,"data":`+want) {
					t.Errorf("%s: got %s, want data %s", addr, got, want)
				}
			}
		}
	})
}

// TestOffsetOfRendered looks up before and after a change to summer time.
func TestOffsetOfRendered(t *testing.T) {
	city, asn := cityAndASN(t)
	p := open(t, mmdb.Config{}, city, asn)
	change := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now  time.Time
		want string
	}{
		{change.Add(-time.Hour), `"utcOffsetSeconds":0,`},
		{change.Add(-1), `"utcOffsetSeconds":0,`},
		{change, `"utcOffsetSeconds":3600,`},
		{change.AddDate(0, 7, 0), `"utcOffsetSeconds":0,`},
	} {
		if got := find(p, "2.125.160.1", c.now); !strings.Contains(got, c.want) {
			t.Errorf("at %v: got %s, want %s", c.now, got, c.want)
		}
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	city, asn := cityAndASN(t)
	p := open(t, mmdb.Config{}, city, asn)
	addr, now, body := netip.MustParseAddr("2.125.160.216"), time.Now(), make([]byte, 0, 2048)
	find := func() {
		o := p.Find(addr, now)
		body = o.AppendDetails(body[:0], "2.125.160.216")
	}
	if n := testing.AllocsPerRun(100, find); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkFind(b *testing.B) {
	city, asn := cityAndASN(b)
	p := open(b, mmdb.Config{}, city, asn)
	addr, now, body := netip.MustParseAddr("2.125.160.216"), time.Now(), make([]byte, 0, 2048)
	b.ReportAllocs()
	for b.Loop() {
		o := p.Find(addr, now)
		body = o.AppendJSON(body[:0], "2.125.160.216")
	}
}
