package lookups_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

func TestStreamIsInOrder(t *testing.T) {
	st := stacktest.NewLookups(t)
	st.Get(t, "/api/lookup?q=9.9.9.9")
	want := []struct{ query, reason string }{
		{"8.8.8.8", ""}, {"http://x.example", "has_scheme"}, {"9.9.9.9", ""}, {" example.com ", ""},
		{"8.8.8.8", ""}, {"10.0.0.1", "private_range"}, {"", "empty"}, {"a\x00b", "malformed"},
		{"\uFFFD", "malformed"}, {`"8.8.8.8"`, "malformed"}, {"8.8.4.4", ""},
	}
	var text, lines []string
	for _, w := range want {
		text = append(text, w.query)
		line, err := json.Marshal(w.query)
		stacktest.Must(t, err)
		lines = append(lines, string(line), "", `{"id":[1],"query":`+string(line)+`}`)
	}
	raw := strings.ReplaceAll(strings.Join(text, "\n"), "\uFFFD", "\xFF")
	for name, c := range map[string]struct {
		kind, body string
		each       int
	}{
		"text":                  {"text/plain", raw, 1},
		"text without a type":   {"", raw, 1},
		"text by curl":          {"application/x-www-form-urlencoded", raw, 1},
		"text with an end":      {"text/plain; charset=utf-8", raw + "\n", 1},
		"text from Windows":     {"Text/Plain", "\uFEFF" + strings.ReplaceAll(raw, "\n", "\r\n"), 1},
		"JSON lines":            {"application/x-ndjson", strings.Join(lines, "\n"), 2},
		"JSON lines by Windows": {"application/jsonl", strings.Join(lines, "\r\n"), 2},
	} {
		a := st.PostStream(t, c.kind, c.body)
		for i, r := range a.StreamLines(t, c.each*len(want), 6*c.each) {
			w := want[i/c.each]
			reason, _ := r["reason"].(string)
			if r["query"] != w.query || r["ok"] != (w.reason == "") || reason != w.reason {
				t.Errorf("%s: got %v as line %d, want %q with %q", name, r, i, w.query, w.reason)
			}
		}
		a.Has(t, "Content-Type", "application/x-ndjson", "Cache-Control", "no-store",
			"Access-Control-Allow-Origin", "*")
	}
}

