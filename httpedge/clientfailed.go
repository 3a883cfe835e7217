package httpedge

import (
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// uuidLength is the length of a client_id that this service has given: uuid.Parse takes other forms.
const uuidLength = 36

// clientFailed counts and records that a request failed, and has the access log say why. The log names
// the client if there is one with that id. An unknown id may be anything, also a secret, so the log
// has it only in the form of those that were given.
func (s *Server) clientFailed(ctx *fasthttp.RequestCtx, name, id string, fault *oauth.Error) {
	said := &endpoint.Failed{Code: string(fault.Code), Reason: fault.Description}
	if s.config.Tokens.ClientFailed(name, id, fault.Code, audit.Source{
		Actor:     audit.Actor{Kind: audit.Client},
		RequestID: endpoint.RequestID(ctx), Caller: s.clients.caller(ctx),
	}) {
		said.ClientID = id
	} else if _, err := uuid.Parse(id); err == nil && len(id) == uuidLength {
		said.UnknownID = strings.ToLower(id)
	}
	endpoint.SetFailed(ctx, said)
}
