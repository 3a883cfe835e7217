package matching

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Expected is the response that a pact expects.
type Expected struct {
	Status  int // 0 = any
	Headers map[string][]string
	Body    Content
	Rules   *Rules
}

// Content is an expected body.
type Content struct {
	Type string // "" = it follows from the header or the body itself
	// Bytes is the body, nil = any. An empty body must be empty.
	Bytes []byte
}

// Actual is what a service responds.
type Actual struct {
	Status  int
	Headers http.Header
	Body    []byte
}

// Compare returns the differences, in the order status, headers, body.
func Compare(want *Expected, got *Actual) []Mismatch {
	all := want.status(got.Status)
	for _, name := range slices.Sorted(maps.Keys(want.Headers)) {
		all = append(all, want.header(name, got.Headers)...)
	}
	return append(all, want.body(got)...)
}

func (e *Expected) status(got int) []Mismatch {
	for _, m := range e.Rules.Status.Matchers {
		if m.Kind != "statusCode" {
			continue
		}
		if len(m.Statuses) == 0 && classes[m.Text](got) || slices.Contains(m.Statuses, got) {
			return nil
		}
		return []Mismatch{{Where: "status", Expected: strings.Trim(m.Text+fmt.Sprint(m.Statuses), "[]"),
			Actual: strconv.Itoa(got)}}
	}
	if e.Status == 0 || e.Status == got {
		return nil
	}
	return []Mismatch{{Where: "status", Expected: strconv.Itoa(e.Status), Actual: strconv.Itoa(got)}}
}

// single are the headers whose commas do not separate values.
var single = []string{"date", "accept-datetime", "if-modified-since", "if-unmodified-since",
	"expires", "retry-after", "last-modified", "set-cookie", "user-agent"}

// SplitHeader returns the values of a header, as verifiers read them: a comma separates two.
func SplitHeader(name, value string) []string {
	if slices.Contains(single, strings.ToLower(name)) {
		return []string{strings.TrimSpace(value)}
	}
	var all []string
	for part := range strings.SplitSeq(value, ",") {
		all = append(all, strings.TrimSpace(part))
	}
	return all
}

func (e *Expected) header(name string, got http.Header) []Mismatch {
	wrong := func(want, value, reason string) Mismatch {
		return Mismatch{Where: "header " + name, Expected: want, Actual: value, Reason: reason}
	}
	want := e.Headers[name]
	var values []string
	for _, value := range got.Values(name) {
		values = append(values, SplitHeader(name, value)...)
	}
	if len(values) == 0 {
		return []Mismatch{wrong(strings.Join(want, ", "), "", "it "+Missing)}
	}
	if set := e.Rules.Headers[strings.ToLower(name)]; len(set.Matchers) > 0 {
		var all []Mismatch
		if len(want) != len(values) && set.equal() {
			all = append(all, wrong(strings.Join(want, ", "), strings.Join(values, ", "), ""))
		}
		for i, value := range values {
			example := ""
			if len(want) > 0 {
				example = want[min(i, len(want)-1)]
			}
			if reason := set.accept(example, value); reason != "" {
				all = append(all, wrong(example, value, reason))
			}
		}
		return all
	}
	if !slices.EqualFunc(want, values, func(a, b string) bool { return equalHeader(name, a, b) }) {
		return []Mismatch{wrong(strings.Join(want, ", "), strings.Join(values, ", "), "")}
	}
	return nil
}

// equalHeader compares values of a header. Content types have parameters in any order, and the
// response may have more of them.
func equalHeader(name, want, got string) bool {
	if want == got {
		return true
	}
	if !strings.EqualFold(name, "Content-Type") && !strings.EqualFold(name, "Accept") {
		return false
	}
	first, own, err := mime.ParseMediaType(want)
	second, other, err2 := mime.ParseMediaType(got)
	if err != nil || err2 != nil || first != second ||
		!strings.HasPrefix(got, strings.TrimSpace(strings.Split(want, ";")[0])) {
		return false
	}
	for name, value := range own {
		if other[name] != value && (name != "charset" || !strings.EqualFold(other[name], value)) {
			return false
		}
	}
	return true
}

