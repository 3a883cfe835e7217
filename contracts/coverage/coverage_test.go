package coverage_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/contracts/coverage"
	"gatehouse/httpedge"
)

// TestEveryPartIsPinned compares the committed pacts with the document that the service serves.
func TestEveryPartIsPinned(t *testing.T) {
	r, err := coverage.Measure(httpedge.OpenAPI(), committed(t), coverage.Exclusions())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Missing() {
		t.Errorf("got no interaction that pins %s, want one", p.Name)
	}
	for _, name := range r.Stale {
		t.Errorf("got an exclusion of %s, want none: it is pinned, or does not exist", name)
	}
	if all, _, _ := r.Counts(); all < 700 || r.Percent() != 100 {
		t.Errorf("got %s, want all of at least 700 parts", r.Summary())
	}
}

// committed returns the committed pacts.
func committed(t *testing.T) (pacts [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../pacts/*-gatehouse.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("got %v and error %v, want the pacts of two consumers", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pacts = append(pacts, text)
	}
	return pacts
}

func TestExclusionsHaveReasons(t *testing.T) {
	for _, e := range coverage.Exclusions() {
		if !strings.HasSuffix(e.Reason, ".") || len(e.Reason) < 30 {
			t.Errorf("%s: got the reason %q, want a sentence", e.Part, e.Reason)
		}
	}
}

const document = `
paths:
  /a:
    get:
      tags: [contract]
      parameters: [{name: q, in: query, schema: {type: string}}]
      responses:
        "200":
          headers:
            X-Source: {required: true, schema: {type: string, enum: [one, two]}}
          content:
            application/json:
              schema: {$ref: "#/components/schemas/Thing"}
        "404":
          content:
            application/json:
              schema:
                anyOf: [{$ref: "#/components/schemas/Short"}, {$ref: "#/components/schemas/Long"}]
  /b:
    get: {tags: [admin], responses: {"200": {}}}
components:
  schemas:
    Thing:
      required: [name, n, mail]
      additionalProperties: false
      properties:
        name: {type: string}
        n: {type: integer}
        mail: {type: [string, "null"]}
        kind: {type: string, enum: [old, new]}
    Short: {required: [m], properties: {m: {type: string}}}
    Long: {required: [m, e], properties: {m: {type: string}, e: {type: string, const: gone}}}
`

// respond returns an interaction with a response.
func respond(status, body, rules, headers string) string {
	return `{"description":"d","request":{"method":"GET","path":"/a","query":{"q":["1"]}},"response":{"status":` + status + `,"headers":` + headers +
		`,"body":{"contentType":"application/json","encoded":false,"content":` + body +
		`},"matchingRules":{"body":{` + rules + `}}}}`
}

// missing returns the report for a pact of interactions.
func missing(t *testing.T, exclusions []coverage.Exclusion,
	interactions ...string) *coverage.Report {
	t.Helper()
	pact := `{"consumer":{"name":"shop"},"provider":{"name":"gatehouse"},"interactions":[` +
		strings.Join(interactions, ",") + `]}`
	r, err := coverage.Measure([]byte(document), [][]byte{[]byte(pact)}, exclusions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rule(at string, matchers ...string) string {
	return `"` + at + `":{"matchers":[{` + strings.Join(matchers, "},{") + `}]}`
}

const asType, asInteger = `"match":"type"`, `"match":"integer"`

// TestWhatPins lists expectations that pin a part, and expectations that do not.
func TestWhatPins(t *testing.T) {
	const all = `{"name":"A","n":1,"mail":"a@b","kind":"old"}`
	closed := func(names string) string {
		return rule("$", `"match":"eachKey","rules":[{"match":"regex","regex":"^(`+names+`)$"}]`)
	}
	for _, row := range []struct {
		name, interaction, part string
		want                    bool
	}{
		{"an operation", respond("200", all, "", "{}"), "GET /a", true},
		{"a parameter", respond("200", all, "", "{}"), "GET /a query q", true},
		{"a status", respond("200", all, "", "{}"), "GET /a 200", true},
		{"another status", respond("200", all, "", "{}"), "GET /a 404", false},
		{"a literal", respond("200", all, "", "{}"), "GET /a 200 body $.name", true},
		{"a type", respond("200", all, rule("$.name", asType), "{}"), "GET /a 200 body $.name",
			true},
		{"a type of what is around it", respond("200", all, rule("$", asType), "{}"),
			"GET /a 200 body $.name", true},
		{"a type and an expression",
			respond("200", all, rule("$.name", asType, `"match":"regex","regex":".+"`), "{}"),
			"GET /a 200 body $.name", true},
		{"an expression alone, which takes numbers",
			respond("200", all, rule("$.name", `"match":"regex","regex":".+"`), "{}"),
			"GET /a 200 body $.name", false},
		{"notEmpty alone, which takes numbers",
			respond("200", all, rule("$.name", `"match":"notEmpty"`), "{}"),
			"GET /a 200 body $.name", false},
		{"a member that is missing", respond("200", `{"n":1}`, "", "{}"), "GET /a 200 body $.name",
			false},
		{"an integer", respond("200", all, rule("$.n", asInteger), "{}"), "GET /a 200 body $.n",
			true},
		{"a number that may have a fraction", respond("200", all, rule("$.n", asType), "{}"),
			"GET /a 200 body $.n", false},
		{"a string instead of a number", respond("200", `{"n":"1"}`, "", "{}"),
			"GET /a 200 body $.n", false},
		{"a member among names only", respond("200", all, closed("name|n|mail|kind"), "{}"),
			"GET /a 200 body $.name", false},
		{"a string that may be null", respond("200", all, "", "{}"), "GET /a 200 body $.mail",
			true},
		{"null where a string is", respond("200", all, "", "{}"), "GET /a 200 body $.mail: null",
			false},
		{"null", respond("200", `{"name":"A","n":1,"mail":null}`, "", "{}"),
			"GET /a 200 body $.mail: null", true},
		{"a value of a list", respond("200", all, "", "{}"), `Thing $.kind: "old"`, true},
		{"another value of it", respond("200", all, "", "{}"), `Thing $.kind: "new"`, false},
		{"a value of any type", respond("200", all, rule("$.kind", asType), "{}"),
			`Thing $.kind: "old"`, false},
		{"a closed set", respond("200", all, closed("name|n|mail|kind"), "{}"),
			"Thing $: nothing else", true},
		{"an open set", respond("200", all, "", "{}"), "Thing $: nothing else", false},
		{"a set that takes all", respond("200", all, closed(".*"), "{}"), "Thing $: nothing else",
			false},
		{"what must be left out", respond("200", `{"name":"A","n":1,"mail":null}`,
			closed("name|n|mail"), "{}"), "Thing $.kind: left out", true},
		{"what may be left out", respond("200", all, closed("name|n|mail|kind"), "{}"),
			"Thing $.kind: left out", false},
		{"a header", respond("200", all, "", `{"X-Source":["one"]}`), "GET /a 200 header X-Source",
			true},
		{"its value", respond("200", all, "", `{"x-source":["one"]}`),
			"GET /a 200 header X-Source: one", true},
		{"another value", respond("200", all, "", `{"X-Source":["one"]}`),
			"GET /a 200 header X-Source: two", false},
		{"no header", respond("200", all, "", `{}`), "GET /a 200 header X-Source", false},
		{"the short one of two bodies", respond("404", `{"m":"x"}`, "", "{}"),
			"GET /a 404 body Short $.m", true},
		{"is not the long one", respond("404", `{"m":"x"}`, "", "{}"), "GET /a 404 body Long $.m",
			false},
		{"the long one", respond("404", `{"m":"x","e":"gone"}`, "", "{}"),
			"GET /a 404 body Long $.e: gone", true},
	} {
		found := false
		for _, p := range missing(t, nil, row.interaction).Parts {
			if p.Name == row.part {
				found = true
				if got := len(p.PinnedBy) > 0; got != row.want {
					t.Errorf("%s: got %s pinned %v, want %v", row.name, row.part, got, row.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: got no part %s, want it", row.name, row.part)
		}
	}
}

func TestOnlyTheContractCounts(t *testing.T) {
	for _, p := range missing(t, nil).Parts {
		if strings.Contains(p.Name, "/b") {
			t.Errorf("got the part %s of an operation that is not of the contract", p.Name)
		}
	}
}

func TestStaleExclusion(t *testing.T) {
	r := missing(t, []coverage.Exclusion{{"GET /a", "x"}, {"GET /c", "x"}, {"GET /a 404", "x"},
		{"GET /a 404", "again"}},
		respond("200", "{}", "", "{}"))
	if got := strings.Join(r.Stale, ", "); got != "GET /a, GET /c, GET /a 404" {
		t.Errorf("got stale %s, want what is pinned, what is not there and what is excluded already", got)
	}
	for _, p := range r.Missing() {
		if p.Name == "GET /a 404" {
			t.Error("got GET /a 404 missing, want it excluded")
		}
	}
}

func TestReports(t *testing.T) {
	r := missing(t, []coverage.Exclusion{{"GET /a 404", "It is | gone."}},
		slices.Repeat([]string{respond("200", "{}", "", "{}")}, 4)...)
	for name, row := range map[string]struct {
		write func(*strings.Builder) error
		want  []string
	}{
		"text": {func(b *strings.Builder) error { return r.WriteText(b) },
			[]string{"✗ GET /a 200 body $.name\n", "% of the contract is pinned: "}},
		"pinned": {func(b *strings.Builder) error { return r.WritePinned(b) },
			[]string{"✓ GET /a 200  [shop: d; shop: d; shop: d; shop: d]\n",
				"% of the contract is pinned: "}},
		"JSON": {func(b *strings.Builder) error { return r.WriteJSON(b) },
			[]string{`"name": "GET /a"`, `"shop: d"`, `"excluded": "It is | gone."`}},
		"Markdown": {func(b *strings.Builder) error { return r.WriteMarkdown(b) },
			[]string{"| GET /a 200 body $.name |\n", `| GET /a 404 | It is \| gone. |`}},
	} {
		var b strings.Builder
		if err := row.write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if missing := "GET /a 200 body $.name"; name == "pinned" &&
			strings.Contains(b.String(), missing) {
			t.Errorf("got %s among what is pinned: %s", missing, &b)
		}
		for _, want := range row.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: got %s, want %q in it", name, &b, want)
			}
		}
	}
}

func TestMalformedInput(t *testing.T) {
	if _, err := coverage.Measure([]byte("\t"), nil, nil); err == nil {
		t.Error("got no error for what is no YAML, want one")
	}
	if _, err := coverage.Measure([]byte(document), [][]byte{[]byte("[]")}, nil); err == nil {
		t.Error("got no error for what is no pact, want one")
	}
}

var update = flag.Bool("update", false, "write the examples of httpedge/openapi.yaml")

// TestExamples compares the examples of the document with the bodies that pacts pin, which the
// service has given.
func TestExamples(t *testing.T) {
	got, err := coverage.WithExamples(httpedge.OpenAPI(), committed(t))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, httpedge.OpenAPI()) {
		return
	}
	if !*update {
		t.Fatal("the examples of httpedge/openapi.yaml are not those of the pacts: " +
			"go test ./contracts/coverage -update")
	}
	if err := os.WriteFile("../../httpedge/openapi.yaml", got, 0o644); err != nil {
		t.Fatal(err)
	}
}
