package stacktest

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/cmd/stack"
)

// NewPiped starts a service without a network, for tests in a bubble of testing/synctest. options
// must set the provider. Each request has its own connection, which comes from 127.0.0.1 for the
// service. There is no admin listener, so AdminURL is empty. Several nodes exchange messages in
// memory, and share a ledger in place of a database. Call FixDate outside the bubble before.
func NewPiped(t testing.TB, options ...Option) *Stack {
	t.Helper()
	st, config := prepare(t, options)
	config.Listen = ""
	choose := func() *stack.Stack { return st.Stack }
	if n := Nodes(t); n > 1 {
		choose = st.startPiped(t, config, n)
	} else {
		st.start(t, config)
	}
	st.Client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: dial(t, choose)}
	st.Client.Timeout = time.Minute
	t.Cleanup(func() { st.stop(t, nil) })
	return st
}

// dial returns a function that connects to the server of a node by a pipe.
func dial(t testing.TB, choose func() *stack.Stack) func(context.Context, string, string) (
	net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, end := net.Pipe()
		node := choose()
		go func() {
			if err := node.Server.ServeConn(piped{end}); err != nil {
				t.Errorf("got %v, want no error from the connection", err)
			}
		}()
		return client, nil
	}
}

// piped is a connection by a pipe, with a remote address.
type piped struct{ net.Conn }

func (piped) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// FixDate makes fasthttp start its goroutine for the Date header. That goroutine runs as long as
// the process, so it must not start in a bubble.
func FixDate() error {
	client, end := net.Pipe()
	defer client.Close()
	server := fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeConn(end) }()
	_, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: date\r\nConnection: close\r\n\r\n"))
	if err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
