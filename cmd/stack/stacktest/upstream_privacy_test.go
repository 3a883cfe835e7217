package stacktest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/loadtest/lab"
)

// mark is in every name that these tests look up.
const mark = "zqmarked"

// secrets matches what must not be in logs and metrics: marked names, addresses of queries and
// callers, results of the upstream, and the key.
var secrets = regexp.MustCompile(`(?i)` + mark +
	`|66\.77\.\d+|2a01:4f8|77\.88\.\d+|151\.101\.\d+|City of|` + apiKey)

// clean checks that text has no secret.
func clean(t *testing.T, where, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if found := secrets.FindString(line); found != "" {
			t.Errorf("got %q in %s: %s", found, where, line)
		}
	}
}

// TestQueriesAreNotLogged makes every kind of client and upstream error. Then it searches the
// metrics and the log at its most detailed level.
func TestQueriesAreNotLogged(t *testing.T) {
	e := emulator.New(t, emulator.Config{Key: apiKey})
	s := newPro(t, e, withFiles(t), func(c *stack.Config) {
		c.Lookups.Provider, c.Lookups.Reverser = panickingProvider{c.Lookups.Provider}, markingReverser{}
	})
	sendAllRequests(t, s)
	sendBrokenRequests(t, s)
	for i, fault := range []emulator.Fault{
		emulator.Status(500), emulator.Body("<html>" + mark), emulator.Drop, emulator.HangInBody,
		emulator.Redirect, emulator.Throttle(1),
		emulator.Huge(2 << 20), emulator.Status(403), nil,
	} {
		startFault(t, e, fault)
		s.lookup(fmt.Sprintf("%s-fault%d.com", mark, i))
		s.lookup(fmt.Sprintf("66.77.1.%d", i))
		s.bulk(fmt.Sprintf("%s-bulk%d.com", mark, i), fmt.Sprintf("66.77.2.%d", i))
		s.must(s.ask("GET", "/api/my-ip", "", fmt.Sprintf("77.88.1.%d", i)))
		eventually(t, func() bool { return s.breakerState() != open }, "the breaker")
	}
	metrics := s.MetricsText(t)
	log := s.Log.String()
	clean(t, "the log", log)
	clean(t, "the metrics", metrics)
	if strings.Contains(log, "127.0.0.1") || strings.Contains(metrics, "127.0.0.1") {
		t.Error("got the peer's address in the log or the metrics")
	}
	if lines := len(s.Log.Records("request")); lines < 60 || len(s.Log.Records("actor panicked")) < 2 {
		t.Errorf("got %d access lines or fewer than 2 panics, want at least 60 lines and 2 panics", lines)
	}
}

// sendAllRequests sends marked requests of every kind that the service responds to.
func sendAllRequests(t *testing.T, s *service) {
	t.Helper()
	queries := []string{
		mark + ".com", "66.77.88.99", "2a01:4f8::99", "http://" + mark + ".com/", mark + ".com/path",
		mark + "..com", mark,
		"66.77.88.999", mark + "%20x.com", "10.66.77.88", mark + ".localhost", mark + "-panic.com",
		mark + "%0a.com",
	}
	for i, query := range queries {
		for range 2 {
			s.must(s.ask("GET", "/api/lookup?q="+query, "", fmt.Sprintf("77.88.99.%d", i)))
		}
		s.must(s.ask("HEAD", "/api/lookup?q="+query, "", ""))
	}
	s.bulk(append(queries, "66.77.3.1", "66.77.3.2")...)
	s.bulk("66.77.4.1", "66.77.4.2", "66.77.4.66") // the last one panics
	for _, path := range []string{"/" + mark, "/api/lookup/" + mark, "/api/lookup?" + mark + "=1",
		"/api/lookup?q=" + mark + ".com&q=" + mark + ".net"} {
		s.must(s.ask("GET", path, "", ""))
	}
	for _, body := range []string{`{"queries":["` + mark + `.com"`, `{"queries":[{"` + mark + `":1}]}`,
		`"` + mark + `"`, strings.Repeat(mark, 10000)} {
		s.must(s.ask("POST", "/api/bulk", body, "66.77.5.5"))
	}
	for _, from := range []string{"77.88.99.50", "77.88.99.51, 77.88.99.52", mark, "2a01:4f8::77",
		"10.66.77.88", "77.88.99.53, " + mark} {
		s.must(s.ask("GET", "/api/my-ip", "", from))
	}
	if response, err := s.Client.Get(s.AdminURL + "/" + mark + "?" + mark); err != nil {
		t.Error(err)
	} else if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
}

