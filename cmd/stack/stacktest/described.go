package stacktest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"gatehouse/cmd/stack/described"
)

// Described checks every response that passes through it against the OpenAPI document that the
// service serves.
type Described struct {
	*described.Document
	t    *testing.T
	next *http.Transport

	mu   sync.Mutex
	seen map[string]bool // "GET /path 200"
}

// documents are those that were read, by their text: a *described.Document each.
var documents sync.Map

// Describe makes st.Client check each response against the OpenAPI document.
func (st *Stack) Describe(t *testing.T) *Described {
	t.Helper()
	a := st.Get(t, "/openapi.yaml")
	a.Has(t, "Content-Type", "application/yaml")
	document, ok := documents.Load(a.Body)
	if !ok {
		var err error
		if document, err = described.Read([]byte(a.Body)); err != nil {
			t.Fatal(err)
		}
		documents.Store(a.Body, document)
	}
	d := &Described{Document: document.(*described.Document), t: t, next: st.Client.Transport.(*http.Transport),
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
	path, err := d.Check(r, response.StatusCode, response.Header, body)
	if path == "" {
		d.t.Errorf("got %s %s asked for, want an operation that is described", r.Method, r.URL.Path)
		return
	}
	if err != nil {
		d.t.Errorf("%s %s: got %d %.300s: %v", r.Method, path, response.StatusCode, body, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[r.Method+" "+path+" "+response.Status[:3]] = true
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
