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

// NewPiped starts a service without a network, for a test in a bubble of testing/synctest, where
// time passes as soon as nobody has anything to do. Options have to bring the provider. Each request
// has a connection of its own, whose other end is at 127.0.0.1 for the service. There is no admin
// listener, and AdminURL is empty. FixDate must have been called outside the bubble.
func NewPiped(t testing.TB, options ...Option) *Stack {
	t.Helper()
	st, config := prepare(t, options)
	config.Listen = ""
	st.start(t, config)
	st.Client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: st.dial(t)}
	st.Client.Timeout = time.Minute
	t.Cleanup(func() { st.stop(t, nil) })
	return st
}

// dial connects to the server by a pipe.
func (st *Stack) dial(t testing.TB) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			if err := st.Server.ServeConn(piped{far}); err != nil {
				t.Errorf("got %v, want the connection served", err)
			}
		}()
		return near, nil
	}
}

// piped is a pipe's end whose other end has an address.
type piped struct{ net.Conn }

func (piped) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// FixDate has fasthttp start the goroutine that keeps the time of its answers, which lasts as long as the process and
// must belong to no bubble.
func FixDate() error {
	near, far := net.Pipe()
	defer near.Close()
	server := fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeConn(far) }()
	if _, err := near.Write([]byte("GET / HTTP/1.1\r\nHost: date\r\nConnection: close\r\n\r\n")); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(near), nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
