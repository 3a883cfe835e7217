package loadtest

import (
	"encoding/json"
	"fmt"
	"io"
)

// By how much a figure may differ from the baseline before it counts as worse: runs on one machine differ by themselves.
const (
	worseLatency = 1.25  // times
	worseRate    = 0.95  // times
	worseErrors  = 0.001 // of the requests
)

// Baseline is an earlier report.
type Baseline struct{ report jsonReport }

// ReadBaseline reads what WriteJSON wrote.
func ReadBaseline(r io.Reader) (*Baseline, error) {
	var b Baseline
	if err := json.NewDecoder(r).Decode(&b.report); err != nil || b.report.Scenario == "" || b.report.All.Requests == 0 {
		return nil, fmt.Errorf("is no report of a load test (make one with --json)")
	}
	return &b, nil
}

// Compare says what of result is worse. Its error says why the two cannot be compared.
func (b *Baseline) Compare(r *Report) ([]string, error) {
	old := b.report
	if old.Scenario != r.Scenario || old.Model != r.Result.Model {
		return nil, fmt.Errorf("the baseline is of %s in the %s model, not of %s in the %s model", old.Scenario, old.Model, r.Scenario, r.Result.Model)
	}
	if old.Verdict == Invalid {
		return nil, fmt.Errorf("the baseline is of an invalid run")
	}
	steps := old.Steps
	if len(steps) > 1 {
		steps = append(steps, old.All)
	}
	worse := []string{}
	for _, before := range steps {
		step, ok := r.Result.step(before.Step)
		if !ok {
			worse = append(worse, fmt.Sprintf("%s was never taken", before.Step))
			continue
		}
		worse = append(worse, compareStep(before, newJSONStep(&step))...)
	}
	return worse, nil
}

func compareStep(before, now jsonStep) []string {
	var worse []string
	for _, m := range []struct {
		name        string
		before, now float64
	}{{"p50", before.P50, now.P50}, {"p99", before.P99, now.P99}, {"p99.9", before.P999, now.P999}} {
		if m.now > worseLatency*m.before {
			worse = append(worse, fmt.Sprintf("%s %s is %.4gms, was %.4gms", before.Step, m.name, m.now, m.before))
		}
	}
	if now.Rate < worseRate*before.Rate {
		worse = append(worse, fmt.Sprintf("%s runs at %.1f/s, was %.1f/s", before.Step, now.Rate, before.Rate))
	}
	share := func(s jsonStep) float64 { return float64(s.Failed) / float64(max(1, s.Requests)) }
	if share(now) > share(before)+worseErrors {
		worse = append(worse, fmt.Sprintf("%s has %.3g%% errors, had %.3g%%", before.Step, 100*share(now), 100*share(before)))
	}
	return worse
}