// A line of a stream is the response of a single lookup, byte for byte.
func TestStreamLinesAreLookups(t *testing.T) {
	st := stacktest.NewLookups(t)
	for _, query := range []string{"8.8.8.8", "2001:4860::8888", "example.com", "10.0.0.1", "x"} {
		want := st.Get(t, "/api/lookup?q="+query).Body + "\n"
		got := st.PostStream(t, "text/plain", query).Body
		if !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestInvalidStreams(t *testing.T) {
	st := stacktest.NewLookups(t)
	for name, c := range map[string]struct {
		kind, body, code, reason string
		status                   int
	}{
		"empty":                  {"text/plain", "", "invalid_query", "empty", 400},
		"only a mark":            {"text/plain", "\uFEFF", "invalid_query", "empty", 400},
		"no JSON lines":          {"application/x-ndjson", "\n \n", "invalid_query", "empty", 400},
		"not JSON":               {"application/x-ndjson", "\"8.8.8.8\"\n8.8.8.8", "invalid_query", "malformed", 400},
		"an array":               {"application/x-ndjson", `["8.8.8.8"]`, "invalid_query", "malformed", 400},
		"a number":               {"application/x-ndjson", `{"query":8}`, "invalid_query", "malformed", 400},
		"no query":               {"application/x-ndjson", `{"q":"8.8.8.8"}`, "invalid_query", "malformed", 400},
		"two queries":            {"application/x-ndjson", `{"query":"8.8.8.8","query":"x"}`, "invalid_query", "malformed", 400},
		"a NUL":                  {"application/x-ndjson", "\"8.8.8.8\x00\"", "invalid_query", "malformed", 400},
		"a long line":            {"text/plain", strings.Repeat("x", 4097), "invalid_query", "malformed", 400},
		"30,001 lines":           {"text/plain", strings.Repeat("8.8.8.8\n", 30_001), "invalid_query", "too_many", 400},
		"30,001 JSON lines":      {"application/x-ndjson", strings.Repeat("\"8.8.8.8\"\n", 30_001), "invalid_query", "too_many", 400},
		"30,001 without an end":  {"text/plain", strings.Repeat("\n", 30_000) + "x", "invalid_query", "too_many", 400},
		"a MiB and a byte":       {"text/plain", strings.Repeat("8.8.8.8.8.8.8.8\n", 1<<16) + "x", "payload_too_large", "", 413},
		"JSON":                   {"application/json", `"8.8.8.8"`, "unsupported_media_type", "", 415},
		"a type that begins so":  {"text/plainer", "8.8.8.8", "unsupported_media_type", "", 415},
		"a type with a list":     {"text/plain, text/plain", "8.8.8.8", "unsupported_media_type", "", 415},
		"something in multipart": {"multipart/form-data; boundary=x", "8.8.8.8", "unsupported_media_type", "", 415},
	} {
		a := st.PostStream(t, c.kind, c.body)
		o := a.Object(t)
		if a.Status != c.status || o["error"] != c.code || o["reason"] != c.reason || o["ok"] != false ||
			o["query"] != "" {
			t.Errorf("%s: got %d %s, want %d %s %s", name, a.Status, a.Body, c.status, c.code, c.reason)
		}
	}
	a := st.PostStream(t, "application/x-ndjson", "\"x\"\n\n{}")
	if !strings.HasPrefix(a.Object(t)["message"].(string), "Line 3 is not a JSON string") {
		t.Errorf("got %s, want the number of the line", a.Body)
	}
	a = st.Send(t, "POST", st.URL+"/api/stream", "x", "Content-Type", "text/plain",
		"Content-Encoding", "gzip")
	a.Fails(t, 415, "unsupported_media_type", "")
}

func TestLargestStream(t *testing.T) {
	st := stacktest.NewLookups(t)
	most := strings.Repeat("8.8.8.8\n", 30_000)
	st.PostStream(t, "text/plain", most).StreamLines(t, 30_000, 0)
	bulky := strings.Repeat(strings.Repeat(" ", 4095)+"\n", 256)
	st.PostStream(t, "text/plain", bulky).StreamLines(t, 256, 256)
	if len(bulky) != 1<<20 {
		t.Errorf("got %d bytes, want a MiB", len(bulky))
	}
}

// The limits of other paths stay as they are.
func TestOnlyStreamsMayBeLarge(t *testing.T) {
	st := stacktest.NewLookups(t)
	for _, path := range []string{"/api/bulk", "/api/streams", "/api/stream/", "/api/bulk?x=/api/stream",
		"//x/api/stream"} {
		a := st.Send(t, "POST", st.URL+path, strings.Repeat(" ", 65<<10), "Content-Type",
			"text/plain")
		if a.Status != 413 {
			t.Errorf("%s: got %d, want 413", path, a.Status)
		}
	}
	body := strings.Repeat(" ", 4000) + "\n"
	body = strings.Repeat(body, 20)
	for _, target := range []string{"/api/stream", "/api/stream?x=y", "http://x/api/stream"} {
		conn := st.Dial(t)
		conn.Say(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"+
			"Content-Length: %d\r\n\r\n%s", target, len(body), body))
		conn.Hear().StreamLines(t, 20, 20)
	}
	a := st.Send(t, "POST", st.AdminURL+"/api/stream", strings.Repeat(" ", 65<<10))
	if a.Status != 413 {
		t.Errorf("admin: got %d, want 413", a.Status)
	}
}

const streamHead = "POST /api/stream HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"

func TestStreamFraming(t *testing.T) {
	st := stacktest.NewLookups(t)
	conn := st.Dial(t)
	conn.Say(streamHead + "Expect: 100-continue\r\nContent-Length: 7\r\n\r\n")
	if a := conn.Hear(); a.Status != 100 {
		t.Errorf("got %d, want 100", a.Status)
	}
	conn.Say("8.8.8.8")
	conn.Hear().StreamLines(t, 1, 0)
	big := strings.Repeat("8.8.8.8\n", 20_000)
	conn.Say(streamHead + "Transfer-Encoding: chunked\r\n\r\n")
	for rest := big; rest != ""; rest = rest[16_000:] {
		conn.Say(fmt.Sprintf("%x\r\n%s\r\n", 16_000, rest[:16_000]))
	}
	conn.Say("0\r\n\r\nGET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: x\r\n\r\n")
	conn.Hear().StreamLines(t, 20_000, 0)
	if a := conn.Hear(); a.Status != 200 {
		t.Errorf("got %d for the next request, want 200", a.Status)
	}
	for _, framing := range []string{"Content-Length: 1048577\r\n\r\n",
		"Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n100001\r\n"} {
		conn := st.Dial(t)
		conn.Say(streamHead + framing)
		a := conn.Hear()
		if a.Status == 100 {
			a = conn.Hear()
		}
		a.Fails(t, 413, "payload_too_large", "")
		if !strings.Contains(a.Body, "1 MiB") || !a.Closes {
			t.Errorf("got %s, want the limit of streams and the end", a.Body)
		}
	}
	conn = st.Dial(t)
	conn.Say("POST /api/stream HTTP/1.0\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\nx")
	conn.Hear().Fails(t, 400, "bad_request", "")
}

// A body that never ends is cut off by the read timeout.
func TestStreamThatNeverArrives(t *testing.T) {
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.ReadTimeout = 50 * time.Millisecond })
	for _, framing := range []string{"Content-Length: 100000\r\n\r\n8.8.8.8\n",
		"Transfer-Encoding: chunked\r\n\r\n8\r\n8.8.8.8\n\r\n"} {
		conn := st.Dial(t)
		conn.Say(streamHead + framing)
		if a := conn.Hear(); a.Status != 408 {
			t.Errorf("got %d, want 408", a.Status)
		}
	}
}

// gate is a provider that answers a query when the test lets it.
type gate struct {
	*stacktest.Provider
	open chan struct{}
}

