package httpedge

import (
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
)

// tokenDeadline bounds a request to the token and revocation endpoints. Identity awaits a write that has
// begun for longer than that.
const tokenDeadline = 5 * time.Second

var (
	headerPragma   = []byte(fasthttp.HeaderPragma)
	pragmaNoCache  = []byte("no-cache")
	challengeBasic = []byte(`Basic realm="gatehouse", charset="UTF-8"`)
)

// Faults that the edge itself finds. They are shared and never changed.
var (
	errNoForm = &oauth.Error{Code: oauth.InvalidRequest, Description: "The body is not of the type that this endpoint reads.",
		Hint: "Send the parameters as Content-Type: application/x-www-form-urlencoded; JSON is not read here."}
	errBrokenForm = &oauth.Error{Code: oauth.InvalidRequest, Description: "The body cannot be read as a form.",
		Hint: "Percent-encode names and values, and send at most 64 parameters."}
	errTwoAuthorizations = &oauth.Error{Code: oauth.InvalidRequest, Description: "There is more than one Authorization header.",
		Hint: "Send one Authorization header, or the client's credentials in the body."}
)

// token answers POST /oauth/token (RFC 6749 section 3.2).
func (s *Server) token(ctx *fasthttp.RequestCtx) {
	params, authorization, fault := readForm(ctx)
	if fault != nil {
		writeOAuthError(ctx, fault)
		return
	}
	request, fault := oauth.ParseTokenRequest(params, authorization)
	if fault != nil {
		writeOAuthError(ctx, fault)
		return
	}
	request.Caller = s.clients.caller(ctx)
	deadline, cancel := context.WithTimeout(context.Background(), tokenDeadline)
	defer cancel()
	response, fault := s.config.Identity.Exchange(deadline, request, time.Now())
	if fault != nil {
		writeOAuthError(ctx, fault)
		return
	}
	ctx.Response.SwapBody(response.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}

// aboutCredentials begins answers that are about credentials (RFC 6749 section 5.1).
func aboutCredentials(h *fasthttp.ResponseHeader) {
	unstored(h)
	h.SetCanonical(headerPragma, pragmaNoCache)
}

// readForm returns the parameters of the body and the Authorization header, "" when there is none, as copies. Parameters
// in the URL are not read (RFC 6749 section 2.3.1).
func readForm(ctx *fasthttp.RequestCtx) (params []oauth.Parameter, authorization string, fault *oauth.Error) {
	if !isForm(ctx) {
		return nil, "", errNoForm
	}
	params, ok := parseParameters(ctx.PostBody())
	if !ok {
		return nil, "", errBrokenForm
	}
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderAuthorization)
	switch len(lines) {
	case 0:
		return params, "", nil
	case 1:
		return params, string(lines[0]), nil
	}
	return nil, "", errTwoAuthorizations
}

// writeOAuthError answers an error of the token, revocation or introspection endpoint.
func writeOAuthError(ctx *fasthttp.RequestCtx, e *oauth.Error) {
	h := &ctx.Response.Header
	ctx.SetStatusCode(e.Status())
	if e.Code == oauth.InvalidClient && e.BasicTried {
		h.SetCanonical(headerAuthenticate, challengeBasic)
	}
	if e.Code == oauth.TemporarilyUnavailable {
		h.SetCanonical(headerRetryAfterBytes, strconv.AppendInt(nil, wholeSeconds(e.RetryAfter), 10))
	}
	ctx.Response.SwapBody(e.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}

// wholeSeconds rounds up, to at least 1.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}
