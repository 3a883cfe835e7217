package sim_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/providers/sim"
)

func TestStatusFault(t *testing.T) {
	for _, row := range []struct {
		tier   sim.Tier
		status int
		delay  time.Duration
		left   string
		ttl    string
	}{
		{sim.TierOpen, 503, 0, "", ""},
		{sim.TierFree, 500, 0, "", ""},
		{sim.TierFree, 403, 0, "", ""},
		{sim.TierOpen, 429, 0, "", ""},
		{sim.TierOpen, 429, 7 * time.Second, "0", "7"},
		{sim.TierFree, 429, 0, "0", "60"},
		{sim.TierFree, 429, 7 * time.Second, "0", "7"},
	} {
		u := start(t, sim.Settings{Tier: row.tier,
			Faults: []sim.Fault{{Kind: sim.FaultStatus, Status: row.status, Delay: row.delay}}})
		for _, got := range []reply{u.get("/json/8.8.8.8"),
			u.do(http.MethodPost, "/batch", `["8.8.8.8"]`)} {
			left, ttl := got.header.Get("X-Rl"), got.header.Get("X-Ttl")
			if got.status != row.status || left != row.left || ttl != row.ttl ||
				strings.Contains(string(got.body), "success") {
				t.Errorf("%s: got %d %q %q, want %d %q %q", row.tier, got.status, left, ttl,
					row.status, row.left, row.ttl)
			}
		}
		if got := u.Stats(); got.Faults[sim.FaultStatus] != 2 || got.Items != 0 ||
			got.Violations != 0 {
			t.Errorf("got %+v, want two faults and no items", got)
		}
	}
}

func TestGarbageFault(t *testing.T) {
	u := start(t, sim.Settings{Tier: sim.TierFree, Faults: []sim.Fault{{Kind: sim.FaultGarbage}}})
	got := u.get("/json/8.8.8.8")
	if got.status != 200 || json.Valid(got.body) || len(got.body) == 0 ||
		got.header.Get("X-Rl") != "44" {
		t.Errorf("got %d %s %v, want 200, no JSON, and the budget", got.status,
			got.body, got.header)
	}
}

func TestBatchFaults(t *testing.T) {
	u := start(t, sim.Settings{Faults: []sim.Fault{{Kind: sim.FaultShortBatch}}})
	if got := u.batch(`["8.8.8.8","1.1.1.1","9.9.9.9"]`); len(got) != 2 ||
		got[1]["query"] != "1.1.1.1" {
		t.Errorf("got %v, want the first two of three", got)
	}
	if got := u.batch(`["8.8.8.8"]`); len(got) != 0 {
		t.Errorf("got %v, want none of one", got)
	}
	if err := u.Change(sim.Settings{Faults: []sim.Fault{{Kind: sim.FaultBadElement}}}); err != nil {
		t.Fatal(err)
	}
	got := u.batch(`["8.8.8.8","1.1.1.1","9.9.9.9"]`)
	if len(got) != 3 || got[0]["query"] != "8.8.8.8" || got[2]["query"] != "9.9.9.9" {
		t.Fatalf("got %v, want a bad element between two good ones", got)
	}
	if _, text := got[1]["status"].(string); text {
		t.Errorf("got status %v, want one of a wrong type", got[1]["status"])
	}
	if got := u.lookup("8.8.8.8"); got["status"] != "success" {
		t.Errorf("got %v, want success for a single lookup", got)
	}
	if got := u.Stats().Faults; got[sim.FaultShortBatch] != 2 || got[sim.FaultBadElement] != 1 ||
		len(got) != 2 {
		t.Errorf("got %v, want 2 short batches and 1 bad element", got)
	}
}

func TestLostConnections(t *testing.T) {
	for _, row := range []struct {
		kind sim.FaultKind
		want error
	}{
		{sim.FaultDrop, io.EOF},
		{sim.FaultReset, syscall.ECONNRESET},
	} {
		u := start(t,
			sim.Settings{Faults: []sim.Fault{{Kind: row.kind, Endpoint: sim.EndpointBatch}}})
		if got, err := u.try(http.MethodPost, "/batch", `["8.8.8.8"]`); !errors.Is(err, row.want) {
			t.Errorf("%s: got %d and error %v, want %v", row.kind, got.status, err, row.want)
		}
		if got := u.lookup("8.8.8.8"); got["status"] != "success" {
			t.Errorf("%s: got %v, want success at the other endpoint", row.kind, got)
		}
	}
}

func TestHang(t *testing.T) {
	hang := func(delay time.Duration) *upstream {
		u := start(t, sim.Settings{Faults: []sim.Fault{{Kind: sim.FaultHang, Delay: delay}}})
		u.client.Timeout = 5 * time.Minute
		return u
	}
	t.Run("ends with the delay", func(t *testing.T) {
		begun := time.Now()
		if _, err := hang(50*time.Millisecond).try("GET", "/json/8.8.8.8",
			""); !errors.Is(err, io.EOF) {
			t.Errorf("got error %v, want EOF", err)
		}
		if took := time.Since(begun); took < 50*time.Millisecond {
			t.Errorf("took %v, want 50 ms", took)
		}
	})
	t.Run("does not respond", func(t *testing.T) {
		u := hang(0)
		u.client.Timeout = 50 * time.Millisecond
		if _, err := u.try("GET", "/json/8.8.8.8", ""); err == nil {
			t.Error("got a response, want none")
		}
	})
}

