package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"gatehouse/contracts/matching"
)

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// mediaType returns the media type of a body; nil = there is none for it.
func mediaType(content openapi3.Content, given string) (*openapi3.MediaType, string) {
	kind, _, err := mime.ParseMediaType(given)
	if err != nil {
		kind = "application/json"
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		base, _, _ := strings.Cut(name, ";")
		main, _, _ := strings.Cut(kind, "/")
		if strings.EqualFold(strings.TrimSpace(base), kind) || base == main+"/*" || base == "*/*" {
			return content[name], name
		}
	}
	return nil, kind
}

// decoded returns the JSON of a body, a list for lines of JSON; ok is false for a body of another
// type.
func decoded(c matching.Content) (v any, ok bool) {
	kind, _, err := mime.ParseMediaType(c.Type)
	if err == nil && slices.Contains(lineTypes, kind) {
		var all []any
		for d := decoder(c.Bytes); ; {
			var line any
			switch err := d.Decode(&line); {
			case errors.Is(err, io.EOF):
				return all, true
			case err != nil:
				return nil, false
			}
			all = append(all, line)
		}
	}
	if err == nil && kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return nil, false
	}
	return v, decoder(c.Bytes).Decode(&v) == nil
}

func decoder(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d
}

// walker compares a value of a pact with a schema.
type walker struct {
	c        *checker
	prefix   string // pointer to the root of the value in the interaction
	document string // pointer to the schema
	whole    bool   // the value is sent: it needs the required members, and may have others
	lines    bool   // the value is a text of lines, which must be equal: pointers end at the text
	rules    []matching.Rule
	// part is the depth of the object, from 1, of whose members the schema has only a part, as one of
	// several that must hold: then others may have the rest. 0 = there is none.
	part int
}

func (w *walker) add(at matching.Path, format string, args ...any) {
	if w.lines && len(at) > 0 {
		w.c.add(w.prefix, w.document, "line %d, %s: "+format,
			slices.Concat([]any{at[0].Index + 1, at[1:]}, args)...)
		return
	}
	var parts []string
	for _, s := range at {
		if s.IsIndex {
			parts = append(parts, strconv.Itoa(s.Index))
		} else {
			parts = append(parts, s.Name)
		}
	}
	w.c.add(w.prefix+pointer(parts...), w.document, format, args...)
}

// within runs check with another place in the document.
func (w *walker) within(document string, check func()) {
	before := w.document
	w.document = document
	check()
	w.document = before
}

// attempt returns what check finds, without adding it.
func (w *walker) attempt(check func()) []Finding {
	before := w.c.found
	w.c.found = nil
	check()
	found := w.c.found
	w.c.found = before
	return found
}

// value compares a value with a schema.
func (w *walker) value(at matching.Path, ref *openapi3.SchemaRef, value any) {
	if ref == nil || ref.Value == nil || len(at) > 64 {
		return
	}
	document := w.document
	if strings.HasPrefix(ref.Ref, "#") {
		document = strings.TrimPrefix(ref.Ref, "#")
	}
	w.within(document, func() { w.schema(at, ref.Value, value) })
}

func (w *walker) schema(at matching.Path, s *openapi3.Schema, value any) {
	whole := s
	if len(s.AllOf) > 0 {
		whole = merged(s)
	}
	before := w.part
	if lists := choicesOf(s); lists > 1 || lists == 1 && len(whole.Properties) > 0 {
		w.part = len(at) + 1
	}
	w.choices(at, s, value)
	w.part = before
	s = whole
	set, ruled := matching.Best(w.rules, at)
	if ruled && !w.ruled(at, s, set) {
		return
	}
	if value == nil && s.Nullable || empty(s) {
		return
	}
	if !typed(s, value) {
		w.add(at, "want %s, got %s", strings.Join(s.Type.Slice(), " or "), kindOf(value))
		return
	}
	if !ruled || set.Literal() {
		w.literal(at, s, value)
	} else if !set.Cascaded() {
		w.enumerated(at, s, value)
	}
	switch v := value.(type) {
	case map[string]any:
		w.members(at, s, v)
	case []any:
		w.elements(at, s, v)
	}
}

// empty reports whether a schema says nothing by itself.
func empty(s *openapi3.Schema) bool {
	return s.Type == nil && len(s.Properties) == 0 && s.Items == nil && s.Const == nil && len(s.Enum) == 0
}

