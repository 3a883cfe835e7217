// Package plan reads scenarios of load tests from YAML files.
package plan

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Schema is the JSON Schema of a file.
//
//go:embed schema.json
var Schema string

// Plan is a scenario of a file. Texts may have variables: see Text.
type Plan struct {
	Name       string
	About      string
	Stages     []scalar
	Users      int
	Duration   string
	Thresholds []string
	Data       *Data
	Variables  map[string]scalar
	Setup      []Step
	Steps      []Step
	Teardown   []Step

	file source
}

// Data names a CSV file.
type Data struct {
	File string
	Once bool // take each row once
}

// Step is one request.
type Step struct {
	Name    string
	Method  string // "" = GET, or POST with a body
	Path    Text
	Server  string // "admin", or else the public one
	Headers map[string]Text
	Form    map[string]Text
	JSON    *Body
	Body    *Text
	Expect  Statuses
	Save    map[string]*Source
	EachRow bool `json:"each_row"`
}

// Statuses are the expected statuses; nil = any below 400.
type Statuses []int

// UnmarshalJSON implements json.Unmarshaler.
func (s *Statuses) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*[]int)(s))
	}
	*s = make([]int, 1)
	return json.Unmarshal(text, &(*s)[0])
}

// Has reports whether status is expected.
func (s Statuses) Has(status int) bool {
	return s == nil && status < 400 || slices.Contains(s, status)
}

// scalar is a text that may be written as a number or a truth value.
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte(`"`)) {
		*s = scalar(text)
		return nil
	}
	return json.Unmarshal(text, (*string)(s))
}

// Text has variables in it: ${name}. $${ is a literal ${.
type Text struct{ pieces []piece }

// piece is a literal text, or a variable.
type piece struct {
	text     string
	variable bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(text []byte) error {
	var s scalar
	if err := s.UnmarshalJSON(text); err != nil {
		return err
	}
	t.pieces = split(string(s))
	return nil
}

var variable = regexp.MustCompile(`\$?\$\{([^}]*)\}?`)

func split(s string) []piece {
	var all []piece
	for s != "" {
		at := variable.FindStringSubmatchIndex(s)
		switch {
		case at == nil:
			return append(all, piece{text: s})
		case strings.HasPrefix(s[at[0]:], "$$"):
			all = append(all, piece{text: s[:at[0]] + "${"})
			s = s[at[2]:]
		default:
			if at[0] > 0 {
				all = append(all, piece{text: s[:at[0]]})
			}
			all = append(all, piece{s[at[2]:at[3]], true})
			s = s[at[1]:]
		}
	}
	return all
}

// Fill returns the text with the values of its variables. encode changes each value; at is its
// place, from 0. nil = none.
func (t Text) Fill(value func(name string) string, encode func(at int, value string) string) string {
	var b strings.Builder
	for i, p := range t.pieces {
		text := p.text
		if p.variable {
			if text = value(p.text); encode != nil {
				text = encode(i, text)
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// Body is a JSON value whose strings may have variables.
type Body struct{ value any }

// UnmarshalJSON implements json.Unmarshaler.
func (b *Body) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&b.value); err != nil {
		return err
	}
	b.value = withTexts(b.value)
	return nil
}

func withTexts(v any) any {
	switch v := v.(type) {
	case string:
		return Text{split(v)}
	case []any:
		for i := range v {
			v[i] = withTexts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = withTexts(v[name])
		}
	}
	return v
}

// Fill returns the JSON with the values of its variables.
func (b *Body) Fill(value func(name string) string) ([]byte, error) {
	return json.Marshal(filled(b.value, value))
}

func filled(v any, value func(string) string) any {
	switch v := v.(type) {
	case Text:
		return v.Fill(value, nil)
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = filled(v[i], value)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name := range v {
			all[name] = filled(v[name], value)
		}
		return all
	}
	return v
}

// Timed reports whether there are stages, all with a time of their own.
func (p *Plan) Timed() bool {
	return p.Stages != nil && !slices.ContainsFunc(p.Stages, func(s scalar) bool {
		return !strings.Contains(string(s), ":")
	})
}

// Errorf returns an error about a part of the file, with its line. path has names and indexes from
// the top.
func (p *Plan) Errorf(path []any, format string, args ...any) error {
	return p.file.errorf(p.file.at(path), format, args...)
}

// Source says where in a response the value of a variable is.
type Source struct {
	JSON    *string // JSON pointer
	Header  string
	Pattern string

	pattern *regexp.Regexp
}

// Read returns the value, or what is wrong with the response.
func (s *Source) Read(header func(string) string, body []byte) (value, wrong string) {
	switch {
	case s.JSON != nil:
		var root any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if d.Decode(&root) != nil {
			return "", "no JSON"
		}
		v, ok := point(root, *s.JSON)
		if !ok {
			return "", fmt.Sprintf("no %s in the JSON", *s.JSON)
		}
		value = jsonText(v)
	case s.Header != "":
		if value = header(s.Header); value == "" {
			return "", "no header " + s.Header
		}
	default:
		value = string(body)
	}
	if s.pattern == nil {
		return value, ""
	}
	found := s.pattern.FindStringSubmatch(value)
	if found == nil {
		return "", "no match of " + s.Pattern
	}
	return found[1], ""
}

// point returns the value at a JSON pointer (RFC 6901).
func point(v any, pointer string) (any, bool) {
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = in[name]; !ok {
				return nil, false
			}
		case []any:
			i := index(name)
			if i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// index returns an array index of a JSON pointer, or -1.
func index(name string) int {
	n := -1
	if json.Unmarshal([]byte(name), &n) != nil || name[0] == '-' {
		return -1
	}
	return n
}

// jsonText returns a string as it is, and any other value as JSON.
func jsonText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // never: it came from JSON
	}
	return string(text)
}
