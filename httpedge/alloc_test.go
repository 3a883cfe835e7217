package httpedge_test

import (
	"path/filepath"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

func TestCacheHitAllocatesNothing(t *testing.T) {
	allocates(t, 0, lookupRequests())
}

func TestCachedDomainAllocatesNothing(t *testing.T) {
	allocates(t, 0, [][]byte{[]byte(
		"GET /api/lookup?q=www.example.com HTTP/1.1\r\nHost: localhost\r\n\r\n")})
}

func TestCachedBulkAllocatesLittle(t *testing.T) {
	allocates(t, 3, bulkRequests())
}

func TestLookupInFilesAllocatesNothing(t *testing.T) {
	allocates(t, 0, lookupRequests(), withFiles(t))
}

func TestBulkInFilesAllocatesLittle(t *testing.T) {
	allocates(t, 3, bulkRequests(), withFiles(t))
}

// withFiles makes a service look up the keys of benchmarks in offline files.
func withFiles(tb testing.TB) stacktest.Option {
	tb.Helper()
	city := filepath.Join(tb.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(tb, city, map[string]geo.Location{"20.0.0.0/16": {City: "Boxford"}})
	return func(c *stack.Config) {
		c.Lookups.Provider, c.Lookups.Upstream.Tier = nil, ""
		c.Lookups.Files = mmdb.Config{Files: []string{city}}
	}
}

// allocates checks how many allocations a request makes, on average over a connection with a
// thousand of them: what the connection itself takes is a hundredth of that.
func allocates(t *testing.T, most float64, requests [][]byte, options ...stacktest.Option) {
	t.Helper()
	handle := hot(t, options...).Server.Handler()
	const length = 1000
	connect := func() {
		sent := 0
		converse(t, handle, func() []byte {
			if sent++; sent > length {
				return nil
			}
			return requests[sent%len(requests)]
		}, wants(t, fasthttp.StatusOK))
	}
	connect() // grows the buffers
	if got := testing.AllocsPerRun(3, connect) / length; got > most+0.1+raceAllocations {
		t.Errorf("got %v allocations a request, want at most %v", got, most)
	}
}
