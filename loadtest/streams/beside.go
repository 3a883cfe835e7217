package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/loadtest/lab"
)

// Goals of measureCrowd.
const (
	mostP99    = 2.0             // p99 of others beside streams, relative to a server without any
	mostMemory = 1 << 30         // resident memory of the server beside streams
	mostEnd    = 5 * time.Second // after the write timeout, until all dead peers are gone
)

// measureCrowd measures single lookups alone and beside streams, with offline files and with an
// upstream. At the same time it measures those of another server that has no streams: what delays
// these as well is the machine.
func measureCrowd(ctx context.Context, o *options) error {
	if err := writeCity(o.path("City.mmdb")); err != nil {
		return fmt.Errorf("write a City file: %w", err)
	}
	up, err := o.gatehouse().Simulate(ctx, "--latency=20ms")
	if err != nil {
		return err
	}
	defer up.Stop()
	var missed error
	for _, side := range []struct {
		name  string
		args  []string
		kinds []lookups
		dead  bool // measure also how long dead peers stay
	}{
		{"upstream", []string{"--ip-provider=sim", "--ip-api-base=" + up.URL},
			[]lookups{{"a hit", oneAddress}, {"a miss", newAddress()}}, false},
		{"files", []string{"--ip-provider=mmdb", "--ip-mmdb=" + o.path("City.mmdb")},
			[]lookups{{"an address", anyAddress}}, true},
	} {
		fmt.Printf("%s:\n", side.name)
		if err := besideCrowd(ctx, o, side.args, side.kinds, side.dead); err != nil {
			missed = errors.Join(missed, fmt.Errorf("%s: %w", side.name, err))
		}
	}
	return missed
}

// lookups are single lookups of one kind.
type lookups struct {
	name string
	next func(n int) string // query n
}

func anyAddress(int) string { return addressOf(rand.IntN(1 << 24)) }
func oneAddress(int) string { return "8.8.8.8" }

// newAddress returns a function that returns addresses which no stream has.
func newAddress() func(int) string {
	var mu sync.Mutex
	last := 0
	return func(int) string {
		mu.Lock()
		defer mu.Unlock()
		last++
		return fmt.Sprintf("30.%d.%d.%d", last>>16&255, last>>8&255, last&255)
	}
}

// besideCrowd measures one server.
func besideCrowd(
	ctx context.Context, o *options, args []string, kinds []lookups, dead bool,
) (err error) {
	s, err := o.serve(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	other, err := o.serve(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Stop()) }()
	both := []*lab.Server{s, other}
	if _, err := lookUpAll(ctx, both, time.Second, kinds); err != nil { // warms up
		return err
	}
	quiet, err := s.Metrics(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("  memory at rest: %.0f MiB, %.0f goroutines\n", quiet[residentBytes]/(1<<20),
		quiet[goroutines])
	alone, beside := make([]times, 2*len(kinds)), make([]times, 2*len(kinds))
	most := map[string]float64{}
	for range o.rounds {
		if err := round(ctx, o, both, kinds, alone, beside, most); err != nil {
			return err
		}
	}
	var missed error
	for i, k := range kinds {
		a, b, without := alone[i], beside[i], beside[len(kinds)+i]
		ratio := float64(b.quantile(0.99)) / float64(without.quantile(0.99))
		fmt.Printf("  %s: %v alone; %v beside; %v at the other server: p99 %.2f times that, %.2f times alone\n",
			k.name, a, b, without, ratio, float64(b.quantile(0.99))/float64(a.quantile(0.99)))
		if ratio > mostP99 {
			missed = errors.Join(missed, fmt.Errorf("p99 of %s is %.2f times that without, want %.1f at most",
				k.name, ratio, mostP99))
		}
	}
	fmt.Printf("  most beside them: memory %.0f MiB, %.0f goroutines, all sockets %.0f MiB\n",
		most[residentBytes]/(1<<20), most[goroutines], most[socketBytes]/(1<<20))
	if most[residentBytes] > mostMemory {
		missed = errors.Join(missed, fmt.Errorf("the server holds more than %d MiB", mostMemory>>20))
	}
	if dead {
		missed = errors.Join(missed, bury(ctx, s, o, quiet))
	}
	return missed
}

// round measures once alone and once beside streams at the first server.
func round(
	ctx context.Context, o *options, servers []*lab.Server, kinds []lookups, alone, beside []times,
	most map[string]float64,
) error {
	measure := func(what string, into []times) error {
		found, err := lookUpAll(ctx, servers, o.length, kinds)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for i, t := range found {
			into[i] = append(into[i], t...)
			fmt.Printf("  server %d, %s %s: %v; load %s\n", 1+i/len(kinds), kinds[i%len(kinds)].name,
				what, t, machineLoad())
		}
		return nil
	}
	if err := measure("alone", alone); err != nil {
		return err
	}
	s := servers[0]
	c, err := startCrowd(s, o.streams, o.kind, "")
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { watch(watching, s, most) })
	err = pause(ctx, 2*spread)
	if err == nil {
		err = measure("beside", beside)
	}
	stop()
	watcher.Wait()
	fmt.Printf("  the streams: %s\n", c.stop())
	if err != nil {
		return err
	}
	return awaitQuiet(ctx, s)
}

// lookUpAll looks up all kinds at all servers at the same time.
func lookUpAll(
	ctx context.Context, servers []*lab.Server, length time.Duration, kinds []lookups,
) ([]times, error) {
	n := len(servers) * len(kinds)
	found, errs := make([]times, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		to, next := servers[i/len(kinds)].Listen, kinds[i%len(kinds)].next
		all.Go(func() { found[i], errs[i] = lookUpPaced(ctx, to, "127.0.0.3", length, next) })
	}
	all.Wait()
	return found, errors.Join(errs...)
}

