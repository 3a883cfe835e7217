package loadtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// defaultMix has some of everything.
var defaultMix = map[string]float64{
	"lookup-hot": 50, "lookup-zipf": 15, "lookup-cold": 2, "bulk": 8, "my-ip": 5, "token": 4,
	"refresh": 3, "churn": 2, "introspect": 5, "profile": 6,
}

// ParseMix parses weights such as "lookup-hot=60,bulk=5".
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
		if slices.Contains([]string{"mixed", "soak", "outage", "overload"}, name) {
			return nil, fmt.Errorf("%q: %s cannot be part of a mix", part, name)
		}
		if mix[name] > 0 {
			return nil, fmt.Errorf("%q: %s is repeated", part, name)
		}
		mix[name] = w
	}
	return mix, nil
}

// mixText is the inverse of ParseMix; nil = defaultMix.
func mixText(mix map[string]float64) string {
	if mix == nil {
		mix = defaultMix
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(mix)) {
		parts = append(parts, fmt.Sprintf("%s=%g", name, mix[name]))
	}
	return strings.Join(parts, ",")
}

// usersLast returns the scenarios of a mix, those that create users last. So a target that lacks
// something, such as a trusted proxy, fails before users are created.
func usersLast(mix map[string]float64) []Scenario {
	all := (Scenario{uses: []string{"mix"}}).parts(mix)
	makes := func(sc Scenario) bool { return slices.Contains(sc.uses, "people") }
	first := slices.DeleteFunc(slices.Clone(all), makes)
	return append(first, slices.DeleteFunc(all, func(sc Scenario) bool { return !makes(sc) })...)
}

// prepareMixed draws the scenario of each hit by its weight. Steps keep their names.
func prepareMixed(ctx context.Context, s *Setup) (*workload, error) {
	mix := s.Mix
	if mix == nil {
		mix = defaultMix
	}
	var workloads []*workload
	var cumulative []float64 // sums of the weights
	sum := 0.0
	for _, sc := range usersLast(mix) {
		name := sc.Name
		p, err := sc.prepare(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sum += mix[name]
		workloads, cumulative = append(workloads, p), append(cumulative, sum)
	}
	return &workload{
		hit: func(h *Hit) error {
			i, _ := slices.BinarySearch(cumulative, h.Rand.Float64()*sum)
			return workloads[min(i, len(workloads)-1)].hit(h)
		},
		checks: func(r *Result) []Check {
			var all []Check
			for _, p := range workloads {
				if p.checks != nil {
					all = append(all, p.checks(r)...)
				}
			}
			return all
		},
	}, nil
}

// growth is the factor by which memory and goroutines may grow from the second quarter of a soak to
// the last.
const growth = 1.15

// fewestReadings is the number of readings of the target's metrics that is needed to compare
// quarters. There is one a second.
const fewestReadings = 8

// prepareSoak is prepareMixed with checks of the target's memory and goroutines.
func prepareSoak(ctx context.Context, s *Setup) (*workload, error) {
	p, err := prepareMixed(ctx, s)
	if err != nil {
		return nil, err
	}
	mixed := p.checks
	p.checks = func(r *Result) []Check {
		memory := flat(r.Resources, "%.1f MB", func(r Resource) float64 { return r.Memory / 1e6 })
		memory.What = "the target's memory stays flat"
		goroutines := flat(r.Resources, "%.0f", func(r Resource) float64 {
			return r.Goroutines - r.Connections
		})
		goroutines.What = "its goroutines stay flat, except one for each connection"
		return append(mixed(r), memory, goroutines)
	}
	return p, nil
}

// flat compares the medians of the second and the last quarter. form formats a value.
func flat(all []Resource, form string, read func(Resource) float64) Check {
	n := len(all)
	if n < fewestReadings {
		return Check{OK: true, Untested: true,
			Seen: fmt.Sprintf("the target's metrics were read %d times, and %d are needed", n,
				fewestReadings)}
	}
	before, after := medianOf(all[n/4:n/2], read), medianOf(all[n-n/4:], read)
	return Check{OK: after <= growth*before, Seen: fmt.Sprintf(form+" in the second quarter, "+form+
		" in the last", before, after)}
}

func medianOf(all []Resource, read func(Resource) float64) float64 {
	var values []float64
	for _, r := range all {
		values = append(values, read(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
