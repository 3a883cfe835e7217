package loadtest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Expectation is a threshold of a run, such as "lookup p99<10ms" or "errors<0.1%".
type Expectation struct {
	Step   string // "" = all steps together
	Metric string // p50, p90, p99, p99.9, max, mean, errors, rate, attempts or failures
	Op     string // <, <=, > or >=
	Value  float64
	text   string
}

var (
	expectation = regexp.MustCompile(`^(?:([a-z][a-z0-9._-]*)\s+)?(p50|p90|p99|p99\.9|max|mean|errors|rate|attempts|failures)\s*(<=|>=|<|>)\s*(\S+)$`)
	// expectationForm is the syntax of an Expectation, for errors.
	expectationForm = "write [STEP ]METRIC<VALUE with the metric p50, p90, p99, p99.9, max or mean (a time, such as 10ms), errors (percent), or rate, attempts or failures (a second), and <, <=, > or >="
)

// ParseExpectation parses "[STEP ]METRIC OP VALUE". Times are Go durations, errors are in percent
// ("0.1%") or "0", and the rate is in requests a second.
func ParseExpectation(text string) (Expectation, error) {
	m := expectation.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Expectation{}, fmt.Errorf("%q: %s", text, expectationForm)
	}
	e := Expectation{Step: m[1], Metric: m[2], Op: m[3], text: strings.TrimSpace(text)}
	var err error
	switch e.Metric {
	case "errors":
		number, percent := strings.CutSuffix(m[4], "%")
		e.Value, err = strconv.ParseFloat(number, 64)
		if !percent && e.Value != 0 {
			err = fmt.Errorf("is not in percent")
		}
		e.Value /= 100
	case "rate", "attempts", "failures":
		e.Value, err = strconv.ParseFloat(strings.TrimSuffix(m[4], "/s"), 64)
	default:
		var d time.Duration
		d, err = time.ParseDuration(m[4])
		e.Value = d.Seconds()
	}
	if err != nil {
		return Expectation{}, fmt.Errorf("%q: %s", text, expectationForm)
	}
	return e, nil
}

// String returns the parsed text.
func (e Expectation) String() string { return e.text }

// Names reports whether the expectation is about all steps together or one of steps.
func (e Expectation) Names(steps []string) bool {
	return e.Step == "" || e.Step == "all" || slices.Contains(steps, e.Step)
}

// Check compares a result with the expectation. A step without attempts does not meet it, and one
// without responses meets no time.
func (e Expectation) Check(r *Result) Check {
	step, ok := r.step(e.Step)
	if !ok || step.Attempts == 0 {
		return Check{What: e.text, Seen: "no request of " + cmp.Or(e.Step, "any step")}
	}
	value, seen, ok := e.read(&step)
	if !ok {
		return Check{What: e.text, Seen: "no expected response of " + cmp.Or(e.Step, "any step")}
	}
	return Check{What: e.text, OK: e.holds(value), Seen: seen}
}

// fewErrors is the default threshold for errors.
var fewErrors = Expectation{Metric: "errors", Op: "<", Value: 0.01, text: "errors<1% (default)"}

// Expect compares the result with thresholds. It adds fewErrors unless one of them is about errors.
// A run without a good response never passes.
func (r *Report) Expect(all ...Expectation) {
	if !slices.ContainsFunc(all, func(e Expectation) bool { return e.Metric == "errors" }) {
		all = append(slices.Clip(all), fewErrors)
	}
	for _, e := range all {
		r.Expected = append(r.Expected, e.Check(r.Result))
	}
	if every := r.Result.All; every.Responses() == 0 {
		r.Expected = append(r.Expected, Check{What: "some request gets the expected response",
			Seen: fmt.Sprintf("%s of %s failed", grouped(every.Failed), grouped(every.Attempts))})
	}
}

func (r *Result) step(name string) (Step, bool) {
	if name == "" || name == "all" {
		return r.All, true
	}
	for _, s := range r.Steps {
		if s.Name == name {
			return s, true
		}
	}
	return Step{}, false
}

// read returns the value of the metric, and false if there is none.
func (e Expectation) read(s *Step) (value float64, seen string, ok bool) {
	if e.Metric == "errors" {
		return s.ErrorShare(), fmt.Sprintf("%s (%d of %d)", percent(s.ErrorShare()),
			s.Failed, s.Attempts), true
	}
	if rate, ok := map[string]float64{"rate": s.Rate, "attempts": s.AttemptRate,
		"failures": s.FailureRate}[e.Metric]; ok {
		return rate, fmt.Sprintf("%.1f/s", rate), true
	}
	d := map[string]time.Duration{"p50": s.P50, "p90": s.P90, "p99": s.P99, "p99.9": s.P999,
		"max": s.Max, "mean": s.Mean}[e.Metric]
	return d.Seconds(), shortTime(d), s.Responses() > 0
}

func (e Expectation) holds(value float64) bool {
	switch e.Op {
	case "<":
		return value < e.Value
	case "<=":
		return value <= e.Value
	case ">":
		return value > e.Value
	}
	return value >= e.Value
}
