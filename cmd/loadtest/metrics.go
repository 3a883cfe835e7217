package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/protobuf/encoding/protowire"

	"gatehouse/loadtest"
)

// metrics sends the figures of each second to a Prometheus by its remote-write protocol, version
// 0.1.0. It never delays the load: figures that cannot be delivered are dropped and counted.
type metrics struct {
	url, authorization string
	scenario, run      string
	client             *http.Client

	queue  chan []sample // of one second each
	done   chan struct{}
	mu     sync.Mutex
	last   int64              // time of the newest samples, milliseconds since 1970
	totals map[string]float64 // counters, by the text of their labels
	seen   map[string]sample  // newest of each series, by the text of its labels
	lost   int                // seconds that were not delivered
	why    error              // why, the first time
}

// sample is a value of a series.
type sample struct {
	labels [][2]string // sorted by name
	value  float64
	at     int64 // milliseconds since 1970
}

// key identifies the sample's series.
func (s sample) key() string { return fmt.Sprint(s.labels) }

// Limits of the sender.
const (
	heldSeconds  = 120             // that wait for a slow receiver; later ones are dropped
	sendTimeout  = 5 * time.Second // of one request
	retryPause   = time.Second     // before the same request is sent again
	flushTimeout = 5 * time.Second // after the run
)

// lastShown is the time after the last figures at which the series end, so that a chart with few
// points shows them.
const lastShown = 15 * time.Second

// stale is the value that ends a series in Prometheus.
var stale = math.Float64frombits(0x7ff0000000000002)

// newMetrics checks the flags. It returns nil if there is no receiver.
func (c *runCommand) newMetrics(scenario string) (*metrics, error) {
	if c.MetricsURL == "" {
		return nil, nil
	}
	u, err := url.Parse(c.MetricsURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, usagef("--metrics-url: write a URL such as http://127.0.0.1:9090/api/v1/write")
	case u.User != nil:
		return nil, usagef("--metrics-url: has a user: set LOADTEST_METRICS_AUTHORIZATION instead")
	case !httpguts.ValidHeaderFieldValue(c.MetricsAuth):
		return nil, usagef("--metrics-authorization: is the value of a header, such as Bearer TOKEN")
	}
	return &metrics{url: c.MetricsURL, authorization: c.MetricsAuth, scenario: scenario,
		run: strconv.FormatInt(time.Now().UnixMilli(), 36), queue: make(chan []sample, heldSeconds),
		done: make(chan struct{}), totals: map[string]float64{}, seen: map[string]sample{},
		client: &http.Client{Timeout: sendTimeout, CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse // the authorization is for this address only
		}}}, nil
}

// second enqueues the figures of a second.
func (m *metrics) second(s loadtest.Second) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = max(time.Now().UnixMilli(), m.last+1)
	var all []sample
	put := func(name string, value float64, labels ...string) {
		x := m.sample(name, value, labels...)
		m.seen[x.key()] = x
		all = append(all, x)
	}
	count := func(name string, more int64, labels ...string) {
		key := m.sample(name, 0, labels...).key()
		m.totals[key] += float64(more)
		put(name, m.totals[key], labels...)
	}
	count("loadtest_hits_total", s.Hits)
	put("loadtest_hits_waiting", float64(max(0, s.Waiting)))
	for _, step := range s.Steps {
		count("loadtest_attempts_total", step.Attempts, "step", step.Name)
		count("loadtest_responses_total", step.Responses(), "step", step.Name)
		count("loadtest_failures_total", step.Failed, "step", step.Name)
		if step.Responses() > 0 {
			put("loadtest_response_seconds", step.P50.Seconds(), "quantile", "0.5", "step", step.Name)
			put("loadtest_response_seconds", step.P99.Seconds(), "quantile", "0.99", "step", step.Name)
		}
	}
	m.enqueue(all)
}

