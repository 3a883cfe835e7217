package httpedge

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
)

// Headers of a look-up's answer.
var (
	headerAge    = []byte(fasthttp.HeaderAge)
	headerCache  = []byte("X-Cache")
	cacheHit     = []byte("hit")
	cacheMiss    = []byte("miss")
	headerSource = []byte("X-Geo-Source")
)

// lookup answers GET /api/lookup?q=. A query in the cache costs no allocation.
func (s *Server) lookup(ctx *fasthttp.RequestCtx) {
	text, fault := queryText(ctx)
	if fault != nil {
		writeError(ctx, text, fault)
		return
	}
	now := ctx.Time()
	outcome := s.config.System.Lookup(text, func() netip.Addr { return s.clients.caller(ctx) }, now)
	if outcome.Entry != nil {
		setCacheHeaders(ctx, outcome, now)
	}
	if outcome.Err != nil {
		writeError(ctx, text, outcome.Err)
		return
	}
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	writeResult(ctx, text, outcome.Entry)
}

// queryText returns the value of q, which shares memory with the request. Parsing the arguments
// costs more than a hit, so it leaves that out where q is all there is and nothing is encoded.
func queryText(ctx *fasthttp.RequestCtx) (string, *geo.Error) {
	text, ok := strings.CutPrefix(view(ctx.URI().QueryString()), "q=")
	if ok && !has(text, '%') && !has(text, '+') && !has(text, '&') {
		return text, nil
	}
	return queryArgument(ctx.QueryArgs())
}

func has(text string, c byte) bool { return strings.IndexByte(text, c) >= 0 }

// queryArgument returns the value of q, which shares memory with the request.
func queryArgument(args *fasthttp.Args) (string, *geo.Error) {
	text, times := "", 0
	for name, value := range args.All() {
		if string(name) == "q" {
			text = view(value)
			times++
		}
	}
	switch times {
	case 0:
		return "", errQueryMissing
	case 1:
		return text, nil
	}
	return "", errQueryRepeated
}

// setCacheHeaders tells the caller how long the answer may be kept and where it comes from.
func setCacheHeaders(ctx *fasthttp.RequestCtx, o geo.Outcome, now time.Time) {
	h, e := &ctx.Response.Header, o.Entry
	var buf [48]byte
	value := append(buf[:0], "private, max-age="...)
	h.SetCanonical(headerCacheControl, strconv.AppendInt(value, int64(e.TTL()/time.Second), 10))
	h.SetCanonical(headerAge, strconv.AppendInt(buf[:0], int64(e.Age(now)), 10))
	verdict := cacheMiss
	if o.Cached {
		verdict = cacheHit
	}
	h.SetCanonical(headerCache, verdict)
	setSource(h, e.Source())
}

func setSource(h *fasthttp.ResponseHeader, source geo.Source) {
	var buf [16]byte
	h.SetCanonical(headerSource, append(buf[:0], source...))
}

// writeResult answers with a result for the query as it was written in text. The body is not copied when it lies ready.
func writeResult(ctx *fasthttp.RequestCtx, text string, e *geo.Entry) {
	if e.IsFor(text) {
		ctx.Response.SetBodyRaw(e.Body)
		return
	}
	ctx.Response.SwapBody(e.AppendFor(ctx.Response.SwapBody(nil)[:0], text))
}
