package oauthapi

import (
	"bytes"
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// errNoMetadata is about a registration request that is not JSON. It is shared and never changed.
var errNoMetadata = &oauth.Error{Code: oauth.InvalidClientMetadata,
	Description: "The body has the wrong content type.",
	Hint:        "Send the client's metadata as Content-Type: application/json."}

// register serves POST /oauth/register (RFC 7591 section 3.1).
func (s *service) register(ctx *fasthttp.RequestCtx) {
	if !endpoint.IsJSON(ctx.Request.Header.ContentType()) {
		s.refuse(ctx, "register", "", errNoMetadata)
		return
	}
	token, err := endpoint.BearerToken(&ctx.Request.Header)
	if err != nil {
		token = "" // it is not needed, or it is refused as one that is missing
	}
	caller := s.Caller(ctx)
	source := audit.WithSource(context.Background(), audit.Source{
		Actor:     audit.Actor{Kind: audit.Client},
		RequestID: endpoint.RequestID(ctx), Trace: endpoint.Trace(ctx), Caller: caller,
	})
	response, fault := s.Tokens.Register(source, bytes.Clone(ctx.PostBody()), token, caller,
		time.Now())
	if fault != nil {
		s.refuse(ctx, "register", "", fault)
		return
	}
	ctx.SetStatusCode(fasthttp.StatusCreated)
	ctx.Response.SetBodyRaw(response)
}
