package oauthapi

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// device serves POST /oauth/device_authorization (RFC 8628 section 3.1).
func (s *service) device(ctx *fasthttp.RequestCtx) {
	params, authorization, fault := readForm(ctx)
	if fault != nil {
		s.refuse(ctx, "device_authorization", "", fault)
		return
	}
	request, fault := oauth.ParseDeviceRequest(params, authorization)
	if fault != nil {
		s.refuse(ctx, "device_authorization", endpoint.Value(params, "client_id"), fault)
		return
	}
	request.Caller = s.Caller(ctx)
	if s.Place != nil && request.Caller.IsValid() {
		request.Place = s.Place(request.Caller)
	}
	// The caller asks for the write, not the client: anyone may use the id of a public client.
	source := audit.WithSource(context.Background(), audit.Source{
		Actor:     audit.Actor{Kind: audit.Client},
		RequestID: endpoint.RequestID(ctx), Trace: endpoint.Trace(ctx), Caller: request.Caller,
	})
	response, fault := s.Tokens.BeginDevice(source, request, s.DefaultScopes, time.Now())
	if fault != nil {
		s.refuse(ctx, "device_authorization", request.ClientID, fault)
		return
	}
	response.VerificationURI = s.Issuer + pages.PathDevice
	ctx.Response.SwapBody(response.AppendJSON(ctx.Response.SwapBody(nil)[:0]))
}
