// Package stacktest runs the real service for tests: HTTP on loopback, SQLite in a folder of the
// test, and the simulator as upstream.
package stacktest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/ptr"
)

// Stack is a running service. With several nodes, the fields of the embedded Stack are those of the
// first one.
type Stack struct {
	*stack.Stack
	URL      string // base URL without a slash at the end; http://gatehouse for a Unix socket or a pipe
	AdminURL string // base URL of the admin listener, without a slash at the end
	Client   *http.Client
	Log      *Log                // everything that was logged
	Metrics  prometheus.Gatherer // with several nodes, the sums of their metrics

	nodes    []*stack.Stack
	database string // its URL; "" without the identity service
}

// Option changes the configuration.
type Option func(*stack.Config)

// BehindProxy trusts this machine as a proxy: requests may name their caller and their id.
func BehindProxy(c *stack.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// Localhost makes the service one at http://localhost:PORT, where browsers have passkeys.
func Localhost(c *stack.Config) { c.Localhost = true }

// New starts a service without the identity service. Its upstream is a simulator without a budget.
// It stops at the end of the test, which fails if a goroutine remains.
func New(t testing.TB, options ...Option) *Stack {
	t.Helper()
	st, config := prepare(t, options)
	n := Nodes(t)
	if n > 1 {
		useDatabase(t, &config)
	}
	if config.Identity != nil {
		st.database = config.Identity.Database.URL
	}
	checkGoroutines(t)
	if n > 1 && config.Cluster == nil {
		st.startNodes(t, config, n)
	} else {
		st.start(t, config)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, len(st.nodes))
	for _, node := range st.nodes {
		go func() { served <- node.Serve(ctx) }()
	}
	t.Cleanup(func() {
		st.Client.CloseIdleConnections()
		end()
		var err error
		for range st.nodes {
			err = errors.Join(err, <-served)
		}
		st.stop(t, err)
	})
	if len(st.nodes) > 1 || config.Cluster != nil {
		st.settle(t)
	}
	return st
}

// prepare returns a Stack that is not started yet, and its configuration.
func prepare(t testing.TB, options []Option) (*Stack, stack.Config) {
	t.Helper()
	st := &Stack{
		Log:    &Log{t: t},
		Client: &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Minute},
	}
	c := stack.Defaults()
	c.Listen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = time.Minute, time.Minute, time.Minute
	c.MaxConnections, c.MaxConnectionsPerAddress, c.DrainTimeout = 4096, 4096, time.Minute
	c.Log, c.LogLevel = st.Log, slog.LevelDebug
	c.Lookups.Upstream, c.Lookups.Reverse = ipapi.Config{Tier: ipapi.Sim}, ptr.Config{}
	c.Lookups.CacheEntries, c.Lookups.Timeout = 10_000, 30*time.Second
	c.Lookups.Concurrency = 4
	c.Lookups.Breaker.Cooldown, c.Lookups.Breaker.Hold = time.Second, time.Minute
	c.Identity = nil
	for _, option := range options {
		option(&c)
	}
	return st, c
}

func (st *Stack) start(t testing.TB, config stack.Config) {
	t.Helper()
	var err error
	if st.Stack, err = stack.Start(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	st.use(st.Stack)
	st.AdminURL = st.Stack.AdminURL
	if st.URL = st.Stack.URL; !strings.HasPrefix(st.URL, "http") {
		st.URL = "http://gatehouse"
	}
}

// use adds a node that was started.
func (st *Stack) use(node *stack.Stack) {
	st.nodes = append(st.nodes, node)
	st.Log.buffers = append(st.Log.buffers, node.Log)
	st.Metrics = sums(st.nodes)
}

// stop stops the service. served is the error of Serve.
func (st *Stack) stop(t testing.TB, served error) {
	for _, node := range st.nodes {
		served = errors.Join(served, node.Close())
	}
	if served != nil {
		t.Errorf("got %v, want the service to stop", served)
	}
	st.Log.buffers = nil
	for _, what := range []string{
		"requests", "lookups", "token requests", "requests of people",
	} {
		if cut := st.Log.Records(what + " were cut off"); len(cut) > 0 {
			t.Errorf("got %v, want none cut off", cut)
		}
	}
}

// running counts the stacks.
var running atomic.Int32

// checkGoroutines fails the test if its cleanup leaves goroutines that did not exist before. With
// several stacks, that of the first one checks all.
func checkGoroutines(t testing.TB) {
	t.Cleanup(func() { running.Add(-1) })
	if running.Add(1) > 1 {
		return
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		err := goleak.Find(before, // these end by themselves
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
		if err != nil {
			t.Errorf("got %v, want no goroutines left", err)
		}
	})
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
