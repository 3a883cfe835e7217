package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gatehouse/loadtest/lab"
)

// Local is a gatehouse and a simulated upstream on this machine, each in its own process.
type Local struct {
	Target
	Server    *lab.Server
	simulator *lab.Simulator
	dir       string
}

// StartLocal starts both processes from a gatehouse program and waits until they are ready.
// database is a URL; "" = SQLite in a new temporary folder. settings are more environment variables
// (NAME=VALUE) for the server.
func StartLocal(ctx context.Context, program, database string,
	settings ...string) (_ *Local, err error) {
	l := &Local{Target: Target{Own: true}}
	if l.dir, err = os.MkdirTemp("", "gatehouse-load"); err != nil {
		return nil, fmt.Errorf("create a folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Stop())
		}
	}()
	if database == "" {
		database = "sqlite:" + filepath.Join(l.dir, "gatehouse.db")
	}
	gatehouse := lab.Gatehouse{Program: program,
		Env: append(settings, "GATEHOUSE_DATABASE_URL="+database)}
	text, err := gatehouse.Run(ctx, "init", "--json", "--new-operator")
	if err != nil {
		return nil, err
	}
	var operator struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(text, &operator); err != nil {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	l.ClientID, l.ClientSecret = operator.ID, operator.Secret
	if l.simulator, err = gatehouse.Simulate(ctx, "--latency=20ms"); err != nil {
		return nil, err
	}
	l.Simulator = l.simulator.URL
	if l.Server, err = gatehouse.Serve(ctx, "--trusted-proxies=127.0.0.1/32", "--ip-provider=sim",
		"--ip-api-base="+l.Simulator, "--breaker-cooldown="+localCooldown.String()); err != nil {
		return nil, err
	}
	l.Base, l.Admin, l.Version = l.Server.Base, l.Server.Admin, l.Server.Version
	return l, nil
}

// Stop stops both processes, waits for them, and removes the folder.
func (l *Local) Stop() error {
	var errs []error
	if l.Server != nil {
		errs = append(errs, l.Server.Stop())
	}
	if l.simulator != nil {
		errs = append(errs, l.simulator.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}
