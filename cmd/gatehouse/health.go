package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// healthCommand is gatehouse health.
type healthCommand struct {
	adminSettings
	Live       bool       `name:"live" help:"Ask only whether the process runs (/healthz)."`
	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file of the server. Flags and variables win over it."`
}

// healthTimeout is longer than a check of the database may take.
const healthTimeout = 3 * time.Second

// Help is shown by gatehouse health --help.
func (*healthCommand) Help() string {
	return "Asks the server's admin listener for /readyz. The exit code is 0 if the server is ready, " +
		"else 1: for the health check of a container.\n\n" +
		"Example:\n\n    gatehouse health --admin-url http://127.0.0.1:8081"
}

// Run prints what the server says of itself.
func (c *healthCommand) Run(p *program) error {
	admin, err := c.site(p)
	if err != nil {
		return err
	}
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	admin.client.Timeout = healthTimeout
	request, err := http.NewRequestWithContext(p.ctx, http.MethodGet, admin.url+path, nil)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	response, err := admin.client.Do(request)
	if err != nil {
		return fmt.Errorf("reach the server at %s: %w", admin.shown, reason(err))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	admin.client.CloseIdleConnections()
	switch said := strings.TrimSpace(string(text)); {
	case errors.Join(err, response.Body.Close()) != nil:
		return fmt.Errorf("read the response of the server at %s: %w", admin.shown, reason(err))
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the server at %s is not ready: %s (status %d)", admin.shown, said,
			response.StatusCode)
	default:
		_, err := fmt.Fprintln(p.stdout, said)
		return err
	}
}
