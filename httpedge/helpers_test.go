package httpedge_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// start starts a stack before a provider that has an response for everything, unless options name
// another.
func start(t *testing.T, options ...stacktest.Option) *stacktest.Stack {
	t.Helper()
	return stacktest.New(t, append([]stacktest.Option{withProvider(stacktest.NewProvider())},
		options...)...)
}

func withProvider(p geo.Provider) stacktest.Option {
	return func(c *stack.Config) { c.Lookups.Provider = p }
}

// response is a response that was read to its end.
type response struct {
	status int
	header http.Header
	body   string
	closes bool // the connection ends with it
}

// send does one request; headers are name, value, name, value…
func send(t *testing.T, st *stacktest.Stack, method, target, body string,
	headers ...string) response {
	t.Helper()
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := st.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, res)
}

func get(t *testing.T, st *stacktest.Stack, path string, headers ...string) response {
	t.Helper()
	return send(t, st, "GET", st.URL+path, "", headers...)
}

func postBulk(t *testing.T, st *stacktest.Stack, body string) response {
	t.Helper()
	return send(t, st, "POST", st.URL+"/api/bulk", body, "Content-Type", "application/json")
}

func read(t *testing.T, res *http.Response) response {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, string(body), res.Close}
}

// object decodes the body.
func (a response) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.body), &o); err != nil {
		t.Fatalf("got body %q, want a JSON object: %v", a.body, err)
	}
	return o
}

// fails checks status, code and reason of an error in the shape of the geolocation service.
func (a response) fails(t *testing.T, status int, code, reason string) {
	t.Helper()
	o := a.object(t)
	if a.status != status || o["ok"] != false || o["error"] != code || o["reason"] != reason ||
		o["message"] == "" {
		t.Errorf("got %d %s, want %d %s %q", a.status, a.body, status, code, reason)
	}
}

// has checks a header's value.
func (a response) has(t *testing.T, name, want string) {
	t.Helper()
	if got := a.header.Get(name); got != want {
		t.Errorf("got %s: %q, want %q", name, got, want)
	}
}

// patience only keeps a test from hanging.
const patience = 5 * time.Minute

// raw is a connection whose bytes the test writes itself.
type raw struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dial(t *testing.T, st *stacktest.Stack) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(st.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &raw{conn, t, bufio.NewReader(conn)}
}

func (r *raw) say(s string) {
	r.t.Helper()
	if _, err := io.WriteString(r.Conn, s); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) hear() response {
	r.t.Helper()
	res, err := http.ReadResponse(r.r, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return read(r.t, res)
}

// ends checks that the server closes the connection and says nothing more.
func (r *raw) ends() {
	r.t.Helper()
	if rest, err := io.ReadAll(r.r); err != nil || len(rest) > 0 {
		r.t.Errorf("got %q and %v, want a closed connection", rest, err)
	}
}
