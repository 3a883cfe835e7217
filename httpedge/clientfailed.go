package httpedge

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// clientFailed counts and records that a request failed. The access log names the client if there
// is one with that id: the id of none may be anything.
func (s *Server) clientFailed(ctx *fasthttp.RequestCtx, name, id string, code oauth.Code) {
	if !s.config.Tokens.ClientFailed(name, id, code, audit.Source{
		Actor:     audit.Actor{Kind: audit.Client},
		RequestID: endpoint.RequestID(ctx), Caller: s.clients.caller(ctx),
	}) {
		id = ""
	}
	endpoint.SetFailed(ctx, &endpoint.Failed{Code: string(code), ClientID: id})
}
