package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/stack"
	"gatehouse/providers/sim"
)

type simCommand struct {
	Listen  string   `name:"listen" default:"127.0.0.1:8082" placeholder:"ADDRESS" help:"HOST:PORT or unix:/path; port 0 takes a free one (${default})."`
	Tier    string   `name:"tier" default:"open" placeholder:"TIER" help:"open (no key, no budget), free (budgets) or pro (a key) (${default})."`
	Key     string   `name:"key" placeholder:"KEY" help:"The right key of the tier pro (default: any)."`
	Window  string   `name:"window" default:"1m" placeholder:"TIME" help:"Length of a budget window (${default})."`
	Singles string   `name:"singles" default:"45" placeholder:"N" help:"Single look-ups in a window (${default})."`
	Batches string   `name:"batches" default:"15" placeholder:"N" help:"Batches in a window (${default})."`
	Latency string   `name:"latency" default:"0s" placeholder:"TIME" help:"Wait before each answer (${default})."`
	Jitter  string   `name:"jitter" default:"0s" placeholder:"TIME" help:"Up to that much more (${default})."`
	Fault   []string `name:"fault" sep:"none" placeholder:"KIND,MEMBER=VALUE" help:"What goes wrong: status, garbage, short_batch, bad_element, hang, drop, reset or slow, with members endpoint, rate, times, status, delay. May be repeated."`
}

// Help is shown by gatehouse sim --help.
func (*simCommand) Help() string {
	return "Example:\n\n    gatehouse sim --tier free --latency 20ms --fault status,status=503,rate=0.1\n" +
		"    IP_PROVIDER=sim IP_API_BASE=http://127.0.0.1:8082 gatehouse serve"
}

// Run serves the simulator until the program is asked to stop.
func (c *simCommand) Run(p *program, parsed *kong.Context) error {
	v := p.resolver.values(parsed)
	settings := sim.Settings{
		Tier:             sim.Tier(v.oneOf("tier", c.Tier, string(sim.TierOpen), string(sim.TierFree), string(sim.TierPro))),
		Window:           v.duration("window", c.Window, time.Second, time.Hour),
		SinglesPerWindow: v.number("singles", c.Singles, 1, 1_000_000),
		BatchesPerWindow: v.number("batches", c.Batches, 1, 1_000_000),
		Latency:          v.duration("latency", c.Latency, 0, time.Hour),
		Jitter:           v.duration("jitter", c.Jitter, 0, time.Hour),
	}
	listen := v.address("listen", c.Listen)
	if v.err != nil {
		return v.err
	}
	for _, text := range c.Fault {
		fault, err := sim.ParseFault(text)
		if err != nil {
			return usagef("--fault %q: %v", text, err)
		}
		settings.Faults = append(settings.Faults, fault)
	}
	return p.simulate(listen, sim.Config{Settings: settings, Key: c.Key})
}

func (p *program) simulate(listen string, config sim.Config) error {
	s, err := stack.NewSimulator(listen, config)
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
