package oauthapi

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// Errors of the request itself. They are shared and never changed.
var (
	errNoForm = &oauth.Error{Code: oauth.InvalidRequest,
		Description: "The body has the wrong content type.",
		Hint:        "Send the parameters as Content-Type: application/x-www-form-urlencoded, not as JSON."}
	errBrokenForm = &oauth.Error{Code: oauth.InvalidRequest,
		Description: "The body is not a valid form.",
		Hint:        "Percent-encode names and values, and send at most 64 parameters."}
	errTwoAuthorizations = &oauth.Error{Code: oauth.InvalidRequest,
		Description: "There is more than one Authorization header.",
		Hint:        "Send one Authorization header, or the client's credentials in the body."}
)

// token serves POST /oauth/token (RFC 6749 section 3.2).
func (s *service) token(ctx *fasthttp.RequestCtx) {
	params, authorization, fault := readForm(ctx)
	if fault != nil {
		s.refuse(ctx, "token", "", fault)
		return
	}
	request, fault := oauth.ParseTokenRequest(params, authorization)
	if fault != nil {
		s.refuse(ctx, "token", endpoint.Value(params, "client_id"), fault)
		return
	}
	request.Caller = s.Caller(ctx)
	source := context.Background()
	if request.Grant != oauth.ClientCredentialsGrant { // which records nothing
		source = s.source(ctx, request.Credentials)
	}
	response, fault := s.Tokens.Token(source, request, time.Now())
	if fault != nil {
		s.refuse(ctx, "token", request.ClientID, fault)
		return
	}
	ctx.Response.SwapBody(response.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}

// readForm returns copies of the body's parameters and of the Authorization header, "" when it is
// missing. It ignores parameters in the URL (RFC 6749 section 2.3.1).
func readForm(ctx *fasthttp.RequestCtx) (params []oauth.Parameter, authorization string,
	fault *oauth.Error) {
	if !endpoint.IsForm(ctx) {
		return nil, "", errNoForm
	}
	params, ok := endpoint.ParseParameters(ctx.PostBody())
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
