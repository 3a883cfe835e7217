package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"gatehouse/contracts/stub"
)

type stubCommand struct {
	Host    string   `default:"127.0.0.1" placeholder:"ADDRESS" help:"Where to listen (${default})."`
	Port    int      `default:"9080" placeholder:"N" help:"Port; 0 = any free port (${default})."`
	States  []string `name:"state" sep:"none" placeholder:"STATE" help:"A state that gatehouse starts in, with parameters as JSON after its name; may repeat."`
	Faults  []string `name:"fault" sep:"none" placeholder:"FAULT" help:"METHOD PATH=WHAT@N%: of each hundred requests, N get WHAT: a status, 'cut' (half of the body), 'expired' (an expired token), or 'delay 200ms'; may repeat."`
	Lenient bool     `help:"Pass on requests that gatehouse's OpenAPI document does not allow, to see what gatehouse responds."`
	JSON    bool     `name:"json" help:"Print the address as one line of JSON."`

	faults []stub.Fault
}

// Help is shown by pactcheck stub --help.
func (*stubCommand) Help() string {
	return "The stub is the real gatehouse, so forms, codes and tokens work. It keeps what requests change until it ends. " +
		"A request can choose: X-Pact-State names a state, with parameters as JSON after the name, and may repeat; a gatehouse in these states alone serves it; " +
		"X-Pact-Values in the response has their values. Prefer: code=429 gets the response with that status of gatehouse's own pacts. " +
		"A request that the OpenAPI document does not allow is 400 with X-Pact-Refused, which says why.\n\n" +
		"Examples:\n\n    pactcheck stub --state 'an access token {\"access_token\":\"gtat_example\"}'\n" +
		"    pactcheck stub --fault 'GET /api/lookup=503@10%' --fault 'GET /api/user=expired@50%'\n" +
		"    curl -H 'Prefer: code=429' 'http://127.0.0.1:9080/api/lookup?q=8.8.8.8'"
}

// Validate returns an error for a port or fault that cannot be.
func (c *stubCommand) Validate() error {
	if err := (&serveCommand{Port: c.Port}).Validate(); err != nil {
		return err
	}
	for _, text := range c.Faults {
		f, err := stub.ParseFault(text)
		if err != nil {
			return fmt.Errorf("--fault: %w", err)
		}
		c.faults = append(c.faults, f)
	}
	return nil
}

// Run serves until the program is asked to stop.
func (c *stubCommand) Run(p *program) (err error) {
	s, err := stub.Start(p.ctx, stub.Config{Listen: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)),
		States: c.States, Faults: c.faults, Lenient: c.Lenient})
	if err != nil {
		return usagef("%s", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if c.JSON {
		err = json.NewEncoder(p.stdout).Encode(map[string]string{"url": s.URL()})
	} else {
		_, err = fmt.Fprintf(p.stdout, "gatehouse: %s\n", s.URL())
	}
	if err != nil {
		return err
	}
	<-p.ctx.Done()
	return nil
}
