package oauthapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
)

// revoke serves POST /oauth/revoke (RFC 7009). The response is the same for a revoked token, an
// unknown one, and one of another client.
func (s *service) revoke(ctx *fasthttp.RequestCtx) {
	credentials, token, fault := s.readCredentials(ctx)
	if fault != nil {
		s.refuse(ctx, "revoke", credentials.ClientID, fault)
		return
	}
	fault = s.Tokens.Revoke(s.source(ctx, credentials), credentials, token, time.Now())
	if fault != nil {
		s.refuse(ctx, "revoke", credentials.ClientID, fault)
		return
	}
	ctx.SetBodyString("{}")
}

// readCredentials returns the credentials of the client and the token that the request is about.
func (s *service) readCredentials(
	ctx *fasthttp.RequestCtx) (oauth.Credentials, string, *oauth.Error) {
	params, authorization, fault := readForm(ctx)
	if fault != nil {
		return oauth.Credentials{}, "", fault
	}
	credentials, token, fault := oauth.ParseCredentials(params, authorization)
	credentials.Caller = s.Caller(ctx)
	return credentials, token, fault
}
