package loadtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"time"
)

// Differences from the baseline beyond which a figure is worse. Runs on one machine always differ.
const (
	worseLatency = 1.25  // factor
	worseRate    = 0.95  // factor
	worseErrors  = 0.001 // share of the requests
)

// Numbers of responses that both runs need to compare a percentile. With fewer it depends on a few
// responses.
const (
	enoughForP99  = 100
	enoughForP999 = 10_000
)

// Baseline is an earlier report.
type Baseline struct{ report jsonReport }

// ReadBaseline reads a report from WriteJSON.
func ReadBaseline(r io.Reader) (*Baseline, error) {
	var b Baseline
	if err := json.NewDecoder(r).Decode(&b.report); err != nil || b.report.Scenario == "" ||
		b.report.All.Attempts == 0 {
		return nil, fmt.Errorf("is no report of a load test (create one with --json)")
	}
	return &b, nil
}

// Comparable returns an error if a run of the scenario with s and config cannot be compared with
// the baseline: the baseline has another scenario, mix, model, rate, number of users or duration,
// or did not run to its end.
func (b *Baseline) Comparable(scenario string, s Setup, config Config) error {
	planned := (&run{config: config}).planned()
	return b.comparable(scenario, s.Mix, load{config.Schedule.String(),
		config.Concurrency, planned})
}

// Compare returns what is worse in r than in the baseline. The list is never nil. It returns an
// error if the two cannot be compared.
func (b *Baseline) Compare(r *Report) ([]string, error) {
	old := b.report
	if err := b.comparable(r.Scenario, r.Result.Settings.Mix,
		load{r.Schedule, r.Concurrency, r.Result.Planned}); err != nil {
		return nil, err
	}
	steps := old.Steps
	if len(steps) > 1 {
		steps = append(steps, old.All)
	}
	worse := []string{}
	for _, before := range steps {
		step, ok := r.Result.step(before.Step)
		if !ok {
			worse = append(worse, fmt.Sprintf("%s was never executed", before.Step))
			continue
		}
		worse = append(worse, compareStep(before, newJSONStep(&step))...)
	}
	return worse, nil
}

// load is the amount of load of a run.
type load struct {
	schedule    string // "" = closed model
	concurrency int
	planned     time.Duration
}

// String returns the load in words.
func (l load) String() string {
	if l.schedule == "" {
		return fmt.Sprintf("%d users for %v (closed model)", l.concurrency, l.planned)
	}
	return scheduleText(l.schedule, l.planned)
}

// scheduleText returns a schedule in words if it has one rate, or else its stages.
func scheduleText(schedule string, planned time.Duration) string {
	if rate, _, _ := strings.Cut(schedule, ":"); !strings.Contains(schedule, ",") &&
		!strings.Contains(rate, "..") {
		return fmt.Sprintf("%s hits/s for %v (open model)", rate, planned)
	}
	return fmt.Sprintf("stages %s hits/s (open model)", schedule)
}

func (b *Baseline) comparable(scenario string, mix map[string]float64, now load) error {
	old := b.report
	before := load{old.Schedule, old.Concurrency,
		time.Duration(math.Round(old.Planned * float64(time.Second)))}
	switch {
	case old.Scenario != scenario:
		return fmt.Errorf("the baseline is of %s, not of %s", old.Scenario, scenario)
	case !maps.Equal(old.Settings.Mix, mix):
		return fmt.Errorf("the baseline is of the mix %s, not of %s",
			mixText(old.Settings.Mix), mixText(mix))
	case before != now:
		return fmt.Errorf("the baseline is of %v, not of %v", before, now)
	case old.Verdict == Invalid:
		return errors.New("the baseline is of an invalid run")
	case old.Ended:
		return errors.New("the baseline is of a run that was ended early")
	}
	return nil
}

func msText(ms float64) string { return shortTime(time.Duration(ms * float64(time.Millisecond))) }

func compareStep(before, now jsonStep) []string {
	var worse []string
	for _, m := range []struct {
		name        string
		enough      int64
		before, now float64
	}{{"p50", 1, before.P50, now.P50}, {"p99", enoughForP99, before.P99, now.P99}, {"p99.9",
		enoughForP999, before.P999, now.P999}} {
		if min(before.Responses, now.Responses) >= m.enough && m.now > worseLatency*m.before {
			worse = append(worse, fmt.Sprintf("%s %s is %s, was %s", before.Step, m.name,
				msText(m.now), msText(m.before)))
		}
	}
	if now.Rate < worseRate*before.Rate {
		worse = append(worse, fmt.Sprintf("%s runs at %.1f/s, was %.1f/s", before.Step,
			now.Rate, before.Rate))
	}
	share := func(s jsonStep) float64 { return float64(s.Failed) / float64(max(1, s.Attempts)) }
	if share(now) > share(before)+worseErrors {
		worse = append(worse, fmt.Sprintf("%s has %.3g%% errors, had %.3g%%", before.Step,
			100*share(now), 100*share(before)))
	}
	return worse
}
