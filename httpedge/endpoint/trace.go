package endpoint

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/trace"
)

type spanKey struct{}

// SetSpan keeps the span of the request.
func SetSpan(ctx *fasthttp.RequestCtx, s *trace.Span) { ctx.SetUserValue(spanKey{}, s) }

// SpanOf returns the span of the request; nil = it belongs to no trace.
func SpanOf(ctx *fasthttp.RequestCtx) *trace.Span {
	s, _ := ctx.UserValue(spanKey{}).(*trace.Span)
	return s
}

// Trace returns the trace context for what the request causes; "" = it belongs to no trace.
func Trace(ctx *fasthttp.RequestCtx) string {
	if s := SpanOf(ctx); s != nil {
		return s.Traceparent()
	}
	return ""
}

// Attributes returns by what a line in the log names the request.
func Attributes(ctx *fasthttp.RequestCtx) []any {
	all := []any{"request_id", RequestID(ctx)}
	if id := trace.ID(Trace(ctx)); id != "" {
		all = append(all, "trace_id", id)
	}
	return all
}