// Metrics of a server.
const (
	residentBytes   = "process_resident_memory_bytes"
	heapBytes       = "go_memstats_heap_inuse_bytes"
	goroutines      = "go_goroutines"
	openConnections = "gatehouse_http_connections_open"
	cacheHits       = "gatehouse_geo_cache_hits_total"
	cacheMisses     = "gatehouse_geo_cache_misses_total"
)

// socketBytes is the name of what the kernel holds for all TCP sockets of this machine.
const socketBytes = "sockets"

// watch keeps the largest figures until ctx ends.
func watch(ctx context.Context, s *lab.Server, most map[string]float64) {
	for pause(ctx, 200*time.Millisecond) == nil {
		now, err := s.Metrics(ctx)
		if err != nil {
			continue
		}
		now[socketBytes] = socketMemory()
		for name, value := range now {
			most[name] = max(most[name], value)
		}
	}
}

// socketMemory returns the bytes in the buffers of all TCP sockets; 0 = not known.
func socketMemory() float64 {
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	var used, orphan, tw, alloc, mem int
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "TCP: inuse %d orphan %d tw %d alloc %d mem %d", &used, &orphan,
			&tw, &alloc, &mem); n == 5 {
			return float64(mem * os.Getpagesize())
		}
	}
	return 0
}

// machineLoad returns the load of the last minute.
func machineLoad() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	var load string
	_, _ = fmt.Sscan(string(text), &load)
	return load
}

// bury sends streams of peers that then vanish, and measures how long the server takes to end them.
func bury(
	ctx context.Context, s *lab.Server, o *options, quiet map[string]float64,
) error {
	c, err := startCrowd(s, o.streams, "dead", "once")
	if err != nil {
		return err
	}
	defer c.stop()
	began, open := time.Now(), 0.0
	for gone := false; !gone; {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		now, err := s.Metrics(ctx)
		if err != nil {
			return err
		}
		if now[openConnections] > open {
			open, began = now[openConnections], time.Now()
		}
		gone = open > 0 && now[openConnections] == 0
		if time.Since(began) > time.Minute {
			return fmt.Errorf("%.0f dead peers are still connected after a minute", now[openConnections])
		}
	}
	took := time.Since(began)
	fmt.Printf("  %.0f dead peers at once: all ended %.1f s after the last came\n", open,
		took.Seconds())
	if took > writeTimeout+mostEnd {
		return fmt.Errorf("dead peers ended after %v, want %v at most", took, writeTimeout+mostEnd)
	}
	c.stop()
	return rest(ctx, s, quiet)
}

// writeTimeout is the server's default.
const writeTimeout = 15 * time.Second

// restTimeout is the time in which a server must come to rest. Its garbage collector runs each two
// minutes, and frees what is kept for reuse in the second run.
const restTimeout = 7 * time.Minute

// rest waits until goroutines and heap are those of a server at rest.
func rest(ctx context.Context, s *lab.Server, quiet map[string]float64) error {
	for began := time.Now(); ; {
		now, err := s.Metrics(ctx)
		if err != nil {
			return err
		}
		calm := now[goroutines] <= quiet[goroutines]+5 && now[heapBytes] <= quiet[heapBytes]+32<<20
		if calm || time.Since(began) > restTimeout {
			fmt.Printf("  %.0f s later: memory %.0f MiB, heap %.0f MiB (%.0f before), %.0f goroutines\n",
				time.Since(began).Seconds(), now[residentBytes]/(1<<20), now[heapBytes]/(1<<20),
				quiet[heapBytes]/(1<<20), now[goroutines])
			if !calm {
				return fmt.Errorf("the server does not come to rest within %v", restTimeout)
			}
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// awaitQuiet waits until no connection is open.
func awaitQuiet(ctx context.Context, s *lab.Server) error {
	for began := time.Now(); ; {
		now, err := s.Metrics(ctx)
		if err != nil {
			return err
		}
		if now[openConnections] == 0 {
			return nil
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("%.0f connections are open a minute after their clients ended",
				now[openConnections])
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// crowdProcess is the process of streams.
type crowdProcess struct{ *lab.Process }

func startCrowd(s *lab.Server, n int, kind, once string) (*crowdProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := lab.Start(exec.Command(self, crowdCommand, s.Listen, fmt.Sprint(n), kind, once), nil)
	return &crowdProcess{p}, err
}

// stop kills the process: its connections end without a word of the program. It returns what the
// process counted.
func (c *crowdProcess) stop() string {
	_ = c.Kill() // it may have ended
	lines := strings.Split(strings.TrimSpace(c.Output()), "\n")
	return lines[len(lines)-1]
}

// writeCity writes a City file of 65,536 networks of 20.0.0.0/8 with 1,000 records.
func writeCity(path string) error {
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-City",
		IncludeReservedNetworks: true, RecordSize: 28})
	if err != nil {
		return err
	}
	for i := range 1 << 16 {
		place := mmdbtype.Map{
			"country": mmdbtype.Map{"iso_code": mmdbtype.String("DE"),
				"names": mmdbtype.Map{"en": mmdbtype.String("Germany")}},
			"city": mmdbtype.Map{"names": mmdbtype.Map{
				"en": mmdbtype.String(fmt.Sprintf("Town %d", i%1000))}},
		}
		network := &net.IPNet{IP: net.IPv4(20, byte(i>>8), byte(i), 0).To4(), Mask: net.CIDRMask(24, 32)}
		if err := tree.Insert(network, place); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	_, err = tree.WriteTo(f)
	return errors.Join(err, f.Close())
}
