//go:build pact

package verify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
	"gatehouse/contracts/matching"
	"gatehouse/contracts/verify"
)

// sample is an expected response and an actual one, as in the Pact specification.
type sample struct {
	Version, Name    string
	Expected, Actual map[string]any
}

// serving is a service with the actual responses of samples, at /0, /1 and so on.
func serving(t *testing.T, all []sample) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || i >= len(all) {
			t.Errorf("got the path %s", r.URL.Path)
			return
		}
		actual, err := matching.ReadExpected(all[i].Actual, int(all[i].Version[0]-'0'))
		if err != nil {
			t.Error(err)
			return
		}
		w.Header()["Content-Type"] = nil
		if actual.Body.Type != "" {
			w.Header().Set("Content-Type", actual.Body.Type)
		}
		for name, values := range actual.Headers {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		w.WriteHeader(actual.Status)
		if _, err := w.Write(actual.Body.Bytes); err != nil {
			t.Error(err)
		}
	})
}

// matcherSamples are expected and actual bodies for each matcher: rules in version 4, an example,
// and what is tried.
var matcherSamples = []struct{ rules, example, tried string }{
	{`{"$.a":{"matchers":[{"match":"type"}]}}`, `{"a":1}`, `{"a":2} {"a":1.5} {"a":"x"} {"a":null} {} {"a":[]} {"a":true} {"a":1,"b":2}`},
	{`{"$.a":{"matchers":[{"match":"type"}]}}`, `{"a":null}`, `{"a":null} {"a":1}`},
	{`{"$.a":{"matchers":[{"match":"type"}]}}`, `{"a":{"b":[1,"x"]}}`, `{"a":{"b":[2,"y"]}} {"a":{"b":[2,3]}} {"a":{"b":[2,3,4]}} {"a":{"b":[]}} {"a":{"c":1}} {"a":{"b":{}}}`},
	{`{"$":{"matchers":[{"match":"type"}]}}`, `{"a":[{"b":1}]}`, `{"a":[{"b":2},{"b":3}]} {"a":[]} {"a":[{"b":"x"}]} {"a":[{}]} []`},
	{`{"$.a":{"matchers":[{"match":"type","min":1}]}}`, `{"a":[1]}`, `{"a":[]} {"a":[2]} {"a":[2,3]} {"a":["x"]} {"a":5}`},
	{`{"$.a":{"matchers":[{"match":"type","max":2}]}}`, `{"a":[1]}`, `{"a":[]} {"a":[2,3]} {"a":[2,3,4]}`},
	{`{"$.a":{"matchers":[{"match":"type","min":1,"max":2}]}}`, `{"a":[[1]]}`, `{"a":[]} {"a":[[2],[3]]} {"a":[[1],[1],[1]]} {"a":[[1,2,3]]} {"a":[[]]}`},
	{`{"$.a":{"matchers":[{"match":"type","min":1}]},"$.a[*].b":{"matchers":[{"match":"regex","regex":"x+"}]}}`, `{"a":[{"b":"x","c":1}]}`, `{"a":[{"b":"xx","c":5}]} {"a":[{"b":"y","c":5}]} {"a":[{"b":"x","c":"s"}]} {"a":[{"b":"x","c":1},{"b":"xxx","c":2}]} {"a":[{"c":1}]}`},
	{`{"$.a":{"matchers":[{"match":"regex","regex":"\\d+"}]}}`, `{"a":"1"}`, `{"a":"12"} {"a":12} {"a":"x1"} {"a":"1x"} {"a":true} {"a":null} {"a":["1"]} {"a":""}`},
	{`{"$.a":{"matchers":[{"match":"regex","regex":"^(a|b)$"}]}}`, `{"a":"a"}`, `{"a":"b"} {"a":"ab"} {"a":"c"}`},
	{`{"$.a":{"matchers":[{"match":"regex","regex":"a|b"}]}}`, `{"a":"a"}`, `{"a":"b"} {"a":"ab"} {"a":"bx"} {"a":"a\n"}`},
	{`{"$.a":{"matchers":[{"match":"type"},{"match":"regex","regex":"\\d+"}]}}`, `{"a":"1"}`, `{"a":"12"} {"a":12}`},
	{`{"$.a":{"combine":"OR","matchers":[{"match":"null"},{"match":"regex","regex":"\\d+"}]}}`, `{"a":"1"}`, `{"a":"12"} {"a":null} {"a":"x"}`},
	{`{"$.a":{"matchers":[{"match":"equality"}]}}`, `{"a":1}`, `{"a":1} {"a":1.0} {"a":2} {"a":"1"}`},
	{`{"$.a":{"matchers":[{"match":"equality"}]}}`, `{"a":{"b":1}}`, `{"a":{"b":1}} {"a":{"b":1,"c":2}} {"a":{"b":2}} {"a":{}}`},
	{`{"$.a":{"matchers":[{"match":"equality"}]},"$.a.b":{"matchers":[{"match":"type"}]}}`, `{"a":{"b":1}}`, `{"a":{"b":1}} {"a":{"b":2}} {"a":{"b":1,"c":2}}`},
	{`{"$":{"matchers":[{"match":"type"}]},"$.a":{"matchers":[{"match":"equality"}]}}`, `{"a":[1,2],"b":1}`, `{"a":[1,2],"b":2} {"a":[1],"b":2} {"a":[1,3],"b":2}`},
	{`{}`, `{"a":1,"b":1.5,"c":1e2}`, `{"a":1,"b":1.5,"c":100} {"a":1.0,"b":1.5,"c":1e2} {"a":1,"b":1.50,"c":100.0} {"a":1,"b":1.5,"c":1e2}`},
	{`{"$.a":{"matchers":[{"match":"include","value":"ell"}]}}`, `{"a":"hello"}`, `{"a":"bell"} {"a":"x"} {"a":5} {"a":["ell"]}`},
	{`{"$.a":{"matchers":[{"match":"null"}]}}`, `{"a":null}`, `{"a":null} {"a":0} {"a":""} {}`},
	{`{"$.a":{"matchers":[{"match":"integer"}]}}`, `{"a":1}`, `{"a":2} {"a":3600.0} {"a":1.5} {"a":"1"} {"a":-4} {"a":1e3} {"a":99999999999999999999} {"a":null} {"a":true}`},
	{`{"$.a":{"matchers":[{"match":"decimal"}]}}`, `{"a":1.5}`, `{"a":2.5} {"a":39} {"a":39.0} {"a":"1.5"} {"a":1e3} {"a":-1.5} {"a":null}`},
	{`{"$.a":{"matchers":[{"match":"number"}]}}`, `{"a":1}`, `{"a":2} {"a":1.5} {"a":"1"} {"a":null} {"a":"x"}`},
	{`{"$.a":{"matchers":[{"match":"boolean"}]}}`, `{"a":true}`, `{"a":false} {"a":"true"} {"a":"false"} {"a":"yes"} {"a":1} {"a":null}`},
	{`{"$.a":{"matchers":[{"match":"date","format":"yyyy-MM-dd"}]}}`, `{"a":"2020-01-01"}`, `{"a":"1990-02-31"} {"a":"2024-02-29"} {"a":"2023-02-29"} {"a":"1990-2-3"} {"a":"x"} {"a":5} {"a":"2020-01-01T00:00"} {"a":"2020-13-01"}`},
	{`{"$.a":{"matchers":[{"match":"time","format":"HH:mm:ss"}]}}`, `{"a":"10:00:00"}`, `{"a":"23:59:59"} {"a":"24:00:00"} {"a":"10:00"} {"a":"1:00:00"} {"a":"10:60:00"}`},
	{`{"$.a":{"matchers":[{"match":"datetime","format":"yyyy-MM-dd'T'HH:mm:ssXXX"}]}}`, `{"a":"2020-01-01T10:00:00Z"}`, `{"a":"2020-01-01T10:00:00Z"} {"a":"2020-01-01T10:00:00+01:00"} {"a":"2020-01-01T10:00:00+0100"} {"a":"2020-01-01T10:00:00"} {"a":"2020-01-01 10:00:00Z"}`},
	{`{"$.a":{"matchers":[{"match":"datetime","format":"yyyy-MM-dd'T'HH:mm:ss.SSSZ"}]}}`, `{"a":"2020-01-01T10:00:00.123+0100"}`, `{"a":"2020-01-01T10:00:00.123+0100"} {"a":"2020-01-01T10:00:00.123Z"} {"a":"2020-01-01T10:00:00.1+0100"}`},
	{`{"$.a":{"matchers":[{"match":"datetime","format":"EEE, dd MMM yyyy"}]}}`, `{"a":"Mon, 06 Jan 2020"}`, `{"a":"Tue, 07 Jan 2020"} {"a":"Tue, 7 Jan 2020"} {"a":"Abc, 07 Jan 2020"}`},
	{`{"$.a":{"matchers":[{"match":"notEmpty"}]}}`, `{"a":"x"}`, `{"a":"y"} {"a":""} {"a":5} {"a":null} {"a":[]} {"a":[1]} {}`},
	{`{"$.a":{"matchers":[{"match":"notEmpty"}]}}`, `{"a":["x"]}`, `{"a":["y"]} {"a":[]} {"a":["x","x"]} {"a":["x"]}`},
	{`{"$.a":{"matchers":[{"match":"notEmpty"}]}}`, `{"a":{"b":1}}`, `{"a":{"b":1}} {"a":{}} {"a":{"b":2}}`},
	{`{"$.a":{"matchers":[{"match":"type"},{"match":"notEmpty"}]}}`, `{"a":"x"}`, `{"a":"y"} {"a":""} {"a":5}`},
	{`{"$.a":{"matchers":[{"match":"semver"}]}}`, `{"a":"1.0.0"}`, `{"a":"1.2.3"} {"a":"1.2"} {"a":"1.2.3-rc.1+x"} {"a":"v1.2.3"} {"a":"01.2.3"} {"a":5}`},
	{`{"$.a":{"matchers":[{"match":"values"}]}}`, `{"a":{"x":1}}`, `{"a":{"y":1}} {"a":{"y":2}} {"a":{"x":1,"y":1}} {"a":{}}`},
	{`{"$.a":{"matchers":[{"match":"values"}]},"$.a.*":{"matchers":[{"match":"type"}]}}`, `{"a":{"x":1}}`, `{"a":{"y":2}} {"a":{"y":"s"}} {"a":{}}`},
	{`{"$.a.*":{"matchers":[{"match":"type"}]}}`, `{"a":{"x":1}}`, `{"a":{"y":2}} {"a":{"x":2}} {"a":{"x":"s"}}`},
	{`{"$.a":{"matchers":[{"match":"eachKey","rules":[{"match":"regex","regex":"k\\d"}]}]}}`, `{"a":{"k1":"x"}}`, `{"a":{"k2":"y"}} {"a":{"k1":"x"}} {"a":{"k1":"y"}} {"a":{"z":"x"}} {"a":{}} {"a":{"k1":5,"k2":6}}`},
	{`{"$.a":{"matchers":[{"match":"eachValue","rules":[{"match":"type"}]}]}}`, `{"a":{"k1":"x"}}`, `{"a":{"k2":"y"}} {"a":{"k2":5}} {"a":{}}`},
	{`{"$.a":{"matchers":[{"match":"eachKey","rules":[{"match":"regex","regex":"k\\d"}]},{"match":"eachValue","rules":[{"match":"type"}]}]}}`, `{"a":{"k1":"x"}}`, `{"a":{"k2":"y"}} {"a":{"k2":5}} {"a":{"z":"y"}}`},
	{`{"$.a":{"matchers":[{"match":"eachValue","rules":[{"match":"regex","regex":"x+"}]}]}}`, `{"a":["x"]}`, `{"a":["xx","x"]} {"a":["y"]} {"a":[]} {"a":["x","y"]}`},
	{`{"$.a":{"matchers":[{"match":"arrayContains","variants":[{"index":0,"rules":{"$":{"matchers":[{"match":"equality"}]}}}]}]}}`, `{"a":["x"]}`, `{"a":["y","x"]} {"a":["y"]} {"a":[]} {"a":["x","x"]}`},
	{`{"$.a":{"matchers":[{"match":"arrayContains","variants":[{"index":0,"rules":{"$.k":{"matchers":[{"match":"type"}]}}},{"index":1,"rules":{}}]}]}}`, `{"a":[{"k":1},{"k":"s"}]}`, `{"a":[{"k":"s"},{"k":7}]} {"a":[{"k":7}]} {"a":[{"k":"s"}]} {"a":[{"k":"t"},{"k":1}]}`},
	{`{"$.a":{"matchers":[{"match":"contentType","value":"application/json"}]}}`, `{"a":"{}"}`, `{"a":"{}"} {"a":"plain"} {"a":"<html></html>"}`},
	{`{}`, `{"a":[]}`, `{"a":[]} {"a":[1]} {"a":{}}`},
	{`{}`, `{"a":{}}`, `{"a":{}} {"a":{"b":1}} {"a":[]}`},
	{`{}`, `[1,2]`, `[1,2] [1] [1,2,3] [2,1]`},
	{`{"$[*].a":{"matchers":[{"match":"type"}]}}`, `[{"a":1}]`, `[{"a":2}] [{"a":2},{"a":3}] []`},
	{`{"$['a-b'].c":{"matchers":[{"match":"type"}]}}`, `{"a-b":{"c":1}}`, `{"a-b":{"c":2}} {"a-b":{"c":"x"}}`},
	{`{"$.a[0]":{"matchers":[{"match":"type"}]},"$.a[*]":{"matchers":[{"match":"equality"}]}}`, `{"a":[1,2]}`, `{"a":[5,2]} {"a":[5,6]}`},
}

