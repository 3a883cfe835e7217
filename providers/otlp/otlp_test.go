package otlp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/trace"
	"gatehouse/providers/otlp"
)

const secret = "collector-secret-4711"

// TestCollectorFails has spans lost at a collector that refuses them, and then sends others. No line
// has the URL or a header.
func TestCollectorFails(t *testing.T) {
	var statuses = []int{http.StatusForbidden, http.StatusForbidden, http.StatusOK}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != secret {
			t.Errorf("got %s with %q, want the path and the header", r.URL.Path,
				r.Header.Get("Authorization"))
		}
		w.WriteHeader(statuses[asked])
		asked++
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=another")
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	for _, status := range statuses {
		e, err := otlp.New(t.Context(), otlp.Config{Endpoint: server.URL + "/",
			Headers: http.Header{"Authorization": {secret}}, Ratio: 1,
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			span := e.Tracer().Start("", name, trace.Server, time.Now())
			span.End(time.Now(), "")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := e.Stop(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		want := map[string]float64{"made": 2, "sent": 2, "failed": 0}
		if status != http.StatusOK {
			want["sent"], want["failed"] = 0, 2
		}
		families, err := metrics.Gather()
		if err != nil || len(families) != 1 {
			t.Fatalf("got %v, %v, want one metric", families, err)
		}
		for _, m := range families[0].Metric {
			outcome := m.Label[0].GetValue()
			if got := m.Counter.GetValue(); got != want[outcome] {
				t.Errorf("after %d: got %v spans %s, want %v", status, got, outcome, want[outcome])
			}
		}
		metrics = prometheus.NewRegistry()
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 2 || asked != 3 {
		t.Errorf("got %d warnings for %d requests, want 2 for 3:\n%s", got, asked, &log)
	}
	if strings.Contains(log.String(), secret) || strings.Contains(log.String(), "127.0.0.1") {
		t.Errorf("got %s, want neither the URL nor a header", &log)
	}
	printed := fmt.Sprintf("%v %+v", otlp.Config{Endpoint: server.URL}, &otlp.Config{Endpoint: server.URL})
	if strings.Contains(printed, "127.0.0.1") {
		t.Errorf("got %s, want no URL", printed)
	}
}

// TestRatio: without a decision of the caller, the share of traces decides; else the caller.
func TestRatio(t *testing.T) {
	const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, row := range []struct {
		ratio  float64
		parent string
		want   string // flags
	}{
		{1, "", "01"}, {0, "", "00"}, {0, sampled, "01"}, {1, sampled[:53] + "00", "00"},
	} {
		e, err := otlp.New(t.Context(), otlp.Config{Endpoint: "http://127.0.0.1:1", Ratio: row.ratio,
			Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		span := e.Tracer().Start(row.parent, "x", trace.Server, time.Now())
		got := span.Traceparent()
		if trace.Parse([]byte(got)) != got || got[53:] != row.want || got == row.parent ||
			row.parent != "" && trace.ID(got) != trace.ID(row.parent) {
			t.Errorf("%v below %q: got %q, want a span of that trace with flags %s", row.ratio,
				row.parent, got, row.want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody listens
		_ = e.Stop(ctx)
	}
}

func TestSettings(t *testing.T) {
	for _, row := range []struct {
		text string
		ok   bool
	}{
		{"http://127.0.0.1:4318", true}, {"https://otlp.example/v1/traces", true}, {"otlp.example", false},
		{"grpc://otlp.example", false}, {"https://a:" + secret + "@otlp.example", false}, {"http://", false},
		{"https://otlp.example/?key=" + secret, false}, {"https://otlp.example#" + secret, false},
	} {
		err := otlp.CheckEndpoint(row.text)
		if (err == nil) != row.ok || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want ok %v", row.text, err, row.ok)
		}
	}
	for _, row := range []struct{ text, want string }{
		{"authorization=Bearer%20abc", "map[Authorization:[Bearer abc]]"},
		{" a=1, b = 2 ,", "map[A:[1] B:[2]]"}, {"a=b=c", "map[A:[b=c]]"},
		{secret, ""}, {"=" + secret, ""}, {"a b=" + secret, ""}, {"a=%zz" + secret, ""},
		{"a=%0a" + secret, ""}, {"a=", ""},
	} {
		got, err := otlp.ParseHeaders(row.text)
		if row.want == "" {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: got %v, %v, want an error without it", row.text, got, err)
			}
		} else if err != nil || fmt.Sprint(got) != row.want {
			t.Errorf("%s: got %v, %v, want %s", row.text, got, err, row.want)
		}
	}
}
