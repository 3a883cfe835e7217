package httpedge_test

import (
	"testing"

	"github.com/valyala/fasthttp"
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

// allocates checks how many allocations a request makes, on average over a connection with a
// thousand of them: what the connection itself takes is a hundredth of that.
func allocates(t *testing.T, most float64, requests [][]byte) {
	t.Helper()
	handle := hot(t).Server.Handler()
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
