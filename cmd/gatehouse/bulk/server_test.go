package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/cmd/gatehouse/bulk"
)

var lines = flag.Int("lines", 20_000, "lines of TestOutages")

// fake is a server in memory. serve returns the status of a request; 200 = answer it.
type fake struct {
	mu       sync.Mutex
	serve    func(h http.Header) int
	item     func(query string) string // JSON of a query's item; nil = a result
	body     func(text string) string  // changes a response; nil = leave it
	asked    map[string]int
	inFlight int
	most     int
	refused  int      // requests that got another status
	fields   []string // of the output; nil = the city
	key      string
	query    string        // of the last request's URL
	silent   bool          // requests end with their context only
	stopped  time.Duration // of the third request, which fails then
	calls    int
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	queries := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if err != nil || len(queries) > 30_000 || r.URL.Path != "/api/stream" {
		return nil, fmt.Errorf("got %d queries for %s, %w", len(queries), r.URL, err)
	}
	f.mu.Lock()
	f.inFlight++
	f.most = max(f.most, f.inFlight)
	f.key, f.query = r.Header.Get("X-Api-Key"), r.URL.RawQuery
	f.calls++
	stops := f.calls == 3 && f.stopped > 0
	f.mu.Unlock()
	if stops {
		time.Sleep(f.stopped)
		return nil, io.ErrUnexpectedEOF
	}
	if f.silent {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	time.Sleep(20 * time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight--
	response := &http.Response{Header: http.Header{}, Request: r}
	response.StatusCode = f.serve(response.Header)
	var out strings.Builder
	if response.StatusCode == 0 {
		f.refused++
		return nil, io.ErrUnexpectedEOF
	}
	if response.StatusCode != http.StatusOK {
		f.refused++
		out.WriteString(`{"ok":false,"error":"overloaded","message":"no"}`)
	} else {
		for _, query := range queries {
			item := ""
			if f.item != nil {
				item = f.item(query)
			}
			if item == "" {
				f.asked[query]++
				item = fmt.Sprintf(`{"ok":true,"query":%q,"ip":%q,"ipVersion":"IPv4","location":{"city":"at %s"}}`,
					query, query, query)
			}
			fmt.Fprintln(&out, item)
		}
		fmt.Fprintf(&out, `{"done":true,"count":%d,"failed":0}`+"\n", len(queries))
	}
	body := out.String()
	if f.body != nil {
		body = f.body(body)
	}
	response.Body = io.NopCloser(strings.NewReader(body))
	return response, nil
}

// ask runs lines of input through a server, and returns what is written.
func ask(t *testing.T, f *fake, input io.Reader, output io.Writer) (bulk.Position, error) {
	t.Helper()
	f.asked = map[string]int{}
	in, err := bulk.NewInput(input)
	if err != nil {
		t.Fatal(err)
	}
	if f.fields == nil {
		f.fields = []string{"city"}
	}
	plan, err := bulk.NewPlan(bulk.CSV, f.fields, bulk.Lines)
	if err != nil {
		t.Fatal(err)
	}
	s := bulk.NewServer(bulk.ServerConfig{URL: "http://server", Key: "key", Plan: plan,
		Client: &http.Client{Transport: f}, Patience: 15 * time.Minute})
	return bulk.Run(context.Background(), bulk.Config{Input: in, Layout: bulk.Layout{Kind: bulk.Lines},
		Plan: plan, Source: s, Output: output, Workers: bulk.MaxInFlight,
		MaxRows: bulk.MaxBatch, MaxErrors: -1})
}

func ok(http.Header) int { return http.StatusOK }

// address returns the text of the nth address.
func address(n int) string { return fmt.Sprintf("%d.%d.%d.%d", 20+n>>24, n>>16&255, n>>8&255, n&255) }

// numbers is an input of addresses in their order.
type numbers struct{ next, end int }

func (n *numbers) Read(p []byte) (int, error) {
	size := 0
	for ; n.next < n.end && len(p)-size > 16; n.next++ {
		size += copy(p[size:], address(n.next)+"\n")
	}
	if size == 0 {
		return 0, io.EOF
	}
	return size, nil
}

// sequence checks that each row is the one after that before it.
type sequence struct {
	t    *testing.T
	rest []byte
	next int
}

func (s *sequence) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		want := "query,city,error"
		if s.next > 0 {
			want = address(s.next-1) + ",at " + address(s.next-1) + ","
		}
		if string(line) != want {
			s.t.Fatalf("row %d: got %s, want %s", s.next, line, want)
		}
		s.next++
		s.rest = s.rest[:copy(s.rest, rest)]
	}
}

