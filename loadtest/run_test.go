package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// inBubble runs hits against a handler with a fake clock. Connections are net.Pipes.
func inBubble(t *testing.T, config Config, handler fasthttp.RequestHandler, test func(Result)) {
	t.Helper()
	inBubbleOf(t, config, func() *host { return &host{handler: handler} }, test)
}

// host is a machine with a server that can be killed.
type host struct {
	handler fasthttp.RequestHandler

	mu    sync.Mutex
	dead  bool
	conns []net.Conn // the server's ends
}

// dial connects to the server. A dead one refuses at once.
func (h *host) dial(string) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	h.conns = append(h.conns, theirs)
	server := &fasthttp.Server{Handler: h.handler}
	go func() {
		if err := server.ServeConn(theirs); err != nil {
			theirs.Close()
		}
	}()
	return ours, nil
}

// kill closes all connections and refuses others until start.
func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
	for _, c := range h.conns {
		c.Close()
	}
}

func (h *host) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = false
}

// inBubbleOf is inBubble for a host that is made in the bubble.
func inBubbleOf(t *testing.T, config Config, target func() *host, test func(Result)) {
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
		r.sleep = time.Sleep // uses the fake clock
		r.client.Dial = target().dial
		test(r.do(t.Context()))
		time.Sleep(2 * time.Minute) // until the client's connection cleaner ends
	})
}

// warmFasthttp starts fasthttp's Date goroutine outside of a bubble.
func warmFasthttp(t *testing.T) {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		ours.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
		ours.Read(make([]byte, 4096))
		ours.Close()
	}()
	server := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}
	if err := server.ServeConn(theirs); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("warm-up: %v", err)
	}
}

// stalling responds in a millisecond, but stalls in the first 200 ms.
func stalling(began time.Time) fasthttp.RequestHandler {
	return func(*fasthttp.RequestCtx) {
		time.Sleep(time.Millisecond)
		if since := time.Since(began); since < 200*time.Millisecond {
			time.Sleep(200*time.Millisecond - since)
		}
	}
}

// TestOpenModelShowsStalls has a server that stalls for 200 ms of five seconds. In the open
// model 4 % of the hits are due then and wait up to 200 ms, so p99 is 150 ms. In the closed model
// few hits are.
func TestOpenModelShowsStalls(t *testing.T) {
	for _, c := range []struct {
		name        string
		config      Config
		least, most time.Duration
	}{
		{"open", Config{Schedule: Steady(200, 5*time.Second)}, 147 * time.Millisecond, 153 * time.Millisecond},
		{"open, few connections", Config{Schedule: Steady(200, 5*time.Second), Connections: 4}, 147 * time.Millisecond, 160 * time.Millisecond},
		{"closed", Config{Concurrency: 2, Duration: 5 * time.Second}, 0, 3 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			handler := func(ctx *fasthttp.RequestCtx) { stalling(began)(ctx) }
			synctestBegan(&began)
			inBubble(t, c.config, handler, func(result Result) {
				if p99 := result.All.P99; p99 < c.least || p99 > c.most || !result.Valid() ||
					result.All.Failed > 0 {
					t.Errorf("got p99 %v, valid %v, errors %v, want %v to %v, true, none", p99,
						result.Valid(), result.All.Errors, c.least, c.most)
				}
			})
		})
	}
}