// headerSamples are expected headers with rules and actual headers, as JSON.
var headerSamples = []struct{ rules, want, tried string }{
	{`{}`, `{"X":["a"]}`, `{"X":["a"]} {"X":["b"]} {} {"X":["a, b"]} {"X":["a","b"]} {"x":["a"]}`},
	{`{}`, `{"X":["a","b"]}`, `{"X":["a, b"]} {"X":["a,b"]} {"X":["b, a"]} {"X":["a","b"]} {"X":["a"]}`},
	{`{}`, `{"X":"a, b"}`, `{"X":["a, b"]} {"X":["b, a"]} {"X":["a"]}`},
	{`{"X":{"matchers":[{"match":"regex","regex":"\\d+"}]}}`, `{"X":["1"]}`, `{"X":["22"]} {"X":["a"]} {"X":["1, 2"]} {"X":["1, a"]} {} {"X":[""]}`},
	{`{"x":{"matchers":[{"match":"regex","regex":"\\d+"}]}}`, `{"X":["1"]}`, `{"X":["22"]} {"X":["a"]}`},
	{`{"X":{"matchers":[{"match":"type"}]}}`, `{"X":["1"]}`, `{"X":["b"]} {"X":["1, 2"]} {}`},
	{`{"X":{"matchers":[{"match":"equality"}]}}`, `{"X":["a","b"]}`, `{"X":["a, b"]} {"X":["b, a"]} {"X":["a"]} {"X":["a, b, b"]} {"X":["a, b, c"]}`},
	{`{"X":{"matchers":[{"match":"include","value":"b"}]}}`, `{"X":["abc"]}`, `{"X":["xbx"]} {"X":["a"]}`},
	{`{}`, `{"Content-Type":["application/json"]}`, `{"Content-Type":["application/json; charset=utf-8"]} {"Content-Type":["application/json;charset=UTF-8"]} {"Content-Type":["application/problem+json"]} {"Content-Type":["Application/JSON"]}`},
	{`{}`, `{"Content-Type":["application/json; charset=utf-8"]}`, `{"Content-Type":["application/json; charset=UTF-8"]} {"Content-Type":["application/json"]} {"Content-Type":["application/json; x=1; charset=utf-8"]}`},
	{`{}`, `{"Content-Type":["text/plain"]}`, `{"Content-Type":["text/plain; x=1"]} {"Content-Type":["text/html"]}`},
	{`{}`, `{"Date":["Mon, 06 Jan 2020 10:00:00 GMT"]}`, `{"Date":["Mon, 06 Jan 2020 10:00:00 GMT"]} {"Date":["Tue, 07 Jan 2020 10:00:00 GMT"]}`},
	{`{}`, `{"Last-Modified":"Mon, 06 Jan 2020 10:00:00 GMT"}`, `{"Last-Modified":["Mon, 06 Jan 2020 10:00:00 GMT"]} {"Last-Modified":["Tue, 07 Jan 2020 10:00:00 GMT"]}`},
}

