package httpedge

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// TestRouteMetricsMatchTheClientLibrary holds the own counters against the library's.
func TestRouteMetricsMatchTheClientLibrary(t *testing.T) {
	own := &routesMetrics{}
	bounds := make([]float64, len(durationBounds))
	for i, bound := range durationBounds {
		bounds[i] = bound.Seconds()
	}
	requests := prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: "gatehouse_http_requests_total", Help: "Requests served."},
		[]string{"route", "method", "status"})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gatehouse_http_request_duration_seconds", Help: "Time spent in the handler.",
		Buckets: bounds}, []string{"route"})
	for _, o := range []struct {
		route, method string
		status        int
		elapsed       time.Duration
	}{
		{"/a", "GET", 200, 0},
		{"/a", "GET", 200, 50 * time.Microsecond},
		{"/a", "GET", 200, 50*time.Microsecond + 1},
		{"/a", "GET", 404, time.Millisecond},
		{"/a", "POST", 200, 10 * time.Second},
		{"/b", "other", 599, 11 * time.Second},
		{"/b", "GET", 100, time.Second},
	} {
		own.of(o.route).observe(methodName([]byte(o.method)), o.status, o.elapsed)
		requests.WithLabelValues(o.route, o.method, strconv.Itoa(o.status)).Inc()
		durations.WithLabelValues(o.route).Observe(o.elapsed.Seconds())
	}
	got, want := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
	got.MustRegister(own)
	want.MustRegister(requests, durations)
	if got, want := exposedMetrics(t, got), exposedMetrics(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// exposedMetrics returns the metrics of a registry as text.
func exposedMetrics(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	response := httptest.NewRecorder()
	promhttp.HandlerFor(r,
		promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(response,
		httptest.NewRequest("GET", "/metrics", nil))
	return response.Body.String()
}