// synctestBegan sets began to the time at which every bubble begins.
func synctestBegan(began *time.Time) { *began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// TestSlowServerMakesRunInvalid uses 16 connections to a server that takes a second per request.
func TestSlowServerMakesRunInvalid(t *testing.T) {
	slow := func(*fasthttp.RequestCtx) { time.Sleep(time.Second) }
	inBubble(t, Config{Schedule: Steady(100, 10*time.Second), Connections: 16, Timeout: time.Hour},
		slow, func(result Result) {
			if result.Valid() || result.Hits < 300 || result.Hits > 336 ||
				result.Dropped != 1000-result.Hits || result.Achieved > 17 || result.Target != 100 {
				t.Errorf("got %v of %v/s, %d hits, %d dropped, valid %v, want about 16 of 100, 320, 680, false",
					result.Achieved, result.Target, result.Hits, result.Dropped, result.Valid())
			}
			if result.All.P50 < 5*time.Second || result.Took > 22*time.Second {
				t.Errorf("got a median of %v and an end after %v, want the wait since the hits were due, and the end 10 s after the schedule",
					result.All.P50, result.Took)
			}
		})
}

// TestHitsThatNeverBeginAreDropped runs against a target that does not respond. The run waits one
// timeout after its schedule, and another one for the hits under way.
func TestHitsThatNeverBeginAreDropped(t *testing.T) {
	never := func(*fasthttp.RequestCtx) { time.Sleep(time.Minute) }
	var waiting []int64
	config := Config{Schedule: Steady(100, 3*time.Second), Connections: 4, Timeout: 2 * time.Second,
		Live: func(s Second) {
			waiting = append(waiting, s.Waiting)
		}}
	inBubble(t, config, never, func(result Result) {
		if result.Took > 7*time.Second || result.Dropped < 280 || result.Valid() ||
			result.Busy != 4 || result.Each < 1900*time.Millisecond {
			t.Errorf("got an end after %v, %d dropped, %d busy for %v each, want at most 7 s, nearly 300, 4, 2 s",
				result.Took, result.Dropped, result.Busy, result.Each)
		}
		if slices.Max(waiting) < 280 || waiting[0] != 0 || waiting[len(waiting)-1] != 0 {
			t.Errorf("got %v waiting, want those that are due after the schedule's end", waiting)
		}
	})
}

func TestWhyInvalid(t *testing.T) {
	for _, c := range []struct {
		result Result
		want   string
	}{
		{Result{Achieved: 6.7, Target: 100, Busy: 2, Each: 300 * time.Millisecond}, "all 2 connections were in use, and with 300ms a hit they reach at most 6.67/s"},
		{Result{Achieved: 6.7, Target: 100, Busy: 1}, "this machine is too slow"},
		{Result{Achieved: 99.9, Target: 100, Busy: 1, Dropped: 1234, Planned: 5 * time.Second, Took: 7 * time.Second}, "1,234 hits were dropped that had not begun 2s after the schedule's end"},
	} {
		c.result.Model = "open"
		r := &Report{Result: &c.result, Connections: 2}
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), c.want) ||
			r.Verdict() != Invalid {
			t.Errorf("got %v, %s, %s, want %q", err, r.Verdict(), &text, c.want)
		}
	}
}

