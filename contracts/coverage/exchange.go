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
	// Ask sends the service another request, after the response.
	Ask func(method, path string, header http.Header, form url.Values) *Exchange

	size int  // of the body in bytes
	seen bool // an earlier response had the same request ID
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

// Checked returns service with a check of all Relations on every response. failed gets an error for
// each that a response breaks. The response stays the same.
func Checked(service http.Handler, failed func(error)) http.Handler {
	var ids sync.Map // request IDs of responses
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		e := &Exchange{Method: r.Method, Path: r.URL.Path, Request: r.Header.Clone(),
			Sent: time.Now(), Ask: asker(service, r)}
		if isForm(r.Header) {
			e.Form, _ = url.ParseQuery(string(sent)) // a malformed form is the service's affair
		}
		e.Sending = parsed(sent)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		r.Header.Del("Accept-Encoding") // the relations read bodies
		recorder := httptest.NewRecorder()
		service.ServeHTTP(recorder, r)
		e.Received, e.Status, e.Header = time.Now(), recorder.Code, recorder.Header()
		e.Body, e.size = parsed(recorder.Body.Bytes()), recorder.Body.Len()
		if isLines(recorder.Header()) {
			e.Sending, e.Body = queriesOf(r.Header, sent), listOfLines(recorder.Body.Bytes())
		}
		_, e.seen = ids.LoadOrStore(recorder.Header().Get("X-Request-Id"), true)
		for _, err := range e.broken() {
			failed(err)
		}
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes()) // the verifier notices a truncated body
	})
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
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		query := any(line)
		if isLines(h) {
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
func asker(service http.Handler, of *http.Request) func(method, path string, header http.Header,
	form url.Values) *Exchange {
	return func(method, path string, header http.Header, form url.Values) *Exchange {
		r := of.Clone(of.Context())
		r.Method, r.Header = method, header.Clone()
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", ""
		text := form.Encode()
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		recorder := httptest.NewRecorder()
		service.ServeHTTP(recorder, r)
		return &Exchange{Method: method, Path: path, Status: recorder.Code,
			Header: recorder.Header(), Body: parsed(recorder.Body.Bytes())}
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
	got := e.Ask(http.MethodPost, introspected[0], header, question)
	return got.object(), got.Status == http.StatusOK
}

// profile asks for a profile with an access token, from a web page that no client has.
func (e *Exchange) profile(path, authorization string) *Exchange {
	return e.Ask(http.MethodGet, path, http.Header{"Authorization": {authorization},
		"Accept": {"application/json"}, "Origin": {stranger}}, nil)
}

// stranger is the origin of a web page that no client has.
const stranger = "https://stranger.example"