// contentType returns the type of the expected body.
func (e *Expected) contentType() string {
	if e.Body.Type != "" {
		return base(e.Body.Type)
	}
	for name, values := range e.Headers {
		if strings.EqualFold(name, "Content-Type") && len(values) > 0 {
			return base(values[0])
		}
	}
	return detected(string(e.Body.Bytes))
}

func (e *Expected) body(got *Actual) []Mismatch {
	if e.Body.Bytes == nil {
		return nil
	}
	wrong := func(want, value, reason string) []Mismatch {
		return []Mismatch{{Where: "body $", Expected: want, Actual: value, Reason: reason}}
	}
	switch {
	case len(e.Body.Bytes) == 0 && len(got.Body) == 0:
		return nil
	case len(e.Body.Bytes) == 0:
		return wrong("", string(got.Body), "want an empty body")
	case len(got.Body) == 0:
		return wrong(string(e.Body.Bytes), "", "the body is empty")
	}
	want, actual := e.contentType(), base(got.Headers.Get("Content-Type"))
	if actual == "" {
		actual = detected(string(got.Body))
	}
	if want != actual && !(want == "application/json" && isJSON(actual)) && !e.typed() {
		return []Mismatch{{Where: "content type", Expected: want, Actual: actual}}
	}
	switch {
	case isJSON(want):
		return e.json(got.Body)
	case want == "application/x-www-form-urlencoded":
		return e.form(got.Body)
	}
	return e.text(got.Body)
}

// typed reports whether a rule is about the content type of the whole body.
func (e *Expected) typed() bool {
	set, _ := Best(e.Rules.Body, nil)
	return slices.ContainsFunc(set.Matchers, func(m Matcher) bool { return m.Kind == "contentType" })
}

// isJSON reports whether a type is JSON (RFC 6839 for +json).
func isJSON(contentType string) bool {
	main, subtype, _ := strings.Cut(contentType, "/")
	return main == "application" && strings.HasPrefix(subtype, "json") ||
		strings.HasSuffix(subtype, "+json")
}

func (e *Expected) json(body []byte) []Mismatch {
	want, err := decode(e.Body.Bytes)
	if err != nil {
		return []Mismatch{{Where: "body $", Reason: "the pact's body is no JSON: " + err.Error()}}
	}
	got, err := decode(body)
	if err != nil {
		return []Mismatch{{Where: "body $", Expected: quote(want), Actual: string(body),
			Reason: "the body is no JSON: " + err.Error()}}
	}
	c := &comparison{rules: e.Rules.Body}
	c.compare(nil, want, got)
	return c.found
}

func decode(text []byte) (v any, err error) {
	if !json.Valid(text) {
		return nil, json.Unmarshal(text, &v)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// form compares forms. The order of parameters does not count; others than the expected are wrong.
func (e *Expected) form(body []byte) []Mismatch {
	want, err := url.ParseQuery(string(e.Body.Bytes))
	got, err2 := url.ParseQuery(string(body))
	if err != nil || err2 != nil {
		return e.text(body)
	}
	c := &comparison{rules: e.Rules.Body}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		at := Path{}.Member(name)
		values, ok := got[name]
		if !ok {
			c.missing(at)
			continue
		}
		if _, ruled := Best(c.rules, at); !ruled && len(values) != len(want[name]) {
			c.add(at, want[name], values, fmt.Sprintf("want %d values, got %d", len(want[name]), len(values)))
		}
		for i, value := range values {
			c.compare(at.Element(i), want[name][min(i, len(want[name])-1)], value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			c.add(Path{}.Member(name), nil, got[name], "the pact has no such parameter")
		}
	}
	return c.found
}

// text compares bodies of other types, by a rule for the whole body if there is one.
func (e *Expected) text(body []byte) []Mismatch {
	want, got := string(e.Body.Bytes), string(body)
	reason := ""
	if set, ok := Best(e.Rules.Body, nil); ok {
		if reason = set.accept(want, got); reason == "" {
			return nil
		}
	} else if want == got {
		return nil
	}
	return []Mismatch{{Where: "body $", Expected: want, Actual: got, Reason: reason}}
}
