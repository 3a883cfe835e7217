package lookup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/trace"
)

// Config is what a Service is made of. Fields are required unless they say otherwise.
type Config struct {
	Actors        *actor.ActorSystem // of the process; shut it down after Stop
	Provider      geo.Provider       // a geo.Local answers addresses itself, without cache and pool
	Fallback      geo.Provider       // optional: offline files, when Provider has no budget or time
	Reverse       Reverser           // optional: fills Network.Reverse where a batch lacks it
	CacheEntries  int                // results held, at least 1
	CacheTTL      time.Duration      // of a result; optional: 0 = geo.ResultTTL; at most geo.MaxTTL
	LookupTimeout time.Duration      // the longest wait of a caller, more than 1 s
	Concurrency   int                // exchanges with the upstream at once, at least 1
	UpstreamShare float64            // of the upstream's budget for this process, above 0, at most 1
	CallerLimit   int                // optional: cold queries a minute and caller; 0 = no limit
	Breaker       geo.BreakerConfig
	Logger        *slog.Logger
	Metrics       prometheus.Registerer
	Tracer        *trace.Tracer // optional: nil = no spans

	// CacheFile keeps the results over a restart; optional: "" = they are lost. CacheOrigin names
	// their provider and settings: a file of another origin is not read.
	CacheFile, CacheOrigin string

	// Peers are the other nodes of a cluster; nil = none. With Provider's budget known, one node
	// looks up for all of them. Otherwise each looks up its part of the queries.
	Peers  Peers
	Ledger Ledger // required with Peers and a known budget
}

// exchangeReserve is the part of a caller's time that is kept for the exchange itself: a lookup
// that cannot be sent earlier than that before the caller's deadline is rejected.
const exchangeReserve = time.Second

// Service is the running lookup service. Its methods may be called by many goroutines.
type Service struct {
	config     Config
	terms      geo.Terms
	sendWithin time.Duration // LookupTimeout without exchangeReserve
	cache      *geo.Cache
	breaker    *geo.Breaker
	admission  *admission
	metrics    *metrics
	local      geo.Local  // Provider, if it answers addresses itself; else nil
	peers      Peers      // nil = this node looks up everything
	file       *cacheFile // nil = none
	limits     callerLimits
	peerAsks   atomic.Int64    // asks of other nodes that are being handled
	lifetime   context.Context // of exchanges, which belong to no single caller
	end        context.CancelFunc

	batcher  *batcher
	workers  []*actor.PID
	inFlight mailbox.InFlight // lookups that missed the cache
	streams  atomic.Int64     // open Streams
	tasks    sync.WaitGroup   // what goes on without a caller
}

// New starts a Service. Stop ends it.
func New(config Config) (*Service, error) {
	for _, p := range []geo.Provider{config.Provider, config.Fallback} {
		if p != nil && !p.Terms().Source.IsKnown() {
			return nil, fmt.Errorf("the source %q of a provider is not in geo's list of sources",
				p.Terms().Source)
		}
	}
	cache, err := geo.NewCache(config.CacheEntries)
	if err != nil {
		return nil, err
	}
	config.CacheTTL = cmp.Or(config.CacheTTL, geo.ResultTTL)
	s := &Service{
		config:     config,
		terms:      config.Provider.Terms(),
		sendWithin: config.LookupTimeout - exchangeReserve,
		cache:      cache,
		admission:  newAdmission(),
	}
	if config.CacheFile != "" {
		s.file, err = openCacheFile(config.CacheFile, config.CacheOrigin, cache, config.Logger)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCacheFile, err)
		}
	}
	s.limits.perMinute = config.CallerLimit
	s.local, _ = config.Provider.(geo.Local)
	if s.terms.Source != geo.SourceMMDB { // each node has the files
		s.peers = config.Peers
	}
	config.Breaker.Changed = s.breakerChanged
	s.breaker = geo.NewBreaker(config.Breaker)
	s.lifetime, s.end = context.WithCancel(context.Background())
	if s.metrics, err = newMetrics(s, config.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.spawn()
	if s.file != nil {
		s.tasks.Go(func() { s.file.run(s.lifetime) })
	}
	if s.isShared() {
		s.tasks.Go(s.follow)
	}
	return s, nil
}

// breakerChanged logs that the upstream is left alone, or works again.
func (s *Service) breakerChanged(state geo.BreakerState) {
	switch state {
	case geo.BreakerOpen:
		s.config.Logger.Warn("the upstream fails: it is left alone for a while",
			"cooldown", s.config.Breaker.Cooldown.String())
	case geo.BreakerClosed:
		s.config.Logger.Info("the upstream answers again")
	}
}

