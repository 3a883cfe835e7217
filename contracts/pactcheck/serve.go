package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"gatehouse/contracts"
)

type serveCommand struct {
	Host string `default:"127.0.0.1" placeholder:"ADDRESS" help:"Where to listen (${default})."`
	Port int    `default:"9080" placeholder:"N" help:"Port; 0 = any free port (${default})."`
	JSON bool   `name:"json" help:"Print the addresses as one line of JSON."`
	Log  bool   `help:"Write the service's log to standard error."`
}

// Help is shown by pactcheck serve --help.
func (*serveCommand) Help() string {
	return "The address for state changes takes POST of {\"action\":\"setup\",\"state\":…,\"params\":{…}}. The response holds the state's values as JSON. " +
		"The action teardown ends an interaction. Each interaction has a gatehouse of its own, which starts with the first setup after a request or a " +
		"teardown. An unknown state or a wrong parameter is 400.\n\n" +
		"Example, with the verifier of pact-cli:\n\n    pactcheck serve --port 9080 &\n" +
		"    pactcheck prepare --out ready pacts/my-app-gatehouse.json\n" +
		"    pact-verifier --file ready/my-app-gatehouse.json --hostname 127.0.0.1 --port 9080 \\\n" +
		"        --state-change-url http://127.0.0.1:9080/_pact/state --state-change-teardown"
}

// Validate returns an error unless the port exists.
func (c *serveCommand) Validate() error {
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("--port: got %d, want 0 to 65535", c.Port)
	}
	return nil
}

// Run serves until the program is asked to stop.
func (c *serveCommand) Run(p *program) (err error) {
	config := contracts.Config{Listen: net.JoinHostPort(c.Host, strconv.Itoa(c.Port))}
	if c.Log {
		config.Log = p.stderr
	}
	provider, err := contracts.Start(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	if c.JSON {
		err = json.NewEncoder(p.stdout).Encode(map[string]string{"url": provider.URL(),
			"state_url": provider.StateURL()})
	} else {
		_, err = fmt.Fprintf(p.stdout, "gatehouse:     %s\nstate changes: %s\n", provider.URL(),
			provider.StateURL())
	}
	if err != nil {
		return err
	}
	<-p.ctx.Done()
	return nil
}
