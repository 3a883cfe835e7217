package coverage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Exchange is a request and its response.
type Exchange struct {
	Method, Path   string
	Request        http.Header
	Form           url.Values // of the request; nil = none
	Sending        any        // the request's JSON; nil = none
	Sent, Received time.Time
	Status         int
	Header         http.Header
	Body           any // JSON; nil = another type
	Query          url.Values
	// Values are those of the provider states: what they return, and what only the tests of the
	// contracts know of it.
	Values map[string]any
	// Ask sends the service another request, after the response. path may have a query.
	Ask func(method, path string, header http.Header, form url.Values) *Exchange

	request *http.Request // without its body
	target  string        // path and query
	text    []byte        // the body
	size    int           // of the body in bytes
	seen    bool          // an earlier response had the same request ID
	window  window        // when the first request with this limit came
	again   []string      // names of issued values that an earlier response had
}

// window is the time in which the first request of a rate limit came.
type window struct{ from, to time.Time }

// memory is what a checked service said before.
type memory struct {
	mu      sync.Mutex
	said    map[string]bool   // request IDs and issued values, each after its name
	windows map[string]window // by fixture, path and credential
}

// repeats reports whether a value was said before, and remembers it.
func (m *memory) repeats(name, value string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := name + " " + value
	before := m.said[key]
	m.said[key] = true
	return before
}

// opened returns the window that a request with a rate limit is in. A state may have opened it.
func (m *memory) opened(e *Exchange) window {
	credential := e.Request.Get("Authorization")
	if token := e.Form.Get("access_token"); token != "" {
		credential = "Bearer " + token
	}
	key := fmt.Sprint(e.Values["fixture"], " ", e.Path, " ", credential)
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.windows[key]
	if at, given := e.Values["opened "+e.Path].(time.Time); given && !ok {
		w, ok = window{at, at}, true
	}
	switch {
	case !ok || e.Sent.Sub(w.to) > limitWindow:
		w = window{e.Sent, e.Received}
	case e.Received.Sub(w.from) > limitWindow: // the window may have ended meanwhile
		w.to = e.Received
	}
	m.windows[key] = w
	return w
}

// object returns the body as an object; nil = it is none.
func (e *Exchange) object() object { return members(e.Body) }

// broken returns an error for each relation that e breaks.
func (e *Exchange) broken() []error {
	var all []error
	for _, r := range Relations() {
		if r.Paths != nil && !slices.Contains(r.Paths, e.Path) || e.Method == http.MethodOptions {
			continue
		}
		if err := r.Check(e); err != nil {
			all = append(all, fmt.Errorf("%s %s %d: %s: %w", e.Method, e.Path, e.Status, r.Name,
				err))
		}
	}
	return all
}

// Checked returns service with a check of all Relations on every response. values returns those of the
// states, nil = none; for a response that is repeated, also the times "sent" and "received" of the first
// one. failed gets an error for each relation that a response breaks. The response stays the same.
func Checked(service http.Handler, values func() map[string]any, failed func(error)) http.Handler {
	m := &memory{said: map[string]bool{}, windows: map[string]window{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		given := map[string]any{}
		if values != nil {
			given = values()
		}
		e := newExchange(r, sent, given)
		e.Ask = asker(service, r, m, e.Values)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		r.Header.Del("Accept-Encoding") // the relations read bodies
		recorder := httptest.NewRecorder()
		service.ServeHTTP(recorder, r)
		e.receive(recorder, m)
		if isLines(recorder.Header()) {
			e.Sending, e.Body = queriesOf(r.Header, sent), listOfLines(recorder.Body.Bytes())
		}
		e.seen = m.repeats("X-Request-Id", recorder.Header().Get("X-Request-Id"))
		for name, value := range e.issued() {
			if m.repeats(name, value) {
				e.again = append(e.again, name)
			}
		}
		for _, err := range e.broken() {
			failed(err)
		}
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes()) // the verifier notices a truncated body
	})
}

