package httpedge

import (
	"slices"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/endpoint"
)

// Handler is the public handler, to be called without a connection.
func (s *Server) Handler() fasthttp.RequestHandler { return s.public.Handler }

// Forms returns the paths of all pages that take forms.
func (s *Server) Forms() (paths []string) {
	for _, e := range s.publicEndpoints() {
		if e.Format == endpoint.Page && slices.Contains(e.Methods, fasthttp.MethodPost) {
			paths = append(paths, e.Pattern)
		}
	}
	return paths
}

// HandleAt serves handle at pattern of the public server in the place of everything else.
func (s *Server) HandleAt(pattern string, handle fasthttp.RequestHandler) {
	s.public.Handler = s.handler(
		[]endpoint.Endpoint{{Pattern: pattern, Methods: []string{"GET"}, Handle: handle,
			AnyOrigin: true, Format: endpoint.Lookup}}, s.publicNotFound, true)
}

// TakeStreamRoom takes all but left bytes of the room for streams, or returns false.
func (s *Server) TakeStreamRoom(left int) bool { return s.streams.Take(s.streams.Total - left) }

// StreamRoom is how many bytes streams hold.
func (s *Server) StreamRoom() int {
	held, _ := s.streams.Used()
	return held
}
