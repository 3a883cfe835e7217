package loadtest_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"gatehouse/loadtest"
)

// measured returns a report of an open run with one step and no errors.
func measured(requests int64) *loadtest.Report {
	step := loadtest.Step{Name: "lookup", Attempts: requests, Rate: 100, P50: time.Millisecond,
		P99: 2 * time.Millisecond, P999: 3 * time.Millisecond}
	all := step
	all.Name = "all"
	return &loadtest.Report{Scenario: "lookup-hot", Schedule: "100:10s", Baseline: "before.json",
		Result: &loadtest.Result{
			Model: "open", Target: 100, Achieved: 100, Planned: 10 * time.Second,
			Steps: []loadtest.Step{step}, All: all,
			Settings: loadtest.Settings{Target: "http://127.0.0.1:8080"},
		}}
}

func baselineOf(t *testing.T, r *loadtest.Report) *loadtest.Baseline {
	t.Helper()
	var text bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	b, err := loadtest.ReadBaseline(&text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestComparable(t *testing.T) {
	like := func(rate float64, d time.Duration) loadtest.Config {
		return loadtest.Config{Schedule: loadtest.Steady(rate, d)}
	}
	invalid, ended := measured(1000), measured(1000)
	invalid.Result.Achieved, ended.Result.Ended = 50, true
	users := measured(1000)
	users.Schedule, users.Concurrency, users.Result.Model = "", 8, "closed"
	for _, c := range []struct {
		name     string
		baseline *loadtest.Report
		scenario string
		setup    loadtest.Setup
		config   loadtest.Config
		want     string // "" = no error
	}{
		{"the same", measured(1000), "lookup-hot", loadtest.Setup{}, like(100, 10*time.Second), ""},
		{"scenario", measured(1000), "bulk", loadtest.Setup{}, like(100, 10*time.Second), "of lookup-hot, not of bulk"},
		{"rate", measured(1000), "lookup-hot", loadtest.Setup{}, like(200, 10*time.Second), "of 100 hits/s for 10s (open model), not of 200 hits/s for 10s"},
		{"duration", measured(1000), "lookup-hot", loadtest.Setup{}, like(100, 5*time.Second), "not of 100 hits/s for 5s"},
		{"model", measured(1000), "lookup-hot", loadtest.Setup{}, loadtest.Config{Concurrency: 8, Duration: 10 * time.Second}, "not of 8 users for 10s (closed model)"},
		{"closed, the same", users, "lookup-hot", loadtest.Setup{}, loadtest.Config{Concurrency: 8, Duration: 10 * time.Second}, ""},
		{"users", users, "lookup-hot", loadtest.Setup{}, loadtest.Config{Concurrency: 9, Duration: 10 * time.Second}, "of 8 users"},
		{"closed, duration", users, "lookup-hot", loadtest.Setup{}, loadtest.Config{Concurrency: 8, Duration: 5 * time.Second}, "for 10s"},
		{"mix", measured(1000), "lookup-hot", loadtest.Setup{Mix: map[string]float64{"bulk": 2}}, like(100, 10*time.Second), "not of bulk=2"},
		{"invalid", invalid, "lookup-hot", loadtest.Setup{}, like(100, 10*time.Second), "invalid run"},
		{"ended", ended, "lookup-hot", loadtest.Setup{}, like(100, 10*time.Second), "ended early"},
	} {
		err := baselineOf(t, c.baseline).Comparable(c.scenario, c.setup, c.config)
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := baselineOf(t, users).Compare(measured(1000)); err == nil {
		t.Error("got no error for a run of another model, want one")
	}
}

// TestPercentilesNeedEnoughRequests compares runs whose percentiles have all tripled.
func TestPercentilesNeedEnoughRequests(t *testing.T) {
	for _, c := range []struct {
		before, now int64
		want        string
	}{
		{20, 20, "p50"}, {99, 20_000, "p50"}, {100, 100, "p50 p99"}, {9_999, 10_000, "p50 p99"}, {10_000, 9_999, "p50 p99"}, {10_000, 10_000, "p50 p99 p99.9"},
	} {
		now := measured(c.now)
		step := &now.Result.Steps[0]
		step.P50, step.P99, step.P999 = 3*step.P50, 3*step.P99, 3*step.P999
		worse, err := baselineOf(t, measured(c.before)).Compare(now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range worse {
			got = append(got, strings.Fields(line)[1])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%d and %d requests: got %q, want %s", c.before, c.now, worse, c.want)
		}
	}
}

// TestTextHasVerdictAndComparison checks the last line of the text.
func TestTextHasVerdictAndComparison(t *testing.T) {
	for _, c := range []struct {
		worse []string
		want  string
	}{
		{[]string{}, "passed, and nothing is worse than in before.json\n"},
		{[]string{"a"}, "passed, and 1 figure is worse than in before.json\n"},
		{[]string{"a", "b"}, "passed, and 2 figures are worse than in before.json\n"},
	} {
		r := measured(1000)
		r.Worse = c.worse
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil || !strings.HasSuffix(text.String(), c.want) ||
			r.Regressed() != (len(c.worse) > 0) {
			t.Errorf("got %q, %v, %v, want %q at its end", text.String(), err,
				r.Regressed(), c.want)
		}
	}
}
