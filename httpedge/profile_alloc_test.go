//go:build !race

package httpedge_test

import (
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/cmd/stack/stacktest"
)

// profileRequests are requests for the basic profile, one a token, ready to be served again and
// again.
func profileRequests(tokens []string) []*fasthttp.RequestCtx {
	all := make([]*fasthttp.RequestCtx, len(tokens))
	for i, token := range tokens {
		all[i] = &fasthttp.RequestCtx{}
		all[i].Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, nil)
		all[i].Request.SetRequestURI("/api/user")
		all[i].Request.Header.SetHost("localhost")
		all[i].Request.Header.Set("Authorization", "Bearer "+token)
	}
	return all
}

func TestAdmittedProfileAllocatesNothing(t *testing.T) {
	st := stacktest.NewIdentity(t)
	user := st.NewUser(t, "Rosa", rosa)
	requests := profileRequests(sealTokens(t, st, st.NewClient(t, nil).ID, user.ID, 10))
	next := 0
	serve := func() {
		ctx := requests[next%len(requests)]
		next++
		ctx.Response.Reset()
		st.Server.Handler()(ctx)
		if ctx.Response.StatusCode() != 200 {
			t.Fatalf("got %d %s, want 200", ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	for range 200 {
		serve()
	}
	if got := testing.AllocsPerRun(500, serve); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
