//go:build pact

package pacttest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pact-foundation/pact-go/v2/matchers"
)

// Object is a JSON object of matchers and literals. Members that are not named may be there too.
type Object = map[string]any

// Any returns a matcher of the JSON type of example; of an object or array, of what is in it as well.
func Any(example any) any { return rules(example, Object{"pact:matcher:type": "type"}) }

// NotEmpty returns a matcher of strings that are not "".
func NotEmpty(example string) any {
	return rules(example, Object{"pact:matcher:type": "type"}, Object{"pact:matcher:type": "notEmpty"})
}

// Pattern returns a matcher of strings that match the whole regular expression. A regular expression alone would match the
// number 12 as well as "12".
func Pattern(example, expression string) any {
	return rules(example, Object{"pact:matcher:type": "type"}, Object{"pact:matcher:type": "regex", "regex": expression})
}

// OneOf returns a matcher of the values; the first is the example.
func OneOf(values ...string) any { return Pattern(values[0], anyOf(values)) }

// Integer returns a matcher of whole numbers without a fraction.
func Integer(example int) any { return rules(example, Object{"pact:matcher:type": "integer"}) }

// Number returns a matcher of numbers, whole ones too.
func Number(example float64) any { return rules(example, Object{"pact:matcher:type": "number"}) }

// Date returns a matcher of dates that exist, as YYYY-MM-DD.
func Date(example string) any {
	return Object{"pact:matcher:type": "date", "format": "yyyy-MM-dd", "value": example}
}

// List returns a matcher of arrays of least to most elements that are like the examples.
func List(least, most int, examples ...any) any {
	return Object{"pact:matcher:type": "type", "min": least, "max": most, "value": examples}
}

// Having returns a matcher of arrays that have all of the values, in any place.
func Having(values ...any) any { return matchers.ArrayContaining(values) }

// Null matches null.
func Null() any { return matchers.Null{} }

// OnlyKeys returns a matcher of objects with no other members than those of example. None of them has to be there, and
// matchers in example do not count for what is missing: that belongs into an interaction of its own.
func OnlyKeys(example Object) any {
	return rules(example, Object{"pact:matcher:type": "eachKey",
		"rules": []any{Object{"pact:matcher:type": "regex", "regex": anyOf(slices.Sorted(maps.Keys(example)))}}})
}

// FromState returns a value that the provider state gives: expression names it, as in "${access_token}". The example is what the
// consumer is tried with.
func FromState(expression, example string) matchers.Matcher {
	return matchers.FromProviderState(expression, example)
}

// Matching returns a matcher of headers that match the whole regular expression. A header with commas counts as several
// values, each of which must match.
func Matching(example, expression string) matchers.Matcher {
	return matchers.Regex(example, expression)
}

// JSONType matches a Content-Type of JSON, with or without parameters.
var JSONType = Matching("application/json", "^application/json.*")

// Digits returns a matcher of headers that are whole numbers from 0.
func Digits(example string) matchers.Matcher { return Matching(example, "^[0-9]+$") }

func rules(example any, all ...Object) any {
	list := make([]any, len(all))
	for i, rule := range all {
		list[i] = rule
	}
	if len(list) == 1 {
		one := maps.Clone(all[0])
		one["value"] = example
		if one["pact:matcher:type"] != "eachKey" {
			return one
		}
	}
	return Object{"pact:matcher:type": list, "value": example}
}

func anyOf(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = regexp.QuoteMeta(v)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}
