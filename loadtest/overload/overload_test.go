package overload_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/stack"
	"gatehouse/httpedge/edgetest"
	"gatehouse/httpedge/edgetest/emulator"
	"gatehouse/loadtest/overload"
	"gatehouse/providers/ipapi"
)

const (
	// heapBound is what the test may add to the heap by all that was asked, with both ends of 2,000 connections still open.
	// What tests before it left behind is none of its business.
	heapBound = 96 << 20
	// growthBound is what twice as many queries may add to that.
	growthBound = 2 << 20
)

// TestOverloadLeavesCachedLookupsServed has 2,000 idle connections, 200 clients that send a byte a second, and as many
// of 10,000 garbage queries a second as the machine can make, twice.
func TestOverloadLeavesCachedLookupsServed(t *testing.T) {
	before := heap()
	e := emulator.New(t, emulator.Config{Singles: emulator.FreeSingles, Batches: emulator.FreeBatches})
	s := edgetest.New(t,
		func(c *stack.Config) {
			c.Lookups.Upstream = ipapi.Config{Base: e.URL, Tier: ipapi.Free}
			c.Lookups.Timeout, c.ReadTimeout = 5*time.Second, 3*time.Second
			c.Log = io.Discard // edgetest keeps every line in memory
		})
	response, err := s.Client.Get(s.URL + "/api/lookup?q=8.8.8.8")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got %d %v, want 200 and the lookup in the cache", response.StatusCode, err)
	}
	var held [2]uint64
	for round := range held {
		report, err := overload.Run(context.Background(), overload.Config{
			Address: strings.TrimPrefix(s.URL, "http://"), Duration: 6 * time.Second,
			Idle: 2000, Slow: 200, Garbage: 10_000, Flooder: 64,
			Cached: "8.8.8.8", CachedRate: 100,
			AtEnd: func() { held[round] = heap() },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("garbage: %v, %d more were due; cached: %d, p99 %v; heap %d KiB before, then %d KiB",
			report.Garbage, report.GarbageMissed, len(report.Cached), report.Cached.Quantile(0.99), before>>10, held[round]>>10)
		checkOverload(t, report)
	}
	if held[1] > before+heapBound || held[1] > held[0]+growthBound {
		t.Errorf("got a heap of %d, then of %d KiB, want at most %d above the %d before and no growth",
			held[0]>>10, held[1]>>10, heapBound>>10, before>>10)
	}
}

func checkOverload(t *testing.T, report overload.Report) {
	t.Helper()
	if len(report.CachedWrong) > 0 || len(report.Cached) < 500 {
		t.Errorf("got %d cached look-ups, and %v, want all of 600 answered 200 from the cache", len(report.Cached), report.CachedWrong)
	}
	if report.Idle != 2000 {
		t.Errorf("got %d idle connections alive, want 2000", report.Idle)
	}
	if report.SlowEnded < 200 {
		t.Errorf("got %d slow connections ended, want each of 200 once", report.SlowEnded)
	}
	garbage := report.Garbage
	if garbage[400] < 2500 || garbage[429] < 2500 || garbage[0] > 0 || garbage[500] > 0 {
		t.Errorf("got %v for garbage, want 400 for what is malformed and 429 for what there is no budget for", garbage)
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools give back what they hold in two steps
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
