//go:build pact

package pacttest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pact-foundation/pact-go/v2/matchers"
)

// Object is a JSON object of matchers and literals. Other members are allowed.
type Object = map[string]any

// Any returns a matcher of the JSON type of example, and of the types inside an object or array.
func Any(example any) any { return rules(example, Object{"pact:matcher:type": "type"}) }

// NotEmpty returns a matcher of strings other than "".
func NotEmpty(example string) any {
	return rules(example, Object{"pact:matcher:type": "type"},
		Object{"pact:matcher:type": "notEmpty"})
}

// Pattern returns a matcher of strings that match the whole regular expression. The expression
// alone would match the number 12 as well as "12".
func Pattern(example, expression string) any {
	return rules(example, Object{"pact:matcher:type": "type"},
		Object{"pact:matcher:type": "regex", "regex": expression})
}

// OneOf returns a matcher of the values; the first is the example.
func OneOf(values ...string) any { return Pattern(values[0], anyOf(values)) }

// Integer returns a matcher of integers.
func Integer(example int) any { return rules(example, Object{"pact:matcher:type": "integer"}) }

// Number returns a matcher of numbers, including integers.
func Number(example float64) any { return rules(example, Object{"pact:matcher:type": "number"}) }

// List returns a matcher of arrays of least to most elements with the types of the examples.
func List(least, most int, examples ...any) any {
	return Object{"pact:matcher:type": "type", "min": least, "max": most, "value": examples}
}

// Having returns a matcher of arrays that contain all values, in any order.
func Having(values ...any) any { return matchers.ArrayContaining(values) }

// Null matches null.
func Null() any { return matchers.Null{} }

// OnlyKeys returns a matcher of objects that have no members other than those of example. Members
// may be missing: what must be there belongs in another interaction.
func OnlyKeys(example Object) any {
	return rules(example, Object{"pact:matcher:type": "eachKey",
		"rules": []any{Object{"pact:matcher:type": "regex",
			"regex": anyOf(slices.Sorted(maps.Keys(example)))}}})
}

// FromState returns a value of the provider state. expression names it, as in "${access_token}".
// The consumer test uses the example.
func FromState(expression, example string) matchers.Matcher {
	return matchers.FromProviderState(expression, example)
}

// Matching returns a matcher of headers that match the whole regular expression. A header with
// commas is several values, and each must match.
func Matching(example, expression string) matchers.Matcher {
	return matchers.Regex(example, expression)
}

// JSONType matches a Content-Type of JSON, with or without parameters.
var JSONType = Matching("application/json", "^application/json.*")

// Digits returns a matcher of headers that are integers from 0.
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
