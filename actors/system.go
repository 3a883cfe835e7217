package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
)

// Config is what a System is made of. Fields are required unless they say otherwise.
type Config struct {
	Provider      geo.Provider
	Fallback      geo.Provider  // optional: offline files, asked when Provider has no budget or does not answer in time
	Reverse       Reverser      // optional: fills Network.Reverse where a batch lacks it
	CacheEntries  int           // answers held, at least 1
	LookupTimeout time.Duration // the longest wait of a caller, more than 1 s
	Concurrency   int           // exchanges with the upstream at once, at least 1
	UpstreamShare float64       // the part of the upstream's budget that is this process's, above 0 and at most 1
	CallerLimit   int           // optional: cold queries a minute and caller; 0 = no limit
	Breaker       geo.BreakerConfig
	Logger        *slog.Logger
	Metrics       prometheus.Registerer
}

// mailboxLimit bounds the asks that wait for the batcher to look at them.
const mailboxLimit = 4096

// fallbackReserve is kept of a caller's time to answer from the offline files.
const fallbackReserve = 250 * time.Millisecond

// System is the running service behind the edge. Its methods may be called by many goroutines.
type System struct {
	config   Config
	terms    geo.Terms
	cache    *geo.Cache
	breaker  *geo.Breaker
	gate     *gate
	metrics  *systemMetrics
	lifetime context.Context // of exchanges, which belong to no single caller
	end      context.CancelFunc

	actors  *actor.ActorSystem
	root    *actor.RootContext
	batcher *actor.PID
	workers []*actor.PID

	mu      sync.Mutex
	waiting int           // look-ups under way that missed the cache
	stopped bool          // no more of them
	idle    chan struct{} // closed when stopped and none is under way
}

// New starts a System. Stop ends it.
func New(config Config) (*System, error) {
	cache, err := geo.NewCache(config.CacheEntries)
	if err != nil {
		return nil, err
	}
	s := &System{
		config: config,
		terms:  config.Provider.Terms(),
		cache:  cache,
		gate:   newGate(),
		idle:   make(chan struct{}),
	}
	config.Breaker.Changed = s.breakerChanged
	s.breaker = geo.NewBreaker(config.Breaker)
	s.lifetime, s.end = context.WithCancel(context.Background())
	if s.metrics, err = newSystemMetrics(s, config.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.actors = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler) // it prints messages, which hold queries
	}))
	s.root = s.actors.Root
	s.spawn()
	return s, nil
}

// breakerChanged tells the operator what became of the upstream.
func (s *System) breakerChanged(state geo.BreakerState) {
	switch state {
	case geo.BreakerOpen:
		s.config.Logger.Warn("the upstream fails: it is left alone for a while", "cooldown", s.config.Breaker.Cooldown.String())
	case geo.BreakerClosed:
		s.config.Logger.Info("the upstream answers again")
	}
}

// spawn starts the pool and the batcher.
func (s *System) spawn() {
	for range s.config.Concurrency {
		w := &worker{system: s}
		s.workers = append(s.workers, s.root.Spawn(s.props(w, 1)))
	}
	s.batcher = s.root.Spawn(s.props(newBatcher(s, s.workers), mailboxLimit))
}

// props describes an actor that keeps its state over a panic.
func (s *System) props(a actor.Actor, limit int) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return a },
		actor.WithMailbox(bounded(limit, &s.metrics.mailboxRejects)),
		actor.WithReceiverMiddleware(s.recovered))
}

// Lookup answers q for caller, the address that asks. q may share memory with the request: it is copied where it is
// kept. It returns within the look-up time-out.
func (s *System) Lookup(q geo.Query, caller netip.Addr, now time.Time) geo.Outcome {
	if e := s.cache.Get(q, now); e != nil {
		return geo.Outcome{Entry: e, Err: e.Err, Cached: true}
	}
	return s.missOne(q, caller, now)
}

// LookupAll answers all of qs for caller and writes the outcomes to dst, which has their length. Queries may repeat.
// What is not in the cache goes to the upstream together. It returns within the look-up time-out.
func (s *System) LookupAll(qs []geo.Query, caller netip.Addr, now time.Time, dst []geo.Outcome) {
	missed := false
	for i, q := range qs {
		dst[i] = geo.Outcome{}
		if e := s.cache.Get(q, now); e != nil {
			dst[i] = geo.Outcome{Entry: e, Err: e.Err, Cached: true}
			continue
		}
		missed = true
	}
	if missed {
		s.missAll(qs, caller, now, dst)
	}
}

// enter counts a look-up in, or reports that the System has stopped.
func (s *System) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.waiting++
	return true
}

func (s *System) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	if s.stopped && s.waiting == 0 {
		close(s.idle)
	}
}

// Stop refuses new look-ups that miss the cache, lets those under way end until ctx does, and ends the actors. It must be
// called once.
func (s *System) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	if s.waiting == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	var err error
	select {
	case <-s.idle:
	case <-ctx.Done():
		err = fmt.Errorf("look-ups were still under way: %w", ctx.Err())
	}
	s.end()
	err = errors.Join(err, s.stopActors(s.workers...), s.stopActors(s.batcher)) // in this order: workers report to the batcher
	s.actors.Shutdown()
	return err
}

// stopActors ends actors and waits until they have.
func (s *System) stopActors(pids ...*actor.PID) error {
	stopping := make([]*actor.Future, len(pids))
	for i, pid := range pids {
		stopping[i] = s.root.StopFuture(pid)
	}
	var err error
	for _, future := range stopping {
		err = errors.Join(err, future.Wait())
	}
	return err
}
