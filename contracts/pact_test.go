package contracts_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
)

const parties = `"consumer":{"name":"shop"},"provider":{"name":"gatehouse"}`

func readPact(t *testing.T, text string) *contracts.Pact {
	t.Helper()
	p, err := contracts.ReadPact([]byte(text), "p.json")
	stacktest.Must(t, err)
	return p
}

// TestVersionsOfPacts reads one interaction in the formats of versions 1 to 4.
func TestVersionsOfPacts(t *testing.T) {
	for _, row := range []struct{ interaction, want string }{
		{`{"description":"d","provider_state":"s","request":{"method":"GET","path":"/a","query":"b=1"}}`, "[{s map[]}] GET /a?b=1 true false"},
		{`{"description":"d","providerState":"s","request":{"method":"GET","path":"/a"}}`,
			"[{s map[]}] GET /a true false"},
		{`{"description":"d","providerStates":[{"name":"s","params":{"n":5}},{"name":"r"}],"request":{"method":"GET","path":"/a"}}`, "[{s map[n:5]} {r map[]}] GET /a true false"},
		{`{"type":"Synchronous/HTTP","description":"d","pending":true,"request":{"method":"GET","path":"/a"}}`, "[] GET /a true true"},
		{`{"type":"Asynchronous/Messages","description":"d"}`, "[]   false false"},
	} {
		it := readPact(t, `{`+parties+`,"interactions":[`+row.interaction+`]}`).Interactions[0]
		if got := fmt.Sprint(it.States, " ", it.Method, " ", it.Path, " ", it.HTTP, " ",
			it.Pending); got != row.want || it.Description != "d" {
			t.Errorf("%s: got %s, want %s", row.interaction, got, row.want)
		}
	}
	if p := readPact(t, `{`+
		parties+`,"messages":[{"description":"m"}]}`); len(p.Interactions) != 1 ||
		p.Interactions[0].HTTP {
		t.Errorf("got %+v, want the message to be seen", p.Interactions)
	}
}

// exchange is the rest of a good interaction.
const exchange = `"request":{"method":"GET","path":"/a"},"response":{"status":200}`

func TestReadPactRejects(t *testing.T) {
	good := `{` + parties + `,"interactions":[]}`
	for _, row := range []struct{ text, want string }{
		{"", "line 1, column 1: unexpected end of JSON input"}, {"[]", "no JSON object"},
		{"null", "no JSON object"}, {"{}", "names no consumer"},
		{`{"consumer":{"name":"a"}}`, "no provider"},
		{`{` + parties + `,"interactions":[1]}`, "interaction 1 is no object"},
		{`{` + parties + `,"interactions":{}}`, "interactions is no array"},
		{good + "x", "line 1, column 79: invalid character 'x' after top-level value"},
		{"\n" + good + "\n{}", "line 3, column 1: invalid character '{' after top-level value"},
		{"{\n \"é\":\t]}", "line 2, column 7: invalid character ']' looking for"},
		{"\xef\xbb\xbf" + good, "byte order mark"}, {"\xff\xfe{\x00}\x00", "not UTF-8"},
	} {
		if _, err := contracts.ReadPact([]byte(row.text), "p.json"); err == nil ||
			!strings.Contains(err.Error(), "p.json is not a pact: ") ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: got %v, want an error that names the file and %q", row.text, err,
				row.want)
		}
	}
}

