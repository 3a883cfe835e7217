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
	st := start(t)
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
		a := get(t, st, "/api/lookup?q="+q, "X-Request-Id", "id-of-"+q[7:])
		o := a.object(t)
		if a.status != 500 || o["ok"] != false || o["error"] != "server_error" ||
			o["message"] == "" {
			t.Errorf("got %d %s, want 500 server_error", a.status, a.body)
		}
		a.has(t, "X-Request-Id", "id-of-"+q[7:])
		a.has(t, "Access-Control-Allow-Origin", "*")
	}
	if a := get(t, st, "/api/lookup?q=x"); a.status != 200 || a.body != "fine" {
		t.Errorf("got %d %s after a panic, want 200 fine", a.status, a.body)
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
	if body := metricsOf(t, st); !strings.Contains(body, "gatehouse_http_panics_total 2\n") ||
		!strings.Contains(body, "gatehouse_http_requests_in_flight 1\n") {
		t.Error("got other metrics, want 2 panics and one request in flight, this one")
	}
}

func metricsOf(t *testing.T, st *stacktest.Stack) string {
	t.Helper()
	return send(t, st, "GET", st.AdminURL+"/metrics", "").body
}

func TestShutdownWaitsForRequests(t *testing.T) {
	provider, asked, release := slow()
	st := start(t, withProvider(provider))
	silent, idle, busy := dial(t, st), dial(t, st), dial(t, st)
	idle.say("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
	idle.hear()
	busy.say(lookup)
	<-asked

	st.Server.Drain()
	if a := send(t, st, "GET", st.AdminURL+"/readyz", ""); a.status != 503 ||
		a.object(t)["status"] != "draining" {
		t.Errorf("got %d %s, want 503 draining", a.status, a.body)
	}
	idle.say("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := idle.hear(); a.status != 404 || a.closes {
		t.Errorf("got %d while draining, want 404 on a connection that stays", a.status)
	}

	begun := time.Now()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ended <- st.Server.Shutdown(ctx)
	}()
	silent.ends()
	idle.ends()
	if a := send(t, st, "GET", st.AdminURL+"/healthz", ""); a.status != 200 {
		t.Errorf("got %d from the admin server during shutdown, want 200", a.status)
	}
	select {
	case err := <-ended:
		t.Fatalf("got shutdown ended with %v while a request was under way", err)
	default:
	}
	close(release)
	if a := busy.hear(); a.status != 200 || !a.closes {
		t.Errorf("got %d, want 200 and the end of the connection", a.status)
	}
	if err := <-ended; err != nil {
		t.Errorf("got %v, want a clean shutdown", err)
	}
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("got a shutdown of %v, want it shorter than the deadline", took)
	}
	if _, err := http.Get(st.URL + "/nowhere"); err == nil {
		t.Error("got an response after shutdown, want none")
	}
}

func TestShutdownEndsAtItsDeadline(t *testing.T) {
	provider, asked, release := slow()
	defer close(release)
	st := start(t, withProvider(provider))
	half := dial(t, st) // first, so that it is accepted when the other is served
	half.say("GET /api/lookup?q=9.9.9.9 HTTP/1.1\r\n")
	busy := dial(t, st)
	busy.say(lookup)
	<-asked
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := st.Server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline's error", err)
	}
	for _, conn := range []*raw{busy, half} {
		if rest, err := io.ReadAll(conn.r); len(rest) > 0 {
			t.Errorf("got %q and %v, want a closed connection", rest, err)
		}
	}
}

func TestShutdownBeforeServe(t *testing.T) {
	for range 20 {
		t.Run("at once", func(t *testing.T) { start(t) })
	}
	st := start(t)
	server, err := httpedge.New(quiet(st))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
		ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience,
	}
}

func TestAdminEndpoints(t *testing.T) {
	st := start(t)
	get(t, st, "/api/lookup?q=8.8.8.8")
	get(t, st, "/api/lookup?q=10.0.0.1")
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
		a := send(t, st, "GET", st.AdminURL+path, "")
		if a.status != 200 || a.object(t)["status"] != want {
			t.Errorf("%s: got %d %s, want 200 %s", path, a.status, a.body, want)
		}
		a.has(t, "Access-Control-Allow-Origin", "")
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1"} {
		if a := send(t, st, "GET", st.AdminURL+path, ""); a.status != 200 {
			t.Errorf("%s: got %d, want 200", path, a.status)
		}
	}
	if a := send(t, st, "GET", st.AdminURL+"/debug/pprof/cmdline", ""); a.status != 404 {
		t.Errorf("got %d for the command line, which may hold a key, want 404", a.status)
	}
	if a := send(t, st, "GET", st.AdminURL+"/api/lookup?q=8.8.8.8", ""); a.status != 404 {
		t.Errorf("got %d for a public path, want 404", a.status)
	}
	a := send(t, st, "POST", st.AdminURL+"/metrics", "")
	if a.status != 405 || a.object(t)["error"] != "method_not_allowed" {
		t.Errorf("got %d %s, want 405", a.status, a.body)
	}
	a.has(t, "Allow", "GET, HEAD, OPTIONS")
}

