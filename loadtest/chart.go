package loadtest

import (
	"fmt"
	"math"
	"strings"
)

// chart is a drawing of lines in a box of 100 by 100, whose origin is above and left. Its labels are text of the page, so that they are as
// large on a telephone as on a desk.
type chart struct {
	Title, Note string
	About       string // for those who do not see it
	Lines       []line
	X, Y        []mark
	Bands       []band
}

type line struct {
	Name, Class string
	Path        string // of an SVG path
}

// mark is a label of an axis, at so many hundredths of it.
type mark struct {
	At, Text string
	Last     bool // it stands at the end, beyond which there is no room
	Minor    bool // it is left out where there is little room
}

// band is a time in which something was different by intent.
type band struct{ At, Width, Text string }

// series is a line before it is drawn.
type series struct {
	name, class string
	samples     []sample
}

// sample is a value from some place to another, which may be the same; NaN is a gap.
type sample struct{ from, to, y float64 }

// axis places values between 0 and 1.
type axis struct {
	place func(float64) float64
	marks []float64
	text  func(float64) string
	minor func(float64) bool // nil = no mark is
}

func hundredths(share float64) string { return fmt.Sprintf("%.2f", 100*share) }

// draw makes a chart of lines.
func draw(title, note string, x, y axis, periods []Period, all ...series) chart {
	c := chart{Title: title, Note: note, About: title}
	for _, at := range x.marks {
		c.X = append(c.X, mark{At: hundredths(x.place(at)), Text: x.text(at), Last: x.place(at) > 0.95, Minor: x.minor != nil && x.minor(at)})
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

// path writes samples one after the other, each as a level line when it takes some room.
func path(samples []sample, x, y axis) string {
	var b strings.Builder
	move := true
	for _, s := range samples {
		if math.IsNaN(s.y) {
			move = true
			continue
		}
		fmt.Fprintf(&b, "%s%s %s", map[bool]string{true: "M", false: "L"}[move], hundredths(x.place(s.from)), hundredths(1-y.place(s.y)))
		if s.to > s.from {
			fmt.Fprintf(&b, "H%s", hundredths(x.place(s.to)))
		}
		move = false
	}
	return b.String()
}

// extent returns the least and the highest value of lines; the least is above the highest when there is none.
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

// linear is an axis from 0 to a round number not below most, with at most six marks, which are at least the unit apart.
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

// roundStep returns the least of 1, 2, 5, 10, 20, … and their tenths and so on of which n reach most.
func roundStep(most float64, n int) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most/float64(n))))
	for _, digit := range []float64{1, 2, 5} {
		if most <= float64(n)*step*digit*(1+1e-9) {
			return step * digit
		}
	}
	return 10 * step
}

// logarithmic is an axis on which tenfold values are as far apart everywhere, from a round number to another around the values. All of 1, 2, 5,
// 10, … are marked where there is room, else the powers of ten.
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

// between returns the round numbers from the last not above least to the first not below most, two at least.
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
