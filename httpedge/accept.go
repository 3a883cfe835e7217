package httpedge

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/endpoint"
)

// isForPeople reports whether an error that comes before any handler is told on a page.
func isForPeople(ctx *fasthttp.RequestCtx, format endpoint.Format) bool {
	return format == endpoint.Page || format == endpoint.Either && prefersPage(ctx)
}

// prefersPage reports whether the request would rather have HTML than JSON (RFC 9110 section 12.5.1), as those of browsers do.
func prefersPage(ctx *fasthttp.RequestCtx) bool {
	accept := string(bytes.Join(ctx.Request.Header.PeekAll(fasthttp.HeaderAccept), []byte(",")))
	return weight(accept, "text", "html") > weight(accept, "application", "json")
}

// weight returns how much a media type is wanted, from 0 to 1, by the narrowest range that it falls under.
func weight(accept, kind, subtype string) float64 {
	narrowest, found := 0, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		width := 0
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case kind + "/" + subtype:
			width = 3
		case kind + "/*":
			width = 2
		case "*/*":
			width = 1
		}
		if width > narrowest {
			narrowest, found = width, quality(params)
		}
	}
	return found
}

// quality returns the weight among the parameters of a media range: 1 when there is none, 0 when it is malformed.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, text, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(text, 64); err == nil && q >= 0 && q <= 1 {
			return q
		}
		return 0
	}
	return 1
}
