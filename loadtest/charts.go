package loadtest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// chartGroup is a group of charts with a headline.
type chartGroup struct {
	Title, Note string
	Small       bool
	Charts      []chart
}

// chartGroups returns all charts of a report.
func (r *Report) chartGroups() []chartGroup {
	result := r.Result
	end := 0.0
	if !result.Ended {
		end = result.Planned.Seconds()
	}
	for _, s := range result.Seconds {
		end = max(end, s.At.Seconds())
	}
	for _, x := range result.Resources {
		end = max(end, x.At.Seconds())
	}
	x := overTime(end)
	all := []chartGroup{{Title: "The run", Charts: r.overall(x)}}
	if len(result.Steps) > 1 {
		all = append(all, chartGroup{"Latency of each step",
			"For each second, on one logarithmic scale.", true, r.steps(x)})
	}
	if charts := r.process(x); len(charts) > 0 {
		all = append(all, chartGroup{Title: "The target's process", Charts: charts})
	}
	return all
}

func (r *Report) overall(x axis) []chart {
	seconds, periods := r.Result.Seconds, r.Result.Periods
	p99 := perSeconds("p99", "alarm", seconds, func(s Second) float64 {
		return latency(s.P99, s.Responses())
	})
	p50 := perSeconds("p50", "strong", seconds, func(s Second) float64 {
		return latency(s.P50, s.Responses())
	})
	rate := perSeconds("responses", "strong", seconds, func(s Second) float64 {
		return perSecond(s.Responses(), s.Length)
	})
	attempts := perSeconds("attempts", "s4 d1", seconds, func(s Second) float64 {
		return perSecond(s.Attempts, s.Length)
	})
	failed := perSeconds("failures", "alarm", seconds, func(s Second) float64 {
		return perSecond(s.Failed, s.Length)
	})
	spread := r.distribution()
	wrong := "Attempts a second without the expected response."
	if r.Result.All.Failed == 0 {
		wrong = "Every attempt got the expected response."
	}
	all := []chart{
		draw("Latency over time", "Of expected responses in each second, on a logarithmic scale.", x,
			ofLatency(p50, p99), periods, p99, p50),
		draw("Latency by percentile", "Share of the expected responses that came within the time.",
			overPercentiles(spread), ofLatency(spread), nil, spread),
		draw("Throughput", "Expected responses and attempts a second.", x,
			ofNumber(attempts, rate), periods, attempts, rate),
		draw("Failures", wrong, x, ofNumber(failed), periods, failed),
	}
	if len(r.Result.All.Statuses) > 1 {
		lines := r.statuses()
		all = append(all, draw("Statuses", "Attempts a second.", x, ofNumber(lines...),
			periods, lines...))
	}
	return all
}

// latency returns d in seconds, or NaN without responses.
func latency(d time.Duration, responses int64) float64 {
	if responses == 0 {
		return math.NaN()
	}
	return d.Seconds()
}

// perSeconds returns a series with a horizontal line for each second.
func perSeconds(name, class string, seconds []Second, read func(Second) float64) series {
	s := series{name: name, class: class}
	for _, x := range seconds {
		s.samples = append(s.samples, sample{(x.At - x.Length).Seconds(), x.At.Seconds(), read(x)})
	}
	return s
}

// statuses returns a series for each status. Statuses of one class share a colour and have
// different dashes.
func (r *Report) statuses() []series {
	var all []series
	like := map[string]int{}
	for _, status := range r.Result.All.Statuses {
		class := "s" + status.What[:1]
		name := status.What
		if name == "none" {
			name = "no response"
		}
		all = append(all, perSeconds(name, fmt.Sprintf("%s d%d", class, min(2, like[class])),
			r.Result.Seconds, func(s Second) float64 {
				i := slices.IndexFunc(s.Statuses, func(c Count) bool {
					return c.What == status.What
				})
				if i < 0 {
					return 0
				}
				return perSecond(s.Statuses[i].Times, s.Length)
			}))
		like[class]++
	}
	return all
}

// steps draws p50 and p99 of each step.
func (r *Report) steps(x axis) []chart {
	lines := map[string][2]series{}
	for _, second := range r.Result.Seconds {
		for _, s := range second.Steps {
			pair := lines[s.Name]
			pair[0] = follow(pair[0], "p99", "alarm", second,
				latency(s.P99, s.Responses()))
			pair[1] = follow(pair[1], "p50", "strong", second,
				latency(s.P50, s.Responses()))
			lines[s.Name] = pair
		}
	}
	var every []series
	for pair := range maps.Values(lines) {
		every = append(every, pair[:]...)
	}
	y := ofLatency(every...)
	var all []chart
	for _, step := range r.Result.Steps {
		pair := lines[step.Name]
		all = append(all, draw(step.Name, fmt.Sprintf("p50 %s, p99 %s", step.timeText(step.P50),
			step.timeText(step.P99)), x, y, r.Result.Periods, pair[0], pair[1]))
	}
	return all
}

// follow adds a second to a series, after a gap if the step had no requests for a while.
func follow(s series, name, class string, second Second, y float64) series {
	from := (second.At - second.Length).Seconds()
	if n := len(s.samples); n > 0 && s.samples[n-1].to < from-1e-6 {
		s.samples = append(s.samples, sample{from, from, math.NaN()})
	}
	return series{name, class, append(s.samples, sample{from, second.At.Seconds(), y})}
}