// choicesOf returns how many lists of alternatives a schema consists of.
func choicesOf(s *openapi3.Schema) (n int) {
	for _, list := range []openapi3.SchemaRefs{s.AnyOf, s.OneOf} {
		if len(list) > 0 {
			n++
		}
	}
	for _, ref := range s.AllOf {
		if ref.Value != nil {
			n += choicesOf(ref.Value)
		}
	}
	return n
}

// others reports whether a schema beside the properties of s may have a member.
func (w *walker) others(at matching.Path, s *openapi3.Schema, name string) bool {
	if w.part == len(at)+1 || len(s.PatternProperties) > 0 {
		return true
	}
	for _, ref := range slices.Concat(s.AnyOf, s.OneOf) {
		if ref.Value == nil {
			continue
		}
		one := merged(ref.Value)
		if one.Properties[name] != nil || len(one.Properties) == 0 || one.AdditionalProperties.Has != nil ||
			one.AdditionalProperties.Schema != nil || w.others(at, one, name) {
			return true
		}
	}
	return false
}

// choices checks the alternatives of a schema and of all that it consists of.
func (w *walker) choices(at matching.Path, s *openapi3.Schema, value any) {
	w.choice(at, "anyOf", s.AnyOf, value)
	w.choice(at, "oneOf", s.OneOf, value)
	for i, ref := range s.AllOf {
		if ref.Value != nil {
			w.within(w.document+pointer("allOf", strconv.Itoa(i)), func() { w.choices(at, ref.Value, value) })
		}
	}
}

// choice requires one alternative without findings, else it adds those of the best one.
func (w *walker) choice(at matching.Path, name string, refs openapi3.SchemaRefs, value any) {
	var best []Finding
	for i, ref := range refs {
		found := w.attempt(func() {
			w.within(w.document+pointer(name, strconv.Itoa(i)), func() { w.value(at, ref, value) })
		})
		if len(found) == 0 {
			return
		}
		if best == nil || len(found) < len(best) {
			best = found
		}
	}
	w.c.found = append(w.c.found, best...)
}

// merged returns a schema with the properties of all that it consists of.
func merged(s *openapi3.Schema) *openapi3.Schema {
	all := *s
	all.AllOf, all.Properties = nil, maps.Clone(s.Properties)
	if all.Properties == nil {
		all.Properties = openapi3.Schemas{}
	}
	for _, ref := range s.AllOf {
		if ref.Value == nil {
			continue
		}
		part := merged(ref.Value)
		maps.Copy(all.Properties, part.Properties)
		all.Required = append(all.Required[:len(all.Required):len(all.Required)], part.Required...)
		if all.Type == nil {
			all.Type = part.Type
		}
		all.AnyOf = append(all.AnyOf[:len(all.AnyOf):len(all.AnyOf)], part.AnyOf...)
		all.OneOf = append(all.OneOf[:len(all.OneOf):len(all.OneOf)], part.OneOf...)
		if len(all.Enum) == 0 {
			all.Enum = part.Enum
		}
		if all.AdditionalProperties.Schema == nil && all.AdditionalProperties.Has == nil {
			all.AdditionalProperties = part.AdditionalProperties
		}
	}
	return &all
}

// kindOf returns the JSON type of a value.
func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if _, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// typed reports whether a schema has the type of a value.
func typed(s *openapi3.Schema, value any) bool {
	if s.Type == nil || len(*s.Type) == 0 {
		return true
	}
	kind := kindOf(value)
	return slices.Contains(*s.Type, kind) || kind == "integer" && slices.Contains(*s.Type, "number")
}

// enumerated requires that a value is one of those that the document lists. The example of a rule is
// one too: a service that keeps to the document never responds with another.
func (w *walker) enumerated(at matching.Path, s *openapi3.Schema, value any) {
	if s.Const != nil && !same(s.Const, value) {
		w.add(at, "want %v, got %v", s.Const, value)
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return same(e, value) }) {
		var names []string
		for _, e := range s.Enum {
			names = append(names, fmt.Sprint(e))
		}
		w.add(at, "%v is none of %s%s", value, strings.Join(names, ", "), meant(fmt.Sprint(value), names))
	}
}

// formats are those whose texts are exact.
var formats = map[string]func(string) error{
	"date-time": func(s string) error { _, err := time.Parse(time.RFC3339, s); return err },
	"date":      func(s string) error { _, err := time.Parse(time.DateOnly, s); return err },
	"uuid":      uuid.Validate,
	"ipv4":      func(s string) error { return address(s, netip.Addr.Is4) },
	"ipv6":      func(s string) error { return address(s, netip.Addr.Is6) },
}