// spawn starts the pool and the batcher.
func (s *Service) spawn() {
	props := actor.PropsFromProducer(func() actor.Actor { return &worker{service: s} })
	for range s.config.Concurrency {
		s.workers = append(s.workers, s.config.Actors.Root.Spawn(props))
	}
	full := func() { s.metrics.mailboxRejects.Add(1) }
	s.batcher = newBatcher(s)
	mailbox.NewSpawner(s.config.Actors, full, s.panicked).Spawn(s.batcher)
}

// panicked counts and logs the panic of an actor. Call it where the panic is recovered.
func (s *Service) panicked() {
	s.metrics.panics.Inc()
	s.config.Logger.Error("actor panicked", "stack", string(debug.Stack()))
}

// Origin is where lookups come from.
type Origin struct {
	Caller netip.Addr // whose limits they count for
	Trace  string     // the trace context of the request (package trace); "" = none
}

// Lookup looks up text, an address or a domain, and returns within the lookup timeout. It keeps no
// memory of text. from is called for a miss only, because reading the caller's address from headers
// costs allocations.
func (s *Service) Lookup(text string, from func() Origin, now time.Time) geo.Outcome {
	var q geo.Query
	if o := s.find(text, now, &q); !isMiss(&o) {
		return o
	}
	return s.missOne(q, from(), now)
}

// LookupAll is Lookup for all of texts, which may repeat. The misses go to the upstream together.
// It writes the outcomes to dst, which has the length of texts.
func (s *Service) LookupAll(
	texts []string, from func() Origin, now time.Time, dst []geo.Outcome,
) {
	var misses []miss
	for i, text := range texts {
		var q geo.Query
		if dst[i] = s.find(text, now, &q); isMiss(&dst[i]) {
			misses = append(misses, miss{q, &dst[i]})
		}
	}
	if misses != nil {
		s.missAll(misses, from(), now)
	}
}

// find returns what the cache or a local provider holds for text, or why text is no query. Else it
// returns a miss, and the query in q. Most requests write the canonical form, which the cache finds
// without parsing.
func (s *Service) find(text string, now time.Time, q *geo.Query) geo.Outcome {
	if s.local == nil {
		if e := s.cache.Find(text, now); e != nil {
			return geo.Outcome{Entry: e, Cached: true}
		}
	}
	var err *geo.Error
	if *q, err = geo.ParseQuery(text); err != nil {
		return geo.Outcome{Err: err}
	}
	if s.local != nil && !q.IsDomain() {
		s.metrics.local.Add(1)
		return s.local.Find(q.Addr(), now)
	}
	if e := s.cache.Get(*q, now); e != nil {
		return geo.Outcome{Entry: e, Err: e.Err, Cached: true}
	}
	return geo.Outcome{}
}

// Known returns what the cache or a local provider has about an address, and false if that is nothing.
// It asks nobody, keeps nothing and counts nothing.
func (s *Service) Known(addr netip.Addr, now time.Time) (geo.Outcome, bool) {
	q, fault := geo.AddrQuery(addr)
	if fault != nil {
		return geo.Outcome{}, false
	}
	if s.local != nil {
		o := s.local.Find(q.Addr(), now)
		return o, o.Err == nil && o.HasAnswer()
	}
	e := s.cache.Peek(q, now)
	if e == nil || e.Err != nil {
		return geo.Outcome{}, false
	}
	return geo.Outcome{Entry: e, Cached: true}, true
}

func isMiss(o *geo.Outcome) bool { return !o.HasAnswer() && o.Err == nil }

// Names returns the names of the place of a result in a language, as geo.Local does. Only files have
// names in languages: the result must come from them.
func (s *Service) Names(addr netip.Addr, language string) geo.Location {
	for _, p := range []geo.Provider{s.config.Provider, s.config.Fallback} {
		if files, ok := p.(geo.Local); ok {
			return files.Names(addr, language)
		}
	}
	return geo.Location{}
}

// Stop rejects new lookups that miss the cache, waits for those in flight until ctx ends, and stops
// the actors. Call it once, before the actor system is shut down.
func (s *Service) Stop(ctx context.Context) error {
	err := s.inFlight.Close(ctx)
	s.end()
	s.tasks.Wait()
	stopping := make([]*actor.Future, len(s.workers))
	for i, pid := range s.workers {
		stopping[i] = s.config.Actors.Root.StopFuture(pid)
	}
	for _, future := range stopping {
		err = errors.Join(err, future.Wait())
	}
	s.batcher.Stop() // after the workers, which report to it
	if s.file != nil {
		s.file.save(time.Now())
	}
	return err
}
