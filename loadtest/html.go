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
	"time": shortTime, "count": grouped, "counts": counts, "failed": func(s Step) string { return errorText(&s) },
	"mb": func(x float64) string { return fmt.Sprintf("%.0f MB", x/1e6) },
}).Parse(reportHTML))

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	page := struct {
		*Report
		Verdict Verdict
		Pace    string
		Rows    []Step
		Charts  []chart
		Checks  []Check
		Worse   []string
	}{Report: r, Verdict: r.Verdict(), Pace: r.paceText(), Rows: append(append([]Step{}, r.Result.Steps...), r.Result.All),
		Charts: r.charts(), Checks: append(r.Expected, r.Result.Checks...), Worse: r.Worse}
	if err := reportTemplate.Execute(w, page); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// The size of a chart and of the room around its lines.
const (
	chartWidth, chartHeight = 720.0, 240.0
	left, right, top, below = 80.0, 28.0, 12.0, 34.0
)

// chart is a drawing of lines over time or percentiles.
type chart struct {
	Title, Note string
	Lines       []line
	X, Y        []mark // the marks of the axes
}

// Width and the others are for the template.
func (chart) Width() float64  { return chartWidth }
func (chart) Height() float64 { return chartHeight }
func (chart) Left() float64   { return left }
func (chart) Right() float64  { return chartWidth - right }
func (chart) Top() float64    { return top }
func (chart) Bottom() float64 { return chartHeight - below }

type line struct {
	Name, Class string
	Points      string // of an SVG polyline
}

type mark struct {
	At   float64
	Text string
}

// series is a line before it is drawn.
type series struct {
	name, class string
	x, y        []float64
}

// draw makes a chart of lines. y runs from 0, or by powers of ten when logarithmic.
func draw(title, note string, logarithmic bool, xMarks func(most float64) []float64, xText, yText func(float64) string, all ...series) chart {
	c := chart{Title: title, Note: note}
	var maxX, maxY float64
	minY := math.Inf(1)
	for _, s := range all {
		for i := range s.x {
			maxX, maxY = max(maxX, s.x[i]), max(maxY, s.y[i])
			if s.y[i] > 0 {
				minY = min(minY, s.y[i])
			}
		}
	}
	if maxX == 0 {
		maxX = 1
	}
	place, marks := linear(maxY)
	if logarithmic && maxY > 0 {
		place, marks = powers(minY, maxY)
	}
	px := func(x float64) float64 { return left + x/maxX*(chartWidth-left-right) }
	py := func(y float64) float64 { return chartHeight - below - place(y)*(chartHeight-below-top) }
	for _, x := range xMarks(maxX) {
		c.X = append(c.X, mark{px(x), xText(x)})
	}
	for _, y := range marks {
		c.Y = append(c.Y, mark{py(y), yText(y)})
	}
	for _, s := range all {
		var points strings.Builder
		for i := range s.x {
			fmt.Fprintf(&points, "%.1f,%.1f ", px(s.x[i]), py(s.y[i]))
		}
		c.Lines = append(c.Lines, line{s.name, s.class, strings.TrimSpace(points.String())})
	}
	return c
}

// quarters and nines are where the marks of the two kinds of horizontal axes stand.
func quarters(most float64) []float64 { return []float64{0, most / 4, most / 2, most * 3 / 4, most} }

func nines(most float64) []float64 {
	var marks []float64
	for n := 0.0; n <= most; n++ {
		marks = append(marks, n)
	}
	return marks
}

// linear places values between 0 and a round number above most.
func linear(most float64) (place func(float64) float64, marks []float64) {
	if most <= 0 {
		most = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, part := range []float64{0.2, 0.25, 0.5, 1, 2} {
		if most <= 5*step*part {
			step *= part
			break
		}
	}
	end := step * math.Ceil(most/step)
	for y := 0.0; y <= end+step/2; y += step {
		marks = append(marks, y)
	}
	return func(y float64) float64 { return y / end }, marks
}

// powers places values between powers of ten.
func powers(least, most float64) (place func(float64) float64, marks []float64) {
	from, to := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	if to <= from {
		to = from + 1
	}
	for p := from; p <= to; p++ {
		marks = append(marks, math.Pow(10, p))
	}
	return func(y float64) float64 {
		if y <= 0 {
			return 0
		}
		return max(0, (math.Log10(y)-from)/(to-from))
	}, marks
}

func (r *Report) charts() []chart {
	var at, rate, errors, p50, p99 []float64
	for _, s := range r.Result.Seconds {
		if s.Length < 100*time.Millisecond { // too short to say anything
			continue
		}
		at = append(at, s.At.Seconds())
		rate = append(rate, perSecond(s.Requests, s.Length))
		errors = append(errors, perSecond(s.Errors, s.Length))
		p50, p99 = append(p50, s.P50.Seconds()*1e3), append(p99, s.P99.Seconds()*1e3)
	}
	seconds := func(x float64) string { return fmt.Sprintf("%.3gs", x) }
	latency := func(y float64) string { return shortTime(time.Duration(y * float64(time.Millisecond))) }
	number := func(y float64) string { return grouped(int64(y)) }
	all := []chart{
		draw("Latency over time", "Of all steps, second by second; the scale goes by powers of ten.", true, quarters, seconds, latency,
			series{"p99", "alarm", at, p99}, series{"p50", "strong", at, p50}),
		draw("Latency by percentile", "How many requests were answered within the time.", true, nines, percentile, latency, r.distribution()),
		draw("Throughput", "Requests a second.", false, quarters, seconds, number, series{"requests", "strong", at, rate}),
		draw("Errors", "Requests a second that did not get the answer that they should have.", false, quarters, seconds, func(y float64) string { return fmt.Sprintf("%.3g", y) },
			series{"errors", "alarm", at, errors}),
	}
	if len(r.Result.Resources) > 1 {
		all = append(all, r.resourceChart(seconds))
	}
	return all
}

// distribution is drawn over the number of nines: 90, 99, 99.9 per cent stand at the same distance.
func (r *Report) distribution() series {
	s := series{name: "latency", class: "strong"}
	for _, b := range distribution(r.Result.All.latency) {
		if b.Quantile < 100 {
			s.x = append(s.x, -math.Log10(1-b.Quantile/100))
			s.y = append(s.y, float64(b.ValueAt)/1e3)
		}
	}
	return s
}

func percentile(nines float64) string { return fmt.Sprintf("%.6g%%", 100*(1-math.Pow(10, -nines))) }

func (r *Report) resourceChart(seconds func(float64) string) chart {
	s := series{name: "resident memory", class: "strong"}
	for _, x := range r.Result.Resources {
		s.x, s.y = append(s.x, x.At.Seconds()), append(s.y, x.Memory/1e6)
	}
	return draw("Memory of the target", "Resident, in megabytes.", false, quarters, seconds, func(y float64) string { return fmt.Sprintf("%.3g MB", y) }, s)
}
