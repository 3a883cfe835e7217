package ascode

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Record is an object as the admin API shows it.
type Record map[string]any

// Text returns a member that is a text; "" = there is none.
func (r Record) Text(name string) string {
	text, _ := r[name].(string)
	return text
}

// Differences says in words what replaces the record old by new, a line for each key. An old of nil
// is no object.
func Differences(kind string, old, new Record) (lines []string) {
	of := KindOf(kind)
	for _, k := range slices.Concat([]Key{{Name: "set", Type: "string"}}, of.Keys) {
		before, after := old[k.Name], new[k.Name]
		switch {
		case k.Name == of.ID || sameValue(before, after):
		case k.Type == "secrets":
			if line := secretsLine(before, after); line != "" {
				lines = append(lines, line)
			}
		case k.Type == "strings", k.Type == "scopes":
			if line := listLine(before, after); line != "" {
				lines = append(lines, k.Name+": "+line)
			}
		case k.Type == "object":
			lines = append(lines, k.Name+": other keys")
		default:
			lines = append(lines, k.Name+": "+shown(before)+" -> "+shown(after))
		}
	}
	if !sameValue(old[secretSet], new[secretSet]) {
		lines = append(lines, "client_secret: another one")
	}
	if !sameValue(old[scopeTexts], new[scopeTexts]) {
		lines = append(lines, "scopes: other texts")
	}
	return lines
}

// scopeTexts is the member of a resource with what people read of its scopes.
const scopeTexts = "scope_texts"

// secretSet is the member of a provider with the time of its secret, which nobody is shown.
const secretSet = "client_secret_set_at"

// sameValue reports whether two values of a member mean the same. A missing one is false, 0 and "".
func sameValue(a, b any) bool {
	empty := func(v any) bool {
		list, isList := v.([]any)
		object, isObject := v.(map[string]any)
		return v == nil || v == "" || v == false || v == float64(0) || v == "opaque" ||
			isList && len(list) == 0 || isObject && len(object) == 0
	}
	return empty(a) && empty(b) || reflect.DeepEqual(a, b)
}

func shown(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// listLine says which items come and go. The order counts for nothing but a change of order alone.
func listLine(before, after any) string {
	old, new := texts(before), texts(after)
	var parts []string
	for _, t := range new {
		if !slices.Contains(old, t) {
			parts = append(parts, "add "+t)
		}
	}
	for _, t := range old {
		if !slices.Contains(new, t) {
			parts = append(parts, "remove "+t)
		}
	}
	if parts == nil {
		return "another order"
	}
	return strings.Join(parts, ", ")
}

func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// secretsLine says how many secrets come and go, by their hashes.
func secretsLine(before, after any) string {
	hashes := func(v any) (all []string) {
		list, _ := v.([]any)
		for _, item := range list {
			secret, _ := item.(map[string]any)
			all = append(all, fmt.Sprint(secret["hash"]))
		}
		return all
	}
	old, new := hashes(before), hashes(after)
	count := func(some, others []string) (n int) {
		for _, s := range some {
			if !slices.Contains(others, s) {
				n++
			}
		}
		return n
	}
	added, removed := count(new, old), count(old, new)
	if added+removed == 0 {
		return ""
	}
	return fmt.Sprintf("secrets: add %d, remove %d", added, removed)
}
