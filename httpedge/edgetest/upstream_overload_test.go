package edgetest_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/httpedge/edgetest/emulator"
	"gatehouse/httpedge/edgetest/overload"
	"gatehouse/providers/ipapi"
)

// heapBound is what the test may hold after all that was asked, with both ends of 2,000 connections still open.
const heapBound = 160 << 20

// TestOverloadLeavesCachedLookupsServed has 2,000 idle connections, 200 clients that send a byte a second, and as many
// of 10,000 garbage queries a second as the machine can make.
func TestOverloadLeavesCachedLookupsServed(t *testing.T) {
	e := emulator.New(t, freeTier())
	s := newService(t, e, ipapi.Free)
	s.lookup("8.8.8.8").located(t, "8.8.8.8", "miss")
	before, after := heap(), uint64(0)
	report, err := overload.Run(context.Background(), overload.Config{
		Address: strings.TrimPrefix(s.URL, "http://"), Duration: 8 * time.Second,
		Idle: 2000, Slow: 200, Garbage: 10_000, Flooder: 64,
		Cached: "8.8.8.8", CachedRate: 100,
		AtEnd: func() { after = heap() },
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, n := range report.Garbage {
		sent += n
	}
	t.Logf("garbage: %d sent, %v, %d more were due; cached: %d, p99 %v; heap %d → %d KiB",
		sent, report.Garbage, report.GarbageMissed, len(report.Cached), report.Cached.Quantile(0.99), before>>10, after>>10)

	if len(report.CachedWrong) > 0 || len(report.Cached) < 700 {
		t.Errorf("got %d cached look-ups, and %v, want all of 800 answered 200 from the cache", len(report.Cached), report.CachedWrong)
	}
	if report.Idle != 2000 {
		t.Errorf("got %d idle connections alive, want 2000", report.Idle)
	}
	if report.SlowEnded < 200 {
		t.Errorf("got %d slow connections ended, want each of 200 once", report.SlowEnded)
	}
	if sent < 10_000 || report.Garbage[400] == 0 || report.Garbage[429] == 0 || report.Garbage[0] > 0 || report.Garbage[500] > 0 {
		t.Errorf("got %v for garbage, want 400 for what is malformed and 429 for what there is no budget for", report.Garbage)
	}
	if after > heapBound {
		t.Errorf("got a heap of %d MiB after all that, want at most %d", after>>20, heapBound>>20)
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
