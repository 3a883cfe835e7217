// Package oauthapi serves the endpoints that programs call with credentials or an access token:
// token, revocation, introspection, registration, metadata, keys, userinfo and user profiles.
package oauthapi

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

// Paths of the endpoints (interface document, section 4).
const (
	pathToken      = "/oauth/token"
	pathRevoke     = "/oauth/revoke"
	pathIntrospect = "/oauth/introspect"
	pathDevice     = "/oauth/device_authorization"
	pathRegister   = "/oauth/register"
	pathMetadata   = "/.well-known/oauth-authorization-server"
	pathOpenID     = "/.well-known/openid-configuration"
	pathJWKS       = "/oauth/jwks"
	pathUserInfo   = "/oauth/userinfo"
	pathResource   = "/.well-known/oauth-protected-resource" // RFC 9728
	pathBasic      = "/api/user"
	pathDetailed   = "/api/user/details"
)

// Config configures the endpoints. Fields are required unless they say otherwise.
type Config struct {
	Tokens *token.Service
	Caller func(*fasthttp.RequestCtx) netip.Addr // address of the client, or zero
	Issuer string                                // base URL of the service, without a trailing slash
	// DefaultScopes are those of a device authorization request without scope; 0 = it fails with
	// invalid_scope.
	DefaultScopes oauth.Scopes
	// Place returns the rough place of an address, "" if it is not known. Optional.
	Place        func(netip.Addr) string
	Registration bool // clients may register themselves (RFC 7591); optional
	Failed       ClientFailed
}

// ClientFailed is told that a request at an endpoint failed, of the client with that id, if there is
// one, or of somebody who uses its id; "" = the request names none.
type ClientFailed func(ctx *fasthttp.RequestCtx, endpoint, clientID string, fault *oauth.Error)

// refuse responds with an error of an OAuth endpoint.
func (s *service) refuse(ctx *fasthttp.RequestCtx, name, clientID string, fault *oauth.Error) {
	s.Failed(ctx, name, clientID, fault)
	endpoint.WriteError(ctx, endpoint.OAuth, fault)
}

// refuseToken responds with an error about an access token.
func refuseToken(ctx *fasthttp.RequestCtx, err error) {
	endpoint.SetFailed(ctx, &endpoint.Failed{Code: endpoint.ProblemOf(err).Code})
	endpoint.WriteError(ctx, endpoint.JSON, err)
}

// service holds what the handlers share.
type service struct {
	Config
	metadata, resource []byte // responses of pathMetadata and pathOpenID, and of pathResource
}

// Endpoints returns the endpoints of the identity service.
func Endpoints(config Config) []endpoint.Endpoint {
	get, post := []string{fasthttp.MethodGet, fasthttp.MethodHead}, []string{fasthttp.MethodPost}
	s := &service{config, config.Tokens.Metadata(), oauth.OwnResourceMetadata(config.Issuer)}
	all := []endpoint.Endpoint{
		{Pattern: pathToken, Methods: post, Handle: s.token, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth, NamedOrigin: true},
		{Pattern: pathRevoke, Methods: post, Handle: s.revoke, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth, NamedOrigin: true},
		{Pattern: pathIntrospect, Methods: post, Handle: s.introspect, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth},
		{Pattern: pathDevice, Methods: post, Handle: s.device, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth},
		{Pattern: pathMetadata, Methods: get, Handle: s.showMetadata, AnyOrigin: true},
		{Pattern: pathOpenID, Methods: get, Handle: s.showMetadata, AnyOrigin: true},
		{Pattern: pathJWKS, Methods: get, Handle: s.showKeys, AnyOrigin: true},
		{Pattern: pathUserInfo, Methods: append(get, fasthttp.MethodPost), Handle: s.userInfo,
			Head: endpoint.SetPrivateJSON, AnyOrigin: true},
		{Pattern: pathResource, Methods: get, Handle: s.showResource, AnyOrigin: true},
		{Pattern: pathBasic, Methods: get, Handle: s.basicProfile, Head: endpoint.SetPrivateJSON,
			ClientOrigins: true},
		{Pattern: pathDetailed, Methods: get, Handle: s.detailedProfile,
			Head: endpoint.SetPrivateJSON, ClientOrigins: true},
	}
	if config.Registration {
		all = append(all, endpoint.Endpoint{Pattern: pathRegister, Methods: post, Handle: s.register,
			Head: endpoint.SetNoCache, Format: endpoint.OAuth, AnyOrigin: true})
	}
	return all
}

// source returns the context of a request by a client. Nothing is recorded unless the credentials
// are the client's.
func (s *service) source(ctx *fasthttp.RequestCtx, c oauth.Credentials) context.Context {
	return audit.WithSource(context.Background(), audit.Source{
		Actor:     audit.Actor{Kind: audit.Client, ID: c.ClientID},
		RequestID: endpoint.RequestID(ctx), Trace: endpoint.Trace(ctx), Caller: c.Caller,
	})
}

// showMetadata serves GET /.well-known/oauth-authorization-server (RFC 8414) and
// GET /.well-known/openid-configuration (OpenID Connect Discovery section 4).
func (s *service) showMetadata(ctx *fasthttp.RequestCtx) { showPublic(ctx, s.metadata) }

// showKeys serves GET /oauth/jwks.
func (s *service) showKeys(ctx *fasthttp.RequestCtx) {
	showPublic(ctx, s.Tokens.JWKS())
}

var publicCache = fmt.Sprintf("public, max-age=%d", int(token.JWKSMaxAge.Seconds()))

// showPublic responds with a document that anybody may keep for as long as token.JWKSMaxAge.
func showPublic(ctx *fasthttp.RequestCtx, document []byte) {
	endpoint.SetJSON(&ctx.Response.Header)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, publicCache)
	ctx.Response.SetBodyRaw(document)
}

// showResource serves GET /.well-known/oauth-protected-resource (RFC 9728), about the APIs of this
// service.
func (s *service) showResource(ctx *fasthttp.RequestCtx) { showPublic(ctx, s.resource) }
