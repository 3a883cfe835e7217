package contracts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// State is a provider state: what a pact may ask for with "given". It is set up in a fixture of its own, together with the
// other states of its interaction in their order; what a state needs and no state before it has made, it makes with
// defaults. Setting it up again with the same parameters changes nothing and gives the same values.
type State struct {
	Name        string      `json:"name"` // "" is that of interactions that ask for none
	Description string      `json:"description"`
	Parameters  []Parameter `json:"parameters,omitempty"`
	Values      []Value     `json:"values,omitempty"`

	check func(a arguments) error // what is wrong with the values, as far as they alone tell; nil = any will do
	setUp func(ctx context.Context, f *fixture, a arguments) error
}

// Parameter is what a pact may say about a state. All can be left out.
type Parameter struct {
	Name        string   `json:"name"`
	Type        Type     `json:"type"`
	Default     any      `json:"default"` // of that type; nil = as the description says
	Choices     []string `json:"choices,omitempty"`
	Description string   `json:"description"`
}

// Value is what a state gives back, for generators of the kind ProviderState.
type Value struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Type is the JSON type of a parameter.
type Type string

// The types.
const (
	String  Type = "string"
	Integer Type = "integer"
	Boolean Type = "boolean"
)

// StateError says that a pact asks for a state that there is not, or in a way that there is not.
type StateError struct {
	State   string
	Problem string
}

// refusef is the StateError of the state that is being set up, which adds its name.
func refusef(format string, args ...any) error {
	return &StateError{Problem: fmt.Sprintf(format, args...)}
}

// Error names the state and what is wrong.
func (e *StateError) Error() string { return fmt.Sprintf("state %q: %s", e.State, e.Problem) }

// CheckState returns a *StateError unless the state is in the Catalogue and takes those parameters with those values. They may
// stand inside another object under "params", as some verifiers send them. Whether the values agree with those of other states
// is found when it is set up.
func CheckState(name string, parameters map[string]any) error {
	_, _, err := resolve(name, parameters)
	return err
}

// resolve finds a state and its arguments.
func resolve(name string, given map[string]any) (State, arguments, error) {
	s, ok := find(name)
	if !ok {
		return s, nil, &StateError{name, unknownState(name)}
	}
	given = flat(given)
	args := arguments{}
	for _, p := range s.Parameters {
		args[p.Name] = p.Default
		v, ok := given[p.Name]
		if !ok || v == nil {
			continue
		}
		v, err := p.accept(v)
		if err != nil {
			return s, nil, &StateError{name, fmt.Sprintf("parameter %q: %s", p.Name, err)}
		}
		args[p.Name] = v
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if _, ok := args[key]; !ok {
			return s, nil, &StateError{name, fmt.Sprintf("it has no parameter %q; it has %s", key, parameterNames(s))}
		}
	}
	if s.check != nil {
		if err := s.check(args); err != nil {
			return s, nil, &StateError{name, err.Error()}
		}
	}
	return s, args, nil
}

// flat returns the parameters with those under "params" among them.
func flat(given map[string]any) map[string]any {
	nested, ok := given["params"].(map[string]any)
	if !ok {
		return given
	}
	all := maps.Clone(given)
	delete(all, "params")
	maps.Copy(all, flat(nested))
	return all
}

// accept returns v as the parameter's Go type: string, int or bool.
func (p *Parameter) accept(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if p.Type == String && (len(p.Choices) == 0 || slices.Contains(p.Choices, v)) {
			return v, nil
		}
	case bool:
		if p.Type == Boolean {
			return v, nil
		}
	case float64:
		return p.accept(json.Number(strconv.FormatFloat(v, 'f', -1, 64)))
	case json.Number:
		if p.Type == String && len(p.Choices) == 0 { // libraries for consumers take "5" for a number
			return v.String(), nil
		}
		if n, err := strconv.Atoi(v.String()); p.Type == Integer && err == nil {
			return n, nil
		}
	case int:
		if p.Type == Integer {
			return v, nil
		}
	}
	if len(p.Choices) > 0 {
		return nil, fmt.Errorf("got %v, want one of %s", v, strings.Join(p.Choices, ", "))
	}
	return nil, fmt.Errorf("got %v, want a value of type %s", v, p.Type)
}

func parameterNames(s State) string {
	if len(s.Parameters) == 0 {
		return "none"
	}
	var names []string
	for _, p := range s.Parameters {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// unknownState says what there is instead: the name that is nearest, if one is near.
func unknownState(name string) string {
	best, distance := "", max(3, len(name)/3)
	for _, s := range Catalogue() {
		if d := editDistance(strings.ToLower(name), s.Name); s.Name != "" && d < distance {
			best, distance = s.Name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("there is no such state; did you mean %q?", best)
	}
	return "there is no such state; pactcheck states lists all"
}

// editDistance returns how many bytes have to be put in, left out or replaced to get from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// arguments are the parameters of a state with their values, each of its parameter's type or nil.
type arguments map[string]any

// text returns a string; "" for none.
func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a arguments) number(name string) int {
	n, _ := a[name].(int)
	return n
}

// within returns an error unless a number is in that range.
func (a arguments) within(name string, least, most int) error {
	if n := a.number(name); n < least || n > most {
		return fmt.Errorf("%s: got %d, want %d to %d", name, n, least, most)
	}
	return nil
}

func (a arguments) flag(name string) bool {
	b, _ := a[name].(bool)
	return b
}
