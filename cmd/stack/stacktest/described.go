package stacktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Described checks every response that passes through it against the OpenAPI document that the
// service serves.
type Described struct {
	t     *testing.T
	Doc   *openapi3.T
	whole *openapi3.T // Doc for requests without fields: no result is a selection of members
	next  *http.Transport

	mu   sync.Mutex
	seen map[string]bool // "GET /path 200"
}

func init() {
	for _, kind := range []string{"text/html", "application/x-ndjson"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.PlainBodyDecoder)
	}
}

// Describe makes st.Client check each response against the OpenAPI document.
func (st *Stack) Describe(t *testing.T) *Described {
	t.Helper()
	a := st.Get(t, "/openapi.yaml")
	a.Has(t, "Content-Type", "application/yaml")
	doc, err := openapi3.NewLoader().LoadFromData([]byte(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := openapi3.NewLoader().LoadFromData([]byte(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	*whole.Components.Schemas["LookupSelection"].Value = openapi3.Schema{Enum: []any{"never"}}
	d := &Described{t: t, Doc: doc, whole: whole, next: st.Client.Transport.(*http.Transport),
		seen: map[string]bool{}}
	st.Client.Transport = d
	return d
}

func (d *Described) CloseIdleConnections() { d.next.CloseIdleConnections() }

func (d *Described) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	d.check(r, response, body)
	return response, nil
}

func (d *Described) check(r *http.Request, response *http.Response, body []byte) {
	doc := d.whole
	if r.URL.Query().Has("fields") {
		doc = d.Doc
	}
	path, item := find(doc, r.URL.Path)
	operation := item.GetOperation(r.Method)
	if operation == nil {
		d.t.Errorf("got %s %s asked for, want an operation that is described", r.Method, r.URL.Path)
		return
	}
	err := openapi3filter.ValidateResponse(d.t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r, Route: &routers.Route{Spec: doc, Path: path, PathItem: item,
				Method: r.Method, Operation: operation},
		},
		Status: response.StatusCode, Header: response.Header,
		Body:    io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if response.Header.Get("Content-Type") == "application/x-ndjson" {
		err = errors.Join(err, checkLines(doc, body))
	}
	if err != nil {
		d.t.Errorf("%s %s: got %d %.300s: %v", r.Method, path, response.StatusCode, body, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[r.Method+" "+path+" "+response.Status[:3]] = true
}

// checkLines returns an error unless each line of a stream is a StreamLine, and only the last one is
// a StreamEnd.
func checkLines(doc *openapi3.T, body []byte) error {
	line, end := doc.Components.Schemas["StreamLine"].Value, doc.Components.Schemas["StreamEnd"].Value
	lines := bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
	for i, text := range lines {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if err := line.VisitJSON(value); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if ends := end.VisitJSON(value) == nil; ends != (i == len(lines)-1) {
			return fmt.Errorf("line %d of %d: got StreamEnd %v", i+1, len(lines), ends)
		}
	}
	return nil
}

// find returns the path of the document that is meant; one without parameters wins.
func find(doc *openapi3.T, path string) (string, *openapi3.PathItem) {
	if item := doc.Paths.Value(path); item != nil {
		return path, item
	}
	parts := strings.Split(path, "/")
	for pattern, item := range doc.Paths.Map() {
		matches := strings.Split(pattern, "/")
		if len(matches) != len(parts) {
			continue
		}
		fits := true
		for i, m := range matches {
			fits = fits && (m == parts[i] || strings.HasPrefix(m, "{"))
		}
		if fits {
			return pattern, item
		}
	}
	return "", &openapi3.PathItem{}
}

// Covers checks that these responses came: "GET /path 200".
func (d *Described) Covers(answers ...string) {
	d.t.Helper()
	for _, a := range answers {
		if !d.seen[a] {
			d.t.Errorf("got no response %s, want one to hold against the document", a)
		}
	}
}
