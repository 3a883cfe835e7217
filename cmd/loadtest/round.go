package main

import (
	"errors"
	"fmt"
	"time"

	"gatehouse/loadtest"
)

type roundCommand struct {
	Duration  time.Duration `name:"duration" default:"3s" placeholder:"TIME" help:"Time for each scenario; some need more (${default})."`
	Gatehouse string        `name:"gatehouse" placeholder:"FILE" help:"Program to start (default: that of loadtest run)."`
}

// Help is shown by loadtest round --help.
func (*roundCommand) Help() string { return "Example:\n\n    loadtest round --duration 5s" }

// leg is a scenario of the round, with thresholds for a busy machine with two processors.
type leg struct {
	name   string
	rate   string
	least  time.Duration
	people int
	expect []string
}

var legs = []leg{
	{name: "lookup-hot", rate: "1000", expect: []string{"errors<0.1%", "lookup p50<20ms"}},
	{name: "lookup-cold", rate: "100", expect: []string{"errors<0.1%", "cold-lookup p50<500ms"}},
	{name: "lookup-zipf", rate: "500", expect: []string{"errors<0.1%", "zipf-lookup p50<200ms"}},
	{name: "bulk", rate: "100", expect: []string{"errors<0.1%", "bulk p50<50ms"}},
	{name: "bulk-cold", rate: "5", expect: []string{"errors<0.1%", "cold-bulk p50<1s"}},
	{name: "stream", rate: "10", expect: []string{"errors<0.1%", "stream p50<200ms"}},
	{name: "my-ip", rate: "500", expect: []string{"errors<0.1%", "my-ip p50<20ms"}},
	{name: "token", rate: "200", expect: []string{"errors<0.1%", "token p50<100ms"}},
	{name: "introspect", rate: "300", people: 20,
		expect: []string{"errors<0.1%", "introspect p50<50ms"}},
	{name: "authorize", rate: "3", people: 5, expect: []string{"errors<0.1%", "login p50<1s"}},
	{name: "openid", rate: "30", expect: []string{"errors<0.1%", "token p50<200ms"}},
	{name: "device", rate: "10", expect: []string{"errors<0.1%", "allow p50<200ms"}},
	{name: "refresh", rate: "50", people: 50, expect: []string{"errors<0.1%", "refresh p50<100ms"}},
	{name: "churn", rate: "30", people: 50, expect: []string{"errors<0.1%", "profile p50<50ms"}},
	{name: "profile", rate: "800", people: 50, expect: []string{"errors<0.1%", "profile p50<20ms"}},
	{name: "outage", rate: "200", least: 9 * time.Second,
		expect: []string{"lookup errors<0.1%", "lookup p50<20ms"}},
	{name: "overload", rate: "100", least: 6 * time.Second, people: 100,
		expect: []string{"errors<0.1%", "overloaded-lookup p50<20ms"}},
	{name: "mixed", rate: "300", expect: []string{"errors<1%"}},
	{name: "soak", rate: "100", least: 10 * time.Second, expect: []string{"errors<1%"}},
}

// Run runs the legs, each against a server of its own. It fails if one did not pass.
func (c *roundCommand) Run(p *program) error {
	if c.Duration < time.Second {
		return usagef("--duration: must be at least 1s")
	}
	flags := targetFlags{Gatehouse: c.Gatehouse}
	program, err := flags.program()
	if err != nil {
		return err
	}
	failed := 0
	for _, l := range legs {
		came, err := c.run(p, program, l)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", l.name, err)
		case came == loadtest.Interrupted:
			return &exitError{code: exitInterrupted}
		case came != loadtest.Passed:
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d scenarios did not pass", failed, len(legs))
	}
	_, err = fmt.Fprintf(p.stdout, "all %d scenarios passed\n", len(legs))
	return err
}

func (c *roundCommand) run(p *program, gatehouse string, l leg) (loadtest.Verdict, error) {
	run := runCommand{Scenario: l.name, Rate: l.rate, Duration: max(c.Duration, l.least),
		Timeout: 10 * time.Second, Connections: 1000, People: l.people, Expect: l.expect}
	scenario, err := loadtest.ScenarioNamed(l.name)
	if err != nil {
		return "", err
	}
	j, err := run.job(scenario)
	if err != nil {
		return "", err
	}
	j.setup.Target.Own = true
	if err := j.check(); err != nil {
		return "", err
	}
	local, err := loadtest.StartLocal(p.ctx, gatehouse, "", scenario.Environment()...)
	if err != nil {
		return "", err
	}
	report, err := p.play(j, local.Target)
	if err := errors.Join(err, local.Stop()); err != nil {
		return "", err
	}
	if err := report.WriteText(p.stdout); err != nil {
		return "", err
	}
	_, err = fmt.Fprintln(p.stdout)
	return report.Verdict(), err
}