// sample returns a sample of the newest second.
func (m *metrics) sample(name string, value float64, labels ...string) sample {
	s := sample{[][2]string{{"__name__", name}, {"job", "loadtest"}, {"run", m.run},
		{"scenario", m.scenario}}, value, m.last}
	for i := 0; i < len(labels); i += 2 {
		s.labels = append(s.labels, [2]string{labels[i], labels[i+1]})
	}
	slices.SortFunc(s.labels, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return s
}

func (m *metrics) enqueue(all []sample) {
	select {
	case m.queue <- all:
	default:
		m.fail(errors.New("the receiver is too slow"))
	}
}

// fail counts a second that is not delivered. The caller holds mu.
func (m *metrics) fail(err error) {
	m.lost++
	if m.why == nil {
		m.why = err
	}
}

// send sends what is enqueued until the queue is closed or ctx ends.
func (m *metrics) send(ctx context.Context) {
	defer close(m.done)
	defer m.client.CloseIdleConnections()
	for all := range m.queue {
		err := m.deliver(ctx, all)
		for err != nil && ctx.Err() == nil && !errors.As(err, new(refusal)) {
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
			}
			err = m.deliver(ctx, all)
		}
		if err != nil {
			m.mu.Lock()
			m.fail(err)
			m.mu.Unlock()
		}
	}
}

// end ends the series, waits until what is enqueued is delivered, and returns what was not.
func (m *metrics) end(cancel context.CancelFunc) error {
	m.mu.Lock()
	m.last = max(time.Now().UnixMilli(), m.last+1)
	var all []sample
	for _, x := range m.seen {
		x.value, x.at = stale, m.last+lastShown.Milliseconds()
		all = append(all, x)
	}
	if all != nil {
		m.enqueue(all)
	}
	m.mu.Unlock()
	close(m.queue)
	timer := time.AfterFunc(flushTimeout, cancel)
	defer timer.Stop()
	<-m.done
	if m.lost == 0 {
		return nil
	}
	return fmt.Errorf("--metrics-url: figures of %d seconds were not delivered: %w", m.lost, m.why)
}

// refusal is a status with which a receiver refuses a request for good.
type refusal struct{ status int }

func (r refusal) Error() string {
	return fmt.Sprintf("the receiver responded with status %d", r.status)
}

// deliver sends the samples of a second. The error has no part of the URL.
func (m *metrics) deliver(ctx context.Context, all []sample) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url,
		bytes.NewReader(snappy.Encode(nil, writeRequest(all))))
	if err != nil {
		return refusal{}
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("User-Agent", "gatehouse-loadtest/"+version)
	request.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if m.authorization != "" {
		request.Header.Set("Authorization", m.authorization)
	}
	response, err := m.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return fmt.Errorf("reach the receiver: %w", err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read the receiver's response: %w", err)
	}
	switch status := response.StatusCode; {
	case status/100 == 2:
		return nil
	case status == http.StatusTooManyRequests || status/100 == 5:
		return fmt.Errorf("the receiver responded with status %d", status)
	default:
		return refusal{status}
	}
}

// writeRequest returns the message prometheus.WriteRequest with one series for each sample.
func writeRequest(all []sample) []byte {
	var request []byte
	for _, s := range all {
		var series []byte
		for _, l := range s.labels {
			var label []byte
			label = protowire.AppendString(protowire.AppendTag(label, 1, protowire.BytesType), l[0])
			label = protowire.AppendString(protowire.AppendTag(label, 2, protowire.BytesType), l[1])
			series = protowire.AppendBytes(protowire.AppendTag(series, 1, protowire.BytesType), label)
		}
		var value []byte
		value = protowire.AppendFixed64(protowire.AppendTag(value, 1, protowire.Fixed64Type),
			math.Float64bits(s.value))
		value = protowire.AppendVarint(protowire.AppendTag(value, 2, protowire.VarintType),
			uint64(s.at))
		series = protowire.AppendBytes(protowire.AppendTag(series, 2, protowire.BytesType), value)
		request = protowire.AppendBytes(protowire.AppendTag(request, 1, protowire.BytesType), series)
	}
	return request
}
