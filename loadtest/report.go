package loadtest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is a Result with the parameters of the run.
type Report struct {
	Scenario    string
	About       string
	Schedule    string // open model
	Concurrency int    // closed model
	Connections int    // limit; 0 = not known
	Began       time.Time
	Environment Environment
	Result      *Result
	Expected    []Check
	Worse       []string // figures worse than in the baseline; nil = no baseline
	Baseline    string   // file name of the baseline; "" = none
}

// Environment describes the machine of the generator.
type Environment struct {
	System     string `json:"system"` // operating system and architecture
	Processors int    `json:"processors"`
	Model      string `json:"model"` // of the processors; "" = not known
	Go         string `json:"go"`
	Generator  string `json:"generator"` // version of this program
}

// ThisMachine describes this machine.
func ThisMachine(version string) Environment {
	return Environment{System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(),
		Model: processorModel(), Go: runtime.Version(), Generator: version}
}

// processorModel returns the processor's model on Linux, and "" on other systems.
func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok &&
			strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Verdict is the verdict on a run.
type Verdict string

// The verdicts.
const (
	Passed      Verdict = "passed"
	Crossed     Verdict = "crossed"     // a threshold was crossed, or a check failed
	Interrupted Verdict = "interrupted" // it was ended early by a signal
	Invalid     Verdict = "invalid"     // the schedule was not kept, so the load was another one
)