func newGate(closed string) *gate {
	g := &gate{stacktest.NewProvider(), make(chan struct{})}
	g.Ask = func(ctx context.Context, q geo.Query) (geo.Answer, error) {
		if q.String() == closed {
			select {
			case <-g.open:
			case <-ctx.Done():
				return geo.Answer{}, ctx.Err()
			}
		}
		return stacktest.Everything(ctx, q)
	}
	return g
}

// TestStreamLineComesWhenItIsKnown reads the lines before a query that has no outcome yet.
func TestStreamLineComesWhenItIsKnown(t *testing.T) {
	g := newGate("slow.example.com")
	st := stacktest.NewLookups(t, stacktest.WithProvider(g),
		func(c *stack.Config) { c.Lookups.Timeout = stacktest.Patience })
	st.Get(t, "/api/lookup?q=9.9.9.9")
	request, err := http.NewRequest("POST", st.URL+"/api/stream",
		strings.NewReader("9.9.9.9\nx\nfast.example.com\nslow.example.com\n8.8.8.8\n"))
	stacktest.Must(t, err)
	request.Header.Set("Content-Type", "text/plain")
	res, err := st.Client.Do(request)
	stacktest.Must(t, err)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for _, query := range []string{"9.9.9.9", "x", "fast.example.com", "slow.example.com", "8.8.8.8"} {
		if query == "slow.example.com" {
			close(g.open)
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, `"query":`+strconv.Quote(query)) {
			t.Errorf("got %q and %v, want the line of %s", line, err, query)
		}
	}
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != `{"done":true,"count":5,"failed":1}`+"\n" {
		t.Errorf("got %q and %v, want the end", rest, err)
	}
}

func TestStreamBeyondTheBudget(t *testing.T) {
	st := stacktest.NewLookups(t, stacktest.WithProvider(throttled{stacktest.NewProvider()}),
		func(c *stack.Config) { c.Lookups.Timeout = 2 * time.Second })
	st.PostBulk(t, stacktest.BulkBody(t, "8.8.8.8", "8.8.4.4")).BulkItems(t, 2, 0)
	st.Get(t, "/api/lookup?q=9.9.9.9")
	for _, r := range st.PostStream(t, "text/plain", "1.1.1.1\n1.0.0.1").StreamLines(t, 2, 2) {
		if wait, ok := r["retry_after"].(float64); !ok || r["error"] != "rate_limited" || wait < 20 || wait > 31 {
			t.Errorf("got %v, want rate_limited with retry_after of half a minute", r)
		}
	}
}

// A stream is logged and counted when it has ended, without its queries.
func TestStreamIsLoggedAtItsEnd(t *testing.T) {
	st := stacktest.NewLookups(t)
	a := st.PostStream(t, "text/plain", "8.8.8.8\n")
	end := fmt.Sprintf(`"route":"/api/stream","request_id":"%s"`, a.Header.Get("X-Request-Id"))
	log := st.Log.String()
	if !strings.Contains(log, fmt.Sprintf(`"bytes":%d`, len(a.Body))) || strings.Contains(log, "8.8.8.8") {
		t.Errorf("got the log %s, want %s with %d bytes and without the query", log, end, len(a.Body))
	}
	want := `gatehouse_http_requests_total{method="POST",route="/api/stream",status="200"} 1`
	if got := st.MetricsText(t); !strings.Contains(got, want) {
		t.Errorf("got no %s", want)
	}
}

// One address cannot hold the room of all streams. Its bodies lack a byte each, so that all of them
// are being received until one is refused.
func TestStreamRoomOfAnAddress(t *testing.T) {
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.ReadTimeout = stacktest.Patience })
	own := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	statuses := make(chan string, 18)
	for range 18 {
		conn, err := own.Dial("tcp", strings.TrimPrefix(st.URL, "http://"))
		stacktest.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		go func() {
			if _, err := io.WriteString(conn, streamHead+"Content-Length: 1000000\r\n\r\n"+
				strings.Repeat(" ", 999_999)); err != nil {
				return // the one that is refused may be so early
			}
			if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				statuses <- strings.TrimSpace(line)
			}
		}()
	}
	select {
	case got := <-statuses:
		if got != "HTTP/1.1 503 Service Unavailable" {
			t.Errorf("got %s, want 503", got)
		}
	case <-time.After(stacktest.Patience):
		t.Error("got room for 18 MB of one address, want 503 for one")
	}
	st.PostStream(t, "text/plain", strings.Repeat("8.8.8.8\n", 3000)).StreamLines(t, 3000, 0)
}

// throttled is a provider whose budget is gone for the next 30 seconds once it was asked.
type throttled struct{ *stacktest.Provider }

func (p throttled) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	return p.Batch(ctx, []geo.Query{q})
}

func (p throttled) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	reply, err := p.Provider.Batch(ctx, qs)
	reply.Quota = geo.Quota{Known: true, Remaining: 0, Reset: 30 * time.Second}
	return reply, err
}

func (p throttled) Terms() geo.Terms {
	return geo.Terms{Source: geo.SourceUpstream, SinglesPerMinute: 45, BatchesPerMinute: 15,
		BatchSize: 100}
}