// TestQueriesAreLookedUpOnce has three queries, two of them equal, for a closed run.
func TestQueriesAreLookedUpOnce(t *testing.T) {
	var seen sync.Map
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if _, again := seen.LoadOrStore(q.URL.Query().Get("q"), true); again {
			t.Errorf("got %s again, want each query once", q.URL)
		}
	}))
	defer target.Close()
	scenario, err := ScenarioNamed("lookup-cold")
	if err != nil {
		t.Fatal(err)
	}
	result, err := scenario.Run(t.Context(), Setup{Target: Target{Base: target.URL},
		Queries: []string{"8.8.8.8", "EXAMPLE.com", "example.com"}},
		Config{Concurrency: 2, Duration: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	report := &Report{Result: result}
	if result.Hits != 2 || result.All.Attempts != 2 || result.Took > 10*time.Second ||
		report.Verdict() != Crossed || len(result.Checks) != 1 ||
		!strings.Contains(result.Checks[0].Seen, "all 2 were looked up") {
		t.Errorf("got %d hits, %d requests, %s, %+v, want two and the reason", result.Hits,
			result.All.Attempts, report.Verdict(), result.Checks)
	}
}

func TestSecondString(t *testing.T) {
	s := Second{Length: time.Second, Attempts: 2046, P50: 1234567 * time.Nanosecond,
		P99: 12345678 * time.Nanosecond, Failed: 1234, Left: 12 * time.Second}
	if got, want := s.String(),
		"812/s  p50 1.23ms  p99 12.3ms  1,234 failed  12s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Left, s.Waiting = 0, 55000
	if got := s.String(); !strings.HasSuffix(got, "finishing, 55,000 hits are due") {
		t.Errorf("got %q, want the number of due hits", got)
	}
}

func TestTimeoutsAreErrors(t *testing.T) {
	never := func(*fasthttp.RequestCtx) { time.Sleep(time.Minute) }
	inBubble(t, Config{Schedule: Steady(10, time.Second), Timeout: time.Second}, never,
		func(result Result) {
			if result.All.Failed != 10 || result.Broken != 10 || len(result.All.Errors) != 1 ||
				result.All.Errors[0].What != "timeout" || result.All.Statuses[0].What != "none" {
				t.Errorf("got %d failed, errors %v, statuses %v, want 10 timeouts",
					result.All.Failed, result.All.Errors, result.All.Statuses)
			}
		})
}

// TestRunEndedEarly ends a run after a quarter of its time. It is valid for that part.
func TestRunEndedEarly(t *testing.T) {
	warmFasthttp(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := newRun("http://127.0.0.1:1", Config{Schedule: Steady(100, 20*time.Second)},
			func(h *Hit) error {
				h.run.recorder.add(h.Number, "step", time.Millisecond, 200, "")
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		result := r.do(ctx)
		if !result.Ended || !result.Valid() || result.Hits < 495 || result.Hits > 501 ||
			result.Took > 6*time.Second {
			t.Errorf("got ended %v, valid %v, %d hits in %v, want true, true, about 500 in 5 s",
				result.Ended, result.Valid(), result.Hits, result.Took)
		}
	})
}

// TestKilledServerLeavesAHole kills the server for 7 of 10 s: its connections end, and others are
// refused at once. Refusals are neither throughput nor fast responses, in any form of the report.
func TestKilledServerLeavesAHole(t *testing.T) {
	target := func() *host {
		h := &host{handler: func(*fasthttp.RequestCtx) { time.Sleep(60 * time.Millisecond) }}
		time.AfterFunc(2005*time.Millisecond, h.kill)
		time.AfterFunc(9005*time.Millisecond, h.start)
		return h
	}
	inBubbleOf(t, Config{Schedule: Steady(100, 10*time.Second)}, target, func(result Result) {
		r := &Report{Scenario: "own", Schedule: "100:10s", Result: &result}
		var wants []bool
		for _, c := range []struct {
			text string
			want bool
		}{
			{"errors<90%", true}, {"errors<1%", false}, {"rate>35", false}, {"rate<31", true},
			{"attempts>99", true}, {"failures<60", false}, {"step p50>=60ms", true},
			{"step p50<50ms", false}, {"mean>=60ms", true},
		} {
			e, err := ParseExpectation(c.text)
			if err != nil {
				t.Fatal(err)
			}
			r.Expected, wants = append(r.Expected, e.Check(&result)), append(wants, c.want)
		}
		for i, want := range wants {
			if got := r.Expected[i]; got.OK != want {
				t.Errorf("got %+v, want %v", got, want)
			}
		}
		refused := slices.ContainsFunc(result.All.Errors, func(c Count) bool {
			return c.What == "connection refused" && c.Times > 690
		})
		if all := result.All; all.Attempts != 1000 || all.Failed < 700 || all.Failed > 710 ||
			!refused || r.Verdict() != Crossed || all.Max > 100*time.Millisecond {
			t.Errorf("got %+v, %s, want 1,000 attempts, 700 of them refused, crossed", all, r.Verdict())
		}
		var text, page, machine bytes.Buffer
		if err := errors.Join(r.WriteText(&text), r.WriteHTML(&page),
			r.WriteJSON(&machine)); err != nil {
			t.Fatal(err)
		}
		failed := fmt.Sprintf("%d (%s)", result.All.Failed, percent(result.All.ErrorShare()))
		for _, c := range []struct{ name, got, want string }{
			{"text", text.String(), failed}, {"text", text.String(), "CROSSED rate>35"},
			{"text", text.String(), "connection refused × "},
			{"page", page.String(), "<dt>failed</dt><dd class=\"no\">" + failed + "</dd>"},
			{"page", page.String(), "<dt>attempts</dt><dd>1,000</dd>"},
			{"page", page.String(), "✗ crossed</span> rate&gt;35"},
		} {
			if !strings.Contains(c.got, c.want) {
				t.Errorf("%s: got\n%s\nwant %q", c.name, c.got, c.want)
			}
		}
		var read jsonReport
		if err := json.Unmarshal(machine.Bytes(), &read); err != nil || read.All.Attempts != 1000 ||
			read.All.Responses != result.All.Responses() || read.All.Rate > 31 ||
			read.All.FailureRate < 69 || read.All.P50 < 60 || read.Verdict != Crossed {
			t.Errorf("got %v, %+v, want attempts, responses and failures apart", err, read.All)
		}
		if hole, before := read.Seconds[5], read.Seconds[0]; hole.Responses != 0 || hole.Rate != 0 ||
			hole.Failed < 99 || hole.P99 != nil || hole.Statuses["none"] < 99 ||
			before.Steps[0].Responses < 90 {
			t.Errorf("got %+v, %+v, want a second without a response", hole, before)
		}
		charts := r.overall(overTime(10))
		shown := r.chartGroups()[0].Charts[0].Lines[0].Path
		if hole := charts[0].Lines[0].Path; strings.Count(hole, "M") != 2 ||
			strings.Count(shown, "M") != 2 || !strings.Contains(page.String(), shown) {
			t.Errorf("got latencies %s, want them to end and to begin again", hole)
		}
		if rate := charts[2].Lines[1]; rate.Name != "responses" ||
			!strings.Contains(rate.Path, " 100.00H60.00") {
			t.Errorf("got %s %s, want none in the sixth second", rate.Name, rate.Path)
		}
	})
}

// TestFailedWorkBesideHitsKeepsTheReport has work during the run that fails, and a teardown that
// follows.
func TestFailedWorkBesideHitsKeepsTheReport(t *testing.T) {
	after := false
	scenario := Scenario{Name: "own", prepare: func(context.Context, *Setup) (*workload, error) {
		return &workload{
			hit: func(h *Hit) error {
				h.run.recorder.add(h.Number, "step", time.Millisecond, 200, "")
				return nil
			},
			during: func(context.Context, time.Duration, func(Period)) error {
				return errors.New("reach the simulator: refused")
			},
			after: func(context.Context) error { after = true; return nil },
		}, nil
	}}
	result, err := scenario.Run(t.Context(), Setup{Target: Target{Base: "http://127.0.0.1:1"}},
		Config{Schedule: Schedule{{From: 10, To: 10, For: time.Second}, {For: 5 * time.Minute}}})
	if err != nil || result.Hits != 10 || !after || len(result.Checks) != 1 ||
		result.Checks[0].OK || !strings.Contains(result.Checks[0].Seen, "refused") {
		t.Errorf("got %+v, %v, teardown %v, want ten hits, a failed check and teardown", result, err,
			after)
	}
}

// TestLastReadingIsOfTheRun: the last reading of the target's metrics comes before the connections
// of the run are closed. One more connection is that of the readings.
func TestLastReadingIsOfTheRun(t *testing.T) {
	var open atomic.Int64
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "gatehouse_http_connections_open %d\n", open.Load())
	}))
	target.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	target.Start()
	defer target.Close()
	result, err := numbered(t, "").Run(t.Context(), Setup{Target: Target{Base: target.URL,
		Admin: target.URL}}, Config{Schedule: Steady(50, 100*time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	if all := result.Resources; len(all) < 2 || all[len(all)-1].Connections < 2 {
		t.Errorf("got readings %+v, want two open connections in the last", all)
	}
}

// TestShortRestJoinsLastSecond ends a run shortly after its last full second. The rest is part of
// that second, so that it has no rate of its own.
func TestShortRestJoinsLastSecond(t *testing.T) {
	for _, c := range []struct {
		name    string
		length  time.Duration
		slow    time.Duration
		seconds int
	}{
		{"short rest", 3 * time.Second, 200 * time.Millisecond, 3},
		{"long rest", 3 * time.Second, 700 * time.Millisecond, 4},
		{"only a rest", 300 * time.Millisecond, time.Millisecond, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			slow := func(*fasthttp.RequestCtx) { time.Sleep(c.slow) }
			inBubble(t, Config{Schedule: Steady(100, c.length)}, slow, func(result Result) {
				var requests, steps, statuses int64
				for i, s := range result.Seconds {
					requests += s.Attempts
					steps += s.Steps[0].Attempts
					statuses += s.Statuses[0].Times
					if rate := perSecond(s.Attempts, s.Length); rate > 105 || i > 0 &&
						s.P99 < c.slow {
						t.Errorf("got %.0f/s and p99 %v at %v, want at most 100/s and %v", rate,
							s.P99, s.At, c.slow)
					}
				}
				if len(result.Seconds) != c.seconds || requests != result.Hits ||
					steps != requests || statuses != requests {
					t.Errorf("got %d seconds with %d requests, %d in steps, %d statuses, want %d with %d",
						len(result.Seconds), requests, steps, statuses, c.seconds, result.Hits)
				}
			})
		})
	}
}
