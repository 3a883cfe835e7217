package httpedge

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/endpoint"
)

// wantsPage reports whether the client gets a page about an error that the server finds before any
// handler.
func wantsPage(ctx *fasthttp.RequestCtx, format endpoint.Format) bool {
	return format == endpoint.Page || format == endpoint.Either && prefersPage(ctx)
}

// prefersPage reports whether the client prefers HTML to JSON (RFC 9110 section 12.5.1), as
// browsers do.
func prefersPage(ctx *fasthttp.RequestCtx) bool {
	accept := string(bytes.Join(ctx.Request.Header.PeekAll(fasthttp.HeaderAccept), []byte(",")))
	return weight(accept, "text", "html") > weight(accept, "application", "json")
}

// weight returns the quality of a media type in an Accept header, from 0 to 1. The most specific
// range counts.
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

// quality returns the parameter q of a media range: 1 when there is none, 0 when it is malformed.
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
