package lookups_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"gatehouse/cmd/stack/stacktest"
)

// decoded returns a reader of what a body says without its coding.
func decoded(t *testing.T, coding string, body io.Reader) io.Reader {
	t.Helper()
	switch coding {
	case "gzip":
		r, err := gzip.NewReader(body)
		stacktest.Must(t, err)
		return r
	case "zstd":
		r, err := zstd.NewReader(body)
		stacktest.Must(t, err)
		t.Cleanup(r.Close)
		return r
	}
	return body
}

func TestLargeBodiesAreCompressed(t *testing.T) {
	st := stacktest.NewLookups(t)
	var queries []string
	for i := range 50 {
		queries = append(queries, fmt.Sprintf("8.8.8.%d", i))
	}
	bulk := func(n int) (path, kind, body string) {
		return "/api/bulk", "application/json", stacktest.BulkBody(t, queries[:n]...)
	}
	stream := func(n int) (path, kind, body string) {
		return "/api/stream", "text/plain", strings.Join(queries[:n], "\n")
	}
	for _, coding := range []string{"gzip", "zstd"} {
		for name, request := range map[string]func(int) (path, kind, body string){"bulk": bulk, "stream": stream} {
			for n, compressed := range map[int]bool{1: false, 3: true, 50: true} {
				path, kind, body := request(n)
				plain := st.Send(t, "POST", st.URL+path, body, "Content-Type", kind, "Accept-Encoding",
					"identity")
				small := st.Send(t, "POST", st.URL+path, body, "Content-Type", kind, "Accept-Encoding",
					coding)
				want := ""
				if compressed {
					want = coding
					small.Has(t, "Vary", "Accept-Encoding")
				}
				small.Has(t, "Content-Encoding", want)
				plain.Has(t, "Content-Encoding", "", "Vary", "")
				got, err := io.ReadAll(decoded(t, want, strings.NewReader(small.Body)))
				if err != nil || string(got) != plain.Body {
					t.Errorf("%s %s %d: got %q and %v, want %q", coding, name, n, got, err, plain.Body)
				}
				if compressed && len(small.Body) > len(plain.Body)/2 {
					t.Errorf("%s %s %d: got %d bytes of %d, want half at most", coding, name, n,
						len(small.Body), len(plain.Body))
				}
			}
		}
	}
	a := st.Get(t, "/api/lookup?q=8.8.8.8", "Accept-Encoding", "gzip")
	a.Has(t, "Content-Encoding", "")
	bad := st.Send(t, "POST", st.URL+"/api/bulk", "{", "Content-Type", "application/json",
		"Accept-Encoding", "gzip")
	bad.Has(t, "Content-Encoding", "")
}

// A compressed line comes when it is known, like any other.
func TestCompressedLineComesWhenItIsKnown(t *testing.T) {
	for _, coding := range []string{"gzip", "zstd"} {
		g := newGate("slow.example.com")
		st := stacktest.NewLookups(t, stacktest.WithProvider(g))
		lines := openStream(t, st, "9.9.9.9\nslow.example.com\n8.8.8.8\n", coding)
		for _, query := range []string{"9.9.9.9", "slow.example.com", "8.8.8.8"} {
			if query == "slow.example.com" {
				close(g.open)
			}
			line, err := lines.ReadString('\n')
			if err != nil || !strings.Contains(line, query) {
				t.Errorf("%s: got %q and %v, want the line of %s", coding, line, err, query)
			}
		}
	}
}

// Lines that have filled a chunk come as well before the stream waits.
func TestCompressedChunkComesBeforeAWait(t *testing.T) {
	g := newGate("slow.example.com")
	st := stacktest.NewLookups(t, stacktest.WithProvider(g))
	line, _, _ := strings.Cut(st.PostStream(t, "text/plain", "x\n").Body, "\n")
	full := (32<<10)/(len(line)+1) + 1
	lines := openStream(t, st, strings.Repeat("x\n", full)+"slow.example.com\n", "gzip")
	for i := range full {
		if got, err := lines.ReadString('\n'); err != nil || got != line+"\n" {
			t.Fatalf("got %q and %v as line %d, want %s", got, err, i, line)
		}
	}
	close(g.open)
	if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, `"ok":true`) {
		t.Errorf("got %q and %v, want a result: the lines before came too late", got, err)
	}
}

// openStream returns the reader of a stream's lines.
func openStream(t *testing.T, st *stacktest.Stack, body, coding string) *bufio.Reader {
	t.Helper()
	request, err := http.NewRequest("POST", st.URL+"/api/stream", strings.NewReader(body))
	stacktest.Must(t, err)
	request.Header.Set("Content-Type", "text/plain")
	request.Header.Set("Accept-Encoding", coding)
	res, err := st.Client.Do(request)
	stacktest.Must(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return bufio.NewReader(decoded(t, res.Header.Get("Content-Encoding"), res.Body))
}
