package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/mailbox"
)

// Config is what a System is made of. Fields are required unless they say otherwise.
type Config struct {
	Actors        *actor.ActorSystem // of the process; shut it down after Stop
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

// fallbackReserve is kept of a caller's time to answer from the offline files.
const fallbackReserve = 250 * time.Millisecond

// System is the running service behind the edge. Its methods may be called by many goroutines.
type System struct {
	config    Config
	terms     geo.Terms
	cache     *geo.Cache
	breaker   *geo.Breaker
	admission *admission
	metrics   *systemMetrics
	lifetime  context.Context // of exchanges, which belong to no single caller
	end       context.CancelFunc

	batcher  *mailbox.Mailbox
	workers  []*actor.PID
	inFlight mailbox.InFlight // lookups that missed the cache
}

// New starts a System. Stop ends it.
func New(config Config) (*System, error) {
	cache, err := geo.NewCache(config.CacheEntries)
	if err != nil {
		return nil, err
	}
	s := &System{
		config:    config,
		terms:     config.Provider.Terms(),
		cache:     cache,
		admission: newAdmission(),
	}
	config.Breaker.Changed = s.breakerChanged
	s.breaker = geo.NewBreaker(config.Breaker)
	s.lifetime, s.end = context.WithCancel(context.Background())
	if s.metrics, err = newSystemMetrics(s, config.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
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
	props := actor.PropsFromProducer(func() actor.Actor { return &worker{system: s} })
	for range s.config.Concurrency {
		s.workers = append(s.workers, s.config.Actors.Root.Spawn(props))
	}
	full := func() { s.metrics.mailboxRejects.Add(1) }
	s.batcher = mailbox.NewSpawner(s.config.Actors, full, s.panicked).Spawn(newBatcher(s))
}

// panicked counts and logs the panic of an actor. Call it where the panic is recovered.
func (s *System) panicked() {
	s.metrics.panics.Inc()
	s.config.Logger.Error("actor panicked", "stack", string(debug.Stack()))
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

// Stop refuses new lookups that miss the cache, lets those in flight end until ctx does, and ends the
// actors. Call it once, before the actor system is shut down.
func (s *System) Stop(ctx context.Context) error {
	err := s.inFlight.Close(ctx)
	s.end()
	stopping := make([]*actor.Future, len(s.workers))
	for i, pid := range s.workers {
		stopping[i] = s.config.Actors.Root.StopFuture(pid)
	}
	for _, future := range stopping {
		err = errors.Join(err, future.Wait())
	}
	s.batcher.Stop() // after the workers, which report to it
	return err
}