// address returns an error unless a text is an address of a kind.
func address(text string, isKind func(netip.Addr) bool) error {
	a, err := netip.ParseAddr(text)
	if err == nil && !isKind(a) {
		err = errors.New("it is an address of another kind")
	}
	return err
}

// literal checks a value that must be equal.
func (w *walker) literal(at matching.Path, s *openapi3.Schema, value any) {
	w.enumerated(at, s, value)
	switch v := value.(type) {
	case string:
		n := uint64(utf8.RuneCountInString(v))
		if n < s.MinLength || s.MaxLength != nil && n > *s.MaxLength {
			w.add(at, "the length %d is out of range", n)
		}
		if pattern, err := regexp.Compile(s.Pattern); err == nil && !pattern.MatchString(v) {
			w.add(at, "%q does not match %s", v, s.Pattern)
		}
		if format := formats[s.Format]; format != nil && format(v) != nil {
			w.add(at, "%q has not the format %s", v, s.Format)
		}
	case json.Number:
		if n, err := v.Float64(); err == nil && (s.Min != nil && n < *s.Min || s.Max != nil && n > *s.Max) {
			w.add(at, "%s is out of range", v)
		}
	}
}

func same(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func (w *walker) members(at matching.Path, s *openapi3.Schema, value map[string]any) {
	names := slices.Sorted(maps.Keys(s.Properties))
	all := slices.Clone(names)
	for _, ref := range slices.Concat(s.AnyOf, s.OneOf) {
		if ref.Value != nil {
			all = slices.AppendSeq(all, maps.Keys(ref.Value.Properties))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if property, ok := s.Properties[name]; ok {
			w.within(w.document+pointer("properties", name), func() {
				w.value(at.Member(name), property, value[name])
			})
			continue
		}
		if others := s.AdditionalProperties; others.Schema != nil {
			w.within(w.document+"/additionalProperties", func() {
				w.value(at.Member(name), others.Schema, value[name])
			})
			continue
		}
		closed := s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has
		if open := len(names) == 0 || s.AdditionalProperties.Has != nil; closed || !open &&
			!w.others(at, s, name) && w.matters(name, all) {
			w.add(at.Member(name), "the document has no member %s%s", name, meant(name, all))
		}
	}
	for _, name := range s.Required {
		if _, ok := value[name]; (w.whole || w.lines) && !ok {
			w.add(at, "the member %s is missing", name)
		}
	}
}

// matters reports whether a member that the document neither has nor forbids is an error. In a
// request it is one only if it looks like a member that the document has.
func (w *walker) matters(name string, names []string) bool {
	return !w.whole || meant(name, names) != ""
}

func (w *walker) elements(at matching.Path, s *openapi3.Schema, value []any) {
	set, ruled := matching.Best(w.rules, at)
	n := uint64(len(value))
	if (!ruled || set.Literal() || w.whole) && (n < s.MinItems || s.MaxItems != nil && n > *s.MaxItems) {
		w.add(at, "%d elements are out of range", n)
	}
	for i, element := range value {
		w.within(w.document+"/items", func() { w.value(at.Element(i), s.Items, element) })
	}
}

// text compares a value of a query, form or header, which is text, with a schema.
func (w *walker) text(at matching.Path, s *openapi3.Schema, text string) {
	if s == nil || s.Type == nil || s.Type.Permits("array") || s.Type.Permits("object") {
		return
	}
	var value any = text
	switch {
	case s.Type.Permits("string"):
	case s.Type.Permits("integer"), s.Type.Permits("number"):
		if json.Valid([]byte(text)) {
			value = json.Number(text)
		}
	case s.Type.Permits("boolean"):
		if b, err := strconv.ParseBool(text); err == nil {
			value = b
		}
	}
	w.schema(at, s, value)
}

// form compares a form with a schema.
func (w *walker) form(s *openapi3.Schema, text string) {
	values, err := url.ParseQuery(text)
	if err != nil {
		w.add(nil, "the form is malformed: %s", err)
		return
	}
	if len(s.AllOf) > 0 {
		s = merged(s)
	}
	if len(s.AnyOf)+len(s.OneOf) > 0 {
		return
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		property := s.Properties[name]
		if property == nil {
			if len(names) > 0 && s.AdditionalProperties.Schema == nil {
				w.c.add(w.prefix, w.document, "the form has no parameter %s%s", name, meant(name, names))
			}
			continue
		}
		w.c.found = append(w.c.found, w.attempt(func() { w.text(nil, property.Value, values.Get(name)) })...)
	}
	for _, name := range s.Required {
		if !values.Has(name) {
			w.add(nil, "the form needs %s", name)
		}
	}
}
