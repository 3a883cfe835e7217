package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"gatehouse/loadtest/lab"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// Settings of both servers.
const (
	longTimeout    = 5 * time.Minute
	drainTimeout   = time.Minute
	maxConnections = 4096
)

// subject is a server in its own process, and the clients that send it requests.
type subject struct {
	process   *lab.Process
	simulator *lab.Simulator // nil = none
	admin     string         // URL of its profiles
	log       string         // file that it logs to
	profile   string         // file for a CPU profile of the last measurement; "" = none
	rate      float64        // of the last measurement
	clients   []*client
}

// startGatehouse starts a gatehouse program in a folder, with all that the trial prepares.
func (c comparison) startGatehouse(program, dir string) (s *subject, err error) {
	s = &subject{log: filepath.Join(dir, "access.log")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return s, err
	}
	p := &plan{dir: dir, tokens: c.tokens, keys: c.keys, requests: c.all(), flags: []string{"--ptr=off",
		fmt.Sprint("--max-connections=", maxConnections), fmt.Sprint("--drain-timeout=", drainTimeout),
		fmt.Sprint("--read-timeout=", longTimeout), fmt.Sprint("--write-timeout=", longTimeout),
		fmt.Sprint("--idle-timeout=", longTimeout)}}
	if p.database, err = c.trial.newDatabase(dir); err != nil {
		return s, err
	}
	gatehouse, ctx := lab.Gatehouse{Program: program}, context.Background()
	if c.trial.upstream {
		if s.simulator, err = gatehouse.Simulate(ctx); err != nil {
			return s, err
		}
		p.upstream = s.simulator.URL
	}
	requests, err := c.trial.prepare(p)
	if err != nil {
		return s, err
	}
	gatehouse.Log, err = os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return s, err
	}
	defer gatehouse.Log.Close() // the process has its own
	server, err := gatehouse.Serve(ctx, p.flags...)
	if err != nil {
		return s, err
	}
	s.process, s.admin = server.Process, server.Admin
	if err := s.connect(server.Listen, requests, c.trial.proofs(), c.connections); err != nil {
		return s, err
	}
	if c.trial.upstream {
		err = s.clients[0].fillCache(c.keys)
	}
	return s, err
}

// newDatabase returns an empty database, as durable as that of gatehouse serve.
func (t *trial) newDatabase(dir string) (c sqlstore.Config, err error) {
	c.URL = "sqlite:" + filepath.Join(dir, "gatehouse.db")
	if t.postgres {
		if c.URL, err = pgtest.NewDurable(); err == nil {
			c.KeyFiles = make([]string, 1)
			c.KeyFiles[0], err = pgtest.WriteKeyFile(dir)
		}
	}
	return c, err
}

var rawServing = regexp.MustCompile(`serving (\S+) (\S+)\n`)

// startRaw starts a server that sends the responses of gatehouse without doing its work.
func (c comparison) startRaw(gatehouse *subject, dir string) (s *subject, err error) {
	s = &subject{log: filepath.Join(dir, "raw.log")}
	r, err := gatehouse.clients[0].record(c.trial)
	if err != nil {
		return s, err
	}
	file := filepath.Join(dir, "responses")
	if err := r.write(file); err != nil {
		return s, err
	}
	program, err := os.Executable()
	if err != nil {
		return s, fmt.Errorf("find this program: %w", err)
	}
	if s.process, err = lab.Start(exec.Command(program, rawCommand, file), nil); err != nil {
		return s, err
	}
	found, err := s.process.Await(context.Background(), rawServing)
	if err == nil {
		s.admin = "http://" + found[2]
		err = s.connect(found[1], gatehouse.clients[0].requests, c.trial.proofs(), c.connections)
	}
	if err != nil {
		return s, errors.Join(fmt.Errorf("start raw: %w", err), s.end())
	}
	return s, nil
}

func (s *subject) connect(address string, requests [][]byte, proofs map[string]string,
	connections int) error {
	for i := range connections {
		c, err := newClient(address, requests, proofs, i*len(requests)/connections)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	return nil
}

// measure sends n requests, divided among the clients, and measures their cost.
func (s *subject) measure(n int) (reading, error) {
	if err := os.Truncate(s.log, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return reading{}, fmt.Errorf("empty the access log: %w", err)
	}
	profiled := s.startProfile(n)
	each := max(1, n/len(s.clients))
	before, err := s.process.CPU()
	if err != nil {
		return reading{}, err
	}
	start := time.Now()
	if err := s.sendEach(each); err != nil {
		return reading{}, err
	}
	elapsed := time.Since(start)
	after, err := s.process.CPU()
	if err != nil {
		return reading{}, err
	}
	sent := each * len(s.clients)
	s.rate = float64(sent) / elapsed.Seconds()
	return reading{cpu: (after - before) / time.Duration(sent), rate: s.rate, p99: s.p99()}, <-profiled
}

// p99 returns the response time by kind that 99 % of the requests of the last measurement kept.
func (s *subject) p99() map[string]time.Duration {
	times := map[string][]time.Duration{}
	for _, c := range s.clients {
		for kind, some := range c.times {
			times[kind] = append(times[kind], some...)
		}
	}
	p99 := map[string]time.Duration{}
	for kind, all := range times {
		slices.Sort(all)
		p99[kind] = all[len(all)*99/100]
	}
	return p99
}

// startProfile takes a CPU profile while n requests are sent. It takes as long as they would at the
// rate of the last measurement.
func (s *subject) startProfile(n int) <-chan error {
	done := make(chan error, 1)
	if s.profile == "" || s.rate == 0 {
		done <- nil
		return done
	}
	go func() {
		text, err := lab.Get(context.Background(), fmt.Sprintf("%s/debug/pprof/profile?seconds=%d",
			s.admin, int(float64(n)/s.rate)+1))
		if err == nil {
			err = os.WriteFile(s.profile, text, 0o600)
		}
		done <- err
	}()
	return done
}

// sendEach has every client send n requests.
func (s *subject) sendEach(n int) error {
	errs := make([]error, len(s.clients))
	var wg sync.WaitGroup
	for i, c := range s.clients {
		wg.Go(func() { errs[i] = c.run(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// end closes the connections and ends the processes.
func (s *subject) end() error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.conn.Close())
	}
	if s.process != nil {
		errs = append(errs, s.process.Stop())
	}
	if s.simulator != nil {
		errs = append(errs, s.simulator.Stop())
	}
	return errors.Join(errs...)
}
