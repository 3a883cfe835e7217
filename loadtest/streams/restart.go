package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/loadtest/lab"
)

// Load of measureRestart.
const (
	restartCallers = 8
	restartQueries = 100_000 // few of them frequent
	restartSkew    = 1.1
	restartPace    = 4 * time.Millisecond // of each caller
)

// leastKept is the goal for the share of hits after a restart, relative to that before.
const leastKept = 0.95

// measureRestart measures the share of hits before and after restarts under load: with a cache
// file, with one and a kill, and without one.
func measureRestart(ctx context.Context, o *options) error {
	up, err := o.gatehouse().Simulate(ctx, "--latency=20ms")
	if err != nil {
		return err
	}
	defer up.Stop()
	var missed error
	for i := range o.rounds {
		for j, way := range []struct {
			name   string
			file   bool
			end    func(*lab.Process) error
			before time.Duration // of load
		}{
			{"SIGTERM, with a cache file", true, (*lab.Process).Stop, 2 * o.length},
			// The file is written each minute.
			{"SIGKILL, with a cache file", true, (*lab.Process).Kill, time.Minute + 2*o.length},
			{"SIGTERM, without one", false, (*lab.Process).Stop, 2 * o.length},
		} {
			args := []string{"--ip-provider=sim", "--ip-api-base=" + up.URL}
			if way.file {
				args = append(args, "--cache-file="+o.path(fmt.Sprintf("cache-%d-%d", i, j)))
			}
			before, after, down, err := restart(ctx, o, args, way.end, way.before)
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			fmt.Printf("%-27s hits %.1f %% before, %.1f %% after: %.2f of it; no answer for %.1f s\n",
				way.name+":", 100*before, 100*after, after/before, down.Seconds())
			if way.file && after < leastKept*before {
				missed = errors.Join(missed, fmt.Errorf("%s: got %.2f of the share of hits before, want %.2f",
					way.name, after/before, leastKept))
			}
		}
	}
	return missed
}

// restart measures one restart: the shares of hits of the last length before it and of the first
// length after it, and how long no caller got a response.
func restart(
	ctx context.Context, o *options, args []string, end func(*lab.Process) error,
	load time.Duration,
) (before, after float64, down time.Duration, err error) {
	s, err := o.serve(ctx, args...)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	callers := &zipfCallers{to: s.Listen}
	running, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	for i := range restartCallers {
		workers.Go(func() { callers.run(running, uint64(i)) })
	}
	if err := pause(ctx, load-o.length); err != nil {
		return 0, 0, 0, err
	}
	if before, err = share(ctx, s, o.length); err != nil {
		return 0, 0, 0, err
	}
	if err := end(s.Process); err != nil {
		return 0, 0, 0, err
	}
	next, err := o.serve(ctx, append(args, "--listen="+s.Listen)...)
	if err != nil {
		return 0, 0, 0, err
	}
	s = next
	after, err = share(ctx, s, o.length)
	return before, after, callers.longest(), err
}

// share returns the share of hits in the next while.
func share(ctx context.Context, s *lab.Server, length time.Duration) (float64, error) {
	var seen [2]map[string]float64
	for i := range seen {
		var err error
		if seen[i], err = s.Metrics(ctx); err != nil {
			return 0, err
		}
		if i == 0 {
			if err := pause(ctx, length); err != nil {
				return 0, err
			}
		}
	}
	hits := seen[1][cacheHits] - seen[0][cacheHits]
	misses := seen[1][cacheMisses] - seen[0][cacheMisses]
	return hits / max(1, hits+misses), nil
}

// zipfCallers look up queries of which few are frequent. They connect again after a restart.
type zipfCallers struct {
	to string

	mu     sync.Mutex
	last   time.Time // of a response to any of them
	silent time.Duration
}

func (z *zipfCallers) run(ctx context.Context, seed uint64) {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 1)), restartSkew, 1, restartQueries-1)
	for ctx.Err() == nil {
		c, err := newCaller("127.0.0.3", z.to)
		if err != nil {
			time.Sleep(restartPace)
			continue
		}
		for ctx.Err() == nil {
			response, err := c.lookUp(addressOf(int(zipf.Uint64())), "")
			if err != nil || response.StatusCode() != fasthttp.StatusOK {
				break
			}
			z.responded()
			time.Sleep(restartPace)
		}
		c.Close()
	}
}

func (z *zipfCallers) responded() {
	z.mu.Lock()
	defer z.mu.Unlock()
	now := time.Now()
	if !z.last.IsZero() {
		z.silent = max(z.silent, now.Sub(z.last))
	}
	z.last = now
}

// longest returns the longest time without a response.
func (z *zipfCallers) longest() time.Duration {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.silent
}