// newExchange returns the exchange of a request that is sent now.
func newExchange(r *http.Request, sent []byte, values map[string]any) *Exchange {
	e := &Exchange{Method: r.Method, Path: r.URL.Path, Request: r.Header.Clone(), Values: values,
		Query: r.URL.Query(), request: r.Clone(r.Context()), target: r.URL.RequestURI()}
	e.Sent = e.now("sent")
	e.request.Body = http.NoBody
	if isForm(r.Header) {
		e.Form, _ = url.ParseQuery(string(sent)) // a malformed form is the service's affair
	}
	e.Sending = parsed(sent)
	return e
}

// receive sets the response.
func (e *Exchange) receive(response *httptest.ResponseRecorder, m *memory) {
	e.Received, e.Status, e.Header = e.now("received"), response.Code, response.Header()
	e.text = response.Body.Bytes()
	e.Body, e.size = parsed(e.text), len(e.text)
	if e.Header.Get("X-RateLimit-Reset") != "" {
		e.window = m.opened(e)
	}
}

// now returns the time, or the one that a value names.
func (e *Exchange) now(name string) time.Time {
	if at, ok := e.Values[name].(time.Time); ok {
		return at
	}
	return time.Now()
}

func isForm(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "application/x-www-form-urlencoded")
}

func isLines(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "application/x-ndjson")
}

// listOfLines returns a stream in the form of a list: its last line with the others as results.
func listOfLines(text []byte) any {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	whole := members(parsed(lines[len(lines)-1]))
	results := []any{}
	for _, line := range lines[:len(lines)-1] {
		results = append(results, parsed(line))
	}
	return object{"results": results, "count": whole["count"], "failed": whole["failed"]}
}

// queriesOf returns the queries of a stream in the form of a list.
func queriesOf(h http.Header, text []byte) any {
	queries := []any{}
	for line := range strings.Lines(string(text)) {
		query := any(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if isLines(h) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			query = parsed([]byte(line))
		}
		if named := members(query); named != nil {
			query = named["query"]
		}
		queries = append(queries, query)
	}
	return object{"queries": queries}
}

// parsed returns JSON, or nil for anything else.
func parsed(text []byte) any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return v
}

// asker returns a function that sends requests from the caller of a request.
func asker(service http.Handler, of *http.Request, m *memory,
	values map[string]any) func(method, path string, header http.Header, form url.Values) *Exchange {
	return func(method, path string, header http.Header, form url.Values) *Exchange {
		r := of.Clone(of.Context())
		r.Method, r.Header = method, header.Clone()
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		r.URL.RawPath, r.RequestURI = "", path
		text := form.Encode()
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		e := newExchange(r, []byte(text), values)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		recorder := httptest.NewRecorder()
		service.ServeHTTP(recorder, r)
		e.receive(recorder, m)
		return e
	}
}

// introspect returns what the service says about a token to the client of e. ok is false for a
// client that may not ask, such as a public one.
func (e *Exchange) introspect(token string) (about object, ok bool) {
	header := http.Header{}
	question := url.Values{"token": {token}}
	switch {
	case e.Request.Get("Authorization") != "":
		header.Set("Authorization", e.Request.Get("Authorization"))
	case e.Form.Get("client_secret") != "":
		question["client_id"], question["client_secret"] = e.Form["client_id"],
			e.Form["client_secret"]
	default:
		return nil, false
	}
	got := e.Ask(http.MethodPost, own().introspect[0], header, question)
	return got.object(), got.Status == http.StatusOK
}

// profile asks for a profile with an access token, from a web page that no client has.
func (e *Exchange) profile(path, authorization string) *Exchange {
	return e.Ask(http.MethodGet, path, http.Header{"Authorization": {authorization},
		"Accept": {"application/json"}, "Origin": {stranger}}, nil)
}

// stranger is the origin of a web page that no client has.
const stranger = "https://stranger.example"