// TestProblems reads interactions that the library cannot try.
func TestProblems(t *testing.T) {
	const request = `"request":{"method":"GET","path":"/a"}`
	for _, row := range []struct{ interaction, want string }{
		{exchange, ""},
		{request + `,"response":{}`, ""},
		{`"response":{"status":200}`, "it has no request"},
		{request, "it has no response"},
		{request + `,"response":null`, "it has no response"},
		{request + `,"response":{"status":"200"}`,
			`the status is "200", want an integer from 100 to 599`},
		{request + `,"response":{"status":200.5}`, "the status is 200.5"},
		{request + `,"response":{"status":99}`, "the status is 99"},
		{request + `,"response":{"headers":[]}`, "headers of the response is no object"},
		{request + `,"response":{"matchingRules":"x"}`, "matchingRules of the response"},
		{`"request":{"method":5,"path":"/a"},"response":{}`, "the request has no method"},
		{`"request":{"method":"GET"},"response":{}`, "the request has no path"},
		{exchange + `,"providerStates":"a user"`, "providerStates is no array"},
		{exchange + `,"providerStates":[{"params":{}}]`, "a provider state has no name"},
		{exchange + `,"pluginConfiguration":{"csv":{}}`, "it needs the plugin csv"},
		{`"request":{"method":"GET","path":"/a"},
"response":{"body":{"contentType":"text/csv","content":"a,b"}}`, "it needs the plugin csv"},
		{`"request":{"method":"GET","path":"/a"},
"response":{"body":{"contentType":"application/json; charset=utf-8","content":{}}}`, ""},
	} {
		p := readPact(t, `{`+parties+`,"interactions":[{"description":"d",`+row.interaction+
			`}],"metadata":{"plugins":[{"name":"csv","version":"0.0.6"}]}}`)
		if got := p.Interactions[0].Problem; !strings.HasPrefix(got, row.want) ||
			(got == "") != (row.want == "") {
			t.Errorf("%s: got %q, want %q", row.interaction, got, row.want)
		}
		err := p.Malformed()
		if wrong := err != nil; wrong != (row.want != "") ||
			wrong && !strings.Contains(err.Error(), `p.json: interaction "d": `+row.want) {
			t.Errorf("%s: got %v, want the problem with its place", row.interaction, err)
		}
		text, err := p.Prepared()
		if err != nil || strings.Contains(string(text), "plugins") {
			t.Errorf("%s: got %s and error %v, want no plugins to load", row.interaction, text, err)
		}
	}
}

func TestCheckNamesEveryProblem(t *testing.T) {
	p := readPact(t, `{`+parties+`,"interactions":[{"description":"one","providerState":"a usr",`+
		exchange+`},{"description":"two","providerState":"a user",`+exchange+`},
{"description":"three","providerStates":[{"name":"a user","params":{"size":1}},{"name":"b"}],`+
		exchange+`}]}`)
	err := p.Check()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{
		`p.json: interaction "one": state "a usr": there is no such state; did you mean "a user"?`,
		`interaction "three": state "a user": it has no parameter "size"`,
		`interaction "three": state "b": there is no such state`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "two") {
		t.Errorf("got %v, want nothing about the second", err)
	}
}

// TestCheckOfValues uses values that the states of an interaction give, and others.
func TestCheckOfValues(t *testing.T) {
	for _, row := range []struct{ states, generators, want string }{
		{`{"name":"an access token"}`, `"header":{"Authorization":{"type":"ProviderState","expression":"Bearer ${access_token}"}}`, ""},
		{`{"name":"an access token"}`, `"header":{"A":{"type":"ProviderState","expression":"access_token"}},"body":{"$.n":{"type":"RandomInt"}}`, ""},
		{`{"name":"an access token"}`, `"header":{"Authorization":{"type":"ProviderState","expression":"Bearer ${no_such}"}}`,
			`it uses the value "no_such", and its states give access_token, client_id,`},
		{`{"name":"a user"}`, `"path":{"type":"ProviderState","expression":"/${user_id}/${code}"}`,
			`it uses the value "code", and its states give service_id, user_id`},
		{``, `"query":{"q":[{"type":"ProviderState","expression":"${a}"}],"$.q":{"type":"ProviderState","expression":"${b}"}}`,
			`it uses the value "b", and its states give none`},
	} {
		p := readPact(t, `{`+parties+`,"interactions":[{"description":"d","providerStates":[`+row.states+
			`],"request":{"method":"GET","path":"/a","generators":{`+row.generators+
			`}},"response":{"status":200}}]}`)
		err := p.Check()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(),
			row.want) {
			t.Errorf("%s: got %v, want %q", row.generators, err, row.want)
		}
	}
}

