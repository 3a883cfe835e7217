package mmdb_test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

// TestMappedHasTheAnswersOfAProvider also checks which addresses have the same records.
func TestMappedHasTheAnswersOfAProvider(t *testing.T) {
	city, asn := cityAndASN(t)
	p := open(t, mmdb.Config{}, city, asn)
	m, err := mmdb.Map(city, asn)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[mmdb.Offsets]string{}
	for addr, same := range map[string]string{
		"2.125.160.1": "2.125.160", "2.125.160.200": "2.125.160", "2.125.161.1": "2.125.161",
		"2a02:ffc0::1": "2.125.160", "9.9.9.9": "none", "2a03::1": "none",
	} {
		ip := netip.MustParseAddr(addr)
		at, prefix := m.Find(ip)
		if was, known := seen[at]; known && was != same {
			t.Errorf("%s: got the offsets of %s, want others", addr, was)
		}
		seen[at] = same
		got, want := m.Answer(ip, at, prefix, time.Now()), single(t, p, addr)
		if (got.Err == nil) != (want.Err == nil) || got.Result != want.Result {
			t.Errorf("%s: got %+v, want %+v", addr, got, want)
		}
	}
	if len(seen) != 3 {
		t.Errorf("got %d different offsets, want 3", len(seen))
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestMapRefusesFiles(t *testing.T) {
	city, asn := cityAndASN(t)
	other := filepath.Join(t.TempDir(), "other.mmdb")
	mmdbtest.Write(t, other, "Sales", nil)
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{nil, "got 0 database files, want 1 to 4"},
		{[]string{city, asn, city, asn, city}, "got 5 database files, want 1 to 4"},
		{[]string{city, "absent.mmdb"}, "absent.mmdb"},
		{[]string{city, other}, other + `: database type "Sales"`},
	} {
		if _, err := mmdb.Map(c.paths...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got error %v, want one with %s", c.paths, err, c.want)
		}
	}
}
