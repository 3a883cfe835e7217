package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gatehouse/providers/sqlstore/pgtest"
)

// comparison says what to compare and how.
type comparison struct {
	trial                        *trial
	binary                       string // gatehouse program
	against                      string // another in place of raw; "" = raw
	pairs, requests, connections int
	tokens                       int                 // access tokens used in turn; 0 = the trial's
	keys                         int                 // addresses looked up in turn; 0 = the trial's
	profiles                     string              // folder for CPU profiles; "" = none
	each                         func(i int, p pair) // called after every pair; may be nil
}

// reading is one measurement of one server.
type reading struct {
	cpu  time.Duration // of the server process, per request
	rate float64       // requests a second
	// p99 is the response time by kind that 99 % of the requests kept.
	p99 map[string]time.Duration
}

func (r reading) micros() float64 { return float64(r.cpu.Nanoseconds()) / 1e3 }

// pair is one measurement of each server, taken one after the other.
type pair struct {
	raw, gatehouse reading
}

// ratio returns gatehouse's CPU divided by raw's.
func (p pair) ratio() float64 { return float64(p.gatehouse.cpu) / float64(p.raw.cpu) }

// share returns gatehouse's rate divided by raw's.
func (p pair) share() float64 { return p.gatehouse.rate / p.raw.rate }

// medians holds the median of each column.
type medians struct {
	raw, gatehouse reading
	ratio, share   float64
}

// run measures the pairs, at least one, and returns their medians. Both servers run all the time.
// While one is measured, the other is idle.
func (c comparison) run() (m medians, err error) {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return m, fmt.Errorf("make a folder for logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.trial.postgres {
		defer func() { err = errors.Join(err, pgtest.Stop()) }()
	}
	if c.tokens == 0 {
		c.tokens = c.trial.tokens
	}
	if c.keys == 0 {
		c.keys = c.trial.keys
	}
	gatehouse, err := c.startGatehouse(c.binary, filepath.Join(dir, "gatehouse"))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, gatehouse.end()) }()
	raw, err := c.startOther(gatehouse, dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, raw.end()) }()
	if c.profiles != "" {
		raw.profile = filepath.Join(c.profiles, c.trial.name+"-"+c.other()+".prof")
		gatehouse.profile = filepath.Join(c.profiles, c.trial.name+"-gatehouse.prof")
	}
	for _, s := range []*subject{raw, gatehouse} { // warm-up
		if _, err := s.measure(c.warmUp()); err != nil {
			return m, err
		}
	}
	return c.measure(raw, gatehouse)
}

// warmUp returns the number of requests before the first measurement.
func (c comparison) warmUp() int {
	if c.tokens == 0 {
		return c.requests / 8
	}
	return max(c.requests/8, c.tokens*max(1, c.trial.requestsPerToken)+c.connections)
}

// all returns the most requests that a server gets, a multiple of the connections.
func (c comparison) all() int {
	each := func(n int) int { return max(1, n/c.connections) }
	return c.connections * (2 + each(c.warmUp()) + c.pairs*each(c.requests))
}

// other names what gatehouse is compared with.
func (c comparison) other() string {
	if c.against != "" {
		return "against"
	}
	return "raw"
}

// startOther starts what gatehouse is compared with. Raw must send the same responses.
func (c comparison) startOther(gatehouse *subject, dir string) (*subject, error) {
	if c.against != "" {
		return c.startGatehouse(c.against, filepath.Join(dir, c.other()))
	}
	raw, err := c.startRaw(gatehouse, dir)
	if err != nil {
		return nil, err
	}
	if err := compareResponses(raw.clients[0], gatehouse.clients[0]); err != nil {
		return nil, errors.Join(err, raw.end())
	}
	return raw, nil
}

// measure takes the pairs. Every second pair is in reverse order.
func (c comparison) measure(raw, gatehouse *subject) (medians, error) {
	var pairs []pair
	for i := range c.pairs {
		var p pair
		order := []struct {
			s *subject
			r *reading
		}{{raw, &p.raw}, {gatehouse, &p.gatehouse}}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, o := range order {
			r, err := o.s.measure(c.requests)
			if err != nil {
				return medians{}, err
			}
			*o.r = r
		}
		pairs = append(pairs, p)
		if c.each != nil {
			c.each(i, p)
		}
	}
	return mediansOf(pairs), nil
}

func mediansOf(pairs []pair) medians {
	of := func(read func(pair) float64) float64 {
		var values []float64
		for _, p := range pairs {
			values = append(values, read(p))
		}
		return median(values)
	}
	duration := func(read func(pair) float64) time.Duration { return time.Duration(of(read)) }
	p99Of := func(read func(pair) map[string]time.Duration) map[string]time.Duration {
		all := map[string]time.Duration{}
		for kind := range read(pairs[0]) {
			all[kind] = duration(func(p pair) float64 { return float64(read(p)[kind]) })
		}
		return all
	}
	return medians{
		raw: reading{
			cpu:  duration(func(p pair) float64 { return float64(p.raw.cpu) }),
			rate: of(func(p pair) float64 { return p.raw.rate }),
			p99:  p99Of(func(p pair) map[string]time.Duration { return p.raw.p99 }),
		},
		gatehouse: reading{
			cpu:  duration(func(p pair) float64 { return float64(p.gatehouse.cpu) }),
			rate: of(func(p pair) float64 { return p.gatehouse.rate }),
			p99:  p99Of(func(p pair) map[string]time.Duration { return p.gatehouse.p99 }),
		},
		ratio: of(pair.ratio),
		share: of(pair.share),
	}
}

// median sorts values and returns their median.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
