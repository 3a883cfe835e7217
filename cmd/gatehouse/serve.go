package main

import (
	"slices"

	"gatehouse/cmd/stack"
	"gatehouse/providers/messenger"
)

type serveCommand struct {
	serviceSettings
}

// Help is shown by gatehouse serve --help.
func (*serveCommand) Help() string {
	return "Runs until SIGTERM or SIGINT, then answers the requests under way and ends. A second signal ends it at once.\n\n" +
		"Example:\n\n    gatehouse serve --listen :8080 --base-url https://id.example.com --database-url sqlite:gatehouse.db"
}

// Run serves until the program is asked to stop.
func (c *serveCommand) Run(p *program) error {
	config := c.stack()
	return p.serve(config, func(s *stack.Stack) error {
		if config.Identity != nil && slices.ContainsFunc(c.Messenger.targets(), messenger.Target.IsLog) {
			s.Logger.Warn("codes for people are written to this log: " +
				"anybody who reads it can sign in as anybody")
		}
		return nil
	})
}
