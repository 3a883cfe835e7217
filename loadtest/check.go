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

// Cooldowns of the breaker: gatehouse's default, and the setting of a Local.
const (
	defaultCooldown = 10 * time.Second
	localCooldown   = time.Second
)

// recovery returns the time in which the target's breaker closes after the upstream works again:
// its cooldown and a second.
func (t Target) recovery() time.Duration {
	if t.Own {
		return localCooldown + time.Second
	}
	return defaultCooldown + time.Second
}

// shortestSoak is the shortest duration with fewestReadings readings.
const shortestSoak = (fewestReadings + 2) * time.Second

// parts returns the scenarios of the mix, or the scenario itself.
func (sc Scenario) parts(mix map[string]float64) []Scenario {
	if !slices.Contains(sc.uses, "mix") {
		return []Scenario{sc}
	}
	if mix == nil {
		mix = defaultMix
	}
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(mix)) {
		if part, err := ScenarioNamed(name); err == nil {
			all = append(all, part)
		}
	}
	return all
}

// Steps returns the names of the steps of its hits, in their order, one scenario of the mix after
// the other. mix is Setup.Mix.
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

// Uses reports whether the scenario uses a part of its Setup: keys, queries, tokens, people or mix.
func (sc Scenario) Uses(what string, mix map[string]float64) bool {
	return slices.Contains(sc.uses, what) ||
		slices.ContainsFunc(sc.parts(mix), func(part Scenario) bool {
			return slices.Contains(part.uses, what)
		})
}

// Check returns an error if s or config is wrong or incomplete. It sends no requests.
func (sc Scenario) Check(s Setup, config Config) error {
	if err := sc.checkNeeds(s); err != nil {
		return err
	}
	if err := config.Agents.Check(sc, s, config.withDefaults()); err != nil {
		return err
	}
	planned := config.Duration
	if config.Schedule != nil {
		planned = config.Schedule.Duration()
	}
	switch least := 3 * s.Target.recovery(); {
	case sc.Name == "outage" && planned < least:
		return fmt.Errorf("outage needs at least %s, but the run lasts %s: its last third has to be longer than the cooldown of the target's breaker (%s)",
			least, planned, s.Target.recovery()-time.Second)
	case sc.Name == "soak" && planned < shortestSoak:
		return fmt.Errorf("soak needs at least %s to compare memory over time, but the run lasts %s",
			shortestSoak, planned)
	}
	for _, part := range sc.parts(s.Mix) {
		if err := part.checkQueries(s, config, part.Name == sc.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkQueries returns an error for invalid queries, or too few of them.
func (sc Scenario) checkQueries(s Setup, config Config, alone bool) error {
	if sc.Name == "lookup-zipf" && s.Queries == nil && s.Keys == 1 {
		return errors.New("--keys: lookup-zipf needs at least 2")
	}
	if !slices.Contains(sc.uses, "queries") {
		return nil
	}
	for _, text := range s.Queries {
		if err := sc.checkQuery(text); err != nil {
			return fmt.Errorf("--queries: %w", err)
		}
	}
	if sc.Name == "lookup-cold" && alone && s.Queries != nil && config.Schedule != nil {
		if given, hits := len(distinct(s.Queries)), config.Schedule.Hits(); uint64(given) < hits {
			return fmt.Errorf("--queries: there are %d different queries and %d hits, and each hit needs a new one: give more, or lower --rate or --duration",
				given, hits)
		}
	}
	return nil
}

// CheckQuery returns an error if the scenario, with mix as its mix, cannot look text up.
func (sc Scenario) CheckQuery(text string, mix map[string]float64) error {
	for _, part := range sc.parts(mix) {
		if err := part.checkQuery(text); err != nil && slices.Contains(part.uses, "queries") {
			return err
		}
	}
	return nil
}

func (sc Scenario) checkQuery(text string) error {
	if _, err := geo.ParseQuery(text); err != nil {
		return fmt.Errorf("%.100q is not a valid query: %s", text, err)
	}
	if _, err := netip.ParseAddr(strings.TrimSpace(text)); err != nil && sc.Name == "my-ip" {
		return fmt.Errorf("%.100q is not an IP address, as my-ip needs", text)
	}
	return nil
}

// checkNeeds returns an error that names the missing flags, unless the target is our own.
func (sc Scenario) checkNeeds(s Setup) error {
	var missing []string
	need := func(flag, value string) {
		if value == "" {
			missing = append(missing, flag)
		}
	}
	provisioned := "" // a scenario that creates clients and users
	for _, part := range sc.parts(s.Mix) {
		if slices.Contains(part.uses, "people") && part.Name != "overload" &&
			(s.Tokens == nil || !slices.Contains(part.uses, "tokens")) {
			provisioned = part.Name
		}
	}
	switch {
	case s.Target.Own:
		return nil
	case sc.own != nil:
		missing = sc.own.needs(s.Target)
	case provisioned != "":
		need("--admin", s.Target.Admin)
		need("--client-id", s.Target.ClientID)
		need("--client-secret", s.Target.ClientSecret)
	case sc.Name == "soak":
		need("--admin", s.Target.Admin)
	}
	if sc.Name == "outage" {
		need("--simulator", s.Target.Simulator)
	}
	if len(missing) == 0 {
		return nil
	}
	why := "creates clients and users with an operator client of the target (gatehouse init creates one)"
	switch {
	case sc.own != nil:
		why = "has steps for the admin listener"
	case sc.Name == "outage":
		why = "breaks the upstream, which has to be a gatehouse sim"
	case provisioned == "":
		why = "reads the target's memory"
	case provisioned != sc.Name:
		why = "includes " + provisioned + ", which " + why
	}
	return fmt.Errorf("%s %s: give %s, or leave out --target", sc.Name, why,
		strings.Join(missing, ", "))
}
