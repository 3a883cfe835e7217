package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge"
)

// TestCheckCommittedPacts expects no errors: what the pacts say of each other service was verified.
func TestCheckCommittedPacts(t *testing.T) {
	got := pactcheck(t, "check", "../pacts")
	if got.code != 0 || !strings.Contains(got.stdout, "of 2 pacts checked: 0 errors") {
		t.Errorf("got %+v, want no errors", got)
	}
}

// TestCheckFindsPlantedErrors changes a correct interaction in one place each. All are in one pact:
// gatehouse's document takes long to read.
func TestCheckFindsPlantedErrors(t *testing.T) {
	const body = `{"ok":true,"query":"8.8.8.8","ipVersion":"IPv4","location":{"country":"X","lat":1.5},"flags":{"proxy":false}}`
	correct := func(rules string) string {
		return strings.Replace(interaction("a lookup", known, body), `"response":{"status":200,`,
			`"response":{"status":200,"headers":{"X-Cache":["hit"]},"matchingRules":{"body":{`+rules+`}},`, 1)
	}
	rule := func(path, matcher string) string { return `"` + path + `":{"matchers":[` + matcher + `]}` }
	const response = "/response"
	rows := []struct {
		name, old, new, rules string
		pointer, said         string
	}{
		{"a path", "/api/lookup", "/api/lokup", "", "/request/path", "did you mean /api/lookup?"},
		{"a method", `"GET"`, `"DELETE"`, "", "/request/method", "it has GET"},
		{"a parameter", `"query":{"q"`, `"query":{"field":["city"],"q"`, "", "/request/query/field", "did you mean fields?"},
		{"a missing parameter", `"query":{"q":["8.8.8.8"]}`, `"query":{"details":["1"]}`, "", "/request/query", "the query needs q"},
		{"a listed parameter", `"query":{"q"`, `"query":{"details":["2"],"q"`, "", "/request/query/details", "2 is none of 0, 1"},
		{"a status", `"status":200`, `"status":204`, "", response + "/status", "the operation has no status 204; it has 200"},
		{"a header", `"X-Cache"`, `"X-Cach"`, "", response + "/headers/X-Cach", "did you mean X-Cache?"},
		{"a value of a header", `["hit"]`, `["hot"]`, "", response + "/headers/X-Cache", "did you mean hit?"},
		{"a content type", "application/json", "text/html", "", response + "/body", "it is application/json"},
		{"a member", `"country"`, `"contry"`, "", response + "/body/content/location/contry", "did you mean country?"},
		{"a type", `"lat":1.5`, `"lat":"1.5"`, "", response + "/body/content/location/lat", "want number, got string"},
		{"null", `"proxy":false`, `"proxy":null`, "", response + "/body/content/flags/proxy", "got null"},
		{"a listed value", `"IPv4"`, `"IPv5"`, "", response + "/body/content/ipVersion", "did you mean IPv4?"},
		{"a constant", `"ok":true`, `"ok":false`, "", response + "/body/content/ok", "want true"},
		{"a range", `"lat":1.5`, `"lat":91`, "", response + "/body/content/location/lat", "out of range"},
		{"an array", `"flags":{"proxy":false}`, `"flags":[]`, "", response + "/body/content/flags", "got array"},
		{"a rule of another type", "", "", rule("$.query", `{"match":"integer"}`), response + "/body/content/query", "the rule integer never holds"},
		{"a rule for null", "", "", rule("$.location.lat", `{"match":"null"}`), response + "/body/content/location/lat", "the rule null never holds"},
		{"a rule with unlisted values", "", "", rule("$.ipVersion", `{"match":"regex","regex":"^(IPv4|IPv7)$"}`), response + "/body/content/ipVersion", "accepts IPv7"},
		{"names that the object lacks", "", "", rule("$.flags", `{"match":"eachKey","rules":[{"match":"regex","regex":"^(proxy|proxi)$"}]}`), response + "/body/content/flags", "did you mean proxy?"},
		{"a rule for nothing", "", "", rule("$.location.town", `{"match":"type"}`), response + "/matchingRules/body/$.location.town", "leads to nothing"},
		{"a state", "knows a query", "knows a quary", "", "/providerStates", "did you mean"},
		{"a malformed rule", "", "", rule("$.ok", `{"match":"x"}`), "", `there is no matcher "x"`},
	}
	all := []string{correct("")}
	for _, row := range rows {
		text := correct(row.rules)
		if !strings.Contains(text, row.old) {
			t.Fatalf("%s: %s is not in %s", row.name, row.old, text)
		}
		all = append(all, strings.Replace(text, row.old, row.new, 1))
	}
	file := write(t, "p.json", pactText("gatehouse", all...))
	sarif := filepath.Join(t.TempDir(), "r.sarif")
	got := pactcheck(t, "check", "--sarif", sarif, file)
	errors, ended := strings.CutSuffix(got.stdout,
		fmt.Sprintf("of 1 pacts checked: %d errors\n", len(rows)))
	lines := strings.Split(errors, "\n")
	if got.code != 1 || !ended || len(lines) != len(rows)+1 {
		t.Fatalf("got %+v, want one error a row", got)
	}
	for i, row := range rows {
		pointer := fmt.Sprintf("/interactions/%d%s", i+1, row.pointer)
		at := slices.IndexFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, file+"#"+pointer+": interaction ") &&
				strings.Contains(line, row.said)
		})
		if at < 0 || !strings.Contains(string(read(t, sarif)), `"fullyQualifiedName": "`+pointer+`"`) {
			t.Errorf("%s: got %s, want %s and %q", row.name, got.stdout, pointer, row.said)
		}
	}
}

