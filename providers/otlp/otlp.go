// Package otlp sends spans to a collector by OTLP over HTTP, as protobuf.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"gatehouse/actors/trace"
)

// Bounds of what waits to be sent. Spans beyond them are dropped: no request waits for a collector.
const (
	mostWaiting = 8192
	mostAtOnce  = 512
	sendEvery   = 2 * time.Second
	sendTimeout = 5 * time.Second // of one request, with its retries
)

// Config configures an Exporter. It is printed without the Headers and the Endpoint.
type Config struct {
	Endpoint string      `json:"-"` // base URL of the collector, or the URL of its spans with a path; "" = none
	Headers  http.Header `json:"-"` // of each request, such as Authorization; optional
	// Ratio is the share of traces that is made, from 0 to 1, of the requests that no trusted proxy
	// has decided about.
	Ratio   float64
	Version string // of the program; optional
	Name    string // of this process; optional: "" = a random one
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Format prints c without secrets, for every verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "otlp.Config(%v)", c.Ratio) }

// CheckEndpoint returns an error unless spans can be sent to text. The error does not quote it, and
// continues a sentence that begins with the setting's name.
func CheckEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("must be an http:// or https:// URL, such as http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || strings.Contains(text, "#"):
		return errors.New("must have no user, query and fragment; headers have secrets")
	}
	return nil
}

// ParseHeaders reads headers in the form of OTEL_EXPORTER_OTLP_HEADERS: NAME=VALUE with commas
// between, and values in percent-encoding. The error does not quote them.
func ParseHeaders(text string) (http.Header, error) {
	var all http.Header
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !isToken(name) || err != nil || value == "" ||
			strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, errors.New("must be NAME=VALUE, with a comma between headers")
		}
		if all == nil {
			all = http.Header{}
		}
		all.Add(name, value)
	}
	return all, nil
}

// isToken reports whether s can be the name of a header (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// Exporter sends spans until Stop. Make it with New.
type Exporter struct {
	client   *http.Client
	sender   *otlptrace.Exporter
	provider *sdk.TracerProvider
	log      *slog.Logger
	made     prometheus.Counter
	sent     prometheus.Counter
	failed   prometheus.Counter
	fails    atomic.Bool // the last request has failed
}

// New returns an Exporter, which needs Stop. It does not wait for the collector.
func New(ctx context.Context, c Config) (*Exporter, error) {
	if err := CheckEndpoint(c.Endpoint); err != nil {
		return nil, fmt.Errorf("the URL %w", err)
	}
	u, _ := url.Parse(c.Endpoint) // CheckEndpoint has tried it
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	headers := map[string]string{}
	for name := range c.Headers {
		headers[name] = c.Headers.Get(name)
	}
	e := &Exporter{log: c.Logger, client: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // headers have secrets
		},
	}}
	var err error
	// Everything is set here: the library would read what is missing from the environment.
	e.sender, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()),
		otlptracehttp.WithHeaders(headers), otlptracehttp.WithTimeout(sendTimeout),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithHTTPClient(e.client))
	if err != nil {
		return nil, errors.New("the exporter of spans cannot be made")
	}
	if err := e.register(c.Metrics); err != nil {
		return nil, err
	}
	name := c.Name
	if name == "" {
		name = uuid.NewString()
	}
	e.provider = sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Ratio))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "gatehouse"),
			attribute.String("service.version", c.Version),
			attribute.String("service.instance.id", name))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: 256, AttributeCountLimit: 16,
			LinkCountLimit: 100, AttributePerLinkCountLimit: 1}),
		sdk.WithSpanProcessor(&counting{sdk.NewBatchSpanProcessor(e,
			sdk.WithMaxQueueSize(mostWaiting), sdk.WithMaxExportBatchSize(mostAtOnce),
			sdk.WithBatchTimeout(sendEvery), sdk.WithExportTimeout(sendTimeout)), e.made}))
	return e, nil
}

func (e *Exporter) register(metrics prometheus.Registerer) error {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_spans_total",
		Help: "Spans by outcome: made, sent, failed. Those made that are neither sent nor failed" +
			" wait, or were dropped for lack of room."}, []string{"outcome"})
	e.made, e.sent = spans.WithLabelValues("made"), spans.WithLabelValues("sent")
	e.failed = spans.WithLabelValues("failed")
	if err := metrics.Register(spans); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Tracer returns what makes the spans.
func (e *Exporter) Tracer() *trace.Tracer { return trace.New(e.provider.Tracer("gatehouse")) }

// Stop sends the spans that wait, until ctx ends. Call it once, after the last span.
func (e *Exporter) Stop(ctx context.Context) error {
	defer e.client.CloseIdleConnections()
	return e.provider.Shutdown(ctx)
}

// ExportSpans implements sdk.SpanExporter. It reports failures itself: the library would write them,
// with the URL, to the standard logger.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := e.sender.ExportSpans(ctx, spans); err != nil {
		e.failed.Add(float64(len(spans)))
		if !e.fails.Swap(true) {
			e.log.Warn("spans cannot be sent to the collector; those that wait are lost",
				"cause", causeOf(err))
		}
		return nil
	}
	e.sent.Add(float64(len(spans)))
	if e.fails.Swap(false) {
		e.log.Info("spans are sent to the collector again")
	}
	return nil
}

// causeOf returns the kind of an error without its text, which has the URL.
func causeOf(err error) string {
	var failed *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &failed):
		return "network"
	}
	return "the collector refuses them"
}

// Shutdown implements sdk.SpanExporter.
func (e *Exporter) Shutdown(ctx context.Context) error { return e.sender.Shutdown(ctx) }

// counting counts the spans that are made.
type counting struct {
	sdk.SpanProcessor
	made prometheus.Counter
}

// OnEnd implements sdk.SpanProcessor.
func (c *counting) OnEnd(s sdk.ReadOnlySpan) {
	c.made.Inc()
	c.SpanProcessor.OnEnd(s)
}
