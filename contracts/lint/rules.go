package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"gatehouse/contracts/matching"
)

// accepts are the JSON types that a matcher accepts.
var accepts = map[string][]string{"integer": {"integer", "number"}, "decimal": {"number"},
	"number": {"integer", "number"}, "boolean": {"boolean"}, "null": {"null"}, "date": {"string"},
	"time": {"string"}, "datetime": {"string"}, "semver": {"string"}, "include": {"string"},
	"arrayContains": {"array"}, "eachKey": {"object"}, "eachValue": {"object", "array"},
	"values": {"object"}}

// ruled checks the rule for a value. It reports whether the example of the rule still counts.
func (w *walker) ruled(at matching.Path, s *openapi3.Schema, set matching.RuleSet) bool {
	if set.Cascaded() {
		return true
	}
	for _, m := range set.Matchers {
		if want := accepts[m.Kind]; want != nil && !w.permits(s, want) && !set.Any {
			w.add(at, "the rule %s never holds: the document has %s", m.Kind,
				strings.Join(s.Type.Slice(), " or "))
			return false
		}
		switch {
		case m.Kind == "regex":
			w.listed(at, s, m.Text)
		case m.Kind == "eachKey":
			w.keys(at, s, m)
		case m.Min >= 0 && s.MaxItems != nil && uint64(m.Min) > *s.MaxItems:
			w.add(at, "the rule wants at least %d elements: the document has at most %d", m.Min, *s.MaxItems)
		case m.Max >= 0 && uint64(m.Max) < s.MinItems:
			w.add(at, "the rule wants at most %d elements: the document has at least %d", m.Max, s.MinItems)
		case m.Max >= 0 && s.MaxItems != nil && uint64(m.Max) > *s.MaxItems:
			w.add(at, "the rule accepts %d elements: the document has at most %d", m.Max, *s.MaxItems)
		case m.Kind == "number" && s.Type.Permits("integer") && !s.Type.Permits("number"):
			w.add(at, "the rule number accepts fractions: the document has integer")
		}
	}
	return true
}

// permits reports whether a schema has one of the types, or says nothing about types.
func (w *walker) permits(s *openapi3.Schema, types []string) bool {
	if s.Type == nil || len(*s.Type) == 0 {
		return true
	}
	return slices.ContainsFunc(types, func(t string) bool {
		return slices.Contains(*s.Type, t) || t == "null" && s.Nullable
	})
}

// alternatives matches a regular expression that lists texts.
var alternatives = regexp.MustCompile(`^\^?\(?(?:\?:)?([\w .:/-]+(?:\|[\w .:/-]+)*)\)?\$?$`)

// listed requires that a regular expression that lists texts lists only those of the document.
func (w *walker) listed(at matching.Path, s *openapi3.Schema, pattern string) {
	found := alternatives.FindStringSubmatch(pattern)
	if found == nil || len(s.Enum) == 0 || strings.Contains(found[1], ".") {
		return
	}
	var names []string
	for _, e := range s.Enum {
		if name, ok := e.(string); ok {
			names = append(names, name)
		}
	}
	for name := range strings.SplitSeq(found[1], "|") {
		if !slices.Contains(names, name) {
			w.add(at, "the rule accepts %s, which the document does not list%s", name, meant(name, names))
		}
	}
}

// keys requires that the names that eachKey lists are in a closed object.
func (w *walker) keys(at matching.Path, s *openapi3.Schema, m matching.Matcher) {
	closed := s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has
	if !closed {
		return
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, each := range m.Each {
		if found := alternatives.FindStringSubmatch(each.Text); each.Kind == "regex" && found != nil {
			for name := range strings.SplitSeq(found[1], "|") {
				if !slices.Contains(names, name) {
					w.add(at, "the rule allows a member %s, which the document does not have%s", name,
						meant(name, names))
				}
			}
		}
	}
}

// unused adds rules whose paths lead to nothing in the example.
func (w *walker) unused(rules map[string]any, value any) {
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		path, err := matching.ParsePath(key)
		if err == nil && !leads(path, value) {
			w.c.add(pointer("response", "matchingRules", "body", key), "",
				"the rule leads to nothing in the example")
		}
	}
}

// leads reports whether a path of a rule leads to a value.
func leads(path matching.Path, value any) bool {
	if len(path) == 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if !path[0].IsIndex && (path[0].Any || path[0].Name == name) && leads(path[1:], member) {
				return true
			}
		}
		return path[0].Any && len(v) == 0
	case []any:
		for i, element := range v {
			if (path[0].Any || path[0].IsIndex && (path[0].Index < 0 || path[0].Index == i)) &&
				leads(path[1:], element) {
				return true
			}
		}
		return len(v) == 0
	}
	return false
}
