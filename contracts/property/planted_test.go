package property_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// member returns a member of a JSON object that is a string. body keeps the parsed text.
func member(text []byte, body map[string]any, name string) (string, bool) {
	if len(body) == 0 && json.Unmarshal(text, &body) != nil {
		return "", false
	}
	value, ok := body[name].(string)
	return value, ok
}

// observer stands for a test that may fail. It runs in a goroutine of its own.
type observer struct {
	*testing.T
	failed bool
	said   []string
}

func (o *observer) Fail()                     { o.failed = true }
func (o *observer) Failed() bool              { return o.failed }
func (o *observer) FailNow()                  { o.failed = true; runtime.Goexit() }
func (o *observer) Logf(f string, a ...any)   { o.said = append(o.said, fmt.Sprintf(f, a...)) }
func (o *observer) Errorf(f string, a ...any) { o.Logf(f, a...); o.Fail() }
func (o *observer) Error(a ...any)            { o.Errorf("%s", fmt.Sprint(a...)) }
func (o *observer) Fatalf(f string, a ...any) { o.Logf(f, a...); o.FailNow() }
func (o *observer) Fatal(a ...any)            { o.Fatalf("%s", fmt.Sprint(a...)) }

// TestPlantedViolations requires that sequences find services with one defect each, which only
// some requests show.
func TestPlantedViolations(t *testing.T) {
	all := operations(t)
	for name, spoil := range map[string]func(r *http.Request, w *httptest.ResponseRecorder){
		"errors of pages for others have a member more": func(r *http.Request,
			w *httptest.ResponseRecorder) {
			if r.Header.Get("Origin") == "null" && w.Code >= 400 {
				replace(w, `"message":`, `"debug":"x","message":`)
			}
		},
		"fields in a stream drops ok": func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.URL.Path == "/api/stream" && r.URL.Query().Has("fields") {
				replace(w, `"ok":true,`, "")
			}
		},
		"any origin of a preflight is trusted": func(r *http.Request,
			w *httptest.ResponseRecorder) {
			if origin := r.Header.Get("Origin"); r.Method == "GET" && origin != "" &&
				strings.HasPrefix(r.URL.Path, "/api/user") {
				w.Header().Set("Access-Control-Allow-Origin", origin)
			}
		},
		"failed is one less where a query has letters": func(r *http.Request,
			w *httptest.ResponseRecorder) {
			if r.URL.Path == "/api/bulk" && strings.Contains(w.Body.String(), "has_scheme") {
				replace(w, `"failed":1`, `"failed":0`)
			}
		},
		"a wait is in milliseconds": func(r *http.Request, w *httptest.ResponseRecorder) {
			if wait := w.Header().Get("Retry-After"); wait != "" && r.Method == "POST" {
				w.Header().Set("Retry-After", wait+"000")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(real http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					recorder := httptest.NewRecorder()
					real.ServeHTTP(recorder, r)
					spoil(r, recorder)
					recorder.Header().Del("Content-Length")
					maps.Copy(w.Header(), recorder.Header())
					w.WriteHeader(recorder.Code)
					_, _ = w.Write(recorder.Body.Bytes()) // a recorder takes all
				})
			})
			o, done := &observer{T: t}, make(chan bool)
			go func() {
				defer close(done)
				check(o, 1, sequences, s.sequence(all))
			}()
			<-done
			if !o.failed {
				t.Error("got no violation, want it found")
			}
		})
	}
}

func replace(w *httptest.ResponseRecorder, old, to string) {
	w.Body = bytes.NewBufferString(strings.ReplaceAll(w.Body.String(), old, to))
}
