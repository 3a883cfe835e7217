package loadtest

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// inBubble runs hits against a handler, both in virtual time: connections are pipes in memory.
func inBubble(t *testing.T, config Config, handler fasthttp.RequestHandler, test func(Result)) {
	t.Helper()
	warmFasthttp(t)
	synctest.Test(t, func(t *testing.T) {
		r, err := newRun("http://127.0.0.1:1", config, func(h *Hit) error {
			_, err := h.Do("step", Request{Path: "/", Want: Status(200)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		server := &fasthttp.Server{Handler: handler}
		r.client.Dial = func(string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				if err := server.ServeConn(theirs); err != nil {
					theirs.Close()
				}
			}()
			return ours, nil
		}
		test(r.do(t.Context()))
		time.Sleep(2 * time.Minute) // the client's cleaner of connections ends
	})
}

// warmFasthttp starts fasthttp's clock of Date headers outside of every bubble.
func warmFasthttp(t *testing.T) {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		ours.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
		ours.Read(make([]byte, 4096))
		ours.Close()
	}()
	if err := (&fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}).ServeConn(theirs); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("warm-up: %v", err)
	}
}

// stalling answers in a millisecond, but not at all in the first 200 ms of each five seconds.
func stalling(began time.Time) fasthttp.RequestHandler {
	return func(*fasthttp.RequestCtx) {
		time.Sleep(time.Millisecond)
		if since := time.Since(began) % (5 * time.Second); since < 200*time.Millisecond {
			time.Sleep(200*time.Millisecond - since)
		}
	}
}

// TestStallsAreSeen asks a server that stalls 200 ms in each five seconds: who comes then, 4 % of all, waits up to
// 200 ms, so that p99 is 150 ms. In the closed model nobody comes.
func TestStallsAreSeen(t *testing.T) {
	for _, c := range []struct {
		name        string
		config      Config
		least, most time.Duration
	}{
		{"open", Config{Schedule: Steady(200, 20*time.Second)}, 147 * time.Millisecond, 153 * time.Millisecond},
		{"open, few connections", Config{Schedule: Steady(200, 20*time.Second), Connections: 4}, 147 * time.Millisecond, 160 * time.Millisecond},
		{"closed", Config{Concurrency: 2, Duration: 20 * time.Second}, 0, 3 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			handler := func(ctx *fasthttp.RequestCtx) { stalling(began)(ctx) }
			synctestBegan(&began)
			inBubble(t, c.config, handler, func(result Result) {
				if p99 := result.All.P99; p99 < c.least || p99 > c.most || !result.Valid() || result.All.Failed > 0 {
					t.Errorf("got p99 %v, valid %v, errors %v, want %v to %v, true, none", p99, result.Valid(), result.All.Errors, c.least, c.most)
				}
			})
		})
	}
}

// synctestBegan moves the begin of stalls to the time at which every bubble begins.
func synctestBegan(began *time.Time) { *began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// TestSlowServersMakeOpenRunsInvalid asks for more than a server of one second a request can do on 16 connections.
func TestSlowServersMakeOpenRunsInvalid(t *testing.T) {
	slow := func(*fasthttp.RequestCtx) { time.Sleep(time.Second) }
	inBubble(t, Config{Schedule: Steady(100, 10*time.Second), Connections: 16, Timeout: time.Hour}, slow, func(result Result) {
		if result.Valid() || result.Hits != 1000 || result.Achieved > 17 || result.Target != 100 {
			t.Errorf("got %v of %v/s, %d hits, valid %v, want about 16 of 100, 1000, false", result.Achieved, result.Target, result.Hits, result.Valid())
		}
		if result.All.P50 < 20*time.Second {
			t.Errorf("got a median of %v, want the wait since the hits were due", result.All.P50)
		}
	})
}

func TestTimeoutsAreErrors(t *testing.T) {
	never := func(*fasthttp.RequestCtx) { time.Sleep(time.Minute) }
	inBubble(t, Config{Schedule: Steady(10, time.Second), Timeout: time.Second}, never, func(result Result) {
		if result.All.Failed != 10 || result.Broken != 10 || len(result.All.Errors) != 1 || result.All.Errors[0].What != "no answer in time" || result.All.Statuses[0].What != "none" {
			t.Errorf("got %d failed, errors %v, statuses %v, want 10 without an answer in time", result.All.Failed, result.All.Errors, result.All.Statuses)
		}
	})
}

// TestRunsEndEarly ends a run after a quarter of its time: it is valid for as far as it came.
func TestRunsEndEarly(t *testing.T) {
	warmFasthttp(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := newRun("http://127.0.0.1:1", Config{Schedule: Steady(100, 20*time.Second)}, func(h *Hit) error {
			h.run.recorder.add(h.Number, "step", time.Millisecond, 200, "")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		result := r.do(ctx)
		if !result.Ended || !result.Valid() || result.Hits < 495 || result.Hits > 505 || result.Took > 6*time.Second {
			t.Errorf("got ended %v, valid %v, %d hits in %v, want true, true, about 500 in 5 s", result.Ended, result.Valid(), result.Hits, result.Took)
		}
	})
}

// TestRestOfARunMakesNoSpike lets a run end shortly after its last full second: what was seen in the rest is part of that second.
func TestRestOfARunMakesNoSpike(t *testing.T) {
	for _, c := range []struct {
		name    string
		length  time.Duration
		slow    time.Duration
		seconds int
	}{
		{"short rest", 3 * time.Second, 200 * time.Millisecond, 3},
		{"long rest", 3 * time.Second, 700 * time.Millisecond, 4},
		{"nothing but a rest", 300 * time.Millisecond, time.Millisecond, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			slow := func(*fasthttp.RequestCtx) { time.Sleep(c.slow) }
			inBubble(t, Config{Schedule: Steady(100, c.length)}, slow, func(result Result) {
				var requests, steps, statuses int64
				for i, s := range result.Seconds {
					requests += s.Requests
					steps += s.Steps[0].Requests
					statuses += s.Statuses[0].Times
					if rate := perSecond(s.Requests, s.Length); rate > 105 || i > 0 && s.P99 < c.slow {
						t.Errorf("got %.0f/s and p99 %v at %v, want at most 100/s and %v", rate, s.P99, s.At, c.slow)
					}
				}
				if len(result.Seconds) != c.seconds || requests != result.Hits || steps != requests || statuses != requests {
					t.Errorf("got %d seconds with %d requests, %d in steps, %d statuses, want %d with %d", len(result.Seconds), requests, steps, statuses, c.seconds, result.Hits)
				}
			})
		})
	}
}