func TestMetrics(t *testing.T) {
	st := start(t)
	get(t, st, "/api/lookup?q=8.8.8.8")
	get(t, st, "/api/lookup?q=8.8.8.8")
	get(t, st, "/api/lookup?q=10.0.0.1")
	send(t, st, "BREW", st.URL+"/api/my-ip", "")
	get(t, st, "/secret-path")
	postBulk(t, st, "x")
	conn := dial(t, st)
	conn.say("broken\r\n\r\n")
	conn.hear()
	a := send(t, st, "GET", st.AdminURL+"/metrics", "")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
		t.Errorf("got %d %v, want 200 text/plain", a.status, a.header)
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
		if !strings.Contains(a.body, want) {
			t.Errorf("got no %s in the metrics", want)
		}
	}
	for _, secret := range []string{"8.8.8.8", "10.0.0.1", "secret", "BREW", "127.0.0.1"} {
		if strings.Contains(a.body, secret) {
			t.Errorf("got %s in the metrics, want nothing of a request", secret)
		}
	}
}

func TestProfilesAreLocalOnly(t *testing.T) {
	st := start(t)
	other, err := httpedge.New(quiet(st))
	if err != nil {
		t.Fatal(err)
	}
	public, admin := mustListen(t, "127.0.0.1:0"), mustListen(t, "0.0.0.0:0")
	done := make(chan error, 1)
	go func() { done <- other.Serve(public, admin) }()
	port := fmt.Sprint(":", admin.Addr().(*net.TCPAddr).Port)
	for path, status := range map[string]int{"/debug/pprof": 404, "/debug/pprof/heap": 404,
		"/healthz": 200, "/metrics": 200} {
		if a := send(t, st, "GET", "http://127.0.0.1"+port+path, ""); a.status != status {
			t.Errorf("%s: got %d on an open listener, want %d", path, a.status, status)
		}
	}
	st.Client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := other.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A page of another site cannot read profiles by a name that leads to this machine.
func TestProfilesAreForLocalHosts(t *testing.T) {
	st := start(t)
	for host, status := range map[string]int{
		"127.0.0.1:8081": 200, "localhost": 200, "LocalHost:80": 200, "[::1]:8081": 200,
		"evil.example": 404, "localhost.evil.example:8081": 404, "127.0.0.1.evil.example": 404,
		"10.0.0.1": 404,
	} {
		req, err := http.NewRequest("GET", st.AdminURL+"/debug/pprof/goroutine?debug=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := st.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, res); a.status != status {
			t.Errorf("%s: got %d, want %d", host, a.status, status)
		}
	}
}

func TestMetricsToken(t *testing.T) {
	const token = "correct-horse-battery"
	st := start(t, func(c *stack.Config) { c.MetricsToken = token })
	for sent, status := range map[string]int{"": 401, "Bearer " + token: 200, "Basic x": 401,
		"Bearer " + token + "x": 401, "Bearer x": 401} {
		var headers []string
		if sent != "" {
			headers = []string{"Authorization", sent}
		}
		a := send(t, st, "GET", st.AdminURL+"/metrics", "", headers...)
		if a.status != status || (status == 401) != (a.header.Get("Www-Authenticate") != "") {
			t.Errorf("%q: got %d %v, want %d", sent, a.status, a.header, status)
		}
	}
	if a := send(t, st, "GET", st.AdminURL+"/healthz", ""); a.status != 200 {
		t.Errorf("got %d for /healthz without a token, want 200", a.status)
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
		"in the clear":    {start(t), ""},
		"TLS":             {start(t, secure), year},
		"https issuer":    {stacktest.NewIdentity(t, issuer("https://id.example.com")).Stack, year},
		"http issuer":     {stacktest.NewIdentity(t).Stack, ""},
		"https localhost": {stacktest.NewIdentity(t, issuer("https://localhost")).Stack, ""},
	} {
		test.st.Client.Transport = &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
		for _, path := range []string{"/api/lookup?q=8.8.8.8", "/nowhere"} {
			if got := get(t, test.st, path).header.Get("Strict-Transport-Security"); got != test.want {
				t.Errorf("%s: %s: got %q, want %q", name, path, got, test.want)
			}
		}
		if a := send(t, test.st, "GET", test.st.AdminURL+"/healthz", ""); a.status != 200 ||
			a.header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: got %d %v from the admin server, want 200 without it", name, a.status,
				a.header)
		}
	}
}

func TestServeReturnsListenerErrors(t *testing.T) {
	st := start(t)
	server, err := httpedge.New(quiet(st))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(broken{mustListen(t, "127.0.0.1:0")},
		mustListen(t, "127.0.0.1:0")); err == nil || !strings.Contains(err.Error(), "public") {
		t.Errorf("got %v, want an error of the public listener", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	st := start(t)
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
