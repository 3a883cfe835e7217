package endpoint

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
)

// Format is how a problem is rendered.
type Format int

// The formats.
const (
	JSON   Format = iota // an object with error and message
	Lookup               // JSON with ok as well; WriteLookup renders errors about a query
	OAuth                // JSON with error_description and hint as well (RFC 6749 section 5.2)
	Page                 // a page; package visit renders it
	Either               // a page for a client that prefers HTML to JSON, else JSON
)

var (
	headerAuthenticate = []byte(fasthttp.HeaderWWWAuthenticate)
	headerRetryAfter   = []byte(fasthttp.HeaderRetryAfter)
	headerPragma       = []byte(fasthttp.HeaderPragma)
	pragmaNoCache      = []byte("no-cache")
)

// WriteError responds with the problem of err as JSON of that format.
func WriteError(ctx *fasthttp.RequestCtx, format Format, err error) {
	p := ProblemOf(err)
	begin(ctx, &p)
	body := ctx.Response.SwapBody(nil)[:0]
	if format == OAuth {
		SetNoCache(&ctx.Response.Header)
		body = p.appendOAuth(body)
	} else {
		body = p.appendJSON(body, format == Lookup)
	}
	ctx.Response.SwapBody(body)
}

// WriteLookup responds with the problem of err, an error about a query of the geolocation service.
// Cache-Control is the caller's when it was set before.
func WriteLookup(ctx *fasthttp.RequestCtx, query string, err error) {
	p := ProblemOf(err)
	begin(ctx, &p)
	ctx.Response.SwapBody(p.appendLookup(ctx.Response.SwapBody(nil)[:0], query, false))
}

// AppendItem appends the problem of err as one result of a bulk response or a stream. It has no
// headers, so retry_after is a member.
func AppendItem(dst []byte, query string, err error) []byte {
	p := ProblemOf(err)
	return p.appendLookup(dst, query, true)
}

// SetRetryAfter sets Retry-After, in whole seconds, when p has it.
func SetRetryAfter(h *fasthttp.ResponseHeader, p *Problem) {
	if p.RetryAfter > 0 {
		var buf [20]byte
		h.SetCanonical(headerRetryAfter, strconv.AppendInt(buf[:0], WholeSeconds(p.RetryAfter), 10))
	}
}

// begin sets the status and the headers.
func begin(ctx *fasthttp.RequestCtx, p *Problem) {
	h := &ctx.Response.Header
	ctx.SetStatusCode(p.Status)
	SetJSON(h)
	if len(h.PeekBytes(headerCacheControl)) == 0 {
		SetNoStore(h)
	}
	if p.Challenge != "" {
		h.SetCanonical(headerAuthenticate, []byte(p.Challenge))
	}
	SetRetryAfter(h, p)
}

// appendJSON appends the members that p has. With 429, retry_after is one of them.
func (p *Problem) appendJSON(dst []byte, isLookup bool) []byte {
	dst = append(dst, '{')
	if isLookup {
		dst = append(dst, `"ok":false,`...)
	}
	if p.Code != "" {
		dst = append(appendMember(dst, "error", p.Code), ',')
	}
	if p.Description != "" {
		dst = append(appendMember(dst, "error_description", p.Description), ',')
	}
	dst = appendMember(dst, "message", p.Message)
	if p.Status == fasthttp.StatusTooManyRequests {
		dst = strconv.AppendInt(append(dst, `,"retry_after":`...), WholeSeconds(p.RetryAfter), 10)
	}
	if len(p.Fields) > 0 {
		dst = append(dst, `,"fields":{`...)
		for i, f := range p.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendMember(dst, f.Field, f.Message)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendOAuth appends the four members that errors of the token, revocation and introspection
// endpoints always have.
func (p *Problem) appendOAuth(dst []byte) []byte {
	e := oauth.Error{Code: oauth.Code(p.Code), Description: p.Message, Hint: p.Hint}
	if e.Hint == "" {
		e.Hint = "See the description of this endpoint."
	}
	return e.AppendJSON(dst)
}

func (p *Problem) appendLookup(dst []byte, query string, inList bool) []byte {
	dst = append(dst, `{"ok":false,"query":`...)
	dst = geo.AppendQuoted(dst, query)
	dst = append(appendMember(append(dst, ','), "error", p.Code), ',')
	dst = append(appendMember(dst, "message", p.Message), ',')
	dst = appendMember(dst, "reason", string(p.Reason))
	if inList && !p.Final && (p.RetryAfter > 0 || p.Code == string(geo.CodeProviderUnreachable)) {
		wait := max(time.Second, p.RetryAfter) // nobody knows how long the upstream is down
		dst = strconv.AppendInt(append(dst, `,"retry_after":`...), WholeSeconds(wait), 10)
	}
	return append(dst, '}')
}

func appendMember(dst []byte, name, value string) []byte {
	dst = append(geo.AppendQuoted(dst, name), ':')
	return geo.AppendQuoted(dst, value)
}

// WholeSeconds rounds up, to at least 1.
func WholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}
