package loadtest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// counted returns the result of a run of 100 requests, of which failed failed.
func counted(failed int) *Result {
	t := newTally()
	for i := range 100 {
		t.statuses[200]++
		if i < failed {
			t.errors["wrong"]++
			continue
		}
		if err := t.latency.RecordValue(1000); err != nil {
			panic(err)
		}
	}
	result := &Result{Model: "closed", All: newStep("all", t, time.Second)}
	result.Steps = []Step{newStep("lookup", t, time.Second)}
	return result
}

// TestDefaultErrorThreshold has runs with and without a threshold for errors.
func TestDefaultErrorThreshold(t *testing.T) {
	for _, c := range []struct {
		failed int
		expect string
		want   Verdict
		text   string
	}{
		{0, "", Passed, "ok      errors<1% (default): 0%"},
		{1, "", Crossed, "CROSSED errors<1% (default): 1% (1 of 100)"},
		{1, "lookup p99<1s", Crossed, "CROSSED errors<1% (default)"},
		{1, "errors<5%", Passed, "ok      errors<5%: 1%"},
		{1, "lookup errors<5%", Passed, "ok      lookup errors<5%"},
		{99, "errors<100%", Passed, "ok      errors<100%"},
		{100, "errors<=100%", Crossed, "CROSSED some request gets the expected response: 100 of 100 failed"},
		{100, "", Crossed, "100 (100%)"},
	} {
		r := &Report{Scenario: "lookup-hot", Result: counted(c.failed)}
		var all []Expectation
		if c.expect != "" {
			e, err := ParseExpectation(c.expect)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		r.Expect(all...)
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if got := r.Verdict(); got != c.want || !strings.Contains(text.String(), c.text) ||
			c.expect != "" && strings.Contains(c.expect, "errors") &&
				strings.Contains(text.String(), "default") {
			t.Errorf("%d failed, %q: got %s\n%s\nwant %s with %q", c.failed, c.expect, got, &text,
				c.want, c.text)
		}
	}
}

// TestRateLimitCheck counts the requests that passed in windows of tokens.
func TestRateLimitCheck(t *testing.T) {
	for _, c := range []struct {
		windows      []window
		ok, untested bool
		seen         string
	}{
		{nil, true, true, "at most 0"},
		{[]window{{passed: 43}}, true, true, "no token reached its limit: at most 43"},
		{[]window{{passed: 100}}, true, true, "at most 100"},
		{[]window{{passed: 100, refused: 1}, {passed: 7}}, true, false, "true in all 1 windows that reached the limit"},
		{[]window{{passed: 101}}, false, false, "not true in 1 windows; 0 reached the limit"},
		{[]window{{passed: 99, refused: 1}, {passed: 100, refused: 5}}, false, false, "not true in 1 windows; 2 reached the limit"},
	} {
		use := profileUse{windows: map[[2]uint64]*window{}}
		for i, w := range c.windows {
			use.windows[[2]uint64{uint64(i), 0}] = &w
		}
		if got := use.exact(); got.OK != c.ok || got.Untested != c.untested ||
			!strings.Contains(got.Seen, c.seen) {
			t.Errorf("%v: got %+v, want %v, %v, %q", c.windows, got, c.ok, c.untested, c.seen)
		}
	}
}

func TestReportMarksUntestedChecks(t *testing.T) {
	r := &Report{Result: counted(0)}
	r.Result.Checks = []Check{{What: "limits", OK: true, Untested: true, Seen: "nothing"},
		{What: "goroutines", OK: true, Seen: "all"}}
	var text, machine bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&machine)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\nnot tested limits: nothing\n") ||
		!strings.Contains(text.String(), "\nok      goroutines: all\n") ||
		strings.Count(machine.String(), `"not_tested": true`) != 1 {
		t.Errorf("got %s\n%s\nwant one check that was not tested", &text, &machine)
	}
}

func TestSoakComparesQuarters(t *testing.T) {
	memory := func(r Resource) float64 { return r.Memory }
	var all []Resource
	for i := range 7 {
		all = append(all, Resource{Memory: float64(90 + i)})
	}
	if got := flat(all, "%.1f MB", memory); !got.OK || !got.Untested ||
		!strings.Contains(got.Seen, "7 times") {
		t.Errorf("got %+v, want too few readings to be no test", got)
	}
	if got := flat(append(all, Resource{Memory: 97}), "%.1f MB", memory); !got.OK || got.Untested ||
		got.Seen != "93.0 MB in the second quarter, 97.0 MB in the last" {
		t.Errorf("got %+v, want flat memory", got)
	}
	if got := flat(append(all, Resource{Memory: 300}), "%.1f MB", memory); got.OK {
		t.Errorf("got %+v, want the rise to fail", got)
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0%", 1: "100%", 0.99999: "99.9%",
		0.12345: "12.3%", 0.0001: "0.01%"} {
		if got := percent(share); got != want {
			t.Errorf("%v: got %s, want %s", share, got, want)
		}
	}
}

// TestBrokenFlowsAreErrors makes hits fail after right responses.
func TestBrokenFlowsAreErrors(t *testing.T) {
	r, err := newRun("http://127.0.0.1:1", Config{Schedule: Steady(100, 100*time.Millisecond)},
		func(h *Hit) error {
			h.run.recorder.add(h.Number, "page", time.Millisecond, 200, "")
			return errors.New("a page has no form")
		})
	if err != nil {
		t.Fatal(err)
	}
	if result := r.do(t.Context()); result.Broken != 10 || result.All.Failed != 10 ||
		result.Steps[0].Name != "flow" || result.Steps[0].Errors[0].What != "a page has no form" {
		t.Errorf("got %d broken, %+v, want 10 errors of the flow", result.Broken, result.Steps)
	}
}
