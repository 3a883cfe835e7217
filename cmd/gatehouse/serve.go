package main

import (
	"slices"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/stack"
	"gatehouse/providers/messenger"
)

type serveCommand struct {
	databaseSettings
	upstreamSettings
	settings
}

// Help is shown by gatehouse serve --help.
func (*serveCommand) Help() string {
	return "Runs until SIGTERM or SIGINT, then answers the requests under way and ends. A second signal ends it at once.\n\n" +
		"Example:\n\n    gatehouse serve --listen :8080 --base-url https://id.example.com --database-url sqlite:gatehouse.db"
}

// Run serves until the program is asked to stop.
func (c *serveCommand) Run(p *program, parsed *kong.Context) error {
	config, err := newConfig(c.settings, c.databaseSettings, c.upstreamSettings, serveDefaults, p.resolver.values(parsed))
	if err != nil {
		return err
	}
	return p.serve(config.stack(), func(s *stack.Stack) error {
		if config.Identity && slices.ContainsFunc(config.Messengers, messenger.Target.IsLog) {
			s.Logger.Warn("codes for people are written to this log: whoever reads it can sign in as anybody")
		}
		return nil
	})
}
