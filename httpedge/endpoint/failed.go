package endpoint

import "github.com/valyala/fasthttp"

// Failed is what the access log says of a failed request.
type Failed struct {
	Code      string // names the error; "" = nothing does
	Reason    string // what it is, in words that repeat no secret; "" = nothing is said
	ClientID  string // of a client that is known; "" = none
	UnknownID string // that names no client; "" = none
}

type failedKey struct{}

// SetFailed says why the request failed.
func SetFailed(ctx *fasthttp.RequestCtx, f *Failed) { ctx.SetUserValue(failedKey{}, f) }

// FailedOf returns why the request failed; nil = nobody has said that.
func FailedOf(ctx *fasthttp.RequestCtx) *Failed {
	f, _ := ctx.UserValue(failedKey{}).(*Failed)
	return f
}
