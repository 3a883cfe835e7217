package sim

import (
	"encoding/json"

	"github.com/valyala/fasthttp"
)

// report is the answer of the admin path.
type report struct {
	Settings Settings `json:"settings"`
	Stats    Stats    `json:"stats"`
}

// complaint is its answer to what it does not do.
type complaint struct {
	Error string `json:"error"`
}

// serveAdmin shows and changes settings and statistics. Whatever it did, it answers with the state that came of it.
func (s *Server) serveAdmin(ctx *fasthttp.RequestCtx, path string) {
	switch string(ctx.Method()) + " " + path {
	case "GET /_sim":
	case "PUT /_sim":
		if err := s.patch(ctx.PostBody()); err != nil {
			sendJSON(ctx, fasthttp.StatusBadRequest, complaint{err.Error()})
			return
		}
	case "DELETE /_sim/stats":
		s.ResetStats()
	case "POST /_sim/reset":
		s.Reset()
	default:
		refuseAdmin(ctx, path)
		return
	}
	sendJSON(ctx, fasthttp.StatusOK, report{s.Settings(), s.Stats()})
}

var adminMethods = map[string]string{"/_sim": "GET, PUT", "/_sim/stats": "DELETE", "/_sim/reset": "POST"}

func refuseAdmin(ctx *fasthttp.RequestCtx, path string) {
	allow, ok := adminMethods[path]
	if !ok {
		sendJSON(ctx, fasthttp.StatusNotFound, complaint{"no such path"})
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderAllow, allow)
	sendJSON(ctx, fasthttp.StatusMethodNotAllowed, complaint{"method not allowed, want " + allow})
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

// patch changes the settings that body names and leaves the others as they are.
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
