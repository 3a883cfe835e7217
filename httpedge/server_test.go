package httpedge_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge"
)

// slow is a provider whose answers wait for a word of the test.
func slow() (p *stacktest.Provider, asked, release chan struct{}) {
	p, asked, release = stacktest.NewProvider(), make(chan struct{}, 16), make(chan struct{})
	p.Ask = func(ctx context.Context, q geo.Query) (geo.Answer, error) {
		asked <- struct{}{}
		select {
		case <-release:
			return stacktest.Everything(ctx, q)
		case <-ctx.Done():
			return geo.Answer{}, ctx.Err()
		}
	}
	return p, asked, release
}

func TestPanicEndsOneRequest(t *testing.T) {
	st := stacktest.NewLookups(t, stacktest.BehindProxy)
	st.Server.HandleAt("/api/lookup", func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.QueryArgs().Peek("q")) {
		case "secret-value":
			panic(errors.New("marked " + string(ctx.QueryArgs().Peek("q"))))
		case "secret-index":
			var none []int
			_ = none[len(ctx.QueryArgs().Peek("q"))]
		}
		ctx.SetBodyString("fine")
	})
	for _, q := range []string{"secret-value", "secret-index"} {
		a := st.Get(t, "/api/lookup?q="+q, "X-Request-Id", "id-of-"+q[7:])
		o := a.Object(t)
		if a.Status != 500 || o["ok"] != false || o["error"] != "server_error" ||
			o["message"] == "" {
			t.Errorf("got %d %s, want 500 server_error", a.Status, a.Body)
		}
		a.Has(t, "X-Request-Id", "id-of-"+q[7:], "Access-Control-Allow-Origin", "*")
	}
	if a := st.Get(t, "/api/lookup?q=x"); a.Status != 200 || a.Body != "fine" {
		t.Errorf("got %d %s after a panic, want 200 fine", a.Status, a.Body)
	}
	panics := st.Log.Records("panic in a request handler")
	if len(panics) != 2 || !strings.Contains(panics[0]["stack"].(string), "server_test.go") ||
		panics[0]["request_id"] != "id-of-value" {
		t.Errorf("got %v, want two panics with their stack and id", panics)
	}
	if log := st.Log.String(); strings.Contains(log, "secret") ||
		!strings.Contains(log, "index out of range") {
		t.Errorf("got %s, want the runtime's words and none of the request's", log)
	}
	lines := st.Log.Records("request")
	if len(lines) != 3 || lines[0]["status"] != 500.0 {
		t.Errorf("got %v, want an access line of each request", lines)
	}
	if body := st.MetricsText(t); !strings.Contains(body, "gatehouse_http_panics_total 2\n") ||
		!strings.Contains(body, "gatehouse_http_requests_in_flight 1\n") {
		t.Error("got other metrics, want 2 panics and one request in flight, this one")
	}
}

func TestShutdownWaitsForRequests(t *testing.T) {
	provider, asked, release := slow()
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	silent, idle, busy := st.Dial(t), st.Dial(t), st.Dial(t)
	idle.Say("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
	idle.Hear()
	busy.Say(lookup)
	<-asked

	st.Server.Drain()
	if a := st.Send(t, "GET", st.AdminURL+"/readyz", ""); a.Status != 503 ||
		a.Object(t)["status"] != "draining" {
		t.Errorf("got %d %s, want 503 draining", a.Status, a.Body)
	}
	idle.Say("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := idle.Hear(); a.Status != 404 || a.Closes {
		t.Errorf("got %d while draining, want 404 on a connection that stays", a.Status)
	}

	begun := time.Now()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stacktest.Patience)
		defer cancel()
		ended <- st.Server.Shutdown(ctx)
	}()
	silent.Ends()
	idle.Ends()
	if a := st.Send(t, "GET", st.AdminURL+"/healthz", ""); a.Status != 200 {
		t.Errorf("got %d from the admin server during shutdown, want 200", a.Status)
	}
	select {
	case err := <-ended:
		t.Fatalf("got shutdown ended with %v while a request was under way", err)
	default:
	}
	close(release)
	if a := busy.Hear(); a.Status != 200 || !a.Closes {
		t.Errorf("got %d, want 200 and the end of the connection", a.Status)
	}
	if err := <-ended; err != nil {
		t.Errorf("got %v, want a clean shutdown", err)
	}
	if took := time.Since(begun); took > stacktest.Patience/2 {
		t.Errorf("got a shutdown of %v, want it shorter than the deadline", took)
	}
	if _, err := http.Get(st.URL + "/nowhere"); err == nil {
		t.Error("got an response after shutdown, want none")
	}
}

