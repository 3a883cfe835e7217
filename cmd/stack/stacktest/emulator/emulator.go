package emulator

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The budgets of the free tier, in requests a minute.
const (
	FreeSingles = 45
	FreeBatches = 15
)

// maxBatch is the most queries in a batch.
const maxBatch = 100

// Config describes the emulated upstream. The zero value is a commercial tier that accepts every
// key.
type Config struct {
	Singles, Batches int           // requests a window at /json and /batch; 0 = no budget
	Window           time.Duration // 0 = 60 s
	RoundUp          bool          // X-Ttl is rounded up to whole seconds; false = down
	Key              string        // the only accepted key, others get 403; "" = any or none
	Latency          time.Duration // of every response, until SetLatency
	Violations       int           // the most that do not fail the test
}

// Emulator is a running upstream. It is safe for concurrent use.
type Emulator struct {
	URL string // base address, without a slash at the end

	config  Config
	address string
	pipes   *pipes // nil = it listens on loopback

	mu      sync.Mutex
	server  *http.Server // nil while down
	served  chan struct{}
	windows [2]window // /json, /batch
	stats   Stats
	asked   map[string]int
	fault   Fault
	latency time.Duration
}

// Stats counts requests so far.
type Stats struct {
	Singles, Batches int // requests
	Items            int // queries in batches
	Largest          int // queries in the largest batch
	Empty            int // requests on an empty budget
	Domains          int // in batches, which is a violation
	Strays           int // requests with an unknown path or method, or an invalid batch
}

// Requests returns the number of requests to the two endpoints.
func (s Stats) Requests() int { return s.Singles + s.Batches }

// Violations returns the number of violations by clients.
func (s Stats) Violations() int { return s.Empty + s.Domains + s.Strays }

// window is a budget's count since its first request.
type window struct {
	ends time.Time
	used int
}

// Start runs an emulator on a free loopback port until Down.
func Start(config Config) (*Emulator, error) {
	e := newEmulator(config)
	if err := e.Up(); err != nil {
		return nil, err
	}
	e.URL = "http://" + e.address
	return e, nil
}

func newEmulator(config Config) *Emulator {
	if config.Window == 0 {
		config.Window = time.Minute
	}
	return &Emulator{config: config, latency: config.Latency, asked: map[string]int{},
		address: "127.0.0.1:0"}
}

// New runs an emulator until the end of the test. The test fails if there were more violations than
// configured.
func New(t testing.TB, config Config) *Emulator {
	t.Helper()
	e, err := Start(config)
	if err != nil {
		t.Fatal(err)
	}
	e.endWith(t)
	return e
}

// endWith stops e at the end of the test and checks the violations.
func (e *Emulator) endWith(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if err := e.Down(); err != nil {
			t.Error(err)
		}
		if got := e.Stats(); got.Violations() > e.config.Violations {
			t.Errorf("got %d violations of the upstream's rules, want at most %d: %+v", got.Violations(),
				e.config.Violations, got)
		}
	})
}

// Up listens again after Down, at the same address. It does nothing while the emulator is up.
func (e *Emulator) Up() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return nil
	}
	ln, err := e.listen()
	if err != nil {
		return fmt.Errorf("emulate upstream: %w", err)
	}
	e.address = ln.Addr().String()
	server, served := &http.Server{Handler: e}, make(chan struct{})
	e.server, e.served = server, served
	go func() {
		defer close(served)
		if err := server.Serve(ln); err != http.ErrServerClosed {
			panic(err) // the listener failed
		}
	}()
	return nil
}

func (e *Emulator) listen() (net.Listener, error) {
	if e.pipes != nil {
		return e.pipes.listen(), nil
	}
	return net.Listen("tcp", e.address)
}

// Down closes the listener and all connections, so that new connections are refused. It does
// nothing while the emulator is down.
func (e *Emulator) Down() error {
	e.mu.Lock()
	server, served := e.server, e.served
	e.server = nil
	e.mu.Unlock()
	if server == nil {
		return nil
	}
	if err := server.Close(); err != nil {
		return fmt.Errorf("stop upstream: %w", err)
	}
	<-served
	return nil
}

// SetLatency delays every response from now on.
func (e *Emulator) SetLatency(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.latency = d
}

// SetFault lets f respond from now on; nil = the emulator itself.
func (e *Emulator) SetFault(f Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = f
}

// Stats returns the counts so far.
func (e *Emulator) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// Asked returns the number of requests for query, alone or in a batch, including refused ones.
func (e *Emulator) Asked(query string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[query]
}

// ServeHTTP implements http.Handler.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	queries, endpoint, ok := e.read(r)
	if !ok {
		e.count(func(s *Stats) { s.Strays++ })
		http.Error(w, "unknown request", http.StatusUnprocessableEntity)
		return
	}
	refused := e.arrive(w.Header(), endpoint, queries)
	e.mu.Lock()
	fault, latency := e.fault, e.latency
	e.mu.Unlock()
	if !pause(r.Context(), latency) {
		return
	}
	switch {
	case e.config.Key != "" && r.URL.Query().Get("key") != e.config.Key:
		http.Error(w, "invalid key", http.StatusForbidden)
	case refused:
		w.WriteHeader(http.StatusTooManyRequests)
	case fault != nil:
		fault(w, r, elementsOf(queries, endpoint))
	default:
		write(w, elementsOf(queries, endpoint), endpoint == batch)
	}
}

func (e *Emulator) count(change func(*Stats)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.stats)
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// The endpoints.
const (
	single = iota
	batch
)

// read returns the queries of a request. ok is false for an unknown request.
func (e *Emulator) read(r *http.Request) (queries []string, endpoint int, ok bool) {
	if query, found := strings.CutPrefix(r.URL.Path, "/json/"); found {
		return []string{query}, single, r.Method == http.MethodGet && query != "" &&
			!strings.Contains(query, "/")
	}
	if r.URL.Path != "/batch" || r.Method != http.MethodPost {
		return nil, 0, false
	}
	if err := json.NewDecoder(r.Body).Decode(&queries); err != nil {
		return nil, 0, false
	}
	return queries, batch, len(queries) > 0 && len(queries) <= maxBatch
}

// arrive counts a request, charges its endpoint's budget and sets the budget's headers. It reports
// whether the budget was empty.
func (e *Emulator) arrive(h http.Header, endpoint int, queries []string) (refused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.config.Singles
	if endpoint == batch {
		limit = e.config.Batches
		e.stats.Batches++
		e.stats.Items += len(queries)
		e.stats.Largest = max(e.stats.Largest, len(queries))
	} else {
		e.stats.Singles++
	}
	for _, q := range queries {
		e.asked[q]++
		if _, err := netip.ParseAddr(q); err != nil && endpoint == batch {
			e.stats.Domains++
		}
	}
	if limit == 0 {
		return false
	}
	now := time.Now()
	w := &e.windows[endpoint]
	if !now.Before(w.ends) {
		*w = window{ends: now.Add(e.config.Window)}
	}
	w.used++
	h.Set("X-Rl", strconv.Itoa(max(0, limit-w.used)))
	h.Set("X-Ttl", strconv.Itoa(e.seconds(w.ends.Sub(now))))
	if w.used > limit {
		e.stats.Empty++
		return true
	}
	return false
}

func (e *Emulator) seconds(rest time.Duration) int {
	if e.config.RoundUp {
		rest += time.Second - 1
	}
	return int(rest / time.Second)
}