// otherSamples are whole responses in version 4: expected, and actual ones.
var otherSamples = []struct{ want, tried string }{
	{`{"status":200,"matchingRules":{"status":{"matchers":[{"match":"statusCode","status":"success"}]}}}`, `{"status":204} {"status":302} {"status":404}`},
	{`{"status":200,"matchingRules":{"status":{"matchers":[{"match":"statusCode","status":[200,201]}]}}}`, `{"status":201} {"status":202}`},
	{`{"status":404}`, `{"status":404} {"status":200}`},
	{`{"body":{"contentType":"application/x-www-form-urlencoded","content":"a=1&b=2"}}`, `{"body":{"contentType":"application/x-www-form-urlencoded","content":"b=2&a=1"}} {"body":{"contentType":"application/x-www-form-urlencoded","content":"a=1"}} {"body":{"contentType":"application/x-www-form-urlencoded","content":"a=1&b=3"}} {"body":{"contentType":"application/x-www-form-urlencoded","content":"a=1&b=2&c=3"}} {"body":{"contentType":"text/plain","content":"a=1&b=2"}}`},
	{`{"body":{"contentType":"application/x-www-form-urlencoded","content":"a=1&b=2"},"matchingRules":{"body":{"$.a":{"matchers":[{"match":"regex","regex":"\\d+"}]}}}}`, `{"body":{"contentType":"application/x-www-form-urlencoded","content":"a=22&b=2"}} {"body":{"contentType":"application/x-www-form-urlencoded","content":"a=x&b=2"}}`},
	{`{"body":{"contentType":"text/plain","content":"hello"}}`, `{"body":{"contentType":"text/plain","content":"hello"}} {"body":{"contentType":"text/plain","content":"hullo"}} {"body":{"contentType":"text/plain;charset=utf-8","content":"hello"}} {"body":{"contentType":"text/html","content":"hello"}} {"body":{"contentType":"text/plain","content":""}}`},
	{`{"body":{"contentType":"text/csv","content":"a,b"},"matchingRules":{"body":{"$":{"matchers":[{"match":"contentType","value":"text/csv"}]}}}}`, `{"body":{"contentType":"text/csv","content":"a,b"}} {"body":{"contentType":"application/json","content":{}}}`},
	{`{"body":{"contentType":"application/x-ndjson","encoded":"base64","content":"e30KW10K"}}`, `{"body":{"contentType":"application/x-ndjson","encoded":"base64","content":"e30KW10K"}} {"body":{"contentType":"application/x-ndjson","encoded":"base64","content":"e30K"}}`},
	{`{"body":{"contentType":"application/json","content":{"a":1}}}`, `{"body":{"contentType":"application/problem+json","content":{"a":1}}} {"body":{"contentType":"text/plain","content":"{\"a\":1}"}} {"body":{"contentType":"application/json","content":{"a":1}}} {"body":{"contentType":"application/json;charset=utf-8","content":{"a":1}}} {"body":{"contentType":"application/json","content":""}} {"body":{"contentType":"application/json","encoded":"base64","content":"ew=="}}`},
	{`{"body":{"contentType":"application/vnd.api+json","content":{"a":1}}}`, `{"body":{"contentType":"application/vnd.api+json","content":{"a":1,"b":2}}} {"body":{"contentType":"application/vnd.api+json","content":{"a":2}}}`},
	{`{"body":{"contentType":"application/json","content":"x"}}`, `{"body":{"contentType":"application/json","content":"x"}} {"body":{"contentType":"application/json","content":"y"}}`},
	{`{"body":{"content":""}}`, `{} {"body":{"contentType":"text/plain","content":"x"}}`},
	{`{"body":null}`, `{} {"body":{"contentType":"text/plain","content":"x"}}`},
	{`{}`, `{} {"body":{"contentType":"text/plain","content":"x"}}`},
}

