package property_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"gatehouse/contracts/coverage"
)

// member returns a member of a JSON object that is a string. body keeps the parsed text.
func member(text []byte, body map[string]any, name string) (string, bool) {
	if len(body) == 0 && json.Unmarshal(text, &body) != nil {
		return "", false
	}
	value, ok := body[name].(string)
	return value, ok
}

// planted is a defect that only some requests show.
type planted struct {
	name, said string // the error that names it
	spoil      func(r *http.Request, w *httptest.ResponseRecorder)
}

var allPlanted = []planted{
	{"errors of pages for others have a member more", "additional properties 'debug' not allowed",
		func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.Header.Get("Origin") == "null" && w.Code >= 400 {
				replace(w, `"message":`, `"debug":"x","message":`)
			}
		}},
	{"fields in a stream drops ok", "the document describes it: line ",
		func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.URL.Path == "/api/stream" && r.URL.Query().Has("fields") {
				replace(w, `"ok":true,`, "")
			}
		}},
	{"any origin of a preflight is trusted", "Access-Control-Allow-Origin is the page's origin",
		func(r *http.Request, w *httptest.ResponseRecorder) {
			if origin := r.Header.Get("Origin"); r.Method == "GET" && origin != "" &&
				strings.HasPrefix(r.URL.Path, "/api/user") {
				w.Header().Set("Access-Control-Allow-Origin", origin)
			}
		}},
	{"failed is one less where a query has letters", "count and failed count the results",
		func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.URL.Path == "/api/bulk" && strings.Contains(w.Body.String(), "has_scheme") {
				replace(w, `"failed":1`, `"failed":0`)
			}
		}},
	{"a wait is in milliseconds", "Retry-After is in seconds",
		func(r *http.Request, w *httptest.ResponseRecorder) {
			if wait := w.Header().Get("Retry-After"); wait != "" && r.Method == "POST" {
				w.Header().Set("Retry-After", wait+"000")
			}
		}},
}

// finds reports whether the response would break a relation if it had the defect.
func (p planted) finds(r *http.Request, values map[string]any,
	response *httptest.ResponseRecorder) (found bool) {
	spoiled := httptest.NewRecorder()
	write(spoiled, response)
	if p.spoil(r, spoiled); maps.EqualFunc(spoiled.Header(), response.Header(), equal) &&
		bytes.Equal(spoiled.Body.Bytes(), response.Body.Bytes()) {
		return false
	}
	coverage.Checked(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w, spoiled) }),
		func() map[string]any { return values },
		func(err error) { found = found || strings.Contains(err.Error(), p.said) },
	).ServeHTTP(httptest.NewRecorder(), r)
	return found
}

func equal(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

// write writes a response that was recorded.
func write(w http.ResponseWriter, response *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), response.Header().Clone())
	w.WriteHeader(response.Code)
	_, _ = w.Write(response.Body.Bytes()) // a recorder takes all
}

func replace(w *httptest.ResponseRecorder, old, to string) {
	w.Body = bytes.NewBufferString(strings.ReplaceAll(w.Body.String(), old, to))
	if w.Header().Get("Content-Length") != "" {
		w.Header().Set("Content-Length", strconv.Itoa(w.Body.Len()))
	}
}