func TestShutdownEndsHang(t *testing.T) {
	u := start(t, sim.Settings{Faults: []sim.Fault{{Kind: sim.FaultHang}}})
	done := make(chan error, 1)
	go func() {
		_, err := u.try("POST", "/batch", "[]")
		done <- err
	}()
	for u.Stats().Requests == 0 {
		u.get("/_sim")
	}
	if err := u.Shutdown(t.Context()); err != nil {
		t.Errorf("shut down: %v", err)
	}
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("got error %v, want EOF", err)
	}
}

func TestShutdownDoesNotWaitForSilentConnections(t *testing.T) {
	u := start(t, sim.Settings{})
	silent, err := net.Dial("tcp", strings.TrimPrefix(u.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	u.get("/_sim")
	begun := time.Now()
	if err := u.Shutdown(t.Context()); err != nil {
		t.Errorf("shut down: %v", err)
	}
	if took := time.Since(begun); took > 4900*time.Millisecond {
		t.Errorf("took %v, want less than fasthttp's 5 s", took)
	}
	if err := silent.Close(); err != nil {
		t.Error(err)
	}
}

func TestServeAfterShutdownReturns(t *testing.T) {
	s := sim.New(sim.Config{})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got error %v, want a closed listener", err)
	}
}

func TestShutdownEndsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{Settings: sim.Settings{Latency: time.Hour}})
		begun := time.Now()
		answered := make(chan int)
		go func() { answered <- call(s, "GET", "/json/8.8.8.8", "").StatusCode() }()
		synctest.Wait()
		if got := s.Stats(); got.InFlight != 1 || got.InFlightMax != 1 {
			t.Errorf("got %+v, want 1 in flight", got)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if got := <-answered; got != 200 || time.Since(begun) != 0 {
			t.Errorf("got %d after %v, want 200 at once", got, time.Since(begun))
		}
		if got := s.Stats().InFlight; got != 0 {
			t.Errorf("got %d in flight, want 0", got)
		}
	})
}

func TestLatencyJitterAndSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{Settings: sim.Settings{
			Latency: 20 * time.Millisecond,
			Faults:  []sim.Fault{{Kind: sim.FaultSlow, Delay: time.Second, Times: 1}},
		}})
		took := func() time.Duration {
			begun := time.Now()
			if got := single(s); got != "200  " {
				t.Errorf("got %s, want 200", got)
			}
			return time.Since(begun)
		}
		if got := took(); got != 1020*time.Millisecond {
			t.Errorf("slow: took %v, want 1.02s", got)
		}
		if got := took(); got != 20*time.Millisecond {
			t.Errorf("then: took %v, want 20ms", got)
		}
		if err := s.Change(sim.Settings{Latency: 20 * time.Millisecond,
			Jitter: 10 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		seen := map[time.Duration]bool{}
		for range 100 {
			d := took()
			if d < 20*time.Millisecond || d >= 30*time.Millisecond {
				t.Fatalf("took %v, want 20 to 30 ms", d)
			}
			seen[d] = true
		}
		if len(seen) < 50 {
			t.Errorf("got %d different times of 100, want jitter", len(seen))
		}
	})
}

func TestRateAndTimes(t *testing.T) {
	s := sim.New(sim.Config{Settings: sim.Settings{Faults: []sim.Fault{
		{Kind: sim.FaultStatus, Status: 500, Times: 3},
		{Kind: sim.FaultStatus, Status: 502, Rate: 0.25},
		{Kind: sim.FaultStatus, Status: 503, Rate: 1, Endpoint: sim.EndpointBatch},
	}}})
	got := map[string]int{}
	for i := range 2000 {
		status := single(s)
		if (status == "500  ") != (i < 3) {
			t.Fatalf("request %d: got %s, want 500 for the first three", i, status)
		}
		got[status]++
	}
	if n := got["502  "]; n < 400 || n > 600 {
		t.Errorf("got %d faults in 1997 requests, want about 500", n)
	}
	if got["503  "] > 0 {
		t.Errorf("got %d faults of the other endpoint, want 0", got["503  "])
	}
}

func TestViolationsAreCountedDuringFaults(t *testing.T) {
	s := sim.New(sim.Config{Settings: sim.Settings{Tier: sim.TierFree, SinglesPerWindow: 1,
		Faults: []sim.Fault{{Kind: sim.FaultGarbage}}}})
	for range 3 {
		single(s)
	}
	if got := s.Stats(); got.Violations != 2 || got.Faults[sim.FaultGarbage] != 1 {
		t.Errorf("got %d violations and %v, want 2 and one fault", got.Violations, got.Faults)
	}
}

func TestCountsAreExact(t *testing.T) {
	u := start(t, sim.Settings{Tier: sim.TierFree, SinglesPerWindow: 100, BatchesPerWindow: 50})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 25 {
				for _, r := range [][3]string{{"GET", "/json/8.8.8.8", ""},
					{"POST", "/batch", `["1.1.1.1","9.9.9.9"]`}, {"GET", "/_sim", ""}} {
					if _, err := u.try(r[0], r[1], r[2]); err != nil {
						t.Errorf("%s %s: %v", r[0], r[1], err)
					}
				}
			}
		})
	}
	clients.Wait()
	got := u.Stats()
	if got.Requests != 400 || got.Singles != 200 || got.Batches != 200 || got.EmptyBudget != 250 ||
		got.Items != 200 || got.Repeats != 197 {
		t.Errorf("got %+v, want 200 of each, 250 over the budget, 200 items, 197 repeats", got)
	}
	if got.InFlight != 0 || got.InFlightMax < 1 || got.InFlightMax > 8 {
		t.Errorf("got %d in flight and %d at most, want 0 and 1 to 8", got.InFlight,
			got.InFlightMax)
	}
}
