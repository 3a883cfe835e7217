package ipapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/providers/ipapi"
)

// echo runs an upstream that knows only 8.8.8.8 and sends the path of each request to paths.
func echo(t testing.TB, paths chan<- string) (base string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
		io.WriteString(w, `{"status":"success","query":"8.8.8.8"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// hijacked writes raw bytes to the connection and closes it.
func hijacked(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, raw)
	}
}

// bomb responds with 8 MiB of spaces in a small gzip body.
func bomb(w http.ResponseWriter, _ *http.Request) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(bytes.Repeat([]byte(" "), 8<<20))
	z.Close()
	w.Header().Set("Content-Encoding", "gzip")
	w.Write(packed.Bytes())
}

// failures are failures of a whole exchange, single or batch.
var failures = []struct {
	about   string
	handler http.HandlerFunc
	want    string // part of the error's text
	is      error  // the sentinel that it wraps; nil = none
}{
	{"throttled", status(429), "rate limit", geo.ErrThrottled},
	{"forbidden", status(403), "not allowed", geo.ErrForbidden},
	{"server error", status(500), "upstream responded with status 500", nil},
	{"unavailable", status(503), "upstream responded with status 503", nil},
	{"too many elements", status(422), "upstream responded with status 422", nil},
	{"not found", status(404), "upstream responded with status 404", nil},
	{"no content", status(204), "upstream responded with status 204", nil},
	{"redirect", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			io.WriteString(w, full)
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}, "upstream responded with status 302", nil},
	{"empty body", always(""), "malformed JSON", nil},
	{"HTML page", always("<html>8.8.8.8</html>"), "malformed JSON", nil},
	{"half of the JSON", always(full[:len(full)/2]), "malformed JSON", nil},
	{"text after the JSON", always(full + "8.8.8.8"), "malformed JSON", nil},
	{"body too large", always(strings.Repeat(" ", 1<<20+1)), "too large", nil},
	{"bomb", bomb, "too large", nil},
	{"headers too large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("8.8.8.8 ", 4096))
	}, "connection to upstream broke", nil},
	{"not HTTP", hijacked("8.8.8.8 speaking\r\n\r\n"), "connection to upstream broke", nil},
	{"closed", hijacked(""), "connection to upstream broke", nil},
	{"truncated", hijacked("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[{}"), "connection to upstream broke", nil},
	{"not gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, full)
	}, "connection to upstream broke", nil},
}

func TestFailures(t *testing.T) {
	for _, row := range failures {
		c := newClient(t, ipapi.Pro, row.handler)
		_, err := c.Single(within(t), query(t, "8.8.8.8"))
		checkFailure(t, row.about+" single", c, err, row.want, row.is)
		_, err = c.Batch(within(t), queries(t, "8.8.8.8", "9.9.9.9"))
		checkFailure(t, row.about+" batch", c, err, row.want, row.is)
	}
}

// checkFailure also checks that err and c contain no secret.
func checkFailure(t testing.TB, about string, c *ipapi.Client, err error, want string, is error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error", about)
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %q, want %q in it", about, err, want)
	}
	for _, sentinel := range []error{geo.ErrThrottled, geo.ErrForbidden, context.Canceled,
		context.DeadlineExceeded} {
		if got, want := errors.Is(err, sentinel), sentinel == is; got != want {
			t.Errorf("%s: is %q: got %v, want %v", about, sentinel, got, want)
		}
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		checkSecrets(t, about, fmt.Sprintf("%v %+v %#v", e, e, e))
	}
	checkSecrets(t, about, fmt.Sprintf("%v %+v %#v %s %q %d %v %+v %#v", c, c, c, c, c, c, *c, *c,
		*c))
}

func checkSecrets(t testing.TB, about, text string) {
	t.Helper()
	for _, secret := range []string{key, "8.8.8.8", "marked", "127.0.0.1", "json/", "fields="} {
		if strings.Contains(text, secret) {
			t.Errorf("%s: %q contains %q", about, text, secret)
		}
	}
}

func TestConfigIsPrintedWithoutKey(t *testing.T) {
	config := ipapi.Config{Base: "https://127.0.0.1/" + key, Tier: ipapi.Pro, Key: key}
	checkSecrets(t, "config", fmt.Sprintf("%v %+v %#v %s %+v", config, config, config, config,
		&config))
}

func TestBatchResponseOfWrongLength(t *testing.T) {
	for _, body := range []string{`[]`, `null`, `[` + full + `]`, `[{},{},{}]`} {
		c := newClient(t, ipapi.Free, always(body))
		_, err := c.Batch(within(t), queries(t, "8.8.8.8", "9.9.9.9"))
		checkFailure(t, body, c, err, "wrong number", nil)
	}
	c := newClient(t, ipapi.Free, always(`{"status":"fail"}`))
	_, err := c.Batch(within(t), queries(t, "8.8.8.8"))
	checkFailure(t, "object", c, err, "malformed JSON", nil)
}

func TestDomainResponseNeedsAddress(t *testing.T) {
	for _, body := range []string{
		`{"status":"success"}`,
		`{"status":"success","query":"dns.google"}`,
		`{"status":"success","query":"fe80::1%marked"}`,
		`{"status":"success","query":"8.8.8.8/32"}`,
		`{"query":"8.8.8.8"}`,
	} {
		c := newClient(t, ipapi.Free, always(body))
		_, err := c.Single(within(t), query(t, "dns.google"))
		checkFailure(t, body, c, err, "does not match the query", nil)
	}
}

func TestBodySizeLimit(t *testing.T) {
	body := `{"status":"success","query":"8.8.8.8"}`
	c := newClient(t, ipapi.Free, always(body+strings.Repeat(" ", 64<<10-len(body))))
	if _, err := c.Single(within(t), query(t, "8.8.8.8")); err != nil {
		t.Errorf("64 KiB: %v", err)
	}
	c = newClient(t, ipapi.Free, always(body+strings.Repeat(" ", 64<<10-len(body)+1)))
	_, err := c.Single(within(t), query(t, "8.8.8.8"))
	checkFailure(t, "64 KiB and 1", c, err, "too large", nil)
	c = newClient(t, ipapi.Free, always("["+body+strings.Repeat(" ", 1<<20-len(body)-2)+"]"))
	if _, err := c.Batch(within(t), queries(t, "8.8.8.8")); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
}

func TestConnectionRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newClientAt(t, ipapi.Config{Base: "http://" + listener.Addr().String(), Tier: ipapi.Pro,
		Key: key})
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = c.Single(within(t), query(t, "8.8.8.8"))
	checkFailure(t, "closed port", c, err, "cannot connect to upstream: connection refused", nil)
}

func TestCertificateIsChecked(t *testing.T) {
	server := httptest.NewUnstartedServer(always(full))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c := newClientAt(t, ipapi.Config{Base: server.URL, Tier: ipapi.Pro, Key: key})
	_, err := c.Single(within(t), query(t, "8.8.8.8"))
	checkFailure(t, "unknown authority", c, err, "TLS", nil)

	plain := httptest.NewServer(always(full))
	defer plain.Close()
	base := strings.Replace(plain.URL, "http:", "https:", 1)
	c = newClientAt(t, ipapi.Config{Base: base, Tier: ipapi.Pro, Key: key})
	_, err = c.Single(within(t), query(t, "8.8.8.8"))
	checkFailure(t, "no TLS", c, err, "TLS", nil)
}

func TestQuota(t *testing.T) {
	for _, row := range []struct {
		remaining, reset string
		want             geo.Quota
	}{
		{"44", "60", geo.Quota{Known: true, Remaining: 44, Reset: time.Minute}},
		{"0", "7", geo.Quota{Known: true, Reset: 7 * time.Second}},
		{"0", "0", geo.Quota{Known: true}},
		{"-3", "-1", geo.Quota{Known: true}},
		{"1", "99999999999", geo.Quota{Known: true, Remaining: 1, Reset: time.Hour}},
		{"", "", geo.Quota{}},
		{"44", "", geo.Quota{}},
		{"", "60", geo.Quota{}},
		{"many", "60", geo.Quota{}},
		{"44", "1.5", geo.Quota{}},
		{"99999999999999999999", "60", geo.Quota{}},
	} {
		for _, code := range []int{200, 429, 403, 500} {
			want := row.want
			if code == 429 { // nothing is left, whatever X-Rl says
				want.Remaining = 0
				if row.reset == "60" {
					want = geo.Quota{Known: true, Reset: time.Minute}
				}
			}
			c := newClient(t, ipapi.Free, func(w http.ResponseWriter, r *http.Request) {
				for name, value := range map[string]string{"X-Rl": row.remaining,
					"X-Ttl": row.reset} {
					if value != "" {
						w.Header().Set(name, value)
					}
				}
				w.WriteHeader(code)
				if r.Method == http.MethodGet {
					io.WriteString(w, full)
				}
			})
			reply, err := c.Single(within(t), query(t, "8.8.8.8"))
			if reply.Quota != want || (err == nil) != (code == 200) {
				t.Errorf("%q %q single %d: got %+v %v, want %+v", row.remaining, row.reset, code,
					reply.Quota, err, want)
			}
			reply, err = c.Batch(within(t), queries(t, "8.8.8.8"))
			if reply.Quota != want || err == nil {
				t.Errorf("%q %q batch %d: got %+v %v, want %+v", row.remaining, row.reset, code,
					reply.Quota, err, want)
			}
		}
	}
}

func TestContextEndsAnExchange(t *testing.T) {
	arrived := make(chan struct{}, 8)
	for about, handler := range map[string]http.HandlerFunc{
		"before headers": func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-r.Context().Done()
		},
		"in the body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Rl", "3")
			w.Header().Set("X-Ttl", "9")
			io.WriteString(w, `{"status":`)
			w.(http.Flusher).Flush()
			arrived <- struct{}{}
			<-r.Context().Done()
		},
	} {
		c := newClient(t, ipapi.Pro, handler)
		ctx, cancel := context.WithCancel(within(t))
		go func() {
			<-arrived
			cancel()
		}()
		_, err := c.Single(ctx, query(t, "8.8.8.8"))
		checkFailure(t, about, c, err, "canceled", context.Canceled)
		_, err = c.Batch(ctx, queries(t, "8.8.8.8"))
		checkFailure(t, about+", context ended before", c, err, "canceled", context.Canceled)

		ctx, cancel = context.WithTimeout(within(t), 2*time.Second)
		reply, err := c.Single(ctx, query(t, "8.8.8.8"))
		cancel()
		checkFailure(t, about, c, err, "deadline", context.DeadlineExceeded)
		want := geo.Quota{}
		if about == "in the body" {
			want = geo.Quota{Known: true, Remaining: 3, Reset: 9 * time.Second}
		}
		if reply.Quota != want {
			t.Errorf("%s: got %+v, want %+v", about, reply.Quota, want)
		}
		for len(arrived) > 0 {
			<-arrived
		}
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	arrived := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	c := newClientAt(t, ipapi.Config{Base: server.URL, Tier: ipapi.Sim, Connections: 1})
	ctx, cancel := context.WithCancel(within(t))
	first := make(chan error, 1)
	go func() {
		_, err := c.Single(ctx, query(t, "8.8.8.8"))
		first <- err
	}()
	<-arrived
	second, cancelSecond := context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancelSecond()
	if _, err := c.Single(second, query(t, "8.8.8.8")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if len(arrived) != 0 {
		t.Error("a second connection was made")
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}

func TestRequestIsNeverRetried(t *testing.T) {
	var requests atomic.Int32
	c := newClient(t, ipapi.Free, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%2 == 0 {
			hijacked("")(w, r)
			return
		}
		io.WriteString(w, `{"status":"success","query":"8.8.8.8"}`)
	})
	if _, err := c.Single(within(t), query(t, "8.8.8.8")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Single(within(t), query(t, "8.8.8.8"))
	checkFailure(t, "a reused connection breaks", c, err, "connection to upstream broke", nil)
	if got := requests.Load(); got != 2 {
		t.Errorf("got %d requests, want 2", got)
	}
}

func TestConnectionIsReused(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(always(full))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := newClientAt(t, ipapi.Config{Base: server.URL, Tier: ipapi.Free})
	for range 5 {
		if _, err := c.Single(within(t), query(t, "8.8.8.8")); err != nil {
			t.Fatal(err)
		}
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("got %d connections, want 1", got)
	}
}
