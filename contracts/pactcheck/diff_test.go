package main

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts/broker/brokertest"
	"gatehouse/httpedge"
)

const shopDocument = `openapi: 3.1.0
info: {title: t, version: "1"}
paths:
  /api/lookup:
    get:
      parameters:
        - {name: q, in: query, required: true, schema: {type: string}}
        - {name: details, in: query, schema: {type: string}}
        - {name: X-Trace, in: header, schema: {type: string}}
      responses:
        "200":
          description: d
          headers:
            X-Cache: {required: true, schema: {type: string, enum: [hit, miss]}}
          content:
            application/json:
              schema:
                type: object
                required: [ok, query, city]
                properties:
                  ok: {type: boolean}
                  query: {type: string}
                  city: {type: string}
        "429": {description: d}
  /api/other:
    post:
      requestBody: {content: {application/json: {schema: {type: object, properties: {a: {type: string}}}}}}
      responses:
        "200": {description: d}
        "409": {description: d}
`

// TestDiffClasses edits a document in one place each. The pact relies on ok, X-Cache and the query.
func TestDiffClasses(t *testing.T) {
	pact := write(t, "p.json", pactText("gatehouse", strings.Replace(good, `"response":{`,
		`"response":{"headers":{"X-Cache":["hit"]},`, 1)))
	before := write(t, "old.yaml", shopDocument)
	for _, row := range []struct{ old, new, want string }{
		{"                  ok: {type: boolean}\n", "", "breaks consumers: GET /api/lookup: "},
		{"ok: {type: boolean}", "ok: {type: string}", "breaks consumers: GET /api/lookup: "},
		{"[ok, query, city]", "[query, city]", "breaks consumers: GET /api/lookup: "},
		{"  /api/lookup:", "  /api/find:", "breaks consumers: GET /api/lookup: "},
		{"    get:", "    put:", "breaks consumers: GET /api/lookup: "},
		{"application/json:\n              schema", "text/html:\n              schema", "breaks consumers: GET /api/lookup: "},
		{"{name: details, in: query,", "{name: details, in: query, required: true,", "breaks consumers: GET /api/lookup: "},
		{"enum: [hit, miss]", "enum: [hit, miss, stale]", "breaks consumers: GET /api/lookup: "},
		{"name: X-Trace, in: header,", "name: X-Trace, in: header, required: true,", "breaks consumers: GET /api/lookup: "},
		{"name: X-Trace, in: header,", "name: Trace, in: header, required: true,", "breaks consumers: GET /api/lookup: "},
		{"X-Cache:", "X-Source:", "breaks consumers: GET /api/lookup: "},
		{"                  city: {type: string}\n", "", "breaks the document: GET /api/lookup: "},
		{"        \"429\": {description: d}\n", "", "breaks the document: GET /api/lookup: removed the status `429`"},
		{"        \"409\": {description: d}\n", "", "pinned by nobody: POST /api/other: removed the status `409`"},
		{"schema: {type: object, prop", "schema: {type: object, required: [b], prop", "pinned by nobody: POST /api/other: the request now needs `b`"},
		{"    post:\n", "    post:\n      parameters: [{name: x-key, in: header, required: true, schema: {type: string}}]\n", "pinned by nobody: POST /api/other: "},
		{"                  city:", "                  zip: {type: string}\n                  city:", "compatible: GET /api/lookup: "},
		{"{name: details, in: query,", "{name: more, in: query, schema: {type: string}}\n        - {name: details, in: query,", "compatible: GET /api/lookup: "},
		{"description: d\n          headers", "description: e\n          headers", "0 changes"},
	} {
		if !strings.Contains(shopDocument, row.old) {
			t.Fatalf("got no %s in the document", row.old)
		}
		got := pactcheck(t, "diff", "--pacts", pact, before,
			write(t, "new.yaml", strings.Replace(shopDocument, row.old, row.new, 1)))
		breaks := strings.HasPrefix(row.want, "breaks consumers")
		if (got.code == 1) != breaks || got.code == 2 || !strings.HasPrefix(got.stdout, row.want) ||
			breaks && !strings.Contains(got.stdout, "; relied on by shop: a lookup\n") {
			t.Errorf("%s: got %+v, want %s", row.new, got, row.want)
		}
	}
}

