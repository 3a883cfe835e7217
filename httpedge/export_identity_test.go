package httpedge

import "github.com/valyala/fasthttp"

// ServePublic answers ctx as the public server does.
func (s *Server) ServePublic(ctx *fasthttp.RequestCtx) { s.public.Handler(ctx) }
