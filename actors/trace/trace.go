// Package trace holds the W3C trace context of requests, and makes spans. A trace context is the
// text of a traceparent header (W3C Trace Context section 3.2); "" = the request belongs to no
// trace. The header tracestate is neither read nor passed on: others may have written anything into
// it.
package trace

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Header is the name of the header with the trace context, in the form of net/http and fasthttp.
const Header = "Traceparent"

// Lengths and places of the fields of a traceparent: version, trace id, span id and flags.
const (
	length  = 55
	traceAt = 3
	spanAt  = 36
	flagsAt = 53
)

// Parse returns the trace context that a header says, as version 00; "" = the header is not valid.
// A later version may have more fields behind those of version 00.
func Parse(header []byte) string {
	if len(header) < length {
		return ""
	}
	fields := string(header[:length])
	for i := range fields {
		switch c := fields[i]; {
		case i == traceAt-1, i == spanAt-1, i == flagsAt-1:
			if c != '-' {
				return ""
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return ""
		}
	}
	version, more := fields[:2], header[length:]
	switch {
	case version == "ff", version == "00" && len(more) > 0, len(more) > 0 && more[0] != '-':
		return ""
	case isZero(ID(fields)), isZero(fields[spanAt : flagsAt-1]):
		return ""
	}
	return "00" + fields[2:]
}

func isZero(hex string) bool { return strings.Trim(hex, "0") == "" }

// ID returns the trace id of a context: 32 hexadecimal digits, or "" for none.
func ID(traceparent string) string {
	if traceparent == "" {
		return ""
	}
	return traceparent[traceAt : spanAt-1]
}

// Mark returns an id that has the trace context of the request which made it in front. So a row of
// the database that is sent later, maybe by another node, is sent in the trace of that request.
func Mark(traceparent, id string) string {
	if traceparent == "" {
		return id
	}
	return traceparent + "." + id
}

// OfMark returns the trace context in front of an id, or "".
func OfMark(id string) string {
	before, _, found := strings.Cut(id, ".")
	if !found {
		return ""
	}
	return Parse([]byte(before))
}

type key struct{}

// With returns a context for requests to others that belong to a trace.
func With(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, traceparent)
}

// Of returns the trace context that With has set, or "".
func Of(ctx context.Context) string {
	traceparent, _ := ctx.Value(key{}).(string)
	return traceparent
}

// Tracer makes spans. Its methods may be called by many goroutines; nil makes none.
type Tracer struct{ spans trace.Tracer }

// New returns a Tracer that makes its spans with spans.
func New(spans trace.Tracer) *Tracer { return &Tracer{spans} }

// Kind says on which side of a request a span is.
type Kind = trace.SpanKind

// The kinds.
const (
	Server = trace.SpanKindServer
	Client = trace.SpanKindClient
)

// Span is one step of a trace. The zero Span is none.
type Span struct {
	span        trace.Span // nil = it is not made
	traceparent string
}

// Start begins a span at a time, below parent; "" = in a new trace. links are further traces that
// the step is done for. The name must hold nothing of a request but what the service itself says.
func (t *Tracer) Start(parent, name string, kind Kind, at time.Time, links ...string) Span {
	if t == nil {
		return Span{traceparent: parent}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithTimestamp(at)}
	for _, link := range links {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: contextOf(link)}))
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), contextOf(parent))
	_, span := t.spans.Start(ctx, name, options...)
	own := span.SpanContext()
	return Span{span, "00-" + own.TraceID().String() + "-" + own.SpanID().String() + "-" +
		own.TraceFlags().String()}
}

// Traceparent returns the trace context for what the span causes. Without a Tracer it is the parent.
func (s *Span) Traceparent() string { return s.traceparent }

// End ends the span at a time. failure names the kind of an error; "" = there was none.
func (s *Span) End(at time.Time, failure string, attributes ...attribute.KeyValue) {
	if s.span == nil {
		return
	}
	if failure != "" {
		attributes = append(attributes, attribute.String("error.type", failure))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.SetAttributes(attributes...)
	s.span.End(trace.WithTimestamp(at))
}

// contextOf returns a trace context in the form of the library; "" is none.
func contextOf(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	id, _ := trace.TraceIDFromHex(ID(traceparent)) // Parse has checked it
	span, _ := trace.SpanIDFromHex(traceparent[spanAt : flagsAt-1])
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, Remote: true,
		TraceFlags: trace.TraceFlags(digit(traceparent[flagsAt])<<4 | digit(traceparent[flagsAt+1]))})
}

// digit returns the value of a hexadecimal digit in lower case.
func digit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}