// distribution returns the latencies over the number of nines: 90, 99 and 99.9 percent have the
// same distance. It ends at the first of them that includes the slowest response.
func (r *Report) distribution() series {
	s := series{name: "latency", class: "strong"}
	h := r.Result.All.latency
	if h == nil || h.TotalCount() == 0 {
		return s
	}
	const parts = 40 // of each nine
	end := int(math.Log10(float64(h.TotalCount()))+1e-9) + 1
	for n := range end*parts + 1 {
		nines := float64(n) / parts
		s.samples = append(s.samples, sample{nines, nines,
			float64(h.ValueAtQuantile(100*(1-math.Pow(10, -nines)))) / 1e6})
	}
	s.samples[end*parts].y = float64(h.Max()) / 1e6
	return s
}

// process returns the charts of the target's process.
func (r *Report) process(x axis) []chart {
	all := r.Result.Resources
	if len(all) < 2 {
		return nil
	}
	line := func(name, class string, all []Resource, read func(Resource) float64) series {
		s := series{name: name, class: class}
		for _, x := range all {
			s.samples = append(s.samples, sample{x.At.Seconds(), x.At.Seconds(), read(x)})
		}
		return s
	}
	memory := line("resident memory", "strong", all, func(r Resource) float64 {
		return r.Memory / 1e6
	})
	goroutines := line("goroutines", "strong", all, func(r Resource) float64 {
		return r.Goroutines
	})
	connections := line("connections", "s4", all, func(r Resource) float64 {
		return r.Connections
	})
	cpu := series{name: "processors", class: "strong", samples: cpuUse(all)}
	var charts []chart
	add := func(title, note string, y axis, lines ...series) {
		if _, most := extent(lines...); most > 0 {
			charts = append(charts, draw(title, note, x, y, r.Result.Periods, lines...))
		}
	}
	add("Memory", "Resident memory.", ofSize(memory), memory)
	add("Processors", "Processors in use by the target, average of each second.",
		ofNumber(cpu), cpu)
	add("Goroutines and connections", "Each open connection has a goroutine.",
		ofCount(goroutines, connections), goroutines, connections)
	return charts
}

// cpuUse returns the number of processors in use between readings. It skips readings that are too
// close, as the last two may be.
func cpuUse(all []Resource) []sample {
	var samples []sample
	for i, before := range all[:len(all)-1] {
		after := all[i+1]
		if span := after.At - before.At; span >= time.Second/2 {
			samples = append(samples, sample{before.At.Seconds(), after.At.Seconds(),
				before.spent(after) / span.Seconds()})
		}
	}
	return samples
}

func ofLatency(all ...series) axis {
	least, most := extent(all...)
	return logarithmic(least, most, axisTime)
}

func ofNumber(all ...series) axis {
	_, most := extent(all...)
	return linear(most, 0.01, axisNumber)
}

func ofCount(all ...series) axis {
	_, most := extent(all...)
	return linear(most, 1, axisNumber)
}

func ofSize(all ...series) axis {
	_, most := extent(all...)
	if most > 9999 { // longer labels would leave the page
		return linear(most, 1, func(y float64) string { return axisNumber(y/1000) + " GB" })
	}
	return linear(most, 1, func(y float64) string { return axisNumber(y) + " MB" })
}

// axisNumber formats a number with three digits, with commas from 1,000 on, or in millions.
func axisNumber(y float64) string {
	if y >= 1e6 {
		return fmt.Sprintf("%.4gM", y/1e6)
	}
	if y >= 1000 {
		return grouped(int64(math.Round(y)))
	}
	return fmt.Sprintf("%.3g", y)
}

// axisTime formats seconds with three digits in a suitable unit.
func axisTime(seconds float64) string {
	switch {
	case seconds < 0.9995e-3:
		return fmt.Sprintf("%.3gµs", seconds*1e6)
	case seconds < 0.9995:
		return fmt.Sprintf("%.3gms", seconds*1e3)
	}
	return fmt.Sprintf("%.3gs", seconds)
}

// overTime returns an axis of seconds since the begin of the run, with round marks.
func overTime(end float64) axis {
	if !(end > 0) {
		end = 1
	}
	step := roundStep(end, 6)
	if end > 60 {
		step = 3600 * math.Ceil(end/3600/6)
		for _, s := range []float64{15, 30, 60, 120, 300, 600, 900, 1800} {
			if end <= 6*s {
				step = s
				break
			}
		}
	}
	a := axis{place: func(x float64) float64 { return x / end }, text: clockText}
	for n := 0.0; n*step <= end*(1+1e-9); n++ {
		a.marks = append(a.marks, n*step)
	}
	return a
}

// clockText formats a time such as 0.5s, 30s, 2m, 1m30s or 1h.
func clockText(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.3gs", seconds)
	}
	text := time.Duration(math.Round(seconds) * float64(time.Second)).String()
	text = strings.Replace(text, "m0s", "m", 1)
	return strings.Replace(text, "h0m", "h", 1)
}

// overPercentiles returns an axis of nines: 0, 90, 99 and 99.9 percent have the same distance, and
// it ends at one of them.
func overPercentiles(s series) axis {
	end := 1.0
	if n := len(s.samples); n > 0 {
		end = s.samples[n-1].to
	}
	half := -math.Log10(0.5)
	a := axis{place: func(x float64) float64 {
		return x / end
	}, text: percentile, marks: []float64{0}}
	if end <= 3 { // else its label would overlap 0%
		a.marks = append(a.marks, half)
	}
	for n := 1.0; n <= end; n++ {
		if end < 5 || math.Mod(end-n, 2) == 0 { // long labels, such as 99.999%, would overlap
			a.marks = append(a.marks, n)
		}
	}
	a.minor = func(nines float64) bool { return nines == half && end > 2 }
	return a
}

func percentile(nines float64) string { return fmt.Sprintf("%.6g%%", 100*(1-math.Pow(10, -nines))) }
