package matching

import (
	"encoding/json"
	"fmt"
	"math/big"
	"mime"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// accept returns why set does not accept a value; "" = it does.
func (set RuleSet) accept(expected, actual any) string {
	var reasons []string
	for _, m := range set.Matchers {
		reason := m.accept(expected, actual, set.cascaded)
		if reason == "" && set.Any {
			return ""
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// accept returns why m does not accept a value; "" = it does. Values are those of encoding/json with
// UseNumber.
func (m Matcher) accept(expected, actual any, cascaded bool) string {
	switch m.Kind {
	case "regex":
		return unless(m.Regex.MatchString(text(actual)), "it does not match "+m.Text)
	case "type":
		return m.acceptType(expected, actual, cascaded)
	case "equality", "values":
		return equality(expected, actual)
	case "include":
		return unless(strings.Contains(text(actual), m.Text), "it does not contain "+m.Text)
	case "null":
		return unless(actual == nil, "want null")
	case "integer", "decimal", "number":
		return m.acceptNumber(actual)
	case "boolean":
		b, isBool := actual.(bool)
		s := fmt.Sprint(b)
		if !isBool {
			s, _ = actual.(string)
		}
		return unless(s == "true" || s == "false", "want a boolean")
	case "date", "time", "datetime":
		s, ok := actual.(string)
		if !ok {
			return "want a string with the format " + m.Text
		}
		return acceptTime(m.Text, s)
	case "notEmpty":
		return unless(!empty(actual), "want a value that is not empty")
	case "semver":
		s, ok := actual.(string)
		return unless(ok && semver.MatchString(s), "want a semantic version")
	case "contentType":
		s, _ := actual.(string)
		return unless(detected(s) == base(m.Text), "want content of the type "+m.Text)
	}
	return "" // eachKey, eachValue and arrayContains are about members and elements
}

// unless returns reason if ok is false.
func unless(ok bool, reason string) string {
	if ok {
		return ""
	}
	return reason
}

// semver matches a version (semver.org 2.0.0).
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)` +
	`(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// acceptType compares JSON types. Limits are those of arrays.
func (m Matcher) acceptType(expected, actual any, cascaded bool) string {
	if kind(expected) != kind(actual) {
		return fmt.Sprintf("want %s as in the example, got %s", kind(expected), kind(actual))
	}
	list, ok := actual.([]any)
	n := len(list)
	if !ok || cascaded {
		return ""
	}
	if m.Min >= 0 && n < m.Min {
		return fmt.Sprintf("want at least %d elements, got %d", m.Min, n)
	}
	if m.Max >= 0 && n > m.Max {
		return fmt.Sprintf("want at most %d elements, got %d", m.Max, n)
	}
	return ""
}

// kind returns the JSON type of a value.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

func (m Matcher) acceptNumber(actual any) string {
	n, ok := actual.(json.Number)
	switch whole := isWhole(n); {
	case !ok:
		return "want a number"
	case m.Kind == "integer" && !whole:
		return "want an integer"
	case m.Kind == "decimal" && whole:
		return "want a number with a decimal point"
	}
	return ""
}

// isWhole reports whether a number is written as an integer of 64 bits. 39.0 is not.
func isWhole(n json.Number) bool {
	if _, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return true
	}
	_, err := strconv.ParseUint(n.String(), 10, 64)
	return err == nil
}

// equality returns why values differ; "" = they are equal.
func equality(expected, actual any) string {
	a, isNumber := expected.(json.Number)
	b, both := actual.(json.Number)
	if isNumber && both {
		x, ok := new(big.Rat).SetString(a.String())
		y, ok2 := new(big.Rat).SetString(b.String())
		return unless(ok && ok2 && isWhole(a) == isWhole(b) && x.Cmp(y) == 0, "want an equal number")
	}
	return unless(text(expected) == text(actual) && kind(expected) == kind(actual), "want an equal value")
}

// empty reports whether a value is null or an empty string, array or object.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// text returns a string as it is, and any other value as JSON.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// detected returns the content type that a text seems to have.
func detected(s string) string {
	trimmed := strings.TrimSpace(s)
	switch {
	case trimmed != "" && json.Valid([]byte(trimmed)) && strings.ContainsAny(trimmed[:1], `[{"`):
		return "application/json"
	case strings.HasPrefix(trimmed, "<?xml"):
		return "application/xml"
	case strings.HasPrefix(strings.ToLower(trimmed), "<!doctype html"), strings.HasPrefix(trimmed, "<html"):
		return "text/html"
	case !utf8.ValidString(s):
		return "application/octet-stream"
	}
	return "text/plain"
}

// base returns a content type without parameters, in lower case.
func base(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
	}
	return strings.ToLower(strings.TrimSpace(media))
}
