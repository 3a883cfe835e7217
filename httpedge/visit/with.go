package visit

import (
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/httpedge/pages"
)

// ParamStart is the parameter with the token of a link that begins a sign-in with a provider. It is
// a link and no form, since browsers apply form-action to the redirects of a form as well.
const ParamStart = "start"

// StartWith is what such a token is for.
func StartWith(id string) string { return "sign in with " + id }

// KeepWaiting stores the token of a connection that waits in the browser's cookie.
func (s *Site) KeepWaiting(ctx *fasthttp.RequestCtx, token string) {
	s.cookies.write(ctx, s.cookies.with, []string{token}, oauth.ProviderAttemptEnd)
}

// DropWaiting removes the connection that waits from the browser's cookie.
func (s *Site) DropWaiting(ctx *fasthttp.RequestCtx) { s.cookies.write(ctx, s.cookies.with, nil, 0) }

// WaitingToken returns the token of the connection that waits in this browser; "" = none.
func (s *Site) WaitingToken(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Request.Header.Cookie(s.cookies.with))
}

// ProviderButtons returns the buttons that begin a sign-in with a provider for that purpose. path
// returns the path of the page that begins one, for its ID.
func ProviderButtons(v *Visit, choices []people.ProviderChoice, bind func(string) Binding,
	path func(id string) string) (all []pages.Provider) {
	for _, p := range choices {
		all = append(all, pages.Provider{Name: p.Name, Icon: p.Icon, Away: p.Away,
			Path: AddParameter(path(p.ID), ParamStart, bind(StartWith(p.ID)).NewFormToken(v.Now))})
	}
	return all
}

// Result is what a sign-in with a provider has led to, for the page that follows.
type Result byte

// The results.
const (
	WithConnected Result = iota + 1
	WithTaken            // the connection belongs to another account
	WithTooMany
	WithProofNeeded
	WithAway
	WithFailed
	WithCancelled
)

const (
	paramResult    = "with"
	resultLifetime = time.Minute
)

// PathResult returns a path, which may have a query, with a result. It is valid for a minute, in this
// browser only.
func (v *Visit) PathResult(path string, r Result) string {
	return AddParameter(path, paramResult, v.Bind(paramResult).Seal([]byte{byte(r)}, v.Now))
}

// Result returns the result in the URL of the request; 0 = none.
func (v *Visit) Result() Result {
	payload, _, ok := v.Bind(paramResult).Open(string(v.HTTP.QueryArgs().Peek(paramResult)), 1,
		resultLifetime, v.Now)
	if !ok {
		return 0
	}
	return Result(payload[0])
}
