package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"gatehouse/loadtest"
)

// measure makes all measurements and prints them.
func measure(ctx context.Context, c config, database string, active []string) (err error) {
	local, err := startOften(ctx, c, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Stop()) }()
	if err := use(local.Base, active); err != nil {
		return fmt.Errorf("use the tokens: %w", err)
	}
	if err := printMemory(ctx, local); err != nil {
		return err
	}
	return latencies(ctx, c, local, active)
}

// startOften starts servers in turn, prints the median of their times, and returns the last.
func startOften(ctx context.Context, c config, database string) (*loadtest.Local, error) {
	var took []time.Duration
	for {
		local, err := loadtest.StartLocal(ctx, c.gatehouse, database)
		if err != nil {
			return nil, err
		}
		if took = append(took, local.Server.Took); len(took) == c.rounds {
			fmt.Printf("start to ready: %v\n", median(took).Round(time.Millisecond))
			return local, nil
		}
		if err := local.Stop(); err != nil {
			return nil, err
		}
	}
}

func printMemory(ctx context.Context, local *loadtest.Local) error {
	metrics, err := local.Server.Metrics(ctx)
	if err == nil {
		fmt.Printf("resident memory: %.0f MB\n", metrics["process_resident_memory_bytes"]/1e6)
	}
	return err
}

func median(values []time.Duration) time.Duration {
	slices.Sort(values)
	return values[len(values)/2]
}

// condition is a load on the server while lookups are measured.
type condition struct {
	name string
	run  func(ctx context.Context) error // returns when ctx ends
}

// connections is the number of connections for lookups. A lookup without a free one waits, and the
// wait counts. With more of them the generator would take the processors from a server that is
// behind.
const connections = 64

// tooMany is more lookups a second than this machine can make.
const tooMany = 150_000

// latencies measures lookups under each condition in turn.
func latencies(ctx context.Context, c config, local *loadtest.Local, active []string) error {
	highest, err := lookups(ctx, local, loadtest.Config{Schedule: loadtest.Steady(tooMany, c.length/2),
		Connections: connections})
	if err != nil {
		return err
	}
	rate := highest.Achieved / 2
	fmt.Printf("highest rate of cached lookups: %.0f/s, half of it is %.0f/s\n",
		highest.Achieved, rate)
	issued, err := issue(ctx, local, loadtest.Config{Concurrency: 16, Duration: c.length / 2})
	if err != nil {
		return err
	}
	fmt.Printf("highest rate of issued tokens: %.0f/s, used of it: %.0f/s\n", issued, issued*c.share)
	conditions := []condition{
		{"alone", func(ctx context.Context) error { <-ctx.Done(); return nil }},
		{"while tokens are issued", func(ctx context.Context) error {
			_, err := issue(ctx, local, loadtest.Config{Schedule: loadtest.Steady(issued*c.share, time.Hour)})
			return err
		}},
		{"while the upstream is down", func(ctx context.Context) error {
			return breakUpstream(ctx, local)
		}},
		{"during full collections", func(ctx context.Context) error { return collect(ctx, local) }},
	}
	for _, condition := range conditions {
		var p99 []time.Duration
		invalid := 0
		for range c.rounds {
			// A token idle for a minute leaves memory.
			if err := use(local.Base, active); err != nil {
				return err
			}
			result, err := condition.during(ctx, func() (*loadtest.Result, error) {
				return lookups(ctx, local, loadtest.Config{Schedule: loadtest.Steady(rate, c.length),
					Connections: connections})
			})
			if err != nil {
				return fmt.Errorf("%s: %w", condition.name, err)
			}
			if !result.Valid() {
				invalid++
			}
			p99 = append(p99, result.All.P99)
		}
		fmt.Printf("p99 %s: %v (%v; invalid: %d)\n", condition.name, median(p99), p99, invalid)
	}
	return nil
}

// during calls measure while the condition holds.
func (k condition) during(ctx context.Context,
	measure func() (*loadtest.Result, error)) (*loadtest.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var err error
	running.Go(func() { err = k.run(ctx) })
	result, failed := measure()
	cancel()
	running.Wait()
	return result, errors.Join(err, failed)
}

func lookups(ctx context.Context, local *loadtest.Local,
	config loadtest.Config) (*loadtest.Result, error) {
	scenario, err := loadtest.ScenarioNamed("lookup-hot")
	if err != nil {
		return nil, err
	}
	result, err := scenario.Run(ctx, loadtest.Setup{Target: local.Target}, config)
	if err == nil && result.All.Failed > 0 {
		err = fmt.Errorf("%d of %d lookups failed: %v", result.All.Failed, result.All.Attempts,
			result.All.Errors)
	}
	return result, err
}

// issue issues tokens and returns the achieved rate a second.
func issue(ctx context.Context, local *loadtest.Local, c loadtest.Config) (float64, error) {
	scenario, err := loadtest.ScenarioNamed("token")
	if err != nil {
		return 0, err
	}
	result, err := scenario.Run(ctx, loadtest.Setup{Target: local.Target}, c)
	if err != nil {
		return 0, err
	}
	return result.Achieved, nil
}

// breakUpstream makes the upstream fail and sends lookups that need it.
func breakUpstream(ctx context.Context, local *loadtest.Local) error {
	scenario, err := loadtest.ScenarioNamed("lookup-cold")
	if err != nil {
		return err
	}
	if _, err := do(ctx, http.MethodPut, local.Simulator+"/_sim",
		`{"faults":[{"kind":"status","status":503}]}`); err != nil {
		return err
	}
	_, err = scenario.Run(ctx, loadtest.Setup{Target: local.Target},
		loadtest.Config{Schedule: loadtest.Steady(200, time.Hour)})
	_, back := do(context.WithoutCancel(ctx), http.MethodPut, local.Simulator+"/_sim", `{"faults":[]}`)
	return errors.Join(err, back)
}

// pause is the time between two garbage collections.
const pause = 100 * time.Millisecond

// collect makes the server collect garbage repeatedly: a heap profile with gc=1 begins with that.
func collect(ctx context.Context, local *loadtest.Local) error {
	for {
		_, err := do(ctx, http.MethodGet, local.Admin+"/debug/pprof/heap?gc=1", "")
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
