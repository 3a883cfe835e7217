package lookup

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/geo"
)

// metrics are the counters of a Service. Its methods may be called by many goroutines.
type metrics struct {
	exchanges      *prometheus.CounterVec
	exchangeTime   *prometheus.HistogramVec
	batchSize      prometheus.Histogram
	rejections     *prometheus.CounterVec
	fallbacks      prometheus.Counter
	panics         prometheus.Counter
	mailboxRejects atomic.Uint64
	local          atomic.Uint64

	// What the batcher last published.
	busy       atomic.Int64
	queued     [lanes]atomic.Int64
	budgetLeft [2]atomic.Int64 // by endpoint; -1 = no limit
}

func newMetrics(s *Service, registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		exchanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_upstream_requests_total",
			Help: "Requests to the upstream by endpoint and outcome " +
				"(ok, throttled, forbidden, timeout, failed, refused by the breaker or the ledger).",
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
		rejections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_geo_refused_total",
			Help: "Queries refused before they were sent, by error code.",
		}, []string{"code"}),
		fallbacks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_geo_fallback_answers_total",
			Help: "Queries served from the offline files instead of the upstream.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_actor_panics_total",
			Help: "Panics in actors; each is logged with its stack.",
		}),
	}
	var err error
	for _, c := range append(m.readings(s), m.exchanges, m.exchangeTime, m.batchSize,
		m.rejections, m.fallbacks, m.panics) {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
}

// readings returns the metrics that are read at each scrape.
func (m *metrics) readings(s *Service) []prometheus.Collector {
	type read = func() float64
	counter := func(name, help string, read read) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read)
	}
	gauge := func(name, help string, labels prometheus.Labels, read read) prometheus.Collector {
		opts := prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}
		return prometheus.NewGaugeFunc(opts, read)
	}
	cache := func(read func(c geo.CacheStats) float64) read {
		return func() float64 { return read(s.cache.Stats()) }
	}
	load := func(v *atomic.Int64) read { return func() float64 { return float64(v.Load()) } }
	all := []prometheus.Collector{
		counter("gatehouse_geo_cache_hits_total", "Lookups served from the cache.",
			cache(func(c geo.CacheStats) float64 { return float64(c.Hits) })),
		counter("gatehouse_geo_cache_misses_total", "Lookups that were not in the cache.",
			cache(func(c geo.CacheStats) float64 { return float64(c.Misses) })),
		counter("gatehouse_geo_cache_evictions_total", "Entries dropped to make room for others.",
			cache(func(c geo.CacheStats) float64 { return float64(c.Evictions) })),
		gauge("gatehouse_geo_cache_entries", "Entries in the cache.", nil,
			cache(func(c geo.CacheStats) float64 { return float64(c.Entries) })),
		gauge("gatehouse_geo_cache_bytes", "Estimated memory of the cache's entries.", nil,
			cache(func(c geo.CacheStats) float64 { return float64(c.Bytes) })),
		gauge("gatehouse_geo_cache_entry_bytes", "Average memory of an entry, estimated.", nil,
			cache(func(c geo.CacheStats) float64 { return ratio(float64(c.Bytes), float64(c.Entries)) })),
		gauge("gatehouse_geo_cache_hit_ratio", "Share of hits since the start, 0 to 1.", nil,
			cache(func(c geo.CacheStats) float64 {
				return ratio(float64(c.Hits), float64(c.Hits+c.Misses))
			})),
		counter("gatehouse_geo_file_answers_total",
			"Addresses looked up in the offline files as the source, without the cache.",
			func() float64 { return float64(m.local.Load()) }),
		gauge("gatehouse_breaker_state", "The upstream's breaker: 0 closed, 1 half-open, 2 open.", nil,
			func() float64 { state, _ := s.breaker.State(time.Now()); return float64(state) }),
		gauge("gatehouse_geo_pool_busy", "Exchanges with the upstream under way.", nil, load(&m.busy)),
		counter("gatehouse_mailbox_rejects_total", "Messages refused because a mailbox was full.",
			func() float64 { return float64(m.mailboxRejects.Load()) }),
	}
	for _, e := range []geo.Endpoint{geo.EndpointSingle, geo.EndpointBatch} {
		all = append(all, gauge("gatehouse_upstream_budget_left",
			"Requests that the upstream still allows in the current window; -1 = no limit.",
			prometheus.Labels{"endpoint": e.String()}, load(&m.budgetLeft[e])))
	}
	for l, name := range map[lane]string{laneAddresses: "addresses", laneDomains: "domains"} {
		all = append(all, gauge("gatehouse_geo_pool_queued",
			"Queries that wait to be sent: addresses go in batches, domains one by one.",
			prometheus.Labels{"lane": name}, load(&m.queued[l])))
	}
	return all
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
	m.exchanges.WithLabelValues(endpoint, done.report.label).Inc()
	m.exchangeTime.WithLabelValues(endpoint).Observe(now.Sub(done.started).Seconds())
	if done.endpoint == geo.EndpointBatch {
		m.batchSize.Observe(float64(len(done.lookups)))
	}
}

// rejected counts a lookup that was rejected.
func (m *metrics) rejected(err *geo.Error) {
	m.rejections.WithLabelValues(string(err.Code)).Inc()
}

// observe notes the state of the batcher at now.
func (m *metrics) observe(b *batcher, now time.Time) {
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
