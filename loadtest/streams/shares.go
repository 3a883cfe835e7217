package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/loadtest/lab"
)

// callerLimit is the limit of a caller in the second run: about a fifth of the budget.
const callerLimit = 300

// most is how many queries a stream has.
const most = 30_000

// asker is one caller of shares.
type asker struct {
	name    string
	from    []string      // its addresses
	header  string        // X-Api-Key, if it has one
	streams int           // at once, of 30,000 misses each; 0 = single lookups
	every   time.Duration // pause between two of them
	number  int           // from 1

	next           atomic.Int64 // of the addresses that nobody else asks for
	found, refused atomic.Int64
}

var newKey = regexp.MustCompile(`: +(gtlk_\w+)\n.*: +(.+)\n`)

// measureShares measures what callers get of the budget of a free tier: without a limit for each
// caller, and with one.
func measureShares(ctx context.Context, o *options) error {
	keys := map[string]string{}
	var file strings.Builder
	for _, name := range []string{"streams", "single"} {
		text, err := o.gatehouse().Run(ctx, "geo-key", name)
		made := newKey.FindSubmatch(text)
		if err != nil || made == nil {
			return fmt.Errorf("make a key: %w: %s", err, text)
		}
		keys[name] = fmt.Sprintf("X-Api-Key: %s\r\n", made[1])
		fmt.Fprintf(&file, "%s\n", made[2])
	}
	if err := os.WriteFile(o.path("keys"), []byte(file.String()), 0o600); err != nil {
		return err
	}
	var missed error
	for _, limit := range []int{0, callerLimit} {
		missed = errors.Join(missed, shares(ctx, o, limit, keys))
	}
	return missed
}

// shares measures one run.
func shares(ctx context.Context, o *options, limit int, keys map[string]string) (err error) {
	up, err := o.gatehouse().Simulate(ctx, "--tier=free", "--latency=20ms")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Stop()) }()
	s, err := o.serve(ctx, "--ip-provider=ip-api", "--ip-api-base="+up.URL,
		"--geo-keys="+o.path("keys"), fmt.Sprintf("--geo-limit=%d", limit))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	all := []*asker{
		// One address may not hold the bodies of 50 such streams.
		{name: "50 streams of 30,000, by key", header: keys["streams"], streams: 50,
			every: 2 * time.Second,
			from:  []string{"127.0.1.1", "127.0.1.2", "127.0.1.3", "127.0.1.4"}},
		{name: "1 stream of 30,000, by address", from: []string{"127.0.1.5"}, streams: 1,
			every: 2 * time.Second},
		{name: "a lookup each second, by key", from: []string{"127.0.1.1"}, header: keys["single"],
			every: time.Second},
		{name: "a lookup each second, by address", from: []string{"127.0.0.3"}, every: time.Second},
	}
	running, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	for i, a := range all {
		a.number = i + 1
		for n := range max(1, a.streams) {
			workers.Go(func() { a.run(running, a.from[n%len(a.from)], s.Listen) })
		}
	}
	if err := pause(ctx, time.Duration(o.rounds)*time.Minute); err != nil {
		return err
	}
	stop()
	violations, err := violationsOf(ctx, up)
	if err != nil {
		return err
	}
	fmt.Printf("%d minutes, --geo-limit=%d\n", o.rounds, limit)
	sum := int64(0)
	for _, a := range all {
		sum += a.found.Load()
	}
	var missed error
	for _, a := range all {
		found, refused := a.found.Load(), a.refused.Load()
		served := float64(found) / float64(max(1, found+refused))
		fmt.Printf("  %-32s %5d results, %2.0f %% of all; served %.3g %%\n", a.name, found,
			100*float64(found)/float64(max(1, sum)), 100*served)
		if limit > 0 && a.streams == 0 && served < leastServed {
			missed = errors.Join(missed, fmt.Errorf("%s: %.2f of them served, want %.2f", a.name, served,
				leastServed))
		}
		if limit == 0 && a.streams == 1 && float64(found) < leastShare*float64(sum) {
			missed = errors.Join(missed, fmt.Errorf("%s: %d of %d results, want a fifth", a.name, found,
				sum))
		}
	}
	fmt.Printf("  all: %d results; violations of the budget: %d\n", sum, violations)
	if violations > 0 {
		missed = errors.Join(missed, fmt.Errorf("%d violations of the budget", violations))
	}
	return missed
}

// Goals of measureShares.
const (
	leastShare  = 0.2 // of one stream beside 50, without a limit
	leastServed = 0.8 // of single lookups, with a limit
)

// violationsOf returns how often a simulator was asked for more than it allows.
func violationsOf(ctx context.Context, up *lab.Simulator) (int, error) {
	text, err := lab.Get(ctx, up.URL+"/_sim")
	if err != nil {
		return 0, err
	}
	var state struct {
		Stats struct {
			Violations *int `json:"violations"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(text, &state); err != nil || state.Stats.Violations == nil {
		return 0, errors.Join(errors.New("read the statistics of the simulator"), err)
	}
	return *state.Stats.Violations, nil
}

// run looks up addresses that nobody has asked for until ctx ends.
func (a *asker) run(ctx context.Context, from, to string) {
	send := a.single
	if a.streams > 0 {
		send = a.stream
	}
	for ctx.Err() == nil {
		err := send(ctx, from, to)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", a.name, err)
		}
		if pause(ctx, a.every) != nil {
			return
		}
	}
}

// address returns address n that only this caller asks for.
func (a *asker) address(n int) string {
	return fmt.Sprintf("2600:%x::%x:%x", a.number, n>>16, n&0xffff)
}

// stream sends one stream and counts its lines.
func (a *asker) stream(ctx context.Context, from, to string) error {
	conn, err := dialFrom(from, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	first := int(a.next.Add(most) - most)
	if _, err := conn.Write([]byte(streamOf(a.address, first, most, a.header))); err != nil {
		return err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, `{"ok":true`):
			a.found.Add(1)
		case strings.HasPrefix(line, `{"ok":false`):
			a.refused.Add(1)
		case strings.HasPrefix(line, `{"done"`):
			return nil
		}
	}
	return errors.Join(errors.New("a stream was refused or cut off"), lines.Err())
}

// single looks up one address.
func (a *asker) single(_ context.Context, from, to string) error {
	c, err := newCaller(from, to)
	if err != nil {
		return err
	}
	defer c.Close()
	response, err := c.lookUp(a.address(int(a.next.Add(1))), a.header)
	if err != nil {
		return err
	}
	switch response.StatusCode() {
	case fasthttp.StatusOK:
		a.found.Add(1)
	case fasthttp.StatusTooManyRequests:
		a.refused.Add(1)
	default:
		return fmt.Errorf("got status %d: %.200s", response.StatusCode(), response.Body())
	}
	return nil
}
