package httpedge

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// durationBounds are the upper bounds of the histogram of request durations.
var durationBounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// statuses is how many HTTP statuses there are, from 100 on.
const statuses = 500

var (
	requestsDesc = prometheus.NewDesc("gatehouse_http_requests_total", "Requests served.",
		[]string{"route", "method", "status"}, nil)
	durationsDesc = prometheus.NewDesc("gatehouse_http_request_duration_seconds",
		"Time spent in the handler.", []string{"route"}, nil)
)

// routeMetrics are the metrics of one route. A request adds to three numbers; the client library's
// counters and histograms take three times as long.
type routeMetrics struct {
	pattern   string
	responses [len(methodNames)]atomic.Pointer[[statuses]atomic.Uint64] // by method; nil = none
	counts    [len(durationBounds) + 1]atomic.Uint64                    // by upper bound
	nanos     atomic.Int64                                              // of all durations together
}

// observe counts a response.
func (r *routeMetrics) observe(method, status int, elapsed time.Duration) {
	i := 0
	for i < len(durationBounds) && elapsed > durationBounds[i] {
		i++
	}
	r.counts[i].Add(1)
	r.nanos.Add(int64(elapsed))
	if status < 100 || status >= 100+statuses {
		status = 100 + statuses - 1
	}
	responses := r.responses[method].Load()
	if responses == nil {
		r.responses[method].CompareAndSwap(nil, new([statuses]atomic.Uint64))
		responses = r.responses[method].Load()
	}
	responses[status-100].Add(1)
}

func (r *routeMetrics) collect(out chan<- prometheus.Metric) {
	for method := range r.responses {
		responses := r.responses[method].Load()
		if responses == nil {
			continue
		}
		for i := range responses {
			if n := responses[i].Load(); n > 0 {
				out <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue,
					float64(n), r.pattern, methodNames[method], strconv.Itoa(100+i))
			}
		}
	}
	buckets, total := make(map[float64]uint64, len(durationBounds)), uint64(0)
	for i, bound := range durationBounds {
		total += r.counts[i].Load()
		buckets[bound.Seconds()] = total
	}
	total += r.counts[len(durationBounds)].Load()
	out <- prometheus.MustNewConstHistogram(durationsDesc, total,
		time.Duration(r.nanos.Load()).Seconds(), buckets, r.pattern)
}

// routesMetrics are the metrics of all routes. The zero value is ready to use.
type routesMetrics struct {
	mu     sync.Mutex
	routes []*routeMetrics
}

// of returns the metrics of the routes with that pattern.
func (m *routesMetrics) of(pattern string) *routeMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.routes, func(r *routeMetrics) bool { return r.pattern == pattern })
	if i < 0 {
		i = len(m.routes)
		m.routes = append(m.routes, &routeMetrics{pattern: pattern})
	}
	return m.routes[i]
}

// Describe implements prometheus.Collector.
func (m *routesMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- requestsDesc
	out <- durationsDesc
}

// Collect implements prometheus.Collector.
func (m *routesMetrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	routes := slices.Clone(m.routes)
	m.mu.Unlock()
	for _, r := range routes {
		r.collect(out)
	}
}