// TestOutages sends many lines through a server that fails in several ways for half of each minute.
func TestOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		f := &fake{}
		f.serve = func(h http.Header) int {
			calls++
			if time.Since(began)%time.Minute < 30*time.Second && calls%100 != 0 {
				return http.StatusOK
			}
			if calls%3 == 0 {
				h.Set("Retry-After", strconv.Itoa(1+calls%7))
			}
			return []int{0, 429, 502, 503, 504}[calls%5]
		}
		out := &sequence{t: t}
		end, err := ask(t, f, &numbers{end: *lines}, out)
		if err != nil || end.Rows != int64(*lines) || end.Failed != 0 || out.next != *lines+1 {
			t.Errorf("got %+v and error %v, want %d rows", end, err, *lines)
		}
		for query, times := range f.asked {
			if times != 1 {
				t.Fatalf("got %s answered %d times, want once", query, times)
			}
		}
		t.Logf("%v of virtual time, at most %d requests in flight", time.Since(began), f.most)
	})
}

func TestLongOutage(t *testing.T) {
	for minutes, isLost := range map[int]bool{10: false, 20: true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			f := &fake{serve: func(http.Header) int {
				if time.Since(began) < time.Duration(minutes)*time.Minute {
					return 0
				}
				return http.StatusOK
			}}
			end, err := ask(t, f, &numbers{end: 200}, &sequence{t: t})
			if isLost != (err != nil) || !isLost && end.Rows != 200 {
				t.Errorf("%d minutes: got %+v and error %v, want an error: %v", minutes, end, err, isLost)
			}
			if took := time.Since(began); isLost && (took < 15*time.Minute || took > 15*time.Minute+time.Second) {
				t.Errorf("got the error after %v, want it after the patience of 15 minutes", took)
			}
		})
	}
}

// TestOutageOfProvider expects the error to say that the server's provider is down, not the server.
func TestOutageOfProvider(t *testing.T) {
	for code, want := range map[string]string{"provider_unreachable": "cannot reach its provider",
		"overloaded": "no capacity"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{serve: ok}
			f.item = func(query string) string {
				return fmt.Sprintf(`{"ok":false,"query":%q,"error":%q,"retry_after":30}`, query, code)
			}
			_, err := ask(t, f, &numbers{end: 50}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %v, want one with %q", code, err, want)
			}
		})
	}
}

// TestStoppedProcess has a request that ends long after the last success, as it does when the
// process was stopped for a while. That is the first failure, not an outage.
func TestStoppedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{serve: ok, stopped: time.Hour}
		if end, err := ask(t, f, &numbers{end: 5000}, &sequence{t: t}); err != nil || end.Rows != 5000 {
			t.Errorf("got %+v and error %v, want 5000 rows", end, err)
		}
	})
}

