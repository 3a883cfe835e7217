package oauthapi

import (
	"gatehouse/httpedge/endpoint"
	"github.com/valyala/fasthttp"
)

// showMetadata answers GET /.well-known/oauth-authorization-server (RFC 8414).
func (s *service) showMetadata(ctx *fasthttp.RequestCtx) {
	endpoint.SetJSON(&ctx.Response.Header)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	ctx.Response.SetBodyRaw(s.metadata)
}