const petDocument = `openapi: 3.1.0
info: {title: pets, version: "1"}
paths:
  /pets/{id}:
    get:
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: X-Trace, in: header, schema: {type: string}}
      responses:
        "200":
          description: d
          headers: {X-Cache: {schema: {type: string, maxLength: 9}}, X-Age: {schema: {type: integer}}}
          content:
            application/json:
              schema:
                type: object
                required: [kind, choice, fixed]
                properties:
                  kind: {type: string, enum: [cat, dog]}
                  other: {type: string, enum: [cat, dog]}
                  choice: {anyOf: [{type: string}, {type: integer}]}
                  fixed: {const: x}
                  loose: {const: x}
                  all: {type: string, allOf: [{maxLength: 9}]}
                  list: {type: array, maxItems: 4, items: {type: object, required: [size], properties: {size: {type: integer, maximum: 5}}}}
                  bag: {type: object, patternProperties: {"^a": {type: string}}, dependentRequired: {a: [b]}}
                  pair: {type: array, prefixItems: [{type: string}]}
        "400":
          description: d
          headers: {X-Age: {schema: {type: integer}}}
          content: {application/json: {schema: {type: object, minProperties: 1, required: [message], properties: {message: {type: string, minLength: 1}, kind: {type: string, enum: [cat, dog]}}}}}
        "404":
          description: d
          content: {application/json: {schema: {type: object, required: [message], properties: {message: {type: string, maxLength: 7}}}}}
        "410": {description: d}
  /pets:
    post:
      requestBody: {content: {application/json: {schema: {type: object, properties: {name: {type: string}, age: {type: integer}}}}}}
      responses:
        "201": {description: d, content: {application/x-ndjson: {schema: {type: string}, x-line-schema: {type: object, required: [done], properties: {done: {type: boolean}, count: {type: integer}}}}}}
`

const petPact = `{"consumer":{"name":"shop"},"provider":{"name":"pets"},"metadata":{"pactSpecification":{"version":"4.0"}},"interactions":[
{"description":"ok","request":{"method":"GET","path":"/pets/x7","headers":{"X-Trace":["abc"]}},"response":{"status":200,"headers":{"X-Cache":["hit"]},
"body":{"contentType":"application/json","content":{"kind":"cat","choice":"x","fixed":"x","all":"x","list":[{"size":3}],"bag":{"a":"x","b":"y"},"pair":["x"]}},
"matchingRules":{"body":{"$":{"matchers":[{"match":"type"}]}}}}},
{"description":"bad","request":{"method":"GET","path":"/pets/"},"response":{"status":400,"body":{"contentType":"application/json","content":{"message":"x"}}}},
{"description":"bad pet","request":{"method":"GET","path":"/pets/0"},"response":{"status":400,"headers":{"X-Age":["1"]},"body":{"contentType":"application/json","content":{"message":"x"}}}},
{"description":"none","request":{"method":"GET","path":"/pets/9"},"response":{"status":404,"body":{"contentType":"application/json","content":{"message":"x"}}}},
{"description":"new","request":{"method":"POST","path":"/pets","headers":{"Content-Type":["application/json"]},"body":{"contentType":"application/json","content":{"name":"Rex"}}},
"response":{"status":201,"body":{"contentType":"application/x-ndjson","encoded":"base64","content":"eyJkb25lIjp0cnVlLCJjb3VudCI6MX0K"}}}]}`