// TestSilentServer has a server that takes requests and never responds.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{serve: ok, silent: true}
		began := time.Now()
		_, err := ask(t, f, &numbers{end: 1}, io.Discard)
		if took := time.Since(began); err == nil || took > 36*time.Minute {
			t.Errorf("got error %v after %s, want one", err, took)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string][2]time.Duration{ // between which the pause has to be
		"7": {7 * time.Second, 8 * time.Second}, "3600": {2 * time.Minute, 3 * time.Minute},
		"-1": {400 * time.Millisecond, time.Second}, "soon": {400 * time.Millisecond, time.Second},
		"99999999999999999999": {400 * time.Millisecond, time.Second}, "": {400 * time.Millisecond, time.Second},
		"Sat, 01 Jan 2000 00:00:10 GMT": {9 * time.Second, 11 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			f := &fake{serve: func(h http.Header) int {
				if calls++; calls == 1 {
					h.Set("Retry-After", value)
					return http.StatusServiceUnavailable
				}
				return http.StatusOK
			}}
			began := time.Now()
			if _, err := ask(t, f, &numbers{end: 1}, io.Discard); err != nil {
				t.Errorf("%q: got error %v, want none", value, err)
			}
			if got := time.Since(began); got < want[0] || got > want[1] {
				t.Errorf("%q: got a pause of %v, want %v to %v", value, got, want[0], want[1])
			}
		})
	}
}

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{serve: ok}
		if _, err := ask(t, f, &numbers{end: 100_000}, io.Discard); err != nil || f.most != 32 {
			t.Errorf("got error %v and at most %d requests in flight, want 32", err, f.most)
		}
		room := &fake{}
		room.serve = func(http.Header) int {
			if room.inFlight >= 3 {
				return http.StatusTooManyRequests
			}
			return http.StatusOK
		}
		if _, err := ask(t, room, &numbers{end: 20_000}, io.Discard); err != nil || room.most > 16 {
			t.Errorf("got error %v and at most %d requests at a server for 3, want few", err, room.most)
		}
		if n := room.refused; n > 200 {
			t.Errorf("got %d refusals for 400 requests, want few", n)
		}
	})
}

func TestDuplicatesAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{serve: ok}
		input := strings.Repeat("8.8.8.8\n[8.8.8.8]:53\n::ffff:8.8.8.8\n1.1.1.1\n10.0.0.1\n", 10_000)
		end, err := ask(t, f, strings.NewReader(input), io.Discard)
		if err != nil || end.Rows != 50_000 || end.Failed != 10_000 || len(f.asked) != 2 ||
			f.asked["8.8.8.8"] != 1 || f.asked["1.1.1.1"] != 1 || f.key != "key" {
			t.Errorf("got %+v, error %v and questions %v", end, err, f.asked)
		}
	})
}

// TestLastQueriesAreRemembered repeats 100 queries at the end that are among the last 16,384, and
// 100 that are not.
func TestLastQueriesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const distinct = 40_000
		f := &fake{serve: ok}
		input := io.MultiReader(&numbers{end: distinct}, &numbers{next: distinct - 10_100,
			end: distinct - 10_000}, &numbers{end: 100})
		if end, err := ask(t, f, input, io.Discard); err != nil || end.Rows != distinct+200 {
			t.Errorf("got %+v and error %v, want %d rows", end, err, distinct+200)
		}
		for n, want := range map[int]int{0: 2, 99: 2, 100: 1, distinct - 10_100: 1, distinct - 10_001: 1} {
			if got := f.asked[address(n)]; got != want {
				t.Errorf("got query %d asked %d times, want %d", n, got, want)
			}
		}
	})
}

// TestFailuresOfOneRoundHalveTheLimitOnce fails all requests that are in flight at one time.
func TestFailuresOfOneRoundHalveTheLimitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		var outage time.Time
		after := 0
		f.serve = func(http.Header) int {
			switch {
			case f.most == 32 && outage.IsZero():
				outage = time.Now()
				return http.StatusServiceUnavailable
			case time.Now().Equal(outage):
				return http.StatusServiceUnavailable
			case !outage.IsZero() && after == 0:
				after = f.inFlight + 1
			}
			return http.StatusOK
		}
		if _, err := ask(t, f, &numbers{end: 100_000}, io.Discard); err != nil || after != 16 {
			t.Errorf("got error %v and %d requests in flight after failures, want 16 of 32", err, after)
		}
	})
}

