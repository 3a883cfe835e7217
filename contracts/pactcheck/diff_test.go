package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/contracts/broker/brokertest"
)

const shopDocument = `openapi: 3.1.0
info: {title: t, version: "1"}
paths:
  /api/lookup:
    get:
      parameters:
        - {name: q, in: query, required: true, schema: {type: string}}
        - {name: details, in: query, schema: {type: string}}
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
		{"--pacts", "/nowhere", before, before}, {write(t, "x.yaml", "x"), before}} {
		if got := pactcheck(t, append([]string{"diff"}, wrong...)...); got.code != 2 || got.stderr == "" {
			t.Errorf("%q: got %+v, want 2", wrong, got)
		}
	}
}