// TestDiffNamesInteractions edits a document in one place each. Each row has the interactions that
// rely on it, and none for an edit that breaks the document only or nothing.
func TestDiffNamesInteractions(t *testing.T) {
	pact, before := write(t, "p.json", petPact), write(t, "old.yaml", petDocument)
	for _, row := range []struct{ name, old, new, want string }{
		{"a member of one status", "required: [message], properties: {message: {type: string, maxLength: 7}}", "properties: {}", "none"},
		{"a type in one status", "message: {type: string, maxLength: 7}", "message: {type: integer}", "none"},
		{"a limit in one status", "maxLength: 7", "maxLength: 8", "none"},
		{"a limit with the number of a status", "maxLength: 7", "maxLength: 400", "none"},
		{"a listed value", "kind: {type: string, enum: [cat, dog]}\n", "kind: {type: string, enum: [cat, dog, cow]}\n", "ok"},
		{"a listed value of another member", "other: {type: string, enum: [cat, dog]}", "other: {type: string, enum: [cat, dog, cow]}", ""},
		{"a listed value named as a member", "other: {type: string, enum: [cat, dog]}", "other: {type: string, enum: [cat, dog, list]}", ""},
		{"a listed value in an error", "kind: {type: string, enum: [cat, dog]}}", "kind: {type: string, enum: [cat, dog, cow]}}", ""},
		{"a list that ends", "kind: {type: string, enum: [cat, dog]}\n", "kind: {type: string}\n", "ok"},
		{"an alternative", "{type: integer}]}", "{type: integer}, {type: boolean}]}", "ok"},
		{"a constant", "fixed: {const: x}", "fixed: {const: y}", "ok"},
		{"another constant", "loose: {const: x}", "loose: {const: y}", ""},
		{"no constant any more", "fixed: {const: x}", "fixed: {type: string}", "ok"},
		{"a part that ends", "all: {type: string, allOf: [{maxLength: 9}]}", "all: {type: string}", "ok"},
		{"a limit of an element", "maximum: 5", "maximum: 6", "ok"},
		{"a member of an element", "required: [size], properties: {size: {type: integer, maximum: 5}}", "properties: {}", "ok"},
		{"an optional member of an element", "required: [size], ", "", "ok"},
		{"a longer array", "maxItems: 4", "maxItems: 5", "ok"},
		{"a pattern of names", "\"^a\": {type: string}", "\"^b\": {type: string}", "ok"},
		{"required together", ", dependentRequired: {a: [b]}", "", "ok"},
		{"an element by its place", "prefixItems: [{type: string}]", "prefixItems: [{type: integer}]", "ok"},
		{"a body that may be empty", "minProperties: 1, ", "", "bad pet"},
		{"a limit of an error's member", "minLength: 1", "minLength: 0", "bad pet"},
		{"an optional member of an error", "required: [message], properties: {message: {type: string, minLength: 1}", "properties: {message: {type: string, minLength: 1}", "bad pet"},
		{"a member that may be null", "message: {type: string, minLength: 1}", "message: {type: [string, \"null\"], minLength: 1}", "bad pet"},
		{"a header of one status", "headers: {X-Cache: {schema: {type: string, maxLength: 9}}, ", "headers: {", "ok"},
		{"a header that nobody reads there", ", X-Age: {schema: {type: integer}}}", "}", ""},
		{"a header of an error", "          headers: {X-Age: {schema: {type: integer}}}\n", "", "bad pet"},
		{"a type of a header in one status", "headers: {X-Age: {schema: {type: integer}}}\n", "headers: {X-Age: {schema: {type: string}}}\n", "bad pet"},
		{"a longer header", "{type: string, maxLength: 9}}, X", "{type: string, maxLength: 99}}, X", "ok"},
		{"a status that nobody has", "        \"410\": {description: d}\n", "", ""},
		{"a needed header", "name: X-Trace, in: header, schema", "name: X-Tenant, in: header, required: true, schema", "ok"},
		{"a header with fewer values", "in: header, schema: {type: string}", "in: header, schema: {type: string, enum: [a]}", "ok"},
		{"a path with fewer values", "in: path, required: true, schema: {type: string}", "in: path, required: true, schema: {type: integer}", "ok"},
		{"a path that nobody uses fewer of", "in: path, required: true, schema: {type: string}", "in: path, required: true, schema: {type: string, maxLength: 5}", ""},
		{"a needed member", "requestBody: {content: {application/json: {schema: {type: object,", "requestBody: {content: {application/json: {schema: {type: object, required: [age],", "new"},
		{"a member with fewer values", "name: {type: string}", "name: {type: string, enum: [Tom]}", "new"},
		{"a member that nobody sends", "age: {type: integer}", "age: {type: integer, maximum: 9}", ""},
		{"another type of the request", "requestBody: {content: {application/json:", "requestBody: {content: {text/plain:", "new"},
		{"a type in a line", "count: {type: integer}", "count: {type: string}", "new"},
		{"a member of a line", "required: [done], properties: {done: {type: boolean}, ", "properties: {", "new"},
		{"a path", "  /pets:\n", "  /cats:\n", "new"},
		{"a method", "    post:\n", "    put:\n", "new"},
	} {
		if strings.Count(petDocument, row.old) != 1 {
			t.Fatalf("%s: %s is %d times in the document", row.name, row.old, strings.Count(petDocument, row.old))
		}
		js := filepath.Join(t.TempDir(), "d.json")
		got := pactcheck(t, "diff", "--provider", "pets", "--json", js, "--pacts", pact, before,
			write(t, "new.yaml", strings.Replace(petDocument, row.old, row.new, 1)))
		var changes struct {
			Changes []struct {
				PinnedBy []string `json:"pinned_by"`
			}
		}
		stacktest.Must(t, json.Unmarshal(read(t, js), &changes))
		named := map[string]bool{}
		for _, one := range changes.Changes {
			for _, name := range one.PinnedBy {
				named[strings.TrimPrefix(name, "shop: ")] = true
			}
		}
		if names := strings.Join(slices.Sorted(maps.Keys(named)), ", "); names != row.want || (got.code == 1) != (row.want != "") {
			t.Errorf("%s: got %q of %+v, want %q", row.name, names, got, row.want)
		}
	}
}

