package matching

import (
	"fmt"
	"maps"
	"slices"
)

// Mismatch is one difference between the expected and the actual response.
type Mismatch struct {
	Where            string // "status", "content type", "header X", or "body $.path"
	Expected, Actual string // "" = nothing
	Reason           string // Missing for a member that the response does not have
}

// Missing is the Reason of a Mismatch whose Where the response does not have.
const Missing = "is missing"

// comparison collects the mismatches of a body.
type comparison struct {
	rules []Rule
	found []Mismatch
}

func (c *comparison) add(at Path, expected, actual any, reason string) {
	c.found = append(c.found, Mismatch{Where: "body " + at.String(), Expected: quote(expected),
		Actual: quote(actual), Reason: reason})
}

func (c *comparison) missing(at Path) {
	c.found = append(c.found, Mismatch{Where: "body " + at.String(), Reason: Missing})
}

// quote returns a value as JSON.
func quote(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return text(v)
}

// compare compares the values at a path.
func (c *comparison) compare(at Path, expected, actual any) {
	switch want := expected.(type) {
	case map[string]any:
		if got, ok := actual.(map[string]any); ok {
			c.objects(at, want, got)
			return
		}
		c.add(at, expected, actual, "want an object, got "+kind(actual))
		return
	case []any:
		if got, ok := actual.([]any); ok {
			c.arrays(at, want, got)
			return
		}
		c.add(at, expected, actual, "want an array, got "+kind(actual))
		return
	}
	set, ok := Best(c.rules, at)
	if !ok {
		if equality(expected, actual) != "" {
			c.add(at, expected, actual, "")
		}
		return
	}
	if reason := set.accept(expected, actual); reason != "" {
		c.add(at, expected, actual, reason)
	}
}

// objects compares objects. Other members are allowed, unless a rule is about all members.
func (c *comparison) objects(at Path, want, got map[string]any) {
	if set, ok := Best(c.rules, at); ok {
		for _, m := range set.Matchers {
			c.members(at, m, set.cascaded, want, got)
		}
		return
	}
	c.each(at, want, got)
}

// each compares the expected members.
func (c *comparison) each(at Path, want, got map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[name]; ok {
			c.compare(at.Member(name), want[name], value)
		} else {
			c.missing(at.Member(name))
		}
	}
}

// members compares objects by one matcher.
func (c *comparison) members(at Path, m Matcher, cascaded bool, want, got map[string]any) {
	names := slices.Sorted(maps.Keys(got))
	switch {
	case m.Kind == "eachKey" && !cascaded:
		for _, name := range names {
			for _, rule := range m.Each {
				if reason := rule.accept(name, name, false); reason != "" {
					c.add(at.Member(name), nil, name, "the name of the member: "+reason)
				}
			}
			if example, ok := want[name]; ok {
				c.compare(at.Member(name), example, got[name])
			}
		}
	case (m.Kind == "values" || m.Kind == "eachValue") && !cascaded:
		for _, name := range names {
			example, ok := want[name]
			if !ok {
				if len(want) == 0 {
					continue
				}
				example = want[slices.Sorted(maps.Keys(want))[0]]
			}
			c.every(at.Member(name), m, example, got[name])
		}
	case m.Kind == "equality" && !cascaded:
		if reason := m.accept(want, got, cascaded); reason != "" {
			c.add(at, want, got, reason)
		}
	default:
		if reason := m.accept(want, got, cascaded); m.Kind == "notEmpty" && reason != "" {
			c.add(at, want, got, reason)
		}
		c.each(at, want, got)
	}
}

// every compares a member or element for which eachValue or values stands.
func (c *comparison) every(at Path, m Matcher, example, value any) {
	if len(m.Each) == 0 {
		c.compare(at, example, value)
		return
	}
	inner := &comparison{rules: append(c.rules[:len(c.rules):len(c.rules)],
		Rule{at, RuleSet{Matchers: m.Each}})}
	inner.compare(at, example, value)
	c.found = append(c.found, inner.found...)
}

// arrays compares arrays.
func (c *comparison) arrays(at Path, want, got []any) {
	set, ok := Best(c.rules, at)
	if !ok {
		switch {
		case len(want) == 0 && len(got) > 0:
			c.add(at, want, got, "want an empty array")
			return
		case len(want) != len(got):
			c.add(at, want, got, fmt.Sprintf("want %d elements, got %d", len(want), len(got)))
		}
		for i := range min(len(want), len(got)) {
			c.compare(at.Element(i), want[i], got[i])
		}
		return
	}
	for _, m := range set.Matchers {
		c.elements(at, m, set.cascaded, want, got)
	}
}

// elements compares arrays by one matcher.
func (c *comparison) elements(at Path, m Matcher, cascaded bool, want, got []any) {
	switch {
	case m.Kind == "arrayContains":
		c.contains(at, m, want, got)
		return
	case m.Kind == "eachValue" && !cascaded:
		for i, value := range got {
			if len(want) > 0 {
				c.every(at.Element(i), m, want[min(i, len(want)-1)], value)
			}
		}
		return
	case m.Kind == "equality":
		if equality(want, got) != "" {
			c.add(at, want, got, "want an equal array")
		}
		return
	}
	if reason := m.accept(want, got, cascaded); reason != "" {
		c.add(at, want, got, reason)
	}
	for i, value := range got {
		if len(want) > 0 {
			c.compare(at.Element(i), want[min(i, len(want)-1)], value)
		}
	}
}

// contains looks for each variant among the elements.
func (c *comparison) contains(at Path, m Matcher, want, got []any) {
	variants := m.Variants
	for _, v := range variants {
		if v.Index >= len(want) {
			c.add(at, nil, got, fmt.Sprintf("the pact has no example of the variant %d", v.Index))
			continue
		}
		if !slices.ContainsFunc(got, func(value any) bool {
			inner := &comparison{rules: v.Rules}
			inner.compare(nil, want[v.Index], value)
			return len(inner.found) == 0
		}) {
			c.add(at, want[v.Index], got, "no element is like this")
		}
	}
}
