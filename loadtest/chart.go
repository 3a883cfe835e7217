package loadtest

import (
	"fmt"
	"math"
	"strings"
)

// chart is a line chart in a box of 100 by 100 with its origin at the top left. Its labels are text
// of the page, not of the drawing, so that they have the same size on every screen.
type chart struct {
	Title, Note string
	About       string // text alternative
	Lines       []line
	X, Y        []mark
	Bands       []band
}

type line struct {
	Name, Class string
	Path        string // of an SVG path
}

// mark is a label of an axis. At is its position in percent.
type mark struct {
	At, Text string
	Last     bool // at the end of the axis, with no space to its right
	Minor    bool // hidden on small screens
}

// band is a Period in a chart.
type band struct{ At, Width, Text string }

// series is the data of a line.
type series struct {
	name, class string
	samples     []sample
}

// sample is the value y for x between from and to, which may be equal. NaN is a gap.
type sample struct{ from, to, y float64 }

// axis maps values to positions from 0 to 1.
type axis struct {
	place func(float64) float64
	marks []float64
	text  func(float64) string
	minor func(float64) bool // nil = no mark is minor
}

func hundredths(share float64) string { return fmt.Sprintf("%.2f", 100*share) }

// draw returns a chart of series.
func draw(title, note string, x, y axis, periods []Period, all ...series) chart {
	c := chart{Title: title, Note: note, About: title}
	for _, at := range x.marks {
		c.X = append(c.X, mark{At: hundredths(x.place(at)), Text: x.text(at),
			Last: x.place(at) > 0.95, Minor: x.minor != nil && x.minor(at)})
	}
	for _, at := range y.marks {
		c.Y = append(c.Y, mark{At: hundredths(1 - y.place(at)), Text: y.text(at)})
	}
	for _, p := range periods {
		from, to := x.place(p.From.Seconds()), min(1, x.place(p.To.Seconds()))
		c.Bands = append(c.Bands, band{hundredths(from), hundredths(max(0, to-from)), p.What})
	}
	for _, s := range all {
		c.Lines = append(c.Lines, line{s.name, s.class, path(s.samples, x, y)})
		if least, most := extent(s); most >= least {
			c.About += fmt.Sprintf(", %s from %s to %s", s.name, y.text(least), y.text(most))
		}
	}
	return c
}

// path returns the SVG path of samples. A sample with a width is a horizontal line.
func path(samples []sample, x, y axis) string {
	var b strings.Builder
	move := true
	for _, s := range samples {
		if math.IsNaN(s.y) {
			move = true
			continue
		}
		fmt.Fprintf(&b, "%s%s %s", map[bool]string{true: "M", false: "L"}[move],
			hundredths(x.place(s.from)), hundredths(1-y.place(s.y)))
		if s.to > s.from {
			fmt.Fprintf(&b, "H%s", hundredths(x.place(s.to)))
		}
		move = false
	}
	return b.String()
}

// extent returns the lowest and highest value. Without values, least is greater than most.
func extent(all ...series) (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, x := range s.samples {
			if !math.IsNaN(x.y) {
				least, most = min(least, x.y), max(most, x.y)
			}
		}
	}
	return least, most
}

// linear returns an axis from 0 to a round number that is at least most. It has at most six marks,
// with a distance of at least unit.
func linear(most, unit float64, text func(float64) string) axis {
	if !(most > 0) {
		most, unit = max(1, unit), max(1, unit)
	}
	step := max(unit, roundStep(most, 5))
	end := step * math.Ceil(most/step-1e-9)
	a := axis{place: func(y float64) float64 { return y / end }, text: text}
	for n := range int(math.Round(end/step)) + 1 {
		a.marks = append(a.marks, float64(n)*step)
	}
	return a
}

// roundStep returns the smallest step of the form 1, 2 or 5 times a power of ten, with n·step ≥
// most.
func roundStep(most float64, n int) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most/float64(n))))
	for _, digit := range []float64{1, 2, 5} {
		if most <= float64(n)*step*digit*(1+1e-9) {
			return step * digit
		}
	}
	return 10 * step
}

// logarithmic returns a logarithmic axis between round numbers around least and most. Its marks are
// 1, 2, 5, 10, … if there are few enough, or else the powers of ten.
func logarithmic(least, most float64, text func(float64) string) axis {
	if !(least > 0) || !(most >= least) {
		least, most = 1, 10
	}
	marks := between(least, most, 1, 2, 5)
	if len(marks) > 7 {
		marks = between(least, most, 1)
	}
	from, to := math.Log10(marks[0]), math.Log10(marks[len(marks)-1])
	place := func(y float64) float64 {
		if y <= 0 {
			return 0
		}
		return min(1, max(0, (math.Log10(y)-from)/(to-from)))
	}
	return axis{place: place, marks: marks, text: text}
}

// between returns round numbers, from the last one up to least to the first one from most on. There
// are at least two.
func between(least, most float64, digits ...float64) []float64 {
	var marks []float64
	for power := math.Floor(math.Log10(least)) - 1; ; power++ {
		for _, digit := range digits {
			mark := digit * math.Pow(10, power)
			if mark <= least*(1+1e-9) {
				marks = marks[:0]
			}
			marks = append(marks, mark)
			if mark >= most*(1-1e-9) && len(marks) > 1 {
				return marks
			}
		}
	}
}
