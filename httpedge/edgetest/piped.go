package edgetest

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// NewPiped starts a service without a network, for tests in a bubble of testing/synctest. options
// must set the provider. Each request has its own connection, which comes from 127.0.0.1 for the
// service. There is no admin listener, so AdminURL is empty. Call FixDate outside the bubble
// before.
func NewPiped(t testing.TB, options ...Option) *Stack {
	t.Helper()
	if Nodes(t) > 1 {
		t.Fatal("got a service without a network: the test is one of one node")
	}
	st, config := prepare(t, options)
	config.Listen = ""
	st.start(t, config)
	st.Client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: st.dial(t)}
	st.Client.Timeout = time.Minute
	t.Cleanup(func() { st.stop(t, nil) })
	return st
}

// dial returns a function that connects to the server by a pipe.
func (st *Stack) dial(t testing.TB) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, end := net.Pipe()
		go func() {
			if err := st.Server.ServeConn(piped{end}); err != nil {
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
