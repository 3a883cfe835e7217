//go:build !race

package httpedge_test

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/edgetest"
)

// issueTokens keeps n access tokens of the user.
func issueTokens(t testing.TB, st *edgetest.IdentityStack, clientID string, userID int64,
	n int) []string {
	t.Helper()
	keys, err := st.Store.AccessTokenKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]string, n)
	ended := make(chan error, n)
	for i := range tokens {
		if i >= 1000 { // so many wait at once
			wait(t, ended)
		}
		expires := time.Now().Add(time.Hour)
		tokens[i] = keys.NewAccessToken(expires)
		op := &oauth.Issue{Token: oauth.AccessToken{Hash: oauth.HashOf(tokens[i]),
			ClientID: clientID, UserID: userID,
			Scopes: oauth.UserScopes, Issued: time.Now(), Expires: expires}}
		op.OnDone(func(err error) { ended <- err })
		st.Store.Submit(op)
	}
	for range min(n, 1000) {
		wait(t, ended)
	}
	return tokens
}

func wait(t testing.TB, ended <-chan error) {
	t.Helper()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
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
	st := edgetest.NewIdentity(t)
	user := st.NewUser(t, "Rosa", rosa)
	requests := profileRequests(issueTokens(t, st, st.NewClient(t, nil).ID, user.ID, 10))
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
	st := edgetest.NewIdentity(b)
	user := st.NewUser(b, "Rosa", rosa)
	requests := profileRequests(issueTokens(b, st, st.NewClient(b, nil).ID, user.ID, 10_000))
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
