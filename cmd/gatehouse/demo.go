package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/gatehouse/bulk"
	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/sim"
)

type demoCommand struct {
	Dir       string   `name:"dir" default:"./gatehouse-demo" placeholder:"DIR" help:"Folder of the demo, made if it does not exist (${default})."`
	SimListen hostPort `name:"sim-listen" default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where the simulated upstream listens (${default})."`
	SimTier   choice   `name:"sim-tier" default:"open" oneof:"open free" placeholder:"TIER" help:"Budgets of the simulated upstream: open (none) or free (those of ip-api's free tier) (${default})."`
	settings
}

// Help is shown by gatehouse demo --help.
func (*demoCommand) Help() string {
	return "Serves both services with demo accounts, demo clients and simulated lookups, without " +
		"a network. DIR/demo.json has the addresses, and the only plain copy of passwords and secrets. " +
		"The database and its key file are in DIR and the upstream is the simulator: " +
		"GATEHOUSE_DATABASE_URL, GATEHOUSE_KEY_FILE, IP_PROVIDER, IP_API_BASE and IP_API_KEY have no effect.\n\n" +
		"Example:\n\n    gatehouse demo --dir /tmp/demo --listen 127.0.0.1:0"
}

// Run serves a demo until the program is asked to stop.
func (c *demoCommand) Run(p *program) (err error) {
	unlock, err := lockFolder(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	all := serviceSettings{settings: c.settings}
	all.IPProvider = choice(ipapi.Sim)
	all.DatabaseURL = databaseURL("sqlite:" + filepath.Join(c.Dir, "gatehouse.db"))
	config := all.stack(p)
	config.Localhost = true
	if identity := config.Identity; identity != nil {
		identity.Database.KeyFiles = nil // the one beside the database
	}
	if lookups := config.Lookups; lookups != nil {
		lookups.Simulator.Settings.Tier = sim.Tier(c.SimTier)
		lookups.SimulatorListen = string(c.SimListen)
	}
	return p.serve(config, "", func(s *stack.Stack) error {
		open := config.Identity != nil && config.Identity.Registration == oauth.RegistrationOpen
		return announce(p.ctx, s, c.Dir, open, p.stdout)
	})
}

// announce writes demo.json and prints what can be tried, before anything is served. agents says that
// they may register.
func announce(ctx context.Context, s *stack.Stack, dir string, agents bool, w io.Writer) error {
	file, err := readDemoFile(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if _, err := fmt.Fprintf(w, "gatehouse demo: %s is written again: %v\n",
			filepath.Join(dir, "demo.json"), err); err != nil {
			return err
		}
		file = demoFile{}
	}
	file.BaseURL, file.AdminURL = s.URL, s.AdminURL
	file.UpstreamURL = s.UpstreamURL
	if s.Store != nil {
		notes, err := file.settle(ctx, s.Store, time.Now())
		if err != nil {
			return err
		}
		for _, note := range notes {
			if _, err := fmt.Fprintf(w, "gatehouse demo: %s\n", note); err != nil {
				return err
			}
		}
	}
	if err := file.write(dir); err != nil {
		return err
	}
	return file.greet(w, dir, s.Store != nil, agents)
}

// lockFolder creates dir if needed and locks it, so that two demos never share a folder.
func lockFolder(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("demo folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("demo folder: %w", err)
	}
	if err := bulk.Lock(lock, "folder"); err != nil {
		return nil, errors.Join(fmt.Errorf("--dir %q: another demo runs in this folder", dir),
			lock.Close())
	}
	return lock.Close, nil
}
