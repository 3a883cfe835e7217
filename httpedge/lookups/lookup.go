// Package lookups serves the geolocation endpoints: one lookup, bulk requests, streams, and the
// caller's own address. Callers may have API keys.
package lookups

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/httpedge/endpoint"
)

// Paths of the geolocation service (interface document, section 4).
const (
	pathMyIP   = "/api/my-ip"
	pathLookup = "/api/lookup"
	pathBulk   = "/api/bulk"
	PathStream = "/api/stream" // its body may be larger than those of other paths
	pathShare  = "/api/mmdb/{file}"
)

// service holds what the handlers share.
type service struct {
	lookups *lookup.Service
	address func(*fasthttp.RequestCtx) netip.Addr
	keys    *Keys  // nil = there are none
	files   *Share // nil = none are offered
}

// Endpoints returns the endpoints. address returns the address of the client, or the zero Addr.
// keys is optional: nil = the header X-Api-Key is ignored. So is files: nil = no files are offered.
func Endpoints(
	lookups *lookup.Service, address func(*fasthttp.RequestCtx) netip.Addr, keys *Keys, files *Share,
) []endpoint.Endpoint {
	get, post := []string{fasthttp.MethodGet, fasthttp.MethodHead}, []string{fasthttp.MethodPost}
	s := &service{lookups, address, keys, files}
	if files != nil {
		files.prepare()
	}
	all := []endpoint.Endpoint{
		{Pattern: pathMyIP, Methods: get, Handle: s.keyed(s.myIP)},
		{Pattern: pathLookup, Methods: get, Handle: s.keyed(s.lookup)},
		{Pattern: pathBulk, Methods: post, Handle: s.keyed(s.bulk)},
		{Pattern: PathStream, Methods: post, Handle: s.keyed(s.stream)},
	}
	for i := range all {
		all[i].Format, all[i].AnyOrigin = endpoint.Lookup, true
	}
	return append(all, endpoint.Endpoint{Pattern: pathShare, Methods: get, Handle: s.share,
		Format: endpoint.Lookup})
}

// keyed returns a handler that refuses requests without a valid key, and serves others with handle.
// That gets the address that stands for the key's caller, or the zero Addr without a key.
func (s *service) keyed(handle func(*fasthttp.RequestCtx, netip.Addr)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		var keyed netip.Addr
		if s.keys != nil {
			var fault error
			if keyed, fault = s.keys.caller(&ctx.Request.Header); fault != nil {
				endpoint.WriteLookup(ctx, "", fault)
				return
			}
		}
		handle(ctx, keyed)
	}
}

// origin returns where the lookups of a request come from. The caller is told apart by the address
// of its key, or by its own.
func (s *service) origin(ctx *fasthttp.RequestCtx, keyed netip.Addr) lookup.Origin {
	if !keyed.IsValid() {
		keyed = s.address(ctx)
	}
	return lookup.Origin{Caller: keyed, Trace: endpoint.Trace(ctx)}
}

// Errors of the parameter q. They are shared and never changed.
var (
	errQueryMissing  = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonEmpty}
	errQueryRepeated = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonMalformed}
)

// Headers of lookup responses.
var (
	headerCacheControl = []byte(fasthttp.HeaderCacheControl)
	headerAge          = []byte(fasthttp.HeaderAge)
	headerCache        = []byte("X-Cache")
	cacheHit           = []byte("hit")
	cacheMiss          = []byte("miss")
	headerSource       = []byte("X-Geo-Source")
)

// lookup serves GET /api/lookup?q=. A cache hit costs no allocation.
func (s *service) lookup(ctx *fasthttp.RequestCtx, keyed netip.Addr) {
	text, chosen, fault := readQuery(ctx)
	if fault != nil {
		endpoint.WriteLookup(ctx, text, fault)
		return
	}
	now := ctx.Time()
	outcome := s.lookups.Lookup(text, func() lookup.Origin { return s.origin(ctx, keyed) }, now)
	if outcome.HasAnswer() {
		setCacheHeaders(ctx, &outcome, now)
	}
	if outcome.Err != nil {
		endpoint.WriteLookup(ctx, text, outcome.Err)
		return
	}
	endpoint.SetJSON(&ctx.Response.Header)
	writeResult(ctx, text, chosen, &outcome)
}

// readQuery returns the value of q, which shares memory with the request, and the selection. Parsing
// the arguments costs more than a cache hit, so it is skipped when q is the only one and nothing is
// encoded.
func readQuery(ctx *fasthttp.RequestCtx) (text string, chosen selection, fault error) {
	text, ok := strings.CutPrefix(endpoint.View(ctx.URI().QueryString()), "q=")
	if ok && !has(text, '%') && !has(text, '+') && !has(text, '&') {
		return text, selection{}, nil
	}
	args := ctx.QueryArgs()
	if text, fault = queryArgument(args); fault != nil {
		return "", selection{}, fault
	}
	if chosen, fault = selectionOf(args); fault != nil {
		return "", selection{}, fault
	}
	return text, chosen, nil
}

func has(text string, c byte) bool { return strings.IndexByte(text, c) >= 0 }

// queryArgument returns the value of q. It shares memory with the request.
func queryArgument(args *fasthttp.Args) (string, error) {
	text, times := "", 0
	for name, value := range args.All() {
		if string(name) == "q" {
			text = endpoint.View(value)
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

// setCacheHeaders sets how long the client may cache the response and where the result comes from.
func setCacheHeaders(ctx *fasthttp.RequestCtx, o *geo.Outcome, now time.Time) {
	h := &ctx.Response.Header
	var buf [48]byte
	value := append(buf[:0], "private, max-age="...)
	h.SetCanonical(headerCacheControl, strconv.AppendInt(value, int64(o.TTL()/time.Second), 10))
	h.SetCanonical(headerAge, strconv.AppendInt(buf[:0], int64(o.Age(now)), 10))
	verdict := cacheMiss
	if o.Cached {
		verdict = cacheHit
	}
	h.SetCanonical(headerCache, verdict)
	setSource(h, o.Source())
}

func setSource(h *fasthttp.ResponseHeader, source geo.Source) {
	var buf [16]byte
	h.SetCanonical(headerSource, append(buf[:0], source...))
}

// writeResult responds with a result for the query as written in text. A body that was rendered
// before is not copied.
func writeResult(ctx *fasthttp.RequestCtx, text string, chosen selection, o *geo.Outcome) {
	if body := o.Ready(text); body != nil && chosen == (selection{}) {
		ctx.Response.SetBodyRaw(body)
		return
	}
	ctx.Response.SwapBody(chosen.append(ctx.Response.SwapBody(nil)[:0], text, o))
}
