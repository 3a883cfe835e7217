// Package oauthapi serves the endpoints that programs call with credentials or an access token:
// token, revocation, introspection, server metadata and user profiles.
package oauthapi

import (
	"context"
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
	pathMetadata   = "/.well-known/oauth-authorization-server"
	pathResource   = "/.well-known/oauth-protected-resource"
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
	Place func(netip.Addr) string
	// Features returns what clients are registered for.
	Features func() oauth.Features
}

// service holds what the handlers share.
type service struct {
	Config
	tokens *token.Service
	caller func(*fasthttp.RequestCtx) netip.Addr

	resource []byte // response of pathResource
}

// Endpoints returns the endpoints of the identity service.
func Endpoints(config Config) []endpoint.Endpoint {
	get, post := []string{fasthttp.MethodGet, fasthttp.MethodHead}, []string{fasthttp.MethodPost}
	s := &service{config, config.Tokens, config.Caller,
		oauth.OwnResourceMetadata(config.Issuer)}
	return []endpoint.Endpoint{
		{Pattern: pathToken, Methods: post, Handle: s.token, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth, ClientOrigins: true},
		{Pattern: pathRevoke, Methods: post, Handle: s.revoke, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth, ClientOrigins: true},
		{Pattern: pathIntrospect, Methods: post, Handle: s.introspect, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth},
		{Pattern: pathDevice, Methods: post, Handle: s.device, Head: endpoint.SetNoCache,
			Format: endpoint.OAuth},
		{Pattern: pathMetadata, Methods: get, Handle: s.showMetadata, AnyOrigin: true},
		{Pattern: pathResource, Methods: get, Handle: s.showResource, AnyOrigin: true},
		{Pattern: pathBasic, Methods: get, Handle: s.basicProfile, Head: endpoint.SetPrivateJSON,
			ClientOrigins: true},
		{Pattern: pathDetailed, Methods: get, Handle: s.detailedProfile,
			Head: endpoint.SetPrivateJSON, ClientOrigins: true},
	}
}

// source returns the context of a request by a client. Nothing is recorded unless the credentials
// are the client's.
func (s *service) source(ctx *fasthttp.RequestCtx, c oauth.Credentials) context.Context {
	return audit.WithSource(context.Background(), audit.Source{
		Actor:     audit.Actor{Kind: audit.Client, ID: c.ClientID},
		RequestID: endpoint.RequestID(ctx), Caller: c.Caller,
	})
}

// showMetadata serves GET /.well-known/oauth-authorization-server (RFC 8414).
func (s *service) showMetadata(ctx *fasthttp.RequestCtx) {
	endpoint.SetJSON(&ctx.Response.Header)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	ctx.Response.SetBodyRaw(oauth.MetadataWith(s.Issuer, s.Features().With(s.tokens.Features())))
}

// showResource serves GET /.well-known/oauth-protected-resource (RFC 9728), about the APIs of this
// service.
func (s *service) showResource(ctx *fasthttp.RequestCtx) {
	endpoint.SetJSON(&ctx.Response.Header)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	ctx.Response.SetBodyRaw(s.resource)
}
