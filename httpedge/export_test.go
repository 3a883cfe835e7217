package httpedge

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
)

// Handler is the public handler, to be called without a connection.
func (s *Server) Handler() fasthttp.RequestHandler { return s.public.Handler }

// HandleAt serves handle at pattern of the public server in the place of everything else.
func (s *Server) HandleAt(pattern string, handle fasthttp.RequestHandler) {
	s.public.Handler = s.handler([]endpoint{{pattern: pattern, methods: []string{"GET"}, handle: handle, cors: true}}, s.publicNotFound)
}

// WriteError answers with e for query.
func WriteError(ctx *fasthttp.RequestCtx, query string, e *geo.Error) { writeError(ctx, query, e) }

// AppendItem appends e for query as an item of a bulk answer.
func AppendItem(dst []byte, query string, e *geo.Error) []byte {
	return appendError(dst, query, e, true)
}
