//go:build !race

package httpedge_test

import (
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/cmd/stack/stacktest"
)

// BenchmarkClientCredentials is the token endpoint without a network: 32 goroutines a processor,
// each of which waits until its token is durable.
func BenchmarkClientCredentials(b *testing.B) {
	st := stacktest.NewIdentity(b)
	client := st.NewClient(b, nil)
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client.ID},
		"client_secret": {client.Secret}}.Encode()
	var refused atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		ctx := &fasthttp.RequestCtx{}
		ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, nil)
		ctx.Request.Header.SetMethod(fasthttp.MethodPost)
		ctx.Request.Header.SetHost("localhost")
		ctx.Request.Header.SetContentType("application/x-www-form-urlencoded")
		ctx.Request.SetRequestURI("/oauth/token")
		ctx.Request.SetBodyString(form)
		for pb.Next() {
			ctx.Response.Reset()
			st.Server.Handler()(ctx)
			if ctx.Response.StatusCode() != 200 {
				refused.Add(1)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(refused.Load()), "refused")
}

// BenchmarkIntrospect asks about one access token in use, with the client's secret in the body.
func BenchmarkIntrospect(b *testing.B) {
	st := stacktest.NewIdentity(b)
	client, user := st.NewClient(b, nil), st.NewUser(b, "Rosa", rosa)
	token := sealTokens(b, st, client.ID, user.ID, 1)[0]
	form := url.Values{"token": {token}, "client_id": {client.ID},
		"client_secret": {client.Secret}}.Encode()
	request := fmt.Appendf(nil, "POST /oauth/introspect HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		len(form), form)
	rotate(b, st.Server.Handler(), [][]byte{request})
}
