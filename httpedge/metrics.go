package httpedge

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// methodNames are the methods that are counted and logged by name. The last stands for all others,
// since clients can invent methods.
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
	routes    routesMetrics
	panics    prometheus.Counter
	logErrors prometheus.Counter
	gatherer  prometheus.Gatherer
}

func newMetrics(s *Server) (*metrics, error) {
	registry, public := s.config.Metrics, s.publicConns
	m := &metrics{
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_http_panics_total", Help: "Requests whose handler panicked.",
		}),
		logErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_log_errors_total", Help: "Access lines that could not be written.",
		}),
		gatherer: registry,
	}
	all := []prometheus.Collector{
		&m.routes, m.panics, m.logErrors,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_http_requests_in_flight",
			Help: "Connections with a request in progress.",
		}, func() float64 { return float64(public.busy() + s.adminConns.busy()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_http_connections_open",
			Help: "Open connections of the public listener.",
		}, func() float64 { return float64(public.count()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	for reached, name := range limitNames {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "gatehouse_http_connections_refused_total",
			Help:        "Connections refused because too many were open, in all or of one address.",
			ConstLabels: prometheus.Labels{"limit": name},
		}, func() float64 { return float64(public.refused[reached].Load()) }))
	}
	for use, c := range map[string]*certificate{"public": s.tls, "admin": s.adminTLS} {
		if c != nil {
			all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name:        "gatehouse_certificate_not_after_seconds",
				Help:        "When the TLS certificate of a listener ends, in seconds since 1970: the earliest end of its chain.",
				ConstLabels: prometheus.Labels{"use": use},
			}, c.notAfter))
		}
	}
	if log := s.config.Log; log != nil {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gatehouse_log_lines_dropped_total",
			Help: "Log lines dropped because the log could not be written fast enough.",
		}, func() float64 { return float64(log.Dropped()) }))
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil &&
			!errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
