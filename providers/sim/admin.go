package sim

import (
	"encoding/json"

	"github.com/valyala/fasthttp"
)

// adminState is a successful response of the admin path.
type adminState struct {
	Settings Settings `json:"settings"`
	Stats    Stats    `json:"stats"`
}

// adminError is an error response of the admin path.
type adminError struct {
	Error string `json:"error"`
}

// serveAdmin shows and changes settings and statistics. It responds with the resulting state.
func (s *Server) serveAdmin(ctx *fasthttp.RequestCtx, path string) {
	switch string(ctx.Method()) + " " + path {
	case "GET /_sim":
	case "PUT /_sim":
		if err := s.patch(ctx.PostBody()); err != nil {
			sendJSON(ctx, fasthttp.StatusBadRequest, adminError{err.Error()})
			return
		}
	case "DELETE /_sim/stats":
		s.ResetStats()
	case "POST /_sim/reset":
		s.Reset()
	default:
		rejectAdmin(ctx, path)
		return
	}
	sendJSON(ctx, fasthttp.StatusOK, adminState{s.Settings(), s.Stats()})
}

var adminMethods = map[string]string{"/_sim": "GET, PUT", "/_sim/stats": "DELETE",
	"/_sim/reset": "POST"}

func rejectAdmin(ctx *fasthttp.RequestCtx, path string) {
	allow, ok := adminMethods[path]
	if !ok {
		sendJSON(ctx, fasthttp.StatusNotFound, adminError{"no such path"})
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderAllow, allow)
	sendJSON(ctx, fasthttp.StatusMethodNotAllowed, adminError{"method not allowed, want " + allow})
}

func sendJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		ctx.Error("internal error", fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json; charset=utf-8")
	ctx.SetBody(append(body, '\n'))
}

// patch changes the settings that body names.
func (s *Server) patch(body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.state.settings
	if err := json.Unmarshal(body, &changed); err != nil {
		return err
	}
	s.change(changed.complete())
	return nil
}