// TestCheckFindsPlantedErrorsElsewhere changes a correct interaction with another service in one
// place each.
func TestCheckFindsPlantedErrorsElsewhere(t *testing.T) {
	const document = `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/things/{id}":{"put":{
"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"}},{"name":"limit","in":"query","required":true,
"schema":{"type":"integer","maximum":10}},{"name":"X-Trace","in":"header","required":true,"schema":{"type":"string","format":"uuid"}}],
"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","required":["name"],"additionalProperties":false,
"properties":{"name":{"type":"string","maxLength":3},"kinds":{"type":"array","minItems":1,"items":{"enum":["a","b"]}}}}}}},
"responses":{"200":{"description":"d","headers":{"X-Count":{"schema":{"type":"integer"}}},"content":{"application/json":{"schema":{
"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer","minimum":1},"size":{"type":"number"},
"at":{"type":"string","format":"date-time"},"day":{"type":"string","format":"date"},"uid":{"type":"string","format":"uuid"},
"ip":{"type":"string","format":"ipv4"},"state":{"enum":["on","off"]},"tags":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string"}},
"code":{"type":"string","pattern":"^[A-Z]{2}$"},"owner":{"type":"object","additionalProperties":false,"properties":{"mail":{"type":["string","null"]}}}}}}}}}}}}}`
	pact := func(rules string) string {
		return `{"consumer":{"name":"shop"},"provider":{"name":"things"},"interactions":[{"description":"a thing",
"request":{"method":"PUT","path":"/things/7","query":"limit=5","headers":{"X-Trace":"0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90","Content-Type":"application/json"},
"body":{"name":"Ada","kinds":["a"]}},"response":{"status":200,"headers":{"Content-Type":"application/json","X-Count":"3"},
"body":{"n":1,"size":1.5,"at":"2026-05-03T12:00:00Z","day":"2026-05-03","uid":"0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c91","ip":"192.0.2.1",
"state":"on","tags":["x"],"code":"DE","owner":{"mail":null}},"matchingRules":{` + rules + `}}}],"metadata":{"pactSpecification":{"version":"2.0.0"}}}`
	}
	file, body := write(t, "d.json", document), "/interactions/0/response/body"
	for _, row := range []struct{ name, old, new, rules, pointer, said string }{
		{"a parameter of the path", "/things/7", "/things/x", "", "/interactions/0/request/path", "want integer"},
		{"a parameter out of range", "limit=5", "limit=50", "", "/interactions/0/request/query", "out of range"},
		{"a header without its format", `"0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90"`, `"x"`, "", "/interactions/0/request/headers/X-Trace", "has not the format uuid"},
		{"a missing header", `"X-Trace"`, `"X-Trase"`, "", "/interactions/0/request/headers", "needs the header X-Trace"},
		{"a long text", `"Ada"`, `"Adah"`, "", "/interactions/0/request/body/name", "the length 4 is out of range"},
		{"a member of the request", `"kinds":["a"]`, `"kind":["a"]`, "", "/interactions/0/request/body/kind", "did you mean kinds?"},
		{"a missing member", `"name":"Ada",`, "", "", "/interactions/0/request/body", "the member name is missing"},
		{"a value of the request", `["a"]`, `["c"]`, "", "/interactions/0/request/body/kinds/0", "c is none of a, b"},
		{"an empty list", `["a"]`, `[]`, "", "/interactions/0/request/body/kinds", "0 elements"},
		{"a time", "12:00:00Z", "12:00", "", body + "/at", "has not the format date-time"},
		{"a date", `"2026-05-03"`, `"2026-05-33"`, "", body + "/day", "has not the format date"},
		{"an id", "8c91", "8cxx", "", body + "/uid", "has not the format uuid"},
		{"an address", "192.0.2.1", "192.0.2.", "", body + "/ip", "has not the format ipv4"},
		{"a text", `"DE"`, `"de"`, "", body + "/code", "does not match"},
		{"a fraction", `"n":1`, `"n":1.5`, "", body + "/n", "want integer, got number"},
		{"a number below", `"n":1`, `"n":0`, "", body + "/n", "out of range"},
		{"a type inside", `"tags":["x"]`, `"tags":[1]`, "", body + "/tags/0", "want string"},
		{"elements", `["x"]`, `["x","y","z"]`, "", body + "/tags", "3 elements"},
		{"null", `"code":"DE"`, `"code":null`, "", body + "/code", "got null"},
		{"a member inside", `"mail"`, `"mial"`, "", body + "/owner/mial", "has no member mial"},
		{"the example of a rule", `"on"`, `"no"`, `"$.body.state":{"match":"type"}`, body + "/state", "no is none of on, off"},
		{"a rule for fractions", "", "", `"$.body.n":{"match":"number"}`, body + "/n", "accepts fractions"},
		{"a rule for long lists", "", "", `"$.body.tags":{"match":"type","min":1,"max":5}`, body + "/tags", "accepts 5 elements: the document has at most 2"},
		{"a rule for longer lists", "", "", `"$.body.tags":{"match":"type","min":3}`, body + "/tags", "wants at least 3"},
		{"a rule for numbers", "", "", `"$.body.code":{"match":"decimal"}`, body + "/code", "the rule decimal never holds"},
	} {
		text := pact(row.rules)
		if !strings.Contains(text, row.old) {
			t.Fatalf("%s: %s is not in %s", row.name, row.old, text)
		}
		file := write(t, "p.json", strings.Replace(text, row.old, row.new, 1))
		got := pactcheck(t, "check", "--openapi", write(t, "d.json", document), file)
		if got.code != 1 || !strings.Contains(got.stdout, file+"#"+row.pointer+": interaction ") ||
			!strings.Contains(got.stdout, row.said) || !strings.HasSuffix(got.stdout, ": 1 errors\n") {
			t.Errorf("%s: got %+v, want %s and %q", row.name, got, row.pointer, row.said)
		}
	}
	for _, rules := range []string{"", `"$.body.n":{"match":"integer"},"$.body.size":{"match":"number"},"$.body.state":{"match":"type"},
"$.body.tags":{"match":"type","min":1,"max":2},"$.body.at":{"match":"type"}`} {
		if got := pactcheck(t, "check", "--openapi", file, write(t, "p.json", pact(rules))); got.code != 0 {
			t.Errorf("got %+v, want no errors", got)
		}
	}
}