// TestDiffChoosesPacts compares documents without pacts, with gatehouse's own, and with those of
// another provider.
func TestDiffChoosesPacts(t *testing.T) {
	own := string(httpedge.OpenAPI())
	before, after := write(t, "old.yaml", own), write(t, "new.yaml", strings.Replace(own, "count: {type: integer, minimum: 1", "count: {type: string, minLength: 1", 1))
	if got := pactcheck(t, "diff", before, after); got.code != 1 ||
		!strings.Contains(got.stdout, "relied on by bulk-lookup-client: a stream") || got.stderr != "" {
		t.Errorf("got %+v, want gatehouse's own consumers", got)
	}
	pets := write(t, "pets.yaml", petDocument)
	cats := write(t, "cats.yaml", strings.Replace(petDocument, "  /pets:\n", "  /cats:\n", 1))
	if got := pactcheck(t, "diff", pets, cats); got.code != 0 || !strings.Contains(got.stderr, "there are no pacts") {
		t.Errorf("got %+v, want a word about the missing pacts", got)
	}
	folder := filepath.Dir(write(t, "p.json", petPact))
	if got := pactcheck(t, "diff", "--pacts", folder, pets, cats); got.code != 2 ||
		!strings.Contains(got.stdout, "left out: ") || !strings.Contains(got.stderr, "no pact with the provider gatehouse") {
		t.Errorf("got %+v, want the pact of another provider to be left out", got)
	}
}

// TestDiffHidesNothing changes two members that one interaction relies on. Only check notices the
// second: a document may promise less than before.
func TestDiffHidesNothing(t *testing.T) {
	pact := write(t, "p.json", strings.Replace(petPact, `{"message":"x"}`, `{"message":"x","kind":"cat"}`, 2))
	after := strings.Replace(petDocument, "required: [message], properties: {message: {type: string, minLength: 1}, kind: {type: string, enum: [cat, dog]}",
		"properties: {message: {type: string, minLength: 1}, kind: {type: string, enum: [dog]}", 1)
	got := pactcheck(t, "diff", "--provider", "pets", "--pacts", pact, write(t, "old.yaml", petDocument), write(t, "new.yaml", after))
	if got.code != 1 || !strings.Contains(got.stdout, "`message` became optional") ||
		!strings.Contains(got.stdout, "cat is none of dog") {
		t.Errorf("got %+v, want both changes", got)
	}
}

// TestDiffSources compares a git revision with itself and with a document, with pacts of a broker.
func TestDiffSources(t *testing.T) {
	b := brokertest.New(t)
	b.Publish([]byte(pactText("gatehouse", good)), "c1", "main")
	if err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Run(); err == nil {
		if got := pactcheck(t, "diff", "HEAD", "HEAD:httpedge/openapi.yaml"); got.code != 0 ||
			!strings.HasPrefix(got.stdout, "0 changes") {
			t.Errorf("got %+v, want no change", got)
		}
	}
	before := write(t, "old.yaml", shopDocument)
	after := write(t, "new.yaml", strings.Replace(shopDocument, "        \"409\": {description: d}\n", "", 1))
	markdown := filepath.Join(t.TempDir(), "c.md")
	got := pactcheck(t, "diff", "--pacts", b.URL, "--fail-on", "document", "--markdown", markdown, before, after)
	if got.code != 1 || !strings.Contains(string(read(t, markdown)),
		"## Pinned by nobody\n\n- `POST /api/other`: `removed the status '409'`") {
		t.Errorf("got %+v and %s, want a changelog", got, read(t, markdown))
	}
	for _, wrong := range [][]string{{"no-such-revision", before}, {before, "--", "-x"},
		{"--pacts", "/nowhere", before, before}, {write(t, "x.yaml", "x"), before},
		{write(t, "x.tar.gz", "x"), before}} {
		if got := pactcheck(t, append([]string{"diff"}, wrong...)...); got.code != 2 || got.stderr == "" {
			t.Errorf("%q: got %+v, want 2", wrong, got)
		}
	}
}
