// Package mutants holds services that are broken on purpose: gatehouse with one defect. Good pacts
// fail with each of them.
package mutants

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
	"strconv"
	"strings"
)

// Mutant is one broken service.
type Mutant struct {
	Name      string // of the defect, such as "email is missing"
	Operation string // such as "GET /api/user"
	Status    int    // of the responses that it breaks; 0 = any
	Word      string // that those responses contain, such as an error code; "" = any
	Asks      bool   // it changes requests
	// Interaction fails with it, such as "oauth-app: a request for a profile"; "" = any one may.
	Interaction string
	// Wrap adds the defect to the real service.
	Wrap func(service http.Handler) http.Handler
}

// String names the mutant as reports do.
func (m Mutant) String() string {
	if m.Status == 0 {
		return m.Operation + ": " + m.Name
	}
	return fmt.Sprintf("%s %d: %s", m.Operation, m.Status, m.Name)
}

// All returns the mutants that need an idea of what responses mean. Their strings are unique, also
// among those of Generated.
func All() []Mutant {
	return slices.Concat(tokenMutants(), tokenMisbehaviour(), tokenValueMutants(), waitMutants(),
		profileMutants(), resultMutants(), lookupMutants(), bulkMutants(), streamMutants(),
		edgeMutants(), pageMutants(), browserMutants(), discoveryMutants(), idTokenMutants(),
		userInfoMutants(), clientMutants(), valueMutants(), operatorMutants())
}

// response is the correct response, which a change breaks.
type response struct {
	request *http.Request
	form    url.Values // of the request; nil = none
	status  int
	header  http.Header
	body    []byte
}

// change breaks a response.
type change func(*response)

// spoiled returns a Mutant whose responses are those of the service, with one change.
func spoiled(operation string, status int, name string, f change) Mutant {
	return Mutant{Name: name, Operation: operation, Status: status,
		Wrap: func(service http.Handler) http.Handler {
			broken := changed(func(a *response) {
				if status == 0 || a.status == status {
					f(a)
				}
			})(service)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method+" "+r.URL.Path == operation {
					broken.ServeHTTP(w, r)
				} else {
					service.ServeHTTP(w, r)
				}
			})
		}}
}

// changed returns a wrapper that makes a change to each response.
func changed(f change) func(http.Handler) http.Handler {
	return func(service http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a, err := responseOf(service, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			f(a)
			a.send(w)
		})
	}
}

// Control returns a service without a defect, which writes its responses as the Mutants do. No
// interaction may fail with it.
func Control(operation string) Mutant {
	return spoiled(operation, 0, "nothing", func(r *response) {
		r.object("", func(map[string]any) {})
	})
}

// of returns m with a Word.
func (m Mutant) of(word string) Mutant {
	m.Word = word
	return m
}

// responseOf sends a request to the service.
func responseOf(service http.Handler, r *http.Request) (*response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a := &response{request: r}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		a.form, _ = url.ParseQuery(string(sent)) // changes ignore a malformed form
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	r.Header.Del("Accept-Encoding") // changes read bodies
	recorder := httptest.NewRecorder()
	service.ServeHTTP(recorder, r)
	a.status, a.header, a.body = recorder.Code, recorder.Header(), recorder.Body.Bytes()
	return a, nil
}

func (a *response) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	if a.request.Method != http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the verifier notices a truncated body
}

// value replaces the body by v.
func (a *response) value(v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // parsed JSON can be written
	}
	a.body = body
	a.header.Set("Content-Type", "application/json")
}

// object changes the body, or the objects at path in it: member names, and * for all elements of an
// array.
func (a *response) object(path string, f func(map[string]any)) {
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	var body any
	if d.Decode(&body) != nil || d.More() { // or it has lines of JSON
		return
	}
	steps := strings.Split(path, ".")
	if path == "" {
		steps = nil
	}
	visit(body, steps, f)
	a.value(body)
}

func visit(v any, steps []string, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		if len(steps) == 0 {
			f(v)
			return
		}
		visit(v[steps[0]], steps[1:], f)
	case []any:
		for _, element := range v {
			if len(steps) > 0 && steps[0] == "*" {
				visit(element, steps[1:], f)
			}
		}
	}
}
