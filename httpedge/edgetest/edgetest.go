// Package edgetest runs the real stack for tests: the HTTP edge on loopback before lookup.Service before the client of
// the upstream before the upstream's simulator.
package edgetest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/mailbox"
	"gatehouse/httpedge"
	"gatehouse/providers/sim"
)

// Stack is a running service.
type Stack struct {
	URL, AdminURL string // base URLs without a slash at the end
	Client        *http.Client
	Server        *httpedge.Server
	System        *lookup.Service
	Metrics       *prometheus.Registry
	Log           *Log        // all that was logged
	Simulator     *sim.Server // the upstream; nil if the test brings its own provider

	done chan error
}

// Option changes what New starts.
type Option func(*Setup)

// Setup is what New starts. Tests change it by options.
type Setup struct {
	edge     httpedge.Config
	actors   lookup.Config
	public   string
	wrap     func(net.Listener) net.Listener
	parallel bool
}

// WithActors changes the configuration of the actors: another provider, for one.
func WithActors(change func(*lookup.Config)) Option { return func(s *Setup) { change(&s.actors) } }

// WithEdge changes the configuration of the HTTP edge.
func WithEdge(change func(*httpedge.Config)) Option { return func(s *Setup) { change(&s.edge) } }

// WithListen makes the public server listen elsewhere than on a free port of 127.0.0.1.
func WithListen(address string) Option { return func(s *Setup) { s.public = address } }

// WithWrappedListener changes the listener of the public server.
func WithWrappedListener(wrap func(net.Listener) net.Listener) Option {
	return func(s *Setup) { s.wrap = wrap }
}

// Parallel is for tests that run beside others: nobody counts the goroutines that are left, since they may be those
// of another test.
func Parallel() Option { return func(s *Setup) { s.parallel = true } }

// New starts a stack whose upstream is a simulator without a budget, unless an option gives another provider. It is stopped at the end of the test, which fails if a
// goroutine is left then.
func New(t testing.TB, options ...Option) *Stack {
	t.Helper()
	check := checkGoroutines(t)
	s, stack := prepare(t, options)
	*check = !s.parallel
	if s.actors.Provider == nil {
		stack.Simulator, s.actors.Provider = startSimulator(t)
	}
	stack.start(t, s)
	return stack
}

// prepare says what is to be started, and makes the stack that it will be.
func prepare(t testing.TB, options []Option) (*Setup, *Stack) {
	t.Helper()
	log := newLog(t)
	logger := slog.New(httpedge.NewLogHandler(log.buffer, slog.LevelDebug, true))
	metrics := prometheus.NewRegistry()
	s := &Setup{public: "127.0.0.1:0", wrap: func(ln net.Listener) net.Listener { return ln }}
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	s.actors = lookup.Config{
		Actors: system, CacheEntries: 10_000, LookupTimeout: 3 * time.Second, Concurrency: 4, UpstreamShare: 1,
		Breaker: geo.BreakerConfig{Failures: 5, Cooldown: time.Second, Hold: time.Minute},
		Logger:  logger, Metrics: metrics,
	}
	s.edge = httpedge.Config{
		Logger: logger, Log: log.buffer, Metrics: metrics, MaxConnections: 4096,
		ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 20 * time.Second,
	}
	for _, option := range options {
		option(s)
	}
	return s, &Stack{Metrics: metrics, Log: log, Client: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}}
}

func (st *Stack) start(t testing.TB, s *Setup) {
	t.Helper()
	var err error
	if st.System, err = lookup.New(s.actors); err != nil {
		t.Fatal(err)
	}
	s.edge.System = st.System
	public, admin := s.wrap(listen(t, s.public)), listen(t, "127.0.0.1:0")
	st.URL, st.AdminURL = baseURL(public, s.edge.CertFile != ""), baseURL(admin, false)
	if s.edge.Issuer == "" {
		s.edge.Issuer = st.URL
	}
	if st.Server, err = httpedge.New(s.edge); err != nil {
		t.Fatal(err)
	}
	st.done = make(chan error, 1)
	go func() { st.done <- st.Server.Serve(public, admin) }()
	t.Cleanup(func() { st.stop(t) })
}

func (st *Stack) stop(t testing.TB) {
	st.Client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := st.Server.Shutdown(ctx); err != nil {
		t.Errorf("got %v, want a clean shutdown", err)
	}
	if err := <-st.done; err != nil {
		t.Errorf("got %v from Serve, want nil", err)
	}
	if err := st.System.Stop(ctx); err != nil {
		t.Errorf("got %v, want the actors to stop", err)
	}
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	ln, err := httpedge.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func baseURL(ln net.Listener, tls bool) string {
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	if ln.Addr().Network() == "unix" {
		return scheme + "gatehouse"
	}
	return scheme + ln.Addr().String()
}

// checkGoroutines fails the test if, after all its other clean-up, goroutines are left that were not there before; but
// only if it is told so in the meantime.
func checkGoroutines(t testing.TB) *bool {
	before, check := goleak.IgnoreCurrent(), new(bool)
	t.Cleanup(func() {
		if !*check {
			return
		}
		err := goleak.Find(before,
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")) // both end by themselves
		if err != nil {
			t.Errorf("got goroutines left: %v", err)
		}
	})
	return check
}