// TestPreparedRedirects hides Location and its rules in each format, and changes nothing else.
func TestPreparedRedirects(t *testing.T) {
	for _, row := range []struct{ response, want string }{
		{`{"status":302,"headers":{"location":"u"},"matchingRules":{"$.headers.location":{"match":"regex","regex":"u.*"}}}`,
			`{"headers":{"X-Pact-Location":"u"},"matchingRules":{"$.headers['X-Pact-Location']":{"match":"regex","regex":"u.*"}},"status":302}`},
		{`{"status":302,"headers":{"Location":["u"],"A":["Location"]},"matchingRules":{"header":{"Location":{"matchers":[]}},"body":{}}}`,
			`{"headers":{"A":["Location"],"X-Pact-Location":["u"]},"matchingRules":{"body":{},"header":{"X-Pact-Location":{"matchers":[]}}},"status":302}`},
		{`{"status":200,"body":{"Location":39.0}}`, `{"body":{"Location":39.0},"status":200}`},
	} {
		p := readPact(t, `{`+
			parties+`,"_links":{},"interactions":[{"description":"a","request":{"method":"GET","path":"/","headers":{"B":"c"}},"response":`+row.response+`}]}`)
		text, err := p.Alone(0)
		stacktest.Must(t, err)
		var got struct {
			Links        any `json:"_links"`
			Interactions []struct {
				Request  struct{ Headers map[string]string }
				Response json.RawMessage
			}
		}
		stacktest.Must(t, json.Unmarshal(text, &got))
		if string(got.Interactions[0].Response) != row.want || got.Links != nil {
			t.Errorf("got %s, want %s", got.Interactions[0].Response, row.want)
		}
		if h := got.Interactions[0].Request.Headers; h["B"] != "c" ||
			h[contracts.HideLocation] != "true" {
			t.Errorf("got request headers %v, want one more", h)
		}
	}
}

func TestAlone(t *testing.T) {
	p := readPact(t, `{`+parties+`,"interactions":[{"description":"a"},{"description":"b",`+exchange+`}]}`)
	text, err := p.Alone(1)
	stacktest.Must(t, err)
	if got := readPact(t, string(text)).Interactions; len(got) != 1 || got[0].Description != "b" ||
		len(p.Interactions) != 2 {
		t.Errorf("got %+v, want the second", got)
	}
}

// TestPortablePattern joins the pattern for each part of a challenge to one for the whole.
func TestPortablePattern(t *testing.T) {
	p, err := contracts.ReadPact([]byte(`{"consumer":{"name":"c"},"provider":{"name":"p"},"interactions":[{"description":"d","request":{"method":"GET","path":"/"},
"response":{"status":401,"headers":{"WWW-Authenticate":["Bearer realm=\"g\"","error=\"e\""]},
"matchingRules":{"header":{"WWW-Authenticate":{"combine":"AND","matchers":[{"match":"regex","regex":"^(a|b)$"}]}}}}}]}`), "p.json")
	stacktest.Must(t, err)
	got, err := p.Portable()
	if want := `"regex":"^(?:(a|b))(?:, (?:(a|b)))*$"`; err != nil || !strings.Contains(string(got), want) {
		t.Errorf("got %s and error %v, want %s in it", got, err, want)
	}
}

// TestPortableChallenge joins a challenge that was split at its comma.
func TestPortableChallenge(t *testing.T) {
	p, err := contracts.ReadPact([]byte(`{"consumer":{"name":"c"},"provider":{"name":"p"},"interactions":[{"description":"d","request":{"method":"GET","path":"/"},
"response":{"status":401,"headers":{"www-authenticate":["Bearer realm=\"g\"","error=\"e\""],"Allow":["GET","HEAD"]}}}]}`), "p.json")
	stacktest.Must(t, err)
	got, err := p.Portable()
	stacktest.Must(t, err)
	for _, want := range []string{`"www-authenticate":["Bearer realm=\"g\", error=\"e\""]`,
		`"Allow":["GET","HEAD"]`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
	if before, err := p.Prepared(); err != nil ||
		!strings.Contains(string(before), `"error=\"e\""]`) {
		t.Errorf("got %s and error %v, want the pact itself unchanged", before, err)
	}
}
