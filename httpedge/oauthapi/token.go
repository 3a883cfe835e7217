// Package oauthapi has the endpoints that programs call with credentials or an access token: token, revocation,
// introspection, the server's metadata, and the profile of a token's user.
package oauthapi

import (
	"context"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

// Paths of the endpoints (interface document, section 4).
const (
	pathToken      = "/oauth/token"
	pathRevoke     = "/oauth/revoke"
	pathIntrospect = "/oauth/introspect"
	pathMetadata   = "/.well-known/oauth-authorization-server"
	pathBasic      = "/api/user"
	pathDetailed   = "/api/user/details"
)

// service is what the handlers share.
type service struct {
	tokens   *token.Service
	caller   func(*fasthttp.RequestCtx) netip.Addr
	metadata []byte // the answer of pathMetadata
}

// Endpoints returns the rows of the table of routes of the identity service at issuer. caller returns the address of who
// sends a request, or the zero Addr.
func Endpoints(tokens *token.Service, caller func(*fasthttp.RequestCtx) netip.Addr, issuer string) []endpoint.Endpoint {
	get, post := []string{fasthttp.MethodGet, fasthttp.MethodHead}, []string{fasthttp.MethodPost}
	s := &service{tokens, caller, oauth.Metadata(issuer)}
	return []endpoint.Endpoint{
		{Pattern: pathToken, Methods: post, Handle: s.token, Head: endpoint.SetNoCache, Format: endpoint.OAuth, ClientOrigins: true},
		{Pattern: pathRevoke, Methods: post, Handle: s.revoke, Head: endpoint.SetNoCache, Format: endpoint.OAuth, ClientOrigins: true},
		{Pattern: pathIntrospect, Methods: post, Handle: s.introspect, Head: endpoint.SetNoCache, Format: endpoint.OAuth},
		{Pattern: pathMetadata, Methods: get, Handle: s.showMetadata, AnyOrigin: true},
		{Pattern: pathBasic, Methods: get, Handle: s.basicProfile, Head: endpoint.SetPrivateJSON, ClientOrigins: true},
		{Pattern: pathDetailed, Methods: get, Handle: s.detailedProfile, Head: endpoint.SetPrivateJSON, ClientOrigins: true},
	}
}

// tokenDeadline bounds a request to the token and revocation endpoints. Identity awaits a write that has
// begun for longer than that.
const tokenDeadline = 5 * time.Second

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
func (s *service) token(ctx *fasthttp.RequestCtx) {
	params, authorization, fault := readForm(ctx)
	if fault != nil {
		endpoint.WriteError(ctx, endpoint.OAuth, fault)
		return
	}
	request, fault := oauth.ParseTokenRequest(params, authorization)
	if fault != nil {
		endpoint.WriteError(ctx, endpoint.OAuth, fault)
		return
	}
	request.Caller = s.caller(ctx)
	deadline, cancel := context.WithTimeout(context.Background(), tokenDeadline)
	defer cancel()
	response, fault := s.tokens.Token(deadline, request, time.Now())
	if fault != nil {
		endpoint.WriteError(ctx, endpoint.OAuth, fault)
		return
	}
	ctx.Response.SwapBody(response.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}

// readForm returns the parameters of the body and the Authorization header, "" when there is none, as copies. Parameters
// in the URL are not read (RFC 6749 section 2.3.1).
func readForm(ctx *fasthttp.RequestCtx) (params []oauth.Parameter, authorization string, fault *oauth.Error) {
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