func TestShutdownEndsAtItsDeadline(t *testing.T) {
	provider, asked, release := slow()
	defer close(release)
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider))
	half := st.Dial(t) // first, so that it is accepted when the other is served
	half.Say("GET /api/lookup?q=9.9.9.9 HTTP/1.1\r\n")
	busy := st.Dial(t)
	busy.Say(lookup)
	<-asked
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := st.Server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline's error", err)
	}
	for _, conn := range []*stacktest.Conn{busy, half} {
		if rest, err := io.ReadAll(conn.R); len(rest) > 0 {
			t.Errorf("got %q and %v, want a closed connection", rest, err)
		}
	}
}

func TestShutdownBeforeServe(t *testing.T) {
	for range 20 {
		t.Run("at once", func(t *testing.T) { stacktest.NewLookups(t) })
	}
	st := stacktest.NewLookups(t)
	server, err := httpedge.New(quiet(st))
	stacktest.Must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), stacktest.Patience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	public, admin := mustListen(t, "127.0.0.1:0"), mustListen(t, "127.0.0.1:0")
	if err := server.Serve(public, admin); err != nil {
		t.Errorf("got %v from Serve after Shutdown, want nil", err)
	}
	if _, err := public.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want a closed listener", err)
	}
}

// quiet is the least configuration, before the actors of st.
func quiet(st *stacktest.Stack) httpedge.Config {
	return httpedge.Config{
		Lookups: st.Lookups, Logger: discard(), MaxConnections: 4,
		ReadTimeout: stacktest.Patience, WriteTimeout: stacktest.Patience,
		IdleTimeout: stacktest.Patience,
	}
}

func TestAdminEndpoints(t *testing.T) {
	st := stacktest.NewLookups(t)
	st.Get(t, "/api/lookup?q=8.8.8.8")
	st.Get(t, "/api/lookup?q=10.0.0.1")
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
		a := st.Send(t, "GET", st.AdminURL+path, "")
		if a.Status != 200 || a.Object(t)["status"] != want {
			t.Errorf("%s: got %d %s, want 200 %s", path, a.Status, a.Body, want)
		}
		a.Has(t, "Access-Control-Allow-Origin", "")
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1"} {
		if a := st.Send(t, "GET", st.AdminURL+path, ""); a.Status != 200 {
			t.Errorf("%s: got %d, want 200", path, a.Status)
		}
	}
	if a := st.Send(t, "GET", st.AdminURL+"/debug/pprof/cmdline", ""); a.Status != 404 {
		t.Errorf("got %d for the command line, which may hold a key, want 404", a.Status)
	}
	if a := st.Send(t, "GET", st.AdminURL+"/api/lookup?q=8.8.8.8", ""); a.Status != 404 {
		t.Errorf("got %d for a public path, want 404", a.Status)
	}
	a := st.Send(t, "POST", st.AdminURL+"/metrics", "")
	if a.Status != 405 || a.Object(t)["error"] != "method_not_allowed" {
		t.Errorf("got %d %s, want 405", a.Status, a.Body)
	}
	a.Has(t, "Allow", "GET, HEAD, OPTIONS")
}

