package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"

	"gatehouse/providers/sim"
)

type demoCommand struct {
	Dir       string `name:"dir" default:"./gatehouse-demo" placeholder:"DIR" help:"Folder of the demo, made when it is not there (${default})."`
	SimListen string `name:"sim-listen" default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where the simulated upstream listens (${default})."`
	SimTier   string `name:"sim-tier" default:"open" placeholder:"TIER" help:"Its budgets: open (none) or free (as the free tier of ip-api) (${default})."`
	settings
}

// Help is shown by gatehouse demo --help.
func (*demoCommand) Help() string {
	return "Serves made-up answers, so that everything can be tried without a network. DIR/demo.json says where it listens. " +
		"The provider is the simulator, whatever IP_PROVIDER, IP_API_BASE and IP_API_KEY say.\n\n" +
		"Example:\n\n    gatehouse demo --dir /tmp/demo --listen 127.0.0.1:0"
}

var demoDefaults = defaults{ptr: "off", trustedProxies: []string{"127.0.0.0/8", "::1/128"}, logFormat: "text"}

// Run serves a demo until the program is asked to stop.
func (c *demoCommand) Run(p *program, parsed *kong.Context) error {
	v := p.resolver.values(parsed)
	tier := v.oneOf("sim-tier", c.SimTier, string(sim.TierOpen), string(sim.TierFree))
	listen := v.hostPort("sim-listen", c.SimListen)
	config, err := newConfig(c.settings, upstreamSettings{IPProvider: "sim"}, demoDefaults, v)
	if err != nil {
		return err
	}
	simulated := sim.Config{Settings: sim.Settings{Tier: sim.Tier(tier)}}
	return p.runService(config, func(s *service) error {
		unlock, err := lockFolder(c.Dir)
		if err != nil {
			return err
		}
		s.onStop(unlock)
		if err := s.start(listen, simulated); err != nil {
			return err
		}
		return announce(s, c.Dir, p.stdout)
	})
}

// announce writes demo.json and says what can be tried. Nothing is served before.
func announce(s *service, dir string, w io.Writer) error {
	file := demoFile{
		BaseURL:     httpURL(s.public, s.config.TLSCert != ""),
		AdminURL:    httpURL(s.admin, false),
		UpstreamURL: s.config.Base,
	}
	if err := file.write(dir); err != nil {
		return err
	}
	return file.greet(w, dir)
}

// lockFolder makes dir if needed and takes it for this process, so that two demos never share one.
func lockFolder(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("demo folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("demo folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("--dir %q: another demo runs in this folder", dir), lock.Close())
	}
	return lock.Close, nil
}

// demoFile is DIR/demo.json: what scripts need to know of a running demo.
type demoFile struct {
	BaseURL     string `json:"base_url"`     // of the public endpoints
	AdminURL    string `json:"admin_url"`    // of metrics and health
	UpstreamURL string `json:"upstream_url"` // of the simulator; its settings are at /_sim
}

// write puts the file into dir, whole or not at all, readable by its owner alone.
func (f demoFile) write(dir string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("write demo.json: %w", err)
	}
	fresh, err := os.CreateTemp(dir, "demo.json.*") // mode 0600
	if err != nil {
		return fmt.Errorf("write demo.json: %w", err)
	}
	_, err = fresh.Write(append(text, '\n'))
	if err := errors.Join(err, fresh.Close()); err != nil {
		return fmt.Errorf("write demo.json: %w", errors.Join(err, os.Remove(fresh.Name())))
	}
	if err := os.Rename(fresh.Name(), filepath.Join(dir, "demo.json")); err != nil {
		return fmt.Errorf("write demo.json: %w", errors.Join(err, os.Remove(fresh.Name())))
	}
	return nil
}

// greet says what can be tried.
func (f demoFile) greet(w io.Writer, dir string) error {
	_, err := fmt.Fprintf(w, `gatehouse demo: look-ups at %s, simulated answers, no network needed.

Try:
  %s
  %s -H 'X-Forwarded-For: 8.8.8.8'
  %s -H 'Content-Type: application/json' -d '{"queries":["1.1.1.1","example.com"]}'
  %s
  %s -X PUT -d '{"faults":[{"kind":"status","status":503}]}'    # breaks the upstream

The addresses are in %s. Stop with Ctrl-C.

`, f.BaseURL, curl(f.BaseURL, "/api/lookup?q=8.8.8.8"), curl(f.BaseURL, "/api/my-ip"), curl(f.BaseURL, "/api/bulk"),
		curl(f.AdminURL, "/metrics"), curl(f.UpstreamURL, "/_sim"), filepath.Join(dir, "demo.json"))
	return err
}