// TestPatienceOutlastsSlowProgress has one result in each response, for longer than the patience.
func TestPatienceOutlastsSlowProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fake{serve: ok}
		var last time.Time
		f.item = func(query string) string {
			if time.Since(last) >= time.Minute {
				last = time.Now()
				return ""
			}
			return fmt.Sprintf(`{"ok":false,"query":%q,"error":"rate_limited","retry_after":60}`, query)
		}
		end, err := ask(t, f, &numbers{end: 30}, io.Discard)
		if took := time.Since(began); err != nil || end.Rows != 30 || took < 29*time.Minute {
			t.Errorf("got %+v and error %v in %v, want 30 rows in half an hour", end, err, took)
		}
	})
}

func TestDetailsAreAskedFor(t *testing.T) {
	for field, want := range map[string]string{"city": "", "asn": "details=1", "data.prefix": "details=1"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{serve: ok, fields: []string{field}}
			if _, err := ask(t, f, &numbers{end: 1}, io.Discard); err != nil || f.query != want {
				t.Errorf("%s: got error %v and the URL's query %q, want %q", field, err, f.query, want)
			}
		})
	}
}

func TestItemErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, dead := time.Now(), 0
		f := &fake{serve: ok}
		f.item = func(query string) string {
			failing := func(code string, wait int) string {
				return fmt.Sprintf(`{"ok":false,"query":%q,"error":%q,"message":"","reason":"","retry_after":%d}`,
					query, code, wait)
			}
			switch {
			case query == "dead.example.com":
				dead++
				return failing("provider_unreachable", 0)
			case query == "9.9.9.9":
				return failing("invalid_query", 0)
			case query == "1.1.1.1" && time.Since(began) < 3*time.Minute:
				return failing("rate_limited", 60)
			}
			return ""
		}
		var out strings.Builder
		end, err := ask(t, f, strings.NewReader("8.8.8.8\ndead.example.com\n9.9.9.9\n1.1.1.1\n"), &out)
		want := "query,city,error\n8.8.8.8,at 8.8.8.8,\ndead.example.com,,provider_unreachable\n" +
			"9.9.9.9,,invalid_query\n1.1.1.1,at 1.1.1.1,\n"
		if err != nil || end.Failed != 2 || out.String() != want || f.asked["8.8.8.8"] != 1 || dead != 3 {
			t.Errorf("got error %v, %+v, %d questions about the dead domain and\n%s\nwant 3 and\n%s", err, end,
				dead, &out, want)
		}
	})
}

