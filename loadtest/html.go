package loadtest

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed report.html
var reportHTML string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"count": grouped, "counts": counts, "rate": rateText,
	"failed":    func(s Step) string { return errorText(&s) },
	"latencyOf": func(s Step, d time.Duration) string { return s.timeText(d) },
}).Parse(reportHTML))

// WriteHTML writes the report as one self-contained page.
func (r *Report) WriteHTML(w io.Writer) error {
	page := struct {
		*Report
		Verdict     Verdict
		Pace        string
		Comparison  string // with the baseline; "" = none
		Why         string // why the run neither passed nor failed; "" = it did
		Rows        []Step
		ChartGroups []chartGroup
		Facts       []fact
	}{Report: r, Verdict: r.Verdict(), Pace: r.paceText(), Rows: r.Result.Steps,
		ChartGroups: r.chartGroups(), Facts: r.facts()}
	if r.Baseline != "" {
		page.Comparison = r.comparison()
	}
	switch page.Verdict {
	case Interrupted:
		page.Why = fmt.Sprintf("Interrupted after %s of %s: neither passed nor failed.",
			r.Result.Took.Round(100*time.Millisecond), r.Result.Planned)
	case Invalid:
		page.Why = "The schedule was not kept, so these figures are of another load than requested: " + r.whyInvalid()
		if r.Result.Lost != nil {
			page.Why = "Invalid: " + r.whyInvalid()
		}
	}
	if len(page.Rows) != 1 {
		page.Rows = append(append([]Step{}, page.Rows...), r.Result.All)
	}
	if err := reportTemplate.Execute(w, page); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// rateText formats a rate, with a decimal below 100.
func rateText(rate float64) string {
	if rate >= 100 {
		return grouped(int64(math.Round(rate)))
	}
	return fmt.Sprintf("%.1f", rate)
}

// fact is a line about where, when and how a run was made.
type fact struct{ Name, Value string }

func (r *Report) facts() []fact {
	s, e := r.Result.Settings, r.Environment
	all := []fact{{"target", r.targetText()}}
	add := func(name, value string) {
		if value != "" {
			all = append(all, fact{name, value})
		}
	}
	if s.Version != "unknown" { // it was built without a version
		add("target's version", s.Version)
	}
	if r.Result.Model == "closed" {
		add("load", load{concurrency: r.Concurrency, planned: r.Result.Planned}.String())
	} else {
		add("load", scheduleText(r.Schedule, r.Result.Planned))
	}
	add("timeout", s.Timeout.String()+" for each response")
	add("connections", "at most "+grouped(int64(s.Connections)))
	add("keys", chosen(s.Keys, s.Queries))
	add("people and tokens", chosen(s.People, s.Tokens))
	add("headers", strings.Join(s.Headers, ", "))
	add("agents", strings.Join(s.Agents, ", "))
	if s.Mix != nil || r.Scenario == "mixed" || r.Scenario == "soak" {
		add("mix", mixText(s.Mix))
	}
	add("began", r.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	add("took", r.Result.Took.Round(10*time.Millisecond).String())
	model := e.Model
	if model == "" {
		model = "processor"
	}
	add("generator's machine", fmt.Sprintf("%d × %s, %s", e.Processors, model, e.System))
	add("generator", "loadtest "+e.Generator+", "+e.Go)
	return all
}

func (r *Report) targetText() string {
	s := r.Result.Settings
	parts := []string{s.Target}
	if s.Own {
		parts = append(parts, "started for the run on the generator's machine")
	}
	return strings.Join(parts, ", ")
}

// chosen returns the number in words, or "" if there is none. given is the number from a file.
func chosen(number, given int) string {
	switch {
	case given > 0:
		return grouped(int64(given)) + " from a file"
	case number > 0:
		return grouped(int64(number))
	}
	return ""
}
