package loadtest

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/geo"
)

// The cool-downs of a breaker: gatehouse's default, and that of a Local. A target has found out that its upstream works again a
// second after its own.
const (
	usualCooldown = 10 * time.Second
	localCooldown = time.Second
)

// recovery returns how long the target may take to find out that its upstream works again.
func (t Target) recovery() time.Duration {
	if t.Own {
		return localCooldown + time.Second
	}
	return usualCooldown + time.Second
}

// shortestSoak is the least time in which a target tells of itself often enough.
const shortestSoak = (fewestReadings + 2) * time.Second

// parts returns the scenarios that hits are of.
func (sc Scenario) parts(mix map[string]float64) []Scenario {
	if !slices.Contains(sc.uses, "mix") {
		return []Scenario{sc}
	}
	if mix == nil {
		mix = everyday
	}
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(mix)) {
		if part, err := ScenarioNamed(name); err == nil {
			all = append(all, part)
		}
	}
	return all
}

// Steps returns the names of the steps that its hits take, in the order of a hit, one scenario of the mix after the other. mix is that
// of its Setup.
func (sc Scenario) Steps(mix map[string]float64) []string {
	var all []string
	for _, part := range sc.parts(mix) {
		for _, step := range part.steps {
			if !slices.Contains(all, step) {
				all = append(all, step)
			}
		}
	}
	return all
}

// Uses reports whether the scenario looks at a part of its Setup: keys, queries, tokens, people or mix.
func (sc Scenario) Uses(what string, mix map[string]float64) bool {
	return slices.Contains(sc.uses, what) || slices.ContainsFunc(sc.parts(mix), func(part Scenario) bool { return slices.Contains(part.uses, what) })
}

// Check says what of s or config is wrong or missing, as far as that can be told without asking anybody.
func (sc Scenario) Check(s Setup, config Config) error {
	if err := sc.checkNeeds(s); err != nil {
		return err
	}
	planned := config.Duration
	if config.Schedule != nil {
		planned = config.Schedule.Duration()
	}
	switch least := 3 * s.Target.recovery(); {
	case sc.Name == "outage" && planned < least:
		return fmt.Errorf("outage lasts %s at least: its last third has to be longer than the target's breaker waits until it asks the upstream again (%s), and the run lasts %s", least, s.Target.recovery()-time.Second, planned)
	case sc.Name == "soak" && planned < shortestSoak:
		return fmt.Errorf("soak lasts %s at least, so that memory can be compared with what it was before, and the run lasts %s", shortestSoak, planned)
	}
	for _, part := range sc.parts(s.Mix) {
		if err := part.checkQueries(s, config, part.Name == sc.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkQueries looks at the queries, and whether there are enough of them.
func (sc Scenario) checkQueries(s Setup, config Config, alone bool) error {
	if sc.Name == "lookup-zipf" && s.Queries == nil && s.Keys == 1 {
		return errors.New("--keys: lookup-zipf needs 2 at least")
	}
	if !slices.Contains(sc.uses, "queries") {
		return nil
	}
	for _, text := range s.Queries {
		if _, err := geo.ParseQuery(text); err != nil {
			return fmt.Errorf("--queries: %.100q is no query: %s", text, err)
		}
		if _, err := netip.ParseAddr(strings.TrimSpace(text)); err != nil && sc.Name == "my-ip" {
			return fmt.Errorf("--queries: %.100q is no IP address, which my-ip needs", text)
		}
	}
	if sc.Name == "lookup-cold" && alone && s.Queries != nil && config.Schedule != nil {
		if there, hits := len(distinct(s.Queries)), config.Schedule.Hits(); uint64(there) < hits {
			return fmt.Errorf("--queries: there are %d different queries and %d hits, each of which needs one that was not asked: give more, or lower --rate or --duration", there, hits)
		}
	}
	return nil
}

// checkNeeds says what a target that is not our own lacks.
func (sc Scenario) checkNeeds(s Setup) error {
	var missing []string
	lacks := func(flag, value string) {
		if value == "" {
			missing = append(missing, flag)
		}
	}
	needy := ""
	for _, part := range sc.parts(s.Mix) {
		if slices.Contains(part.uses, "people") && (s.Tokens == nil || !slices.Contains(part.uses, "tokens")) {
			needy = part.Name
		}
	}
	switch {
	case s.Target.Own:
		return nil
	case needy != "":
		lacks("--admin", s.Target.Admin)
		lacks("--client-id", s.Target.ClientID)
		lacks("--client-secret", s.Target.ClientSecret)
	case sc.Name == "soak":
		lacks("--admin", s.Target.Admin)
	}
	if sc.Name == "outage" {
		lacks("--simulator", s.Target.Simulator)
	}
	if len(missing) == 0 {
		return nil
	}
	why := "makes clients and users by an operator client of the target (gatehouse init makes one)"
	switch {
	case sc.Name == "outage":
		why = "breaks the upstream, which has to be a gatehouse sim"
	case needy == "":
		why = "reads the target's memory"
	case needy != sc.Name:
		why = "has a part, " + needy + ", that " + why
	}
	return fmt.Errorf("%s %s: give %s, or no --target at all", sc.Name, why, strings.Join(missing, ", "))
}
