package httpedge_test

import (
	"testing"

	"github.com/valyala/fasthttp"
)

func TestCacheHitAllocatesNothing(t *testing.T) {
	x, requests := newExchange(hot(t).Server.Handler()), lookupRequests()
	allocates(t, 0, func(i int) { x.expect(t, fasthttp.StatusOK, requests[i%len(requests)]) })
}

func TestCachedDomainAllocatesNothing(t *testing.T) {
	x := newExchange(hot(t).Server.Handler())
	request := []byte("GET /api/lookup?q=www.example.com HTTP/1.1\r\nHost: localhost\r\n\r\n")
	allocates(t, 0, func(int) { x.expect(t, fasthttp.StatusOK, request) })
}

func TestCachedBulkAllocatesLittle(t *testing.T) {
	x, requests := newExchange(hot(t).Server.Handler()), bulkRequests()
	allocates(t, 3, func(i int) { x.expect(t, fasthttp.StatusOK, requests[i%len(requests)]) })
}

// allocates checks how many allocations a call of do makes on average, rounded down. The first calls may make more.
func allocates(t *testing.T, most float64, do func(i int)) {
	t.Helper()
	n := 0
	next := func() { do(n); n++ }
	for range 200 {
		next()
	}
	if got := testing.AllocsPerRun(2000, next); got > most+raceAllocations {
		t.Errorf("got %v allocations, want at most %v", got, most)
	}
}
