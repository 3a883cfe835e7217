package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"gatehouse/providers/sim"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// fields is the parameter that gatehouse sends.
const fields = "?fields=64225275"

// upstream is a simulator on a loopback port and a client for it.
type upstream struct {
	*sim.Server
	t      testing.TB
	base   string
	client *http.Client
}

func start(t testing.TB, settings sim.Settings) *upstream {
	t.Helper()
	return startConfig(t, sim.Config{Settings: settings})
}

func startConfig(t testing.TB, cfg sim.Config) *upstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	u := &upstream{
		Server: sim.New(cfg), t: t, base: "http://" + ln.Addr().String(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16},
			Timeout: 10 * time.Second},
	}
	served := make(chan error, 1)
	go func() { served <- u.Serve(ln) }()
	t.Cleanup(func() {
		u.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := u.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return u
}

// reply is an HTTP response with its whole body.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (u *upstream) try(method, path, body string) (reply, error) {
	req, err := http.NewRequest(method, u.base+path, bytes.NewBufferString(body))
	if err != nil {
		return reply{}, err
	}
	resp, err := u.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	read, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, read}, errors.Join(err, resp.Body.Close())
}

func (u *upstream) do(method, path, body string) reply {
	u.t.Helper()
	r, err := u.try(method, path, body)
	if err != nil {
		u.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (u *upstream) get(path string) reply {
	u.t.Helper()
	return u.do(http.MethodGet, path, "")
}

// lookup returns the members of a single answer.
func (u *upstream) lookup(query string) map[string]any {
	u.t.Helper()
	return decode[map[string]any](u.t, u.get("/json/"+query+fields))
}

// batch returns the elements of a batch response.
func (u *upstream) batch(body string) []map[string]any {
	u.t.Helper()
	return decode[[]map[string]any](u.t, u.do(http.MethodPost, "/batch"+fields, body))
}

func decode[T any](t testing.TB, r reply) (v T) {
	t.Helper()
	if r.status != http.StatusOK {
		t.Fatalf("got status %d %s, want 200", r.status, r.body)
	}
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("got %s, want JSON: %v", r.body, err)
	}
	return v
}

// call calls the simulator's handler without a network, so that it works in a synctest bubble.
func call(s *sim.Server, method, uri, body string) *fasthttp.Response {
	var req fasthttp.Request
	req.Header.SetMethod(method)
	req.SetRequestURI(uri)
	req.SetBodyString(body)
	var ctx fasthttp.RequestCtx
	ctx.Init(&req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, nil)
	s.Handler()(&ctx)
	return &ctx.Response
}
