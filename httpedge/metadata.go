package httpedge

import "github.com/valyala/fasthttp"

// showMetadata answers GET /.well-known/oauth-authorization-server (RFC 8414).
func (s *Server) showMetadata(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	ctx.Response.SetBodyRaw(s.metadata)
}
