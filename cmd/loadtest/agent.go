package main

import (
	"context"
	"fmt"
	"net"
	"sync"

	"gatehouse/loadtest"
)

type agentCommand struct {
	Listen string `name:"listen" required:"" placeholder:"HOST:PORT" help:"Address for loadtest run --agents. Whoever knows the token can let this machine send load, but only to this machine and to the host that it owns."`
	Token  string `name:"agent-token" placeholder:"TOKEN" env:"LOADTEST_AGENT_TOKEN" help:"Secret of this agent and those who use it, 32 characters or more. Other users of this machine can see flags: use the variable."`
	IOwn   string `name:"i-own-this-target" placeholder:"HOST" help:"Confirms a target that is not this machine. Others are refused."`
}

// Help is shown by loadtest agent --help.
func (*agentCommand) Help() string {
	return "Example:\n\n    export LOADTEST_AGENT_TOKEN=$(openssl rand -hex 32)\n" +
		"    loadtest agent --listen 10.0.0.5:7070 --i-own-this-target gatehouse.example"
}

// Run makes parts of loads until the program is asked to stop.
func (c *agentCommand) Run(p *program) error {
	if len(c.Token) < loadtest.MinToken {
		return usagef("--agent-token: give at least %d characters, such as from openssl rand -hex 32",
			loadtest.MinToken)
	}
	if host, port, err := net.SplitHostPort(c.Listen); err != nil || host == "" || port == "" {
		return usagef("--listen: write HOST:PORT, such as 10.0.0.5:7070")
	}
	ln, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(p.ctx), "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	var mu sync.Mutex
	say := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(p.stderr, "loadtest agent:", line)
	}
	say("listens on " + ln.Addr().String())
	agent := &loadtest.Agent{Token: c.Token, Version: version, Owned: c.IOwn, Log: say}
	return agent.Serve(p.ctx, ln)
}
