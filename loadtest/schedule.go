package loadtest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Stage is a part of a Schedule. Its rate changes linearly from From to To.
type Stage struct {
	From, To float64 // hits a second, 0 or more
	For      time.Duration
}

// hits returns the number of hits in the first t of the stage.
func (s Stage) hits(t time.Duration) float64 {
	x := t.Seconds()
	return s.From*x + (s.To-s.From)/s.For.Seconds()*x*x/2
}

// when returns the time at which the stage has made n hits. n must not exceed the stage's hits.
func (s Stage) when(n float64) time.Duration {
	if n <= 0 {
		return 0
	}
	slope := (s.To - s.From) / s.For.Seconds()
	var x float64
	if math.Abs(slope) < 1e-9 {
		x = n / s.From
	} else {
		// Of the two forms of the root, this one is precise for a small slope too.
		x = 2 * n / (s.From + math.Sqrt(max(0, s.From*s.From+2*slope*n)))
	}
	return min(s.For, time.Duration(x*float64(time.Second)))
}

// Schedule says when each hit of an open run begins. It is a vegeta.Pacer. It needs at least one
// stage with a duration above 0.
type Schedule []Stage

// Steady returns a Schedule with a constant rate.
func Steady(rate float64, d time.Duration) Schedule {
	return Schedule{{From: rate, To: rate, For: d}}
}

// ParseSchedule parses stages, separated by commas: RATE:TIME has a constant rate, FROM..TO:TIME
// changes it linearly. RATE without a time lasts for d.
func ParseSchedule(text string, d time.Duration) (Schedule, error) {
	var s Schedule
	for part := range strings.SplitSeq(text, ",") {
		rates, length, staged := strings.Cut(strings.TrimSpace(part), ":")
		stage := Stage{For: d}
		var err error
		if staged {
			if stage.For, err = time.ParseDuration(length); err != nil {
				return nil, fmt.Errorf("%q: write a time such as 30s after the colon", part)
			}
		}
		from, to, ramp := strings.Cut(rates, "..")
		if !ramp {
			to = from
		}
		if stage.From, err = parseRate(from); err == nil {
			stage.To, err = parseRate(to)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		if stage.For <= 0 {
			return nil, fmt.Errorf("%q: the time must be more than 0", part)
		}
		s = append(s, stage)
	}
	if s.Hits() < 1 {
		return nil, fmt.Errorf("%q: this makes no hits", text)
	}
	return s, nil
}

const maxRate = 1e7 // hits a second

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), "/s"), 64)
	if err != nil || rate < 0 || rate > maxRate || math.IsNaN(rate) {
		return 0, errors.New("a rate is a number of hits a second, such as 500")
	}
	return rate, nil
}

// Duration returns the duration of the schedule.
func (s Schedule) Duration() time.Duration {
	var d time.Duration
	for _, stage := range s {
		d += stage.For
	}
	return d
}

// Hits returns the number of hits in the schedule.
func (s Schedule) Hits() uint64 {
	var n float64
	for _, stage := range s {
		n += stage.hits(stage.For)
	}
	return uint64(n + 1e-6)
}

// At returns when hit n begins, counted from 0. It returns the schedule's end if there is no such
// hit.
func (s Schedule) At(n uint64) time.Duration {
	left := float64(n)
	var at time.Duration
	for _, stage := range s {
		if here := stage.hits(stage.For); left >= here {
			left -= here
			at += stage.For
			continue
		}
		return at + stage.when(left)
	}
	return at
}

// Pace implements vegeta.Pacer.
func (s Schedule) Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool) {
	if hits >= s.Hits() {
		return 0, true
	}
	return max(0, s.At(hits)-elapsed), false
}

// Rate implements vegeta.Pacer. It returns the hits a second at elapsed.
func (s Schedule) Rate(elapsed time.Duration) float64 {
	for _, stage := range s {
		if elapsed < stage.For {
			return stage.From + (stage.To-stage.From)*elapsed.Seconds()/stage.For.Seconds()
		}
		elapsed -= stage.For
	}
	return 0
}

// String returns the schedule in the form that ParseSchedule parses.
func (s Schedule) String() string {
	var parts []string
	for _, stage := range s {
		rate := strconv.FormatFloat(stage.From, 'g', -1, 64)
		if stage.To != stage.From {
			rate += ".." + strconv.FormatFloat(stage.To, 'g', -1, 64)
		}
		parts = append(parts, rate+":"+stage.For.String())
	}
	return strings.Join(parts, ",")
}
