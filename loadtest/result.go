package loadtest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is the result of a run.
type Result struct {
	Model     string        // "open" or "closed"
	Target    float64       // open model: average hits a second of the schedule
	Achieved  float64       // hits a second that began
	Hits      int64         // hits that began
	Broken    int64         // hits with a failed step
	Late      time.Duration // open model: longest delay of a hit's begin
	Planned   time.Duration // time in which hits begin
	Took      time.Duration // until the last response
	Ended     bool          // it was ended early
	UsedUp    bool          // it was ended because the scenario had no more queries
	Dropped   int64         // open model: hits that did not begin within the grace period
	Busy      int64         // most concurrent hits
	Each      time.Duration // average duration of a hit
	All       Step          // all steps together
	Steps     []Step        // in the order of a hit
	Seconds   []Second
	Checks    []Check
	Resources []Resource // of the target; nil = it has no admin address
	Periods   []Period
	Settings  Settings
	Lost      []string // agents that were lost, and why
}

// Step has the figures of one kind of request. Its rate and times are those of expected responses.
type Step struct {
	Name                     string
	Attempts                 int64
	Failed                   int64   // attempts without the expected response
	Rate                     float64 // responses a second
	AttemptRate, FailureRate float64 // a second
	Mean                     time.Duration
	P50, P90, P99, P999, Max time.Duration
	Statuses                 []Count // of attempts, by status; "none" = no response
	Errors                   []Count // by reason, most frequent first
	latency                  *hdrhistogram.Histogram
}

// Count is the number of times that something occurred.
type Count struct {
	What  string
	Times int64
}

// Check is a condition on the whole run: a threshold, or a check of the scenario.
type Check struct {
	What     string
	OK       bool
	Seen     string // the measured value, or what happened
	Untested bool   // with OK: the run did not test it
}

// outcome returns a word for the check's result.
func (c Check) outcome() string {
	switch {
	case !c.OK:
		return "CROSSED"
	case c.Untested:
		return "not tested"
	}
	return "ok"
}

// Resource has metrics of the target's process at a time.
type Resource struct {
	At          time.Duration // since the begin of the run
	Memory      float64       // resident bytes
	Goroutines  float64
	Connections float64 // open connections of the public listener, with a goroutine each
	CPU         float64 // CPU seconds since the start of the process
}

// spent returns the CPU seconds between two readings. After a restart of the target the later one
// counts from the new process's start.
func (r Resource) spent(later Resource) float64 {
	if later.CPU < r.CPU {
		return later.CPU
	}
	return later.CPU - r.CPU
}

// Valid reports whether the run kept its schedule: no agent was lost, no hit was dropped, and
// MinAchieved of them began in time.
func (r *Result) Valid() bool {
	return r.Lost == nil &&
		(r.Model == "closed" || r.Dropped == 0 && r.Achieved >= MinAchieved*r.Target)
}

// finish fills in the result at the end of a run.
func (r *run) finish(result *Result, ended bool) {
	result.Model, result.Hits, result.Broken, result.Planned, result.Ended = "closed",
		r.started.Load(), r.broken.Load(), r.planned(), ended
	span := max(time.Duration(r.last.Load()), result.Planned)
	if ended {
		span = time.Duration(r.last.Load())
	}
	result.Achieved = perSecond(result.Hits, span)
	result.Busy, result.Each = r.most.Load(), time.Duration(r.spent.Load()/max(1, result.Hits))
	if r.config.Schedule != nil {
		result.Model = "open"
		result.Target = perSecond(int64(r.hits()), result.Planned)
		result.Late = time.Duration(r.late.Load())
		if ended { // only the schedule up to the end counts
			result.Target = min(result.Target, r.scheduledRate(span))
		} else {
			result.Dropped = int64(r.hits()) - result.Hits
		}
	}
	for _, name := range inOrder(r.recorder.total, r.steps) {
		result.Steps = append(result.Steps, newStep(name, r.recorder.total[name], span))
	}
	result.All = newStep("all", whole(r.recorder.total), span)
}

// inOrder returns the names of steps: first those in order, then the others by name.
func inOrder[T any](steps map[string]T, order []string) []string {
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(maps.Keys(steps), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
}

// scheduledRate returns the average rate of the first part of the schedule.
func (r *run) scheduledRate(first time.Duration) float64 {
	var hits float64
	left := first
	for _, stage := range r.config.Schedule {
		hits += stage.hits(min(left, stage.For))
		left -= min(left, stage.For)
	}
	if first <= 0 {
		return 0
	}
	return hits / first.Seconds() / float64(max(1, r.config.Part.Of))
}

func newStep(name string, t *tally, span time.Duration) Step {
	s := Step{
		Name: name, Attempts: t.attempts(), Failed: t.failed(),
		Rate: perSecond(t.responses(), span), AttemptRate: perSecond(t.attempts(), span),
		FailureRate: perSecond(t.failed(), span), latency: t.latency,
		Mean: time.Duration(t.latency.Mean() * float64(time.Microsecond)),
		P50:  quantile(t, 50), P90: quantile(t, 90), P99: quantile(t, 99), P999: quantile(t, 99.9),
		Max: time.Duration(t.latency.Max()) * time.Microsecond,
	}
	s.Statuses = t.byStatus()
	for reason, n := range t.errors {
		s.Errors = append(s.Errors, Count{reason, n})
	}
	slices.SortFunc(s.Errors, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.What, b.What))
	})
	return s
}

// Responses returns the number of expected responses.
func (s Step) Responses() int64 { return s.Attempts - s.Failed }

// ErrorShare returns the share of attempts without the expected response, from 0 to 1.
func (s *Step) ErrorShare() float64 { return float64(s.Failed) / float64(max(1, s.Attempts)) }

func perSecond(n int64, span time.Duration) float64 {
	if span <= 0 {
		return 0
	}
	return float64(n) / span.Seconds()
}