// TestCheckNamesTheLine checks a pact of many lines with two errors.
func TestCheckNamesTheLine(t *testing.T) {
	text := strings.ReplaceAll(pactText("gatehouse", strings.Replace(interaction("a lookup", known,
		`{"ok":true,"quary":"8.8.8.8","flags":{"proxi":false}}`), "/api/lookup", "/api/lokup", 1)+","+
		interaction("another", known, `{"ok":true,"quary":"8.8.8.8","flags":{"proxi":false}}`)), `,"`, ",\n\"")
	file, sarif := write(t, "p.json", text), filepath.Join(t.TempDir(), "r.sarif")
	if got := pactcheck(t, "check", "--sarif", sarif, file); got.code != 1 {
		t.Fatalf("got %+v, want errors", got)
	}
	var log struct {
		Runs []struct {
			Results []struct {
				Locations []struct {
					PhysicalLocation struct{ Region struct{ StartLine int } }
					LogicalLocations []struct{ FullyQualifiedName string }
				}
			}
		}
	}
	stacktest.Must(t, json.Unmarshal(read(t, sarif), &log))
	lines := strings.Split(text, "\n")
	if len(log.Runs[0].Results) != 3 {
		t.Fatalf("got %+v, want three errors", log)
	}
	for _, one := range log.Runs[0].Results {
		at := one.Locations[0]
		pointer, line := at.LogicalLocations[0].FullyQualifiedName, at.PhysicalLocation.Region.StartLine
		name := pointer[strings.LastIndex(pointer, "/")+1:]
		if !strings.Contains(lines[line-1], `"`+name+`"`) || strings.HasPrefix(pointer, "/interactions/1") !=
			(line > len(lines)/2) {
			t.Errorf("%s: got line %d, %s", pointer, line, lines[line-1])
		}
	}
}

