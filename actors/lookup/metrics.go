package lookup

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
)

// metrics are the Service's counters, as the admin listener shows them.
type metrics struct {
	exchanges      *prometheus.CounterVec
	exchangeTime   *prometheus.HistogramVec
	batchSize      prometheus.Histogram
	refusals       *prometheus.CounterVec
	fallbacks      prometheus.Counter
	panics         prometheus.Counter
	mailboxRejects atomic.Uint64

	// What the batcher last published.
	busy       atomic.Int64
	queued     [lanes]atomic.Int64
	budgetLeft [2]atomic.Int64 // by endpoint; -1 = no limit
}

func newMetrics(s *Service, registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		exchanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_upstream_requests_total",
			Help: "Requests to the upstream by endpoint and outcome (ok, throttled, forbidden, timeout, failed, refused by the breaker).",
		}, []string{"endpoint", "outcome"}),
		exchangeTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gatehouse_upstream_request_duration_seconds",
			Help:    "Time of an exchange with the upstream, reverse names included.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 3},
		}, []string{"endpoint"}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "gatehouse_upstream_batch_size",
			Help:    "Queries in a batch sent to the upstream.",
			Buckets: []float64{1, 2, 5, 10, 25, 50, 75, 99, 100},
		}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_geo_refused_total",
			Help: "Queries refused before they were sent, by error code.",
		}, []string{"code"}),
		fallbacks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_geo_fallback_answers_total",
			Help: "Queries answered from the offline files in the place of the upstream.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_actor_panics_total",
			Help: "Panics in actors; each is logged with its stack.",
		}),
	}
	collectors := []prometheus.Collector{m.exchanges, m.exchangeTime, m.batchSize, m.refusals, m.fallbacks, m.panics}
	collectors = append(collectors, m.readings(s)...)
	var err error
	for _, c := range collectors {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
}

// readings are the metrics that are read when somebody asks for them.
func (m *metrics) readings(s *Service) []prometheus.Collector {
	counter := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read)
	}
	gauge := func(name, help string, labels prometheus.Labels, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read)
	}
	endpoint := func(e geo.Endpoint) prometheus.Labels { return prometheus.Labels{"endpoint": e.String()} }
	const budget = "Requests that the upstream still allows in the current window; -1 = no limit."
	const queued = "Queries that wait to be sent: addresses, which may go in a batch, and domains, which go one by one."
	return []prometheus.Collector{
		counter("gatehouse_geo_cache_hits_total", "Look-ups answered from the cache.",
			func() float64 { return float64(s.cache.Stats().Hits) }),
		counter("gatehouse_geo_cache_misses_total", "Look-ups that the cache could not answer.",
			func() float64 { return float64(s.cache.Stats().Misses) }),
		counter("gatehouse_geo_cache_evictions_total", "Answers dropped to make room for others.",
			func() float64 { return float64(s.cache.Stats().Evictions) }),
		gauge("gatehouse_geo_cache_entries", "Answers in the cache.", nil,
			func() float64 { return float64(s.cache.Stats().Entries) }),
		gauge("gatehouse_geo_cache_bytes", "Estimated memory of the answers in the cache.", nil,
			func() float64 { return float64(s.cache.Stats().Bytes) }),
		gauge("gatehouse_geo_cache_entry_bytes", "Estimated memory of one answer, on average.", nil,
			func() float64 { c := s.cache.Stats(); return ratio(float64(c.Bytes), float64(c.Entries)) }),
		gauge("gatehouse_geo_cache_hit_ratio", "Hits among all look-ups since the start, 0 to 1.", nil,
			func() float64 { c := s.cache.Stats(); return ratio(float64(c.Hits), float64(c.Hits+c.Misses)) }),
		gauge("gatehouse_breaker_state", "The breaker before the upstream: 0 closed, 1 half-open, 2 open.", nil,
			func() float64 { state, _ := s.breaker.State(time.Now()); return float64(state) }),
		gauge("gatehouse_upstream_budget_left", budget, endpoint(geo.EndpointSingle),
			func() float64 { return float64(m.budgetLeft[geo.EndpointSingle].Load()) }),
		gauge("gatehouse_upstream_budget_left", budget, endpoint(geo.EndpointBatch),
			func() float64 { return float64(m.budgetLeft[geo.EndpointBatch].Load()) }),
		gauge("gatehouse_geo_pool_busy", "Exchanges with the upstream under way.", nil,
			func() float64 { return float64(m.busy.Load()) }),
		gauge("gatehouse_geo_pool_queued", queued, prometheus.Labels{"lane": "addresses"},
			func() float64 { return float64(m.queued[laneAddresses].Load()) }),
		gauge("gatehouse_geo_pool_queued", queued, prometheus.Labels{"lane": "domains"},
			func() float64 { return float64(m.queued[laneDomains].Load()) }),
		counter("gatehouse_mailbox_rejects_total", "Messages refused because an actor's mailbox was full.",
			func() float64 { return float64(m.mailboxRejects.Load()) }),
	}
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// exchanged counts an exchange that ended at now.
func (m *metrics) exchanged(done *exchangeDone, now time.Time) {
	endpoint := done.endpoint.String()
	m.exchanges.WithLabelValues(endpoint, done.report.outcome).Inc()
	m.exchangeTime.WithLabelValues(endpoint).Observe(now.Sub(done.started).Seconds())
	if done.endpoint == geo.EndpointBatch {
		m.batchSize.Observe(float64(len(done.flights)))
	}
}

// refused counts a query that was refused.
func (m *metrics) refused(err *geo.Error) {
	m.refusals.WithLabelValues(string(err.Code)).Inc()
}

// state takes in how the batcher stands at now.
func (m *metrics) state(b *batcher, now time.Time) {
	m.busy.Store(int64(b.busy()))
	for l := range lanes {
		m.queued[l].Store(int64(b.queues[l].Len()))
	}
	for _, e := range []geo.Endpoint{geo.EndpointSingle, geo.EndpointBatch} {
		left := int64(-1)
		if budget := b.budget(e); budget.Limited() {
			left = int64(budget.Left(now))
		}
		m.budgetLeft[e].Store(left)
	}
}
