package main

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/cmd/stack"
	"gatehouse/providers/sim"
)

type simCommand struct {
	Listen  listenAddress `name:"listen" default:"127.0.0.1:8082" placeholder:"ADDRESS" help:"HOST:PORT or unix:/path; port 0 takes a free one (${default})."`
	Tier    choice        `name:"tier" default:"open" oneof:"open free pro" placeholder:"TIER" help:"open (no key, no budget), free (budgets) or pro (a key) (${default})."`
	Key     string        `name:"key" placeholder:"KEY" help:"Key that the tier pro accepts (default: any)."`
	Window  duration      `name:"window" default:"1m" min:"1s" max:"1h" placeholder:"TIME" help:"Length of a budget window (${default})."`
	Singles int           `name:"singles" default:"45" min:"1" max:"1000000" placeholder:"N" help:"Single lookups in a window (${default})."`
	Batches int           `name:"batches" default:"15" min:"1" max:"1000000" placeholder:"N" help:"Batches in a window (${default})."`
	Latency duration      `name:"latency" default:"0s" min:"0s" max:"1h" placeholder:"TIME" help:"Time before each response (${default})."`
	Jitter  duration      `name:"jitter" default:"0s" min:"0s" max:"1h" placeholder:"TIME" help:"Random time on top, at most (${default})."`
	Fault   []sim.Fault   `name:"fault" sep:"none" placeholder:"KIND,MEMBER=VALUE" help:"Fault to inject: status, garbage, short_batch, bad_element, hang, drop, reset or slow, with members endpoint, rate, times, status, delay. May be repeated."`
}

// Help is shown by gatehouse sim --help.
func (*simCommand) Help() string {
	return "Example:\n\n    gatehouse sim --tier free --latency 20ms --fault status,status=503,rate=0.1\n" +
		"    IP_PROVIDER=sim IP_API_BASE=http://127.0.0.1:8082 gatehouse serve"
}

// Run serves the simulator until the program is asked to stop.
func (c *simCommand) Run(p *program) error {
	s, err := stack.NewSimulator(string(c.Listen), sim.Config{Key: c.Key, Settings: sim.Settings{
		Tier: sim.Tier(c.Tier), Window: c.Window.Duration,
		SinglesPerWindow: c.Singles, BatchesPerWindow: c.Batches,
		Latency: c.Latency.Duration, Jitter: c.Jitter.Duration, Faults: c.Fault,
	}})
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	_, printed := fmt.Fprintf(p.stdout, "gatehouse sim: the upstream's interface at %s\n"+
		"Settings and statistics: %s\n", s.URL, curl(s.URL, "/_sim"))
	ctx, end := context.WithCancel(p.ctx)
	defer end()
	if printed != nil {
		end()
	}
	return errors.Join(printed, s.Run(ctx))
}
