//go:build !race

package httpedge_test

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// sealTokens returns n access tokens of the user.
func sealTokens(t testing.TB, st *stacktest.IdentityStack, clientID string, userID int64,
	n int) []string {
	t.Helper()
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = st.Seal(t, oauth.AccessToken{
			ClientID: clientID, UserID: userID, Scopes: oauth.UserScopes,
		})
	}
	return tokens
}

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

func BenchmarkProfile(b *testing.B) {
	st := stacktest.NewIdentity(b)
	user := st.NewUser(b, "Rosa", rosa)
	requests := profileRequests(sealTokens(b, st, st.NewClient(b, nil).ID, user.ID, 10_000))
	for _, ctx := range requests {
		st.Server.Handler()(ctx)
	}
	var workers, refused atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		each := len(requests) / runtime.GOMAXPROCS(0)
		share := requests[int(workers.Add(1)-1)*each:][:each]
		for i := 0; pb.Next(); i++ {
			ctx := share[i%len(share)]
			ctx.Response.Reset()
			st.Server.Handler()(ctx)
			if ctx.Response.StatusCode() != 200 {
				refused.Add(1)
			}
		}
	})
	b.ReportMetric(float64(refused.Load())/float64(b.N), "refused/op")
}
