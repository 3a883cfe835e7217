package httpedge

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// durationBuckets bound the histogram of request durations, in seconds.
var durationBuckets = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10}

// methodNames are the methods that are counted and logged by name; the last stands for all others, since a client can
// make up any.
var methodNames = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"}

func methodName(method []byte) int {
	for i, name := range methodNames[:len(methodNames)-1] {
		if string(method) == name {
			return i
		}
	}
	return len(methodNames) - 1
}

type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  atomic.Int64
	panics    prometheus.Counter
	logErrors prometheus.Counter
	gatherer  prometheus.Gatherer
}

func newMetrics(registry *prometheus.Registry, conns *connections, log *LogBuffer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_http_requests_total", Help: "Requests answered.",
		}, []string{"route", "method", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_http_request_duration_seconds", Help: "Time spent in the handler.", Buckets: durationBuckets,
		}, []string{"route"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_http_panics_total", Help: "Requests whose handler panicked.",
		}),
		logErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_log_errors_total", Help: "Access lines that could not be written.",
		}),
		gatherer: registry,
	}
	all := []prometheus.Collector{
		m.requests, m.durations, m.panics, m.logErrors,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_http_requests_in_flight", Help: "Requests in a handler now.",
		}, func() float64 { return float64(m.inFlight.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_http_connections_open", Help: "Open connections of the public listener.",
		}, func() float64 { return float64(conns.count()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gatehouse_http_connections_refused_total", Help: "Connections refused because too many were open.",
		}, func() float64 { return float64(conns.refused.Load()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	if log != nil {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gatehouse_log_lines_dropped_total", Help: "Log lines dropped because the log could not be written fast enough.",
		}, func() float64 { return float64(log.Dropped()) }))
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// statuses is how many HTTP statuses there are, from 100 on.
const statuses = 500

// routeMetrics are the metrics of one route, looked up once.
type routeMetrics struct {
	pattern  string
	requests *prometheus.CounterVec
	duration prometheus.Observer
	counters [len(methodNames)]*[statuses]atomic.Pointer[counter]
}

type counter struct{ prometheus.Counter }

func (m *metrics) route(pattern string) *routeMetrics {
	r := &routeMetrics{pattern: pattern, requests: m.requests, duration: m.durations.WithLabelValues(pattern)}
	for i := range r.counters {
		r.counters[i] = new([statuses]atomic.Pointer[counter])
	}
	return r
}

func (r *routeMetrics) observe(method, status int, elapsed time.Duration) {
	r.duration.Observe(elapsed.Seconds())
	if status < 100 || status >= 100+statuses {
		status = 100 + statuses - 1
	}
	slot := &r.counters[method][status-100]
	c := slot.Load()
	if c == nil {
		c = &counter{r.requests.WithLabelValues(r.pattern, methodNames[method], strconv.Itoa(status))}
		slot.Store(c)
	}
	c.Inc()
}