// Verdict returns the verdict. A run that was interrupted or is invalid neither passed nor failed.
func (r *Report) Verdict() Verdict {
	if r.Result.Ended && !r.Result.UsedUp && r.Result.Lost == nil {
		return Interrupted
	}
	if !r.Result.Valid() {
		return Invalid
	}
	for _, c := range append(r.Expected, r.Result.Checks...) {
		if !c.OK {
			return Crossed
		}
	}
	return Passed
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	result := r.Result
	fmt.Fprintf(&b, "%s\n\n", strings.TrimSuffix(r.Scenario+": "+r.About, ": "))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "step\tattempts\tresponses\trate\tmean\tp50\tp90\tp99\tp99.9\tmax\tfailed\t")
	steps := result.Steps
	if len(steps) > 1 {
		steps = append(append([]Step{}, steps...), result.All)
	}
	for _, s := range steps {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.1f/s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name,
			grouped(s.Attempts), grouped(s.Responses()), s.Rate, s.timeText(s.Mean), s.timeText(s.P50),
			s.timeText(s.P90), s.timeText(s.P99), s.timeText(s.P999), s.timeText(s.Max),
			errorText(&s))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	b.WriteString("\n")
	for _, s := range result.Steps {
		fmt.Fprintf(&b, "statuses of %s: %s\n", s.Name, counts(s.Statuses))
		if len(s.Errors) > 0 {
			fmt.Fprintf(&b, "  wrong: %s\n", counts(s.Errors))
		}
	}
	b.WriteString(r.paceText() + "\n")
	if n := len(result.Resources); n > 1 {
		first, last := result.Resources[0], result.Resources[n-1]
		spent := 0.0
		for i, before := range result.Resources[:n-1] {
			spent += before.spent(result.Resources[i+1])
		}
		fmt.Fprintf(&b,
			"target: %.0f to %.0f MB resident, %.0f to %.0f goroutines, %.2f processors\n",
			first.Memory/1e6, last.Memory/1e6, first.Goroutines, last.Goroutines,
			spent/(last.At-first.At).Seconds())
	}
	for _, c := range append(r.Expected, result.Checks...) {
		fmt.Fprintf(&b, "%-7s %s: %s\n", c.outcome(), c.What, c.Seen)
	}
	for _, worse := range r.Worse {
		fmt.Fprintf(&b, "worse than in %s: %s\n", r.Baseline, worse)
	}
	if r.Baseline != "" {
		fmt.Fprintf(&b, "%s, and %s\n", r.Verdict(), r.comparison())
	}
	switch r.Verdict() {
	case Interrupted:
		fmt.Fprintf(&b, "INTERRUPTED after %s of %s: neither passed nor failed.\n",
			result.Took.Round(100*time.Millisecond), result.Planned)
	case Invalid:
		advice := " Do not trust these figures: lower the rate, or find the highest one with" +
			" --concurrency."
		if result.Lost != nil {
			advice = ""
		}
		fmt.Fprintf(&b, "INVALID: %s%s\n", r.whyInvalid(), advice)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// whyInvalid returns by how much the schedule was not kept, and the likely reason.
func (r *Report) whyInvalid() string {
	result := r.Result
	if result.Lost != nil {
		return "an agent was lost, so this is not the requested load: " +
			strings.Join(result.Lost, "; ") + "."
	}
	text := fmt.Sprintf("%.1f of %.1f hits/s began, less than %.0f%%", result.Achieved,
		result.Target, 100*MinAchieved)
	if result.Dropped > 0 {
		text = fmt.Sprintf("%.1f of %.1f hits/s began, and %s hits were dropped that had not begun %s after the schedule's end",
			result.Achieved, result.Target, grouped(result.Dropped),
			result.Took.Truncate(100*time.Millisecond)-result.Planned)
	}
	if r.Connections > 0 && result.Busy >= int64(r.Connections) {
		return text +
			fmt.Sprintf(": all %d connections were in use, and with %s a hit they reach at most %.3g/s. Either --connections is too small, or the target too slow.",
				r.Connections, shortTime(result.Each),
				float64(r.Connections)/max(1e-6, result.Each.Seconds()))
	}
	return text +
		fmt.Sprintf(": this machine is too slow (at most %d connections were in use at once, so the target was not the limit).",
			result.Busy)
}

func (r *Report) paceText() string {
	result := r.Result
	ended := map[bool]string{true: ", ended early"}[result.Ended]
	if result.Model == "closed" {
		return fmt.Sprintf("closed model: %d users, %s hits in %s, %.1f/s%s (latencies hide stalls of the server: see --rate)",
			r.Concurrency, grouped(result.Hits), result.Planned, result.Achieved, ended)
	}
	return fmt.Sprintf("open model: %s hits at %.1f of %.1f/s, begun at most %s late%s; latencies count from the scheduled begin",
		grouped(result.Hits), result.Achieved, result.Target, shortTime(result.Late), ended)
}

// Regressed reports whether a figure is worse than in the baseline. It does not affect the verdict.
func (r *Report) Regressed() bool { return len(r.Worse) > 0 }

// comparison returns the comparison with the baseline in a few words.
func (r *Report) comparison() string {
	if !r.Regressed() {
		return "nothing is worse than in " + r.Baseline
	}
	return fmt.Sprintf("%s worse than in %s",
		plural(len(r.Worse), "figure is", "figures are"), r.Baseline)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// timeText formats a latency of the step, or a dash without responses.
func (s *Step) timeText(d time.Duration) string {
	if s.Responses() == 0 {
		return "–"
	}
	return shortTime(d)
}

func errorText(s *Step) string {
	if s.Failed == 0 {
		return "0"
	}
	return fmt.Sprintf("%s (%s)", grouped(s.Failed), percent(s.ErrorShare()))
}

func counts(all []Count) string {
	var parts []string
	for _, c := range all {
		parts = append(parts, fmt.Sprintf("%s × %s", c.What, grouped(c.Times)))
	}
	return strings.Join(parts, ", ")
}

// jsonStep and the following types are the report as JSON. Latencies are in milliseconds.
type jsonStep struct {
	Step        string           `json:"step"`
	Attempts    int64            `json:"attempts"`
	Responses   int64            `json:"responses"`
	Failed      int64            `json:"failed"`
	Rate        float64          `json:"rate"`
	AttemptRate float64          `json:"attempt_rate"`
	FailureRate float64          `json:"failure_rate"`
	Mean        float64          `json:"mean_ms"`
	P50         float64          `json:"p50_ms"`
	P90         float64          `json:"p90_ms"`
	P99         float64          `json:"p99_ms"`
	P999        float64          `json:"p99_9_ms"`
	Max         float64          `json:"max_ms"`
	Statuses    map[string]int64 `json:"statuses"`
	Errors      map[string]int64 `json:"errors"`
}

type jsonSecond struct {
	At        float64          `json:"at_s"` // its end
	Length    float64          `json:"length_s"`
	Rate      float64          `json:"rate"`
	Attempts  int64            `json:"attempts"`
	Responses int64            `json:"responses"`
	Failed    int64            `json:"failed"`
	P50       *float64         `json:"p50_ms"` // null = no response
	P99       *float64         `json:"p99_ms"`
	Statuses  map[string]int64 `json:"statuses"`
	Steps     []jsonStepSecond `json:"steps,omitempty"`
}

// jsonStepSecond has the figures of a step in a second.
type jsonStepSecond struct {
	Step      string   `json:"step"`
	Attempts  int64    `json:"attempts"`
	Responses int64    `json:"responses"`
	Failed    int64    `json:"failed"`
	P50       *float64 `json:"p50_ms"`
	P99       *float64 `json:"p99_ms"`
}

// jsonSettings has the Settings except the target. It leaves out zero values.
type jsonSettings struct {
	Timeout     float64            `json:"timeout_s"`
	Connections int                `json:"connections"`
	Keys        int                `json:"keys,omitempty"`
	People      int                `json:"people,omitempty"`
	Queries     int                `json:"queries,omitempty"`
	Tokens      int                `json:"tokens,omitempty"`
	Mix         map[string]float64 `json:"mix,omitempty"`
	Headers     []string           `json:"headers,omitempty"`
	Agents      []string           `json:"agents,omitempty"`
}

func newJSONSettings(s Settings) jsonSettings {
	return jsonSettings{s.Timeout.Seconds(), s.Connections, s.Keys, s.People, s.Queries,
		s.Tokens, s.Mix, s.Headers, s.Agents}
}

type jsonPeriod struct {
	What string  `json:"what"`
	From float64 `json:"from_s"`
	To   float64 `json:"to_s"`
}

type jsonCheck struct {
	What     string `json:"what"`
	OK       bool   `json:"ok"`
	Seen     string `json:"seen"`
	Untested bool   `json:"not_tested,omitempty"`
}

type jsonResource struct {
	At          float64 `json:"at_s"`
	Memory      float64 `json:"resident_bytes"`
	Goroutines  float64 `json:"goroutines"`
	Connections float64 `json:"connections"`
	CPU         float64 `json:"cpu_seconds"`
}

type jsonReport struct {
	Scenario    string         `json:"scenario"`
	Verdict     Verdict        `json:"verdict"`
	Target      string         `json:"target"`
	Version     string         `json:"target_version,omitempty"`
	Own         bool           `json:"target_started_for_the_run"`
	Settings    jsonSettings   `json:"settings"`
	Model       string         `json:"model"`
	Schedule    string         `json:"schedule,omitempty"`
	Concurrency int            `json:"concurrency,omitempty"`
	Began       time.Time      `json:"began"`
	Planned     float64        `json:"planned_s"`
	TargetRate  float64        `json:"target_rate,omitempty"`
	Achieved    float64        `json:"achieved_rate"`
	Late        float64        `json:"late_ms"`
	Hits        int64          `json:"hits"`
	Dropped     int64          `json:"dropped_hits,omitempty"`
	Broken      int64          `json:"broken_hits"`
	Ended       bool           `json:"ended_early"`
	Environment Environment    `json:"environment"`
	All         jsonStep       `json:"all"`
	Steps       []jsonStep     `json:"steps"`
	Checks      []jsonCheck    `json:"checks"`
	Baseline    string         `json:"baseline,omitempty"`
	Worse       []string       `json:"worse,omitempty"`
	Periods     []jsonPeriod   `json:"periods,omitempty"`
	Seconds     []jsonSecond   `json:"seconds"`
	Resources   []jsonResource `json:"resources,omitempty"`
	Lost        []string       `json:"lost_agents,omitempty"`
}

func ms(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e3 }

func newJSONStep(s *Step) jsonStep {
	return jsonStep{Step: s.Name, Attempts: s.Attempts, Responses: s.Responses(), Failed: s.Failed,
		Rate: round(s.Rate), AttemptRate: round(s.AttemptRate), FailureRate: round(s.FailureRate),
		Mean: ms(s.Mean), P50: ms(s.P50), P90: ms(s.P90), P99: ms(s.P99), P999: ms(s.P999),
		Max: ms(s.Max), Statuses: byName(s.Statuses), Errors: byName(s.Errors)}
}

func byName(all []Count) map[string]int64 {
	times := map[string]int64{}
	for _, c := range all {
		times[c.What] = c.Times
	}
	return times
}

func newJSONSecond(s *Second) jsonSecond {
	j := jsonSecond{At: round(s.At.Seconds()), Length: round(s.Length.Seconds()),
		Rate: round(perSecond(s.Responses(), s.Length)), Attempts: s.Attempts,
		Responses: s.Responses(), Failed: s.Failed, P50: msOf(s.P50, s.Responses()),
		P99: msOf(s.P99, s.Responses()), Statuses: byName(s.Statuses)}
	for _, x := range s.Steps {
		j.Steps = append(j.Steps, jsonStepSecond{x.Name, x.Attempts, x.Responses(), x.Failed,
			msOf(x.P50, x.Responses()), msOf(x.P99, x.Responses())})
	}
	return j
}

// msOf returns the milliseconds of a latency, or nil without responses.
func msOf(d time.Duration, responses int64) *float64 {
	if responses == 0 {
		return nil
	}
	value := ms(d)
	return &value
}

func round(x float64) float64 { return math.Round(x*1e3) / 1e3 }

// WriteJSON writes the report for programs, and as the baseline of later runs.
func (r *Report) WriteJSON(w io.Writer) error {
	result := r.Result
	j := jsonReport{
		Scenario: r.Scenario, Verdict: r.Verdict(), Model: result.Model, Schedule: r.Schedule,
		Concurrency: r.Concurrency, Began: r.Began.UTC().Truncate(time.Second),
		Planned: result.Planned.Seconds(), TargetRate: round(result.Target),
		Achieved: round(result.Achieved), Late: ms(result.Late), Hits: result.Hits,
		Dropped: result.Dropped, Broken: result.Broken,
		Ended: result.Ended, Environment: r.Environment, All: newJSONStep(&result.All),
		Checks: []jsonCheck{}, Baseline: r.Baseline, Worse: r.Worse,
		Target: result.Settings.Target, Version: result.Settings.Version, Own: result.Settings.Own,
		Settings: newJSONSettings(result.Settings), Lost: result.Lost,
	}
	for _, s := range result.Steps {
		j.Steps = append(j.Steps, newJSONStep(&s))
	}
	for _, c := range append(r.Expected, result.Checks...) {
		j.Checks = append(j.Checks, jsonCheck(c))
	}
	for _, s := range result.Seconds {
		j.Seconds = append(j.Seconds, newJSONSecond(&s))
	}
	for _, p := range result.Periods {
		j.Periods = append(j.Periods, jsonPeriod{p.What, round(p.From.Seconds()),
			round(p.To.Seconds())})
	}
	for _, x := range result.Resources {
		j.Resources = append(j.Resources, jsonResource{round(x.At.Seconds()), x.Memory,
			x.Goroutines, x.Connections, round(x.CPU)})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(j)
}

// WriteHDR writes the distribution of all latencies in milliseconds, in the format of
// HdrHistogram's plotter.
func (r *Report) WriteHDR(w io.Writer) error {
	latency := r.Result.All.latency
	if latency == nil {
		latency = newHistogram()
	}
	_, err := latency.PercentilesPrint(w, 5, float64(time.Millisecond/time.Microsecond))
	return err
}
