package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// comparison is how to compare. profiles may be "" and each nil; each is called after every pair.
type comparison struct {
	pairs, requests, connections int
	profiles                     string
	each                         func(i int, p pair)
}

// reading is one measurement of one server.
type reading struct {
	cpu  time.Duration // of the server process, a request
	rate float64       // requests a second of wall time
}

func (r reading) micros() float64 { return float64(r.cpu.Nanoseconds()) / 1e3 }

// pair is a measurement of each server, one right after the other.
type pair struct{ raw, gatehouse reading }

func (p pair) ratio() float64 { return float64(p.gatehouse.cpu) / float64(p.raw.cpu) }

// medians are taken of each column apart.
type medians struct {
	raw, gatehouse reading
	ratio          float64
}

// run measures the pairs and returns their medians. Both servers run all the time; the one that is not asked is idle.
func (c comparison) run() (m medians, err error) {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return m, fmt.Errorf("make a folder for logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	raw, err := c.start(rawKind, dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, raw.end()) }()
	gatehouse, err := c.start(gatehouseKind, dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, gatehouse.end()) }()
	if err := sameAnswers(raw.clients[0], gatehouse.clients[0]); err != nil {
		return m, err
	}
	for _, s := range []*subject{raw, gatehouse} { // warm-up
		if _, err := s.measure(c.requests / 10); err != nil {
			return m, err
		}
	}
	return c.measure(raw, gatehouse)
}

func (c comparison) start(kind, dir string) (*subject, error) {
	profile := ""
	if c.profiles != "" {
		profile = filepath.Join(c.profiles, kind+".prof")
	}
	return startSubject(kind, filepath.Join(dir, "access.log"), profile, c.connections)
}

// measure takes the pairs, every other one in reverse order.
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
	cpu := func(read func(pair) float64) time.Duration { return time.Duration(of(read)) }
	return medians{
		raw: reading{
			cpu:  cpu(func(p pair) float64 { return float64(p.raw.cpu) }),
			rate: of(func(p pair) float64 { return p.raw.rate }),
		},
		gatehouse: reading{
			cpu:  cpu(func(p pair) float64 { return float64(p.gatehouse.cpu) }),
			rate: of(func(p pair) float64 { return p.gatehouse.rate }),
		},
		ratio: of(pair.ratio),
	}
}

// median returns the middle of values, which it sorts; of an even number the mean of the two in the middle.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
