package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"gatehouse/loadtest"
)

// receiver is a Prometheus that takes remote writes.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	series map[string][]point // by name and labels
	heads  []http.Header
	status []int // of the next responses; then 204
	wrong  error
}

type point struct {
	value float64
	at    int64
}

func newReceiver(t *testing.T, status ...int) *receiver {
	t.Helper()
	r := &receiver{series: map[string][]point{}, status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.heads = append(r.heads, q.Header)
		if len(r.status) > 0 {
			w.WriteHeader(r.status[0])
			r.status = r.status[1:]
			return
		}
		if err == nil {
			body, err = snappy.Decode(nil, body)
		}
		if err == nil {
			err = r.read(body)
		}
		if err != nil {
			r.wrong = err
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

// fields calls do for each field of a message.
func fields(text []byte, do func(number protowire.Number, value []byte, bits uint64) error) error {
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return protowire.ParseError(n)
		}
		text = text[n:]
		var value []byte
		var bits uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(text)
		case protowire.Fixed64Type:
			bits, n = protowire.ConsumeFixed64(text)
		case protowire.VarintType:
			bits, n = protowire.ConsumeVarint(text)
		default:
			return fmt.Errorf("field %d has type %d", number, kind)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		text = text[n:]
		if err := do(number, value, bits); err != nil {
			return err
		}
	}
	return nil
}

// read reads a prometheus.WriteRequest.
func (r *receiver) read(text []byte) error {
	return fields(text, func(_ protowire.Number, series []byte, _ uint64) error {
		var names, labels []string
		var points []point
		err := fields(series, func(number protowire.Number, value []byte, _ uint64) error {
			var pair [2]string
			var p point
			err := fields(value, func(member protowire.Number, text []byte, bits uint64) error {
				switch {
				case number == 1:
					pair[member-1] = string(text)
				case member == 1:
					p.value = math.Float64frombits(bits)
				default:
					p.at = int64(bits)
				}
				return nil
			})
			if number == 1 {
				names, labels = append(names, pair[0]), append(labels, pair[0]+"="+pair[1])
			} else {
				points = append(points, p)
			}
			return err
		})
		if err == nil && (!slices.IsSorted(names) || len(points) != 1) {
			err = fmt.Errorf("labels %v, points %v", labels, points)
		}
		labels = slices.DeleteFunc(labels, func(l string) bool { return strings.HasPrefix(l, "run=") })
		key := strings.Join(labels, ",")
		if before := r.series[key]; err == nil && len(before) > 0 &&
			before[len(before)-1].at >= points[0].at {
			err = fmt.Errorf("%s: %v after %v", key, points, before)
		}
		r.series[key] = append(r.series[key], points...)
		return err
	})
}

// TestMetricsWhileItRuns sends the figures of a run to a receiver that is unavailable at first. At
// the end the counters are those of the report, and the series end.
func TestMetricsWhileItRuns(t *testing.T) {
	r := newReceiver(t, 503, 429)
	t.Setenv("LOADTEST_METRICS_AUTHORIZATION", "Bearer s3cret")
	code, stdout, stderr := command(t, "run", "lookup-hot", "--target", fixed(t, 0), "--keys", "50",
		"--rate", "20:1s,0:5m", "--metrics-url", r.URL+"/api/v1/write", "--json", "-")
	if code != exitDone || r.wrong != nil || strings.Contains(stdout+stderr, "s3cret") ||
		strings.Contains(stderr, "metrics") {
		t.Fatalf("got %d, %v, %s%s, want figures that can be read", code, r.wrong, stdout, stderr)
	}
	head := r.heads[0]
	for name, want := range map[string]string{"Content-Encoding": "snappy",
		"Content-Type":                      "application/x-protobuf",
		"X-Prometheus-Remote-Write-Version": "0.1.0", "Authorization": "Bearer s3cret"} {
		if got := head.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	const name, of = "__name__=loadtest_", ",scenario=lookup-hot"
	for key, want := range map[string]float64{
		name + "hits_total,job=loadtest" + of:                                      20,
		name + "attempts_total,job=loadtest" + of + ",step=lookup":                 20,
		name + "responses_total,job=loadtest" + of + ",step=lookup":                20,
		name + "failures_total,job=loadtest" + of + ",step=lookup":                 0,
		name + "response_seconds,job=loadtest,quantile=0.99" + of + ",step=lookup": -1,
		name + "response_seconds,job=loadtest,quantile=0.5" + of + ",step=lookup":  -1,
	} {
		points := r.series[key]
		if len(points) < 2 {
			t.Errorf("%s: got %v, want points", key, points)
			continue
		}
		end, last := points[len(points)-1], points[len(points)-2]
		if math.Float64bits(end.value) != math.Float64bits(stale) || want >= 0 && last.value != want ||
			want < 0 && !(last.value > 0) || last.at < time.Now().Add(-time.Hour).UnixMilli() {
			t.Errorf("%s: got %v, want %v and the end of the series", key, points, want)
		}
	}
}

// TestMetricsThatAreRefused has a receiver that refuses, and wrong flags.
func TestMetricsThatAreRefused(t *testing.T) {
	r := newReceiver(t, 400, 302)
	code, _, stderr := command(t, "run", "lookup-hot", "--target", fixed(t, 0), "--keys", "50",
		"--rate", "20:200ms,0:5m", "--metrics-url", r.URL+"/secret-path")
	if code != exitDone || strings.Contains(stderr, "secret-path") || !strings.Contains(stderr,
		"figures of 2 seconds were not delivered: the receiver responded with status 400") {
		t.Errorf("got %d %s, want the run, and what is not delivered", code, stderr)
	}
	for _, c := range [][]string{{"--metrics-url", "127.0.0.1:9090"}, {"--metrics-url", "ftp://a"},
		{"--metrics-url", "http://user:secret@127.0.0.1:9090"}, {"--metrics-authorization", "a"},
		{"--metrics-authorization", "a\nb", "--metrics-url", "http://127.0.0.1"}} {
		if code, _, stderr := command(t, append([]string{"run", "lookup-hot", "--target",
			"http://127.0.0.1:1"}, c...)...); code != exitUsage || !strings.Contains(stderr, c[0]) ||
			strings.Contains(stderr, "secret") {
			t.Errorf("%v: got %d %s, want wrong usage", c, code, stderr)
		}
	}
}

// TestSlowReceiversDropFigures fills the queue: the load goes on, and what is dropped is counted.
func TestSlowReceiversDropFigures(t *testing.T) {
	c := runCommand{MetricsURL: "http://127.0.0.1:1"}
	m, err := c.newMetrics("own")
	if err != nil {
		t.Fatal(err)
	}
	for range heldSeconds + 7 {
		m.second(loadtest.Second{Hits: 1})
	}
	if m.lost != 7 || len(m.queue) != heldSeconds {
		t.Errorf("got %d lost, %d enqueued, want 7 and %d", m.lost, len(m.queue), heldSeconds)
	}
}
