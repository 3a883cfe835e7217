package httpedge

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"

	"gatehouse/actors/trace"
	"gatehouse/httpedge/endpoint"
)

var headerTraceparent = []byte(trace.Header)

// traceparent returns the trace context of a request; "" = none, or nobody has sent it whom we
// trust. A stranger must not write into our log, hide behind the trace of another, or have us
// export what nobody asked for (W3C Trace Context, section 6.2). So it is as with X-Request-Id.
func (c *clientAddresses) traceparent(ctx *fasthttp.RequestCtx) string {
	if len(c.trusted) == 0 {
		return ""
	}
	sent := ctx.Request.Header.PeekCanonical(headerTraceparent)
	if len(sent) == 0 || !c.trusts(peer(ctx.RemoteAddr())) ||
		len(ctx.Request.Header.PeekAll(trace.Header)) > 1 {
		return ""
	}
	return trace.Parse(sent)
}

// beginSpan begins the span of a request, or keeps its trace context to pass it on. Without a
// Tracer, only a request with a context of a trusted proxy costs anything. What is quiet in the log,
// such as a probe, begins no trace.
func (r *route) beginSpan(ctx *fasthttp.RequestCtx) {
	tracer, parent := r.server.config.Tracer, r.server.clients.traceparent(ctx)
	if parent == "" && (tracer == nil || r.quiet) {
		return
	}
	span := tracer.Start(parent, methodNames[methodName(ctx.Method())]+" "+r.pattern, trace.Server,
		ctx.Time())
	endpoint.SetSpan(ctx, &span)
}

// endSpan ends the span of a request. It says nothing that the caller has sent: a query, a path or
// an address may be personal or a secret.
func (r *route) endSpan(ctx *fasthttp.RequestCtx, span *trace.Span, method, status int,
	at time.Time) {
	failure := ""
	if status >= fasthttp.StatusInternalServerError {
		failure = strconv.Itoa(status)
		if f := endpoint.FailedOf(ctx); f != nil && f.Code != "" {
			failure = f.Code
		}
	}
	span.End(at, failure,
		attribute.String("http.request.method", methodNames[method]),
		attribute.String("http.route", r.pattern),
		attribute.Int("http.response.status_code", status),
		attribute.String("gatehouse.request_id", endpoint.RequestID(ctx)))
}