// TestGarbledResponses repeats what does not fit, and believes none of it.
func TestGarbledResponses(t *testing.T) {
	const first = `{"ok":true,"query":"20.0.0.0",`
	done := regexp.MustCompile(`{"done".*\n$`)
	for name, garble := range map[string]func(text string) string{
		"cut off":             func(text string) string { return text[:rand.IntN(len(text)-1)] },
		"no last line":        func(text string) string { return done.ReplaceAllString(text, "") },
		"more than was asked": func(text string) string { return text + text },
		"other line first":    func(text string) string { return `{"ok":true,"query":"x"}` + "\n" + text },
		"swapped lines": func(text string) string {
			lines := strings.SplitAfter(text, "\n")
			lines[1], lines[2] = lines[2], lines[1]
			return strings.Join(lines, "")
		},
		"swapped addresses": func(text string) string {
			return strings.NewReplacer(`"ip":"20.0.0.1"`, `"ip":"20.0.0.2"`,
				`"ip":"20.0.0.2"`, `"ip":"20.0.0.1"`).Replace(text)
		},
		"done too early":  func(string) string { return `{"done":true,"count":50,"failed":0}` + "\n" },
		"no lines":        func(string) string { return "" },
		"a page":          func(string) string { return "<html>\n<p>Please sign in.\n" },
		"an endless line": func(string) string { return strings.Repeat(" ", 1<<20) },
		"a result without an address": func(text string) string {
			return strings.Replace(text, `"ip":"20.0.0.0"`, `"ip":"everywhere"`, 1)
		},
		"no JSON for strict readers": func(text string) string {
			return strings.Replace(text, `"at 20.0.0.0"`, `nan`, 1)
		},
		"control characters": func(text string) string {
			return strings.Replace(text, `"at 20.0.0.0"`, "\"\x1b[31m\"", 1)
		},
		"no UTF-8": func(text string) string {
			return strings.Replace(text, `"at 20.0.0.0"`, "\"\xff\"", 1)
		},
		"a long line": func(text string) string {
			return strings.Replace(text, `"at 20.0.0.0"`, `"`+strings.Repeat("a", 9<<10)+`"`, 1)
		},
		"an error without a code": func(text string) string {
			return strings.Replace(text, first, `{"ok":false,"query":"20.0.0.0",`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{serve: ok}
				calls := 0
				f.body = func(text string) string {
					if calls++; calls > 3 {
						return text
					}
					return garble(text)
				}
				out := &sequence{t: t}
				end, err := ask(t, f, &numbers{end: 50}, out)
				if err != nil || end.Rows != 50 || end.Failed != 0 || out.next != 51 {
					t.Errorf("got %+v and error %v, want 50 rows", end, err)
				}
			})
		})
	}
}

// TestCutOffResponse asks only for what the response did not have.
func TestCutOffResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{serve: ok}
		calls := 0
		f.body = func(text string) string {
			if calls++; calls == 1 {
				return text[:strings.Index(text, `{"ok":true,"query":"20.0.0.40"`)+10]
			}
			return text
		}
		if end, err := ask(t, f, &numbers{end: 50}, &sequence{t: t}); err != nil || end.Rows != 50 {
			t.Errorf("got %+v and error %v, want 50 rows", end, err)
		}
		for i := range 50 {
			if got, want := f.asked[address(i)], 1+i/40; got != want {
				t.Errorf("got %s asked %d times, want %d", address(i), got, want)
			}
		}
	})
}

func TestRefusedRequests(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 413, 302} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{serve: func(http.Header) int { return status }}
			_, err := ask(t, f, &numbers{end: 50_000}, io.Discard)
			want := strconv.Itoa(status)
			if status == http.StatusNotFound {
				want = "no /api/stream"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("status %d: got error %v, want %s", status, err, want)
			}
		})
	}
}

// TestSummaryOfLongNames counts names together that are too long to be kept.
func TestSummaryOfLongNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{serve: ok, asked: map[string]int{}}
		f.item = func(query string) string {
			return fmt.Sprintf(`{"ok":true,"query":%q,"ip":%q,"network":{"as":%q}}`, query, query,
				strings.Repeat(query, 100))
		}
		s := bulk.NewSummary()
		in, err := bulk.NewInput(&numbers{end: 50})
		if err != nil {
			t.Fatal(err)
		}
		plan := s.Plan()
		source := bulk.NewServer(bulk.ServerConfig{URL: "http://server", Plan: plan,
			Client: &http.Client{Transport: f}, Patience: time.Minute})
		_, err = bulk.Run(context.Background(), bulk.Config{Input: in, Plan: plan, Source: source,
			Layout: bulk.Layout{Kind: bulk.Lines}, Output: io.Discard, Workers: 1, MaxRows: 50,
			MaxErrors: -1})
		var out bytes.Buffer
		if err = errors.Join(err, s.WriteJSON(&out)); err != nil ||
			!strings.Contains(out.String(), `"as":[{"name":"other","rows":50}]`) {
			t.Errorf("got error %v and %s, want 50 rows of others", err, &out)
		}
	})
}