// TestCheckOtherDocument checks a pact with another provider against a document of version 3.0 from
// the network, and writes reports.
func TestCheckOtherDocument(t *testing.T) {
	const document = `{"openapi":"3.0.3","info":{"title":"t","version":"1"},"servers":[{"url":"https://x.example/v1"}],
"paths":{"/pets/{id}":{"get":{"responses":{"2XX":{"description":"d","content":{"application/json":{"schema":{"allOf":[
{"type":"object","properties":{"name":{"type":"string","nullable":true}}},
{"type":"object","properties":{"tags":{"type":"array","maxItems":2,"items":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}},
{"type":"object","oneOf":[{"properties":{"kind":{"enum":["dog"]},"bark":{"type":"string"}}},{"properties":{"kind":{"enum":["cat"]},"lives":{"type":"integer"}}}]},
{"anyOf":[{"properties":{"chip":{"type":"string"}}},{"properties":{"owner":{"type":"string"}}}]}]}}}}}}}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/d" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if _, err := w.Write([]byte(document)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	pact := func(body string) string {
		return write(t, "p.json", `{"consumer":{"name":"shop"},"provider":{"name":"pets"},"interactions":[{"description":"a pet",
"request":{"method":"get","path":"/v1/pets/7"},"response":{"status":200,"headers":{"Content-Type":"application/json"},"body":`+body+`}}]}`)
	}
	for body, want := range map[string]string{`{"name":null,"tags":["a",1]}`: "", `{"nome":"x"}`: "did you mean name?",
		`{"name":"x","kind":"cat","lives":9,"chip":"a","owner":"b"}`: "", `{"name":"x","kind":"cat","lives":"9"}`: "cat is none of dog",
		`{"name":"x","kind":"cow","lives":9}`: "cow is none of ", `{"chip":"a","ownr":"b"}`: "did you mean owner?",
		`{"tags":[true]}`: "/interactions/0/response/body/tags/0: ", `{"tags":["a","b","c"]}`: "3 elements"} {
		js, junit := filepath.Join(t.TempDir(), "r.json"), filepath.Join(t.TempDir(), "r.xml")
		got := pactcheck(t, "check", "--openapi", server.URL+"/d", "--json", js, "--junit", junit, pact(body))
		var errors struct{ Errors []struct{ Pointer string } }
		stacktest.Must(t, json.Unmarshal(read(t, js), &errors))
		if (got.code == 1) != (want != "") || !strings.Contains(got.stdout, want) ||
			len(errors.Errors) != got.code || strings.Contains(string(read(t, junit)), "<failure") != (want != "") {
			t.Errorf("%s: got %+v and %v, want %q", body, got, errors, want)
		}
	}
	for _, wrong := range []string{server.URL + "/none", "/nowhere", write(t, "d.yaml", "swagger: '2.0'")} {
		if got := pactcheck(t, "check", "--openapi", wrong, pact("{}")); got.code != 2 ||
			!strings.Contains(got.stderr, "--openapi: ") {
			t.Errorf("%s: got %+v, want 2", wrong, got)
		}
	}
	file := write(t, "openapi.yaml", string(httpedge.OpenAPI()))
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	if got := pactcheck(t, "check", "--openapi", file, "../pacts/oauth-app-gatehouse.json"); got.code != 0 {
		t.Errorf("got %+v, want no errors", got)
	}
}
