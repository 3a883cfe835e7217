package coverage

import (
	"math"
	"regexp"
	"slices"
	"strconv"
)

// place is a value in the expected body of an interaction.
type place struct {
	at    []string // path of names and indices
	value any
}

// places returns the places of a path. "$" is the whole body.
func (i *interaction) places(path string) []place {
	all := []place{{nil, i.body}}
	for _, name := range steps(path) {
		var next []place
		for _, p := range all {
			if q, ok := p.member(name); ok {
				next = append(next, q)
			}
		}
		all = next
	}
	return all
}

func (p place) member(name string) (place, bool) {
	v, ok := members(p.value)[name]
	return place{append(slices.Clone(p.at), name), v}, ok
}

func (p place) elements() []place {
	var all []place
	for n, v := range list(p.value) {
		all = append(all, place{append(slices.Clone(p.at), strconv.Itoa(n)), v})
	}
	return all
}

// matchers returns the matchers of a place by its closest rule. inherited means that the rule is
// for an enclosing value.
func (i *interaction) matchers(p place) (found []object, inherited bool) {
	best := -1
	for _, r := range i.rules {
		if length := len(r.at); length > best && covers(r.at, p.at) {
			best, found, inherited = length, r.matchers, length < len(p.at)
		}
	}
	return found, inherited
}

func covers(rule, at []string) bool {
	return len(rule) <= len(at) &&
		!slices.ContainsFunc(seq(len(rule)),
			func(n int) bool { return rule[n] != "*" && rule[n] != at[n] })
}

func seq(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// loose reports whether members of the object at p may be missing: only their names are compared.
func (i *interaction) loose(p place) bool {
	return slices.ContainsFunc(i.rules, func(r rule) bool {
		return covers(r.at, p.at) &&
			slices.ContainsFunc(r.matchers, func(m object) bool { return m["match"] == "eachKey" })
	})
}

// keys returns the expression for the names of members of the object at p.
func (i *interaction) keys(p place) (*regexp.Regexp, bool) {
	for _, r := range i.rules {
		if len(r.at) != len(p.at) || !covers(r.at, p.at) {
			continue
		}
		for _, m := range r.matchers {
			for _, one := range list(m["rules"]) {
				if pattern, ok := members(one)["regex"].(string); ok && m["match"] == "eachKey" {
					e, err := regexp.Compile("^(?:" + pattern + ")$")
					return e, err == nil
				}
			}
		}
	}
	return nil, false
}

// closed reports whether the object at p may only have these members.
func (i *interaction) closed(p place, names []string) bool {
	o, ok := p.value.(object)
	if matchers, _ := i.matchers(p); ok && len(o) == 0 && len(names) == 0 && len(matchers) == 0 {
		return true
	}
	e, ok := i.keys(p)
	if !ok || e.MatchString("made_up") {
		return false
	}
	for name := range o {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// forbids reports whether the object at p must not have a member with that name.
func (i *interaction) forbids(p place, name string) bool {
	e, ok := i.keys(p)
	return ok && !e.MatchString(name)
}

// strict holds the matchers that accept only one JSON type.
var strict = map[any][]string{
	"type":     {"string", "number", "integer", "boolean", "object", "array", "null"},
	"equality": {"string", "number", "integer", "boolean", "object", "array", "null"},
	"integer":  {"integer"}, "number": {"number"}, "decimal": {"number"}, "date": {"string"},
	"null": {"null"}, "arrayContains": {"array"},
}

// pinsType reports whether only values of that JSON type are accepted at p.
func (i *interaction) pinsType(p place, kind string) bool {
	if !is(p.value, kind) {
		return false
	}
	matchers, inherited := i.matchers(p)
	switch {
	case len(matchers) == 0:
		return true
	case inherited:
		return slices.ContainsFunc(matchers,
			func(m object) bool { return m["match"] == "type" || m["match"] == "equality" }) &&
			kind != "integer"
	}
	return slices.ContainsFunc(matchers, func(m object) bool {
		return slices.Contains(strict[m["match"]], kind) &&
			(m["match"] != "type" || kind != "integer")
	})
}

// is reports whether v is of a JSON type.
func is(v any, kind string) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	}
	return kind == "object"
}

// pinsValue reports whether only value is accepted at p.
func (i *interaction) pinsValue(p place, value any) bool {
	if p.value != value {
		return false
	}
	matchers, _ := i.matchers(p)
	return !slices.ContainsFunc(matchers, func(m object) bool { return m["match"] != "equality" })
}