func TestMetrics(t *testing.T) {
	st := stacktest.NewLookups(t)
	st.Get(t, "/api/lookup?q=8.8.8.8")
	st.Get(t, "/api/lookup?q=8.8.8.8")
	st.Get(t, "/api/lookup?q=10.0.0.1")
	st.Send(t, "BREW", st.URL+"/api/my-ip", "")
	st.Get(t, "/secret-path")
	st.PostBulk(t, "x")
	conn := st.Dial(t)
	conn.Say("broken\r\n\r\n")
	conn.Hear()
	a := st.Send(t, "GET", st.AdminURL+"/metrics", "")
	if a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("got %d %v, want 200 text/plain", a.Status, a.Header)
	}
	for _, want := range []string{
		`gatehouse_http_requests_total{method="GET",route="/api/lookup",status="200"} 2`,
		`gatehouse_http_requests_total{method="GET",route="/api/lookup",status="400"} 1`,
		`gatehouse_http_requests_total{method="other",route="/api/my-ip",status="405"} 1`,
		`gatehouse_http_requests_total{method="GET",route="(unmatched)",status="404"} 1`,
		`gatehouse_http_requests_total{method="POST",route="/api/bulk",status="400"} 1`,
		`route="(broken)",status="400"} 1`,
		`gatehouse_http_request_duration_seconds_bucket{route="/api/lookup",le="5e-05"}`,
		`gatehouse_http_request_duration_seconds_bucket{route="/api/lookup",le="10"} 3`,
		`gatehouse_http_request_duration_seconds_count{route="/api/lookup"} 3`,
		`gatehouse_http_requests_in_flight 1`, // this one
		`gatehouse_http_connections_open`,
		`gatehouse_http_connections_refused_total{limit="all"} 0`,
		`gatehouse_http_connections_refused_total{limit="address"} 0`,
		`gatehouse_log_lines_dropped_total 0`,
		`go_goroutines`, `process_open_fds`,
	} {
		if !strings.Contains(a.Body, want) {
			t.Errorf("got no %s in the metrics", want)
		}
	}
	for _, secret := range []string{"8.8.8.8", "10.0.0.1", "secret", "BREW", "127.0.0.1"} {
		if strings.Contains(a.Body, secret) {
			t.Errorf("got %s in the metrics, want nothing of a request", secret)
		}
	}
}

func TestProfilesAreLocalOnly(t *testing.T) {
	st := stacktest.NewLookups(t)
	other, err := httpedge.New(quiet(st))
	stacktest.Must(t, err)
	public, admin := mustListen(t, "127.0.0.1:0"), mustListen(t, "0.0.0.0:0")
	done := make(chan error, 1)
	go func() { done <- other.Serve(public, admin) }()
	port := fmt.Sprint(":", admin.Addr().(*net.TCPAddr).Port)
	for path, status := range map[string]int{"/debug/pprof": 404, "/debug/pprof/heap": 404,
		"/healthz": 200, "/metrics": 200} {
		if a := st.Send(t, "GET", "http://127.0.0.1"+port+path, ""); a.Status != status {
			t.Errorf("%s: got %d on an open listener, want %d", path, a.Status, status)
		}
	}
	st.Client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), stacktest.Patience)
	defer cancel()
	if err := other.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A page of another site cannot read profiles or metrics by a name that leads to this machine.
func TestProfilesAndMetricsAreForLocalHosts(t *testing.T) {
	st := stacktest.NewLookups(t)
	for host, status := range map[string]int{
		"127.0.0.1:8081": 200, "localhost": 200, "LocalHost:80": 200, "[::1]:8081": 200,
		"evil.example": 404, "localhost.evil.example:8081": 404, "127.0.0.1.evil.example": 404,
		"10.0.0.1": 404,
	} {
		for _, path := range []string{"/debug/pprof/goroutine?debug=1", "/metrics"} {
			req, err := http.NewRequest("GET", st.AdminURL+path, nil)
			stacktest.Must(t, err)
			req.Host = host
			res, err := st.Client.Do(req)
			stacktest.Must(t, err)
			if a := stacktest.ReadResponse(t, res); a.Status != status {
				t.Errorf("%s%s: got %d, want %d", host, path, a.Status, status)
			}
		}
	}
}

