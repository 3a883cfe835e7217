//go:build pact

package pacttest

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pact-foundation/pact-go/v2/consumer"
	"github.com/pact-foundation/pact-go/v2/matchers"
	"github.com/pact-foundation/pact-go/v2/models"
)

// Interaction is a request of the consumer and the response that it expects.
type Interaction struct {
	Name     string // description; unique in a pact
	Given    []State
	Request  Request
	Response Response
}

// State is a provider state, with its parameters.
type State = models.ProviderState

// Given returns a state with parameters, as alternating names and values.
func Given(name string, parameters ...any) State {
	s := State{Name: name, Parameters: map[string]any{}}
	for i := 0; i+1 < len(parameters); i += 2 {
		s.Parameters[fmt.Sprint(parameters[i])] = parameters[i+1]
	}
	return s
}

// Request is a request of the consumer. At most one of Form, JSON and Text is set.
type Request struct {
	Method, Path string
	PathFrom     string           // the path with values of states, as in "/admin/v1/users/${user_id}"; "" = Path
	Query        map[string][]any // strings and matchers.Matcher
	Header       map[string]any   // strings and matchers.Matcher
	Form         url.Values
	JSON         any
	Text         string // a body with the Content-Type of Header
}

// Response is the response that the consumer expects, at least.
type Response struct {
	Status int
	Header map[string]any // strings and matchers.Matcher
	JSON   any            // nil = any body
	Text   string         // the whole body, with the Content-Type of Header; "" = any body
}

// Test runs call as a subtest against a mock of the provider at the URL base. The mock responds to
// the request of in. The subtest fails on any other request, or without one.
func (p *Pact) Test(t *testing.T, in Interaction, call func(t *testing.T, base string)) {
	t.Helper()
	if _, again := p.names[in.Name]; again {
		t.Fatalf("got two interactions %q, want one", in.Name)
	}
	p.names[in.Name] = struct{}{}
	t.Run(in.Name, func(t *testing.T) {
		folder := t.TempDir() // else the library rewrites one file for each interaction
		mock, err := consumer.NewV4Pact(consumer.MockHTTPProviderConfig{Consumer: p.consumer,
			Provider: p.provider, PactDir: folder, LogDir: folder})
		if err != nil {
			t.Fatal(err)
		}
		interaction := mock.AddInteraction().UponReceiving(in.Name)
		for _, state := range in.Given {
			interaction.GivenWithParameter(state)
		}
		err = interaction.
			WithRequestPathMatcher(consumer.Method(in.Request.Method), in.Request.path(), in.Request.describe).
			WillRespondWith(in.Response.Status, in.Response.describe).
			ExecuteTest(t, func(server consumer.MockServerConfig) error {
				call(t, fmt.Sprintf("http://%s:%d", server.Host, server.Port))
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.written.add(filepath.Join(folder, p.file())); err != nil {
			t.Error(err)
		}
	})
}

func (r *Request) path() matchers.Matcher {
	if r.PathFrom != "" {
		return FromState(r.PathFrom, r.Path)
	}
	return matchers.String(r.Path)
}

func (r *Request) describe(b *consumer.V4RequestBuilder) {
	for _, name := range slices.Sorted(maps.Keys(r.Query)) {
		values := make([]matchers.Matcher, len(r.Query[name]))
		for i, v := range r.Query[name] {
			values[i] = matcher(v)
		}
		b.Query(name, values...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		b.Header(name, matcher(r.Header[name]))
	}
	switch {
	case r.Form != nil:
		b.Body("application/x-www-form-urlencoded", []byte(r.Form.Encode()))
	case r.JSON != nil:
		b.JSONBody(r.JSON)
	case r.Text != "":
		b.Body(fmt.Sprint(r.Header["Content-Type"]), []byte(r.Text))
	}
}

func (r *Response) describe(b *consumer.V4ResponseBuilder) {
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		b.Header(name, matcher(r.Header[name]))
	}
	switch {
	case r.JSON != nil:
		b.JSONBody(r.JSON)
	case r.Text != "":
		b.Body(fmt.Sprint(r.Header["Content-Type"]), []byte(r.Text))
	}
}

// matcher returns v as a matcher. The library copies plain strings into JSON, so a string with
// quotes needs a matcher for equality.
func matcher(v any) matchers.Matcher {
	switch v := v.(type) {
	case matchers.Matcher:
		return v
	case string:
		if strings.ContainsAny(v, `"\`) {
			return matchers.Equality(v)
		}
		return matchers.S(v)
	}
	panic(fmt.Sprintf("got a %T as query or header, want a string or a matcher", v))
}
