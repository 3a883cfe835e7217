package loadtest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a run saw.
type Result struct {
	Model     string        // "open" or "closed"
	Target    float64       // open model: hits a second, on average over the schedule
	Achieved  float64       // hits a second that began
	Hits      int64         // that began
	Broken    int64         // of which so many had a step that went wrong
	Late      time.Duration // open model: the most that a hit began after its time
	Planned   time.Duration // how long hits were to begin
	Took      time.Duration // until the last answer
	Ended     bool          // it was ended early
	UsedUp    bool          // it was ended since the scenario had nothing left to ask
	Dropped   int64         // open model: hits that were due and did not begin until patience was over
	Busy      int64         // the most hits that were under way at once
	Each      time.Duration // that a hit was under way, on average
	All       Step          // all steps together
	Steps     []Step        // in the order in which a hit takes them
	Seconds   []Second
	Checks    []Check
	Resources []Resource // of the target, if it tells
	Periods   []Period
	Settings  Settings
}

// Step is what was seen of one kind of request.
type Step struct {
	Name                     string
	Requests                 int64
	Rate                     float64 // a second
	Mean                     time.Duration
	P50, P90, P99, P999, Max time.Duration
	Statuses                 []Count // by status; "none" = no answer
	Errors                   []Count // by reason, the most frequent first
	Failed                   int64
	latency                  *hdrhistogram.Histogram
}

// Count is how often something was seen.
type Count struct {
	What  string
	Times int64
}

// Check is something that a scenario holds to be true of the whole run.
type Check struct {
	What     string
	OK       bool
	Seen     string // what was seen
	Untested bool   // OK since nothing was seen that would tell
}

// outcome is a word for a Check.
func (c Check) outcome() string {
	switch {
	case !c.OK:
		return "CROSSED"
	case c.Untested:
		return "not tested"
	}
	return "ok"
}

// Resource is what the target's process said of itself at a time.
type Resource struct {
	At         time.Duration
	Memory     float64 // bytes resident
	Goroutines float64
	// Connections of the public listener, each of which has a goroutine.
	Connections float64
	CPU         float64 // seconds of processor time so far
}

// Valid reports whether the run made its hits in time, all of them.
func (r *Result) Valid() bool {
	return r.Model == "closed" || r.Dropped == 0 && r.Achieved >= MinAchieved*r.Target
}

// finish sums up.
func (r *run) finish(result *Result, ended bool) {
	result.Model, result.Hits, result.Broken, result.Planned, result.Ended = "closed", r.started.Load(), r.broken.Load(), r.planned(), ended
	span := max(time.Duration(r.last.Load()), result.Planned)
	if ended {
		span = time.Duration(r.last.Load())
	}
	result.Achieved = perSecond(result.Hits, span)
	result.Busy, result.Each = r.most.Load(), time.Duration(r.spent.Load()/max(1, result.Hits))
	if r.config.Schedule != nil {
		result.Model = "open"
		result.Target = perSecond(int64(r.config.Schedule.Hits()), result.Planned)
		result.Late = time.Duration(r.late.Load())
		if ended { // the schedule up to there is what was to be kept
			result.Target = min(result.Target, r.scheduledRate(span))
		} else {
			result.Dropped = int64(r.config.Schedule.Hits()) - result.Hits
		}
	}
	for _, name := range inOrder(r.recorder.total, r.steps) {
		result.Steps = append(result.Steps, newStep(name, r.recorder.total[name], span))
	}
	result.All = newStep("all", whole(r.recorder.total), span)
}

// inOrder returns the names of steps as they are reported: those of the order first, then others by name.
func inOrder[T any](steps map[string]T, order []string) []string {
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(maps.Keys(steps), func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
}

// scheduledRate returns the average rate of the schedule's first part.
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
	return hits / first.Seconds()
}

func newStep(name string, t *tally, span time.Duration) Step {
	s := Step{
		Name: name, Requests: t.count(), Rate: perSecond(t.count(), span), Failed: t.failed(), latency: t.latency,
		Mean: time.Duration(t.latency.Mean() * float64(time.Microsecond)),
		P50:  quantile(t, 50), P90: quantile(t, 90), P99: quantile(t, 99), P999: quantile(t, 99.9),
		Max: time.Duration(t.latency.Max()) * time.Microsecond,
	}
	s.Statuses = t.byStatus()
	for reason, n := range t.errors {
		s.Errors = append(s.Errors, Count{reason, n})
	}
	slices.SortFunc(s.Errors, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.What, b.What)) })
	return s
}

// ErrorShare returns the part of the requests that did not get the answer that they should have, from 0 to 1.
func (s *Step) ErrorShare() float64 { return float64(s.Failed) / float64(max(1, s.Requests)) }

func perSecond(n int64, span time.Duration) float64 {
	if span <= 0 {
		return 0
	}
	return float64(n) / span.Seconds()
}