func TestMetricsToken(t *testing.T) {
	const token = "correct-horse-battery"
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.MetricsToken = token })
	for sent, status := range map[string]int{"": 401, "Bearer " + token: 200, "Basic x": 401,
		"Bearer " + token + "x": 401, "Bearer x": 401} {
		var headers []string
		if sent != "" {
			headers = []string{"Authorization", sent}
		}
		a := st.Send(t, "GET", st.AdminURL+"/metrics", "", headers...)
		if a.Status != status || (status == 401) != (a.Header.Get("Www-Authenticate") != "") {
			t.Errorf("%q: got %d %v, want %d", sent, a.Status, a.Header, status)
		}
	}
	if a := st.Send(t, "GET", st.AdminURL+"/healthz", ""); a.Status != 200 {
		t.Errorf("got %d for /healthz without a token, want 200", a.Status)
	}
}

func TestStrictTransportSecurity(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate(t, "first", certFile, keyFile)
	const year = "max-age=31536000"
	secure := func(c *stack.Config) { c.CertFile, c.KeyFile = certFile, keyFile }
	issuer := func(url string) stacktest.Option {
		return func(c *stack.Config) { c.Issuer = url }
	}
	for name, test := range map[string]struct {
		st   *stacktest.Stack
		want string
	}{
		"in the clear":    {stacktest.NewLookups(t), ""},
		"TLS":             {stacktest.NewLookups(t, secure), year},
		"https issuer":    {stacktest.NewIdentity(t, issuer("https://id.example.com")).Stack, year},
		"http issuer":     {stacktest.NewIdentity(t).Stack, ""},
		"https localhost": {stacktest.NewIdentity(t, issuer("https://localhost")).Stack, ""},
	} {
		test.st.Client.Transport = &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
		for _, path := range []string{"/api/lookup?q=8.8.8.8", "/nowhere"} {
			if got := test.st.Get(t, path).Header.Get("Strict-Transport-Security"); got != test.want {
				t.Errorf("%s: %s: got %q, want %q", name, path, got, test.want)
			}
		}
		if a := test.st.Send(t, "GET", test.st.AdminURL+"/healthz", ""); a.Status != 200 ||
			a.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: got %d %v from the admin server, want 200 without it", name, a.Status,
				a.Header)
		}
	}
}

func TestServeReturnsListenerErrors(t *testing.T) {
	st := stacktest.NewLookups(t)
	server, err := httpedge.New(quiet(st))
	stacktest.Must(t, err)
	if err := server.Serve(broken{mustListen(t, "127.0.0.1:0")},
		mustListen(t, "127.0.0.1:0")); err == nil || !strings.Contains(err.Error(), "public") {
		t.Errorf("got %v, want an error of the public listener", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	st := stacktest.NewLookups(t)
	if _, err := httpedge.New(quiet(st)); err != nil {
		t.Errorf("got %v, want a server", err)
	}
	for name, spoil := range map[string]func(*httpedge.Config){
		"lookups":   func(c *httpedge.Config) { c.Lookups = nil },
		"logger":    func(c *httpedge.Config) { c.Logger = nil },
		"timeout":   func(c *httpedge.Config) { c.ReadTimeout = 0 },
		"bound":     func(c *httpedge.Config) { c.MaxConnections = 0 },
		"admin key": func(c *httpedge.Config) { c.AdminKeyFile = "key.pem" },
		"signers":   func(c *httpedge.Config) { c.AdminClientCA = "ca.pem" },
		"key alone": func(c *httpedge.Config) { c.KeyFile = "key.pem" },
		"no files": func(c *httpedge.Config) {
			c.CertFile, c.KeyFile = "/nowhere/cert.pem", "/nowhere/key.pem"
		},
		"header": func(c *httpedge.Config) { c.ForwardedHeader = "x-real-ip" },
	} {
		config := quiet(st)
		spoil(&config)
		if _, err := httpedge.New(config); err == nil {
			t.Errorf("%s: got a server, want an error", name)
		}
	}
}
