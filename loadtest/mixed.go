package loadtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// everyday is the mix of a service that does a bit of everything.
var everyday = map[string]float64{
	"lookup-hot": 50, "lookup-zipf": 15, "lookup-cold": 2, "bulk": 8, "my-ip": 5, "token": 4, "refresh": 3, "churn": 2, "introspect": 5, "profile": 6,
}

// ParseMix reads weights such as "lookup-hot=60,bulk=5".
func ParseMix(text string) (map[string]float64, error) {
	mix := map[string]float64{}
	for part := range strings.SplitSeq(text, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), "=")
		w, err := strconv.ParseFloat(weight, 64)
		if err != nil || !(w > 0) || w > 1e9 {
			return nil, fmt.Errorf("%q: write SCENARIO=WEIGHT with a weight above 0", part)
		}
		if _, err := ScenarioNamed(name); err != nil {
			return nil, err
		}
		if name == "mixed" || name == "soak" || name == "outage" {
			return nil, fmt.Errorf("%q: %s cannot be part of a mix", part, name)
		}
		if mix[name] > 0 {
			return nil, fmt.Errorf("%q: %s is there twice", part, name)
		}
		mix[name] = w
	}
	return mix, nil
}

// mixText writes a mix as ParseMix reads it; nil is everyday.
func mixText(mix map[string]float64) string {
	if mix == nil {
		mix = everyday
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(mix)) {
		parts = append(parts, fmt.Sprintf("%s=%g", name, mix[name]))
	}
	return strings.Join(parts, ",")
}

// prepareMixed draws the scenario of each hit by its weight. Steps keep their names.
func prepareMixed(ctx context.Context, s *Setup) (*play, error) {
	mix := s.Mix
	if mix == nil {
		mix = everyday
	}
	var plays []*play
	var up []float64 // sums of the weights so far
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(mix)) {
		sc, err := ScenarioNamed(name)
		if err != nil {
			return nil, err
		}
		p, err := sc.prepare(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sum += mix[name]
		plays, up = append(plays, p), append(up, sum)
	}
	return &play{
		hit: func(h *Hit) error {
			i, _ := slices.BinarySearch(up, h.Rand.Float64()*sum)
			return plays[min(i, len(plays)-1)].hit(h)
		},
		checks: func(r *Result) []Check {
			var all []Check
			for _, p := range plays {
				if p.checks != nil {
					all = append(all, p.checks(r)...)
				}
			}
			return all
		},
	}, nil
}

// growth is how much memory and goroutines may grow from the second quarter of a soak to the last.
const growth = 1.15

// fewestReadings is how often a target must have told of itself, which it does once a second, for quarters to be compared.
const fewestReadings = 8

// prepareSoak is prepareMixed with a look at what the target's process needs.
func prepareSoak(ctx context.Context, s *Setup) (*play, error) {
	p, err := prepareMixed(ctx, s)
	if err != nil {
		return nil, err
	}
	mixed := p.checks
	p.checks = func(r *Result) []Check {
		memory := flat(r.Resources, "%.1f MB", func(r Resource) float64 { return r.Memory / 1e6 })
		memory.What = "the target's memory stays flat"
		goroutines := flat(r.Resources, "%.0f", func(r Resource) float64 { return r.Goroutines - r.Connections })
		goroutines.What = "its goroutines stay flat, but for one a connection"
		return append(mixed(r), memory, goroutines)
	}
	return p, nil
}

// flat compares the medians of the second and the last quarter, which form writes.
func flat(all []Resource, form string, read func(Resource) float64) Check {
	n := len(all)
	if n < fewestReadings {
		return Check{OK: true, Untested: true, Seen: fmt.Sprintf("the target told %d times of itself, and %d are needed", n, fewestReadings)}
	}
	before, after := medianOf(all[n/4:n/2], read), medianOf(all[n-n/4:], read)
	return Check{OK: after <= growth*before, Seen: fmt.Sprintf(form+" in the second quarter, "+form+" in the last", before, after)}
}

func medianOf(all []Resource, read func(Resource) float64) float64 {
	var values []float64
	for _, r := range all {
		values = append(values, read(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