func samples(t *testing.T) (all []sample) {
	t.Helper()
	text, err := os.ReadFile("../matching/testdata/specification.json")
	stacktest.Must(t, err)
	parse(t, string(text), &all)
	add := func(want, got string) {
		s := sample{Version: "4", Name: want + " and " + got}
		parse(t, want, &s.Expected)
		parse(t, got, &s.Actual)
		all = append(all, s)
	}
	const body = `"body":{"contentType":"application/json","content":`
	for _, m := range matcherSamples {
		for _, tried := range jsons(t, m.tried) {
			add(`{"matchingRules":{"body":`+m.rules+`},`+body+m.example+`}}`, `{`+body+tried+`}}`)
		}
	}
	for _, h := range headerSamples {
		for _, tried := range jsons(t, h.tried) {
			add(`{"matchingRules":{"header":`+h.rules+`},"headers":`+h.want+`}`, `{"headers":`+tried+`}`)
		}
	}
	for _, o := range otherSamples {
		for _, tried := range jsons(t, o.tried) {
			add(o.want, tried)
		}
	}
	return all
}

// jsons returns the JSON values of a text, one after the other.
func jsons(t *testing.T, text string) (all []string) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, string(one))
	}
	return all
}

func parse(t *testing.T, text string, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestEnginesAgree compares the verdicts of our engine and the library on the test cases of the Pact
// specification and on samples of each matcher.
func TestEnginesAgree(t *testing.T) {
	all := samples(t)
	byVersion := map[string][]int{}
	for i, s := range all {
		byVersion[s.Version] = append(byVersion[s.Version], i)
	}
	target := verify.Target{Service: contracts.HideRedirects(serving(t, all))}
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		var interactions []any
		for _, i := range byVersion[version] {
			expected := maps.Clone(all[i].Expected)
			delete(expected, "statusText")
			interactions = append(interactions, map[string]any{"type": "Synchronous/HTTP",
				"description": fmt.Sprint(i),
				"request":     map[string]any{"method": "GET", "path": fmt.Sprint("/", i)},
				"response":    expected})
		}
		text, err := json.Marshal(map[string]any{"consumer": map[string]any{"name": "c"},
			"provider": map[string]any{"name": "p"}, "interactions": interactions,
			"metadata": map[string]any{"pactSpecification": map[string]any{"version": version}}})
		stacktest.Must(t, err)
		p, err := contracts.ReadPact(text, "agree.json")
		stacktest.Must(t, err)
		own, native := verifyWith(t, verify.New, target, p, false),
			verifyWith(t, verify.NewNative, target, p, false)
		for n, i := range byVersion[version] {
			name := version + " " + all[i].Name
			if (own[n].Result == native[n].Result) == (differing[name] != "") {
				t.Errorf("%s: got %s %v, and %s %v of the library", name, own[n].Result,
					own[n].Problems, native[n].Result, native[n].Problems)
			}
		}
	}
}

// differing are the samples with another verdict than the library's, with the reason.
var differing = map[string]string{}
