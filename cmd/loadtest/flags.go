package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"gatehouse/loadtest"
)

// givenFlags returns the flags of the command line, not those from the environment.
func givenFlags(parsed *kong.Context) map[string]bool {
	given := map[string]bool{}
	for _, part := range parsed.Path {
		if part.Flag != nil && !part.Resolved {
			given[part.Flag.Name] = true
		}
	}
	return given
}

// applies returns an error for a flag that would have no effect.
func (c *runCommand) applies(scenario loadtest.Scenario, j *job, given map[string]bool) error {
	for _, name := range []string{"duration", "concurrency", "keys", "people"} {
		if given[name] && (name == "duration" && c.Duration == 0 || name == "concurrency" &&
			c.Concurrency == 0 || name == "keys" && c.Keys == 0 || name == "people" &&
			c.People == 0) {
			return usagef("--%s: must be more than 0", name)
		}
	}
	for _, what := range []string{"mix", "keys", "queries", "people", "tokens"} {
		if given[what] && !scenario.Uses(what, j.setup.Mix) {
			return usagef("--%s: %s does not use it", what, scenario.Name)
		}
	}
	switch {
	case given["keys"] && given["queries"]:
		return usagef("--keys and --queries: choose one of them")
	case given["people"] && given["tokens"] && scenario.Name == "profile":
		return usagef("--people and --tokens: choose one of them")
	case given["metrics-authorization"] && c.MetricsURL == "":
		return usagef("--metrics-authorization: is of use with --metrics-url only")
	case given["agent-token"] && c.Agents == nil:
		return usagef("--agent-token: is of use with --agents only")
	case given["duration"] && c.Rate != "" &&
		strings.Count(c.Rate, ":") == 1+strings.Count(c.Rate, ","):
		return usagef("--duration: the stages of --rate say how long they are")
	}
	return c.targetFlags.apply(given)
}

// apply returns an error for a flag that has no meaning for the kind of target.
func (f *targetFlags) apply(given map[string]bool) error {
	if given["demo"] && given["target"] {
		return usagef("--demo and --target: choose one of them")
	}
	kind, without := "without --target", []string{"admin", "simulator", "client-id",
		"client-secret", "i-own-this-target"}
	switch {
	case given["target"]:
		kind, without = "with --target", []string{"gatehouse", "database"}
	case given["demo"]:
		kind, without = "with --demo", []string{"admin", "simulator", "client-id", "client-secret",
			"gatehouse", "database"}
	}
	for _, name := range without {
		if given[name] {
			return usagef("--%s: has no meaning %s", name, kind)
		}
	}
	for _, name := range []string{"target", "demo"} {
		if given[name] && f.Target == "" && f.Demo == "" {
			return usagef("--%s: is empty", name)
		}
	}
	return nil
}

// checkNumbers returns an error for a number out of its range.
func (c *runCommand) checkNumbers() error {
	for _, n := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"duration", int64(c.Duration), 0}, {"concurrency", int64(c.Concurrency), 0},
		{"keys", int64(c.Keys), 0}, {"people", int64(c.People), 0},
		{"timeout", int64(c.Timeout), 1}, {"connections", int64(c.Connections), 1},
	} {
		switch {
		case n.value < 0:
			return usagef("--%s: cannot be negative", n.flag)
		case n.value < n.least:
			return usagef("--%s: must be more than 0", n.flag)
		}
	}
	return nil
}

// check returns an error for what must fail, before anything is started.
func (j *job) check() error {
	if err := j.scenario.Check(j.setup, j.config); err != nil {
		return usagef("%s", err)
	}
	steps := j.scenario.Steps(j.setup.Mix)
	for _, e := range j.expect {
		if !e.Names(steps) {
			return usagef("--expect: %q: %s has no step %s: its steps are %s", e, j.scenario.Name,
				e.Step, strings.Join(steps, ", "))
		}
	}
	if j.baseline == nil {
		return nil
	}
	if err := j.baseline.Comparable(j.scenario.Name, j.setup, j.config); err != nil {
		return usagef("--baseline %s: %s", j.named, err)
	}
	return nil
}
