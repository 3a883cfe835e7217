//go:build !race

package httpedge_test

import (
	"path/filepath"
	"runtime"
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

// fasthttp fits its buffers to the most frequent sizes after 42,000 responses of one size.
func TestBulkAfterSmallResponsesAllocatesLittle(t *testing.T) {
	st, bulk := hot(t), bulkRequests()
	small := []byte("GET /api/lookup?q=20.0.0.1&fields=country HTTP/1.1\r\nHost: localhost\r\n\r\n")
	serve := func(times int, request func(i int) []byte) {
		sent := 0
		converse(t, st, func() []byte {
			if sent++; sent > times {
				return nil
			}
			return request(sent)
		}, wants(t, fasthttp.StatusOK))
	}
	serve(45_000, func(int) []byte { return small })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times, most = 200, 8 << 10 // a response has 16 KiB
	serve(times, func(i int) []byte { return bulk[i%len(bulk)] })
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / times; got > most {
		t.Errorf("got %d bytes a bulk request, want at most %d", got, most)
	}
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

// byFasthttp is what fasthttp allocates for each request: the byte that it waits for without a buffer.
const byFasthttp = 1

// allocates checks how many allocations a request makes, on average over a connection with 250 of
// them: what the connection itself takes is a twentieth of that.
func allocates(t *testing.T, most float64, requests [][]byte, options ...stacktest.Option) {
	t.Helper()
	st := hot(t, options...)
	const length = 250
	connect := func() {
		sent := 0
		converse(t, st, func() []byte {
			if sent++; sent > length {
				return nil
			}
			return requests[sent%len(requests)]
		}, wants(t, fasthttp.StatusOK))
	}
	connect() // grows the buffers
	got := testing.AllocsPerRun(3, connect)/length - byFasthttp
	if got > most+0.1 {
		t.Errorf("got %v allocations a request, want at most %v", got, most)
	}
}