// sendBrokenRequests sends malformed and incomplete HTTP requests.
func sendBrokenRequests(t *testing.T, s *service) {
	t.Helper()
	for _, text := range []string{
		mark + "\r\n\r\n",
		"GET /api/lookup?q=" + mark + ".com\r\n\r\n",
		"GET /api/lookup?q=" + mark + ".com HTTP/1.1\r\nHost: " + mark + "\r\n" + mark + "\r\n\r\n",
		"GET /api/lookup?q=" + mark + ".com HTTP/1.1\r\nHost: x\r\nX-" + mark + ": " +
			strings.Repeat(mark, 4000) + "\r\n\r\n",
		strings.ToUpper(mark) + " /api/lookup?q=66.77.6.6 HTTP/1.1\r\nHost: x\r\nUser-Agent: " + mark +
			"\r\nConnection: close\r\n\r\n",
		"POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nTransfer-Encoding: " + mark +
			"\r\n\r\n" + mark,
		"POST /api/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + mark + "\r\n",
		"GET http://" + mark + ".com/" + mark + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		stacktest.Must(t, err)
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			t.Error(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Error(err)
		}
		if response, err := io.ReadAll(conn); err != nil ||
			!strings.HasPrefix(string(response), "HTTP/1.1 4") {
			t.Errorf("got %q and %v for %.80q, want status 4xx", response[:min(len(response), 40)], err,
				text)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// panickingProvider panics for some queries, with their text.
type panickingProvider struct{ geo.Provider }

func (p panickingProvider) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	if strings.Contains(q.String(), "panic") {
		panic("cannot look up " + q.String())
	}
	return p.Provider.Single(ctx, q)
}

func (p panickingProvider) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	for _, q := range qs {
		if strings.HasSuffix(q.String(), ".4.66") {
			panic(fmt.Errorf("cannot look up %v", qs))
		}
	}
	return p.Provider.Batch(ctx, qs)
}

// markingReverser finds a marked reverse name for every address.
type markingReverser struct{}

func (markingReverser) Resolve(addr netip.Addr, done func(string)) {
	done(mark + "-" + addr.String() + ".example.net")
}

// TestProcessPrintsNoQueries runs the program, since some libraries print to standard error
// themselves.
func TestProcessPrintsNoQueries(t *testing.T) {
	e := emulator.New(t, emulator.Config{Key: apiKey})
	program, err := lab.Build(t.Context(), t.TempDir())
	stacktest.Must(t, err)
	var output strings.Builder
	server, err := lab.Gatehouse{Program: program, Lines: func(line string) { output.WriteString(line + "\n") },
		Env: []string{"IP_PROVIDER=ip-api-pro", "IP_API_KEY=" + apiKey, "IP_API_BASE=" + e.URL,
			"GATEHOUSE_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db")}}.Launch(t.Context(),
		"--ptr=off", "--log-level=debug", "--breaker-cooldown=100ms", "--trusted-proxies=127.0.0.0/8")
	stacktest.Must(t, err)
	defer server.Kill()
	for i, fault := range []emulator.Fault{nil, emulator.Chatter, emulator.Drop, emulator.Status(500),
		emulator.Body(mark), emulator.Redirect} {
		e.SetFault(fault)
		for j := range 3 {
			for _, query := range []string{fmt.Sprintf("%s%d-%d.com", mark, i, j),
				fmt.Sprintf("66.77.%d.%d", i, j), "http://" + mark} {
				response, err := http.Get(server.Base + "/api/lookup?q=" + query)
				stacktest.Must(t, err)
				stacktest.Must(t, response.Body.Close())
			}
		}
	}
	stacktest.Must(t, server.Stop())
	clean(t, "the output", output.String()+server.Output())
}
