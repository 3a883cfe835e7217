package oauthapi

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

// userInfo serves GET and POST /oauth/userinfo (OpenID Connect Core section 5.3). An admitted
// request with the token in the header costs no allocation.
func (s *service) userInfo(ctx *fasthttp.RequestCtx) {
	bearer, err := bearerOf(ctx)
	if err == nil {
		err = s.show(ctx, bearer, token.UserInfo)
	}
	if err == nil {
		return
	}
	problem := endpoint.ProblemOf(err)
	if problem.Challenge != "" { // where a client learns which server issues tokens (RFC 9728 section 5.1)
		problem.Challenge += `, resource_metadata="` + s.Issuer + pathResource + `"`
	}
	refuseToken(ctx, &problem)
}

// bearerOf returns the access token in the header, or in the form that a POST may have in its place
// (RFC 6750 section 2.2).
func bearerOf(ctx *fasthttp.RequestCtx) (bearer string, err error) {
	bearer, err = endpoint.BearerToken(&ctx.Request.Header)
	if !ctx.IsPost() || !endpoint.IsForm(ctx) {
		return bearer, err
	}
	form, ok := endpoint.ParseParameters(ctx.PostBody())
	if !ok {
		return "", endpoint.ErrBadTokenForm
	}
	var sent []string
	for _, p := range form {
		if p.Name == "access_token" {
			sent = append(sent, p.Value)
		}
	}
	switch {
	case len(sent) == 0:
		return bearer, err
	case len(sent) > 1 || err != endpoint.ErrNoToken:
		return "", endpoint.ErrBadTokenForm
	}
	return endpoint.CheckBearer(sent[0])
}
