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

// State is a provider state, which a pact names with "given". The states of an interaction are set
// up in one fixture, in their order. A state creates with defaults what it needs and no earlier
// state has created. Setting up a state again with the same parameters changes nothing and returns
// the same values.
type State struct {
	Name        string      `json:"name"` // "" = the state of interactions that name none
	Description string      `json:"description"`
	Parameters  []Parameter `json:"parameters,omitempty"`
	Values      []Value     `json:"values,omitempty"`

	parse func(a arguments) (setUp, error) // its error says which argument is wrong
}

// setUp puts a fixture into a state.
type setUp func(ctx context.Context, f *fixture) error

// always returns the parse function of a state without parameters.
func always(s setUp) func(arguments) (setUp, error) {
	return func(arguments) (setUp, error) { return s, nil }
}

// Parameter is a parameter of a state. Every parameter is optional.
type Parameter struct {
	Name        string   `json:"name"`
	Type        Type     `json:"type"`
	Default     any      `json:"default"` // of that type; nil = as the description says
	Choices     []string `json:"choices,omitempty"`
	Description string   `json:"description"`
}

// Value is a value that a state returns, for generators of the type ProviderState.
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

// Catalogue returns all provider states, in the order in which they are documented.
func Catalogue() []State {
	all := []State{{
		Name: "",
		Description: "A service without clients and users, whose upstream responds. " +
			"Interactions without a state have this one.",
		parse: always(func(context.Context, *fixture) error { return nil }),
	}}
	return slices.Concat(all, clientStates(), userStates(), tokenStates(), browserStates(),
		openIDStates(), operatorStates(),
		lookupStates(), troubleStates())
}

// StateError reports a state that does not exist or whose parameters are wrong.
type StateError struct {
	State   string
	Problem string
}

// stateErrorf returns a StateError. Setting up the state adds its name.
func stateErrorf(format string, args ...any) error {
	return &StateError{Problem: fmt.Sprintf(format, args...)}
}

// Error names the state and the problem.
func (e *StateError) Error() string { return fmt.Sprintf("state %q: %s", e.State, e.Problem) }

// CheckState returns a *StateError unless the Catalogue has the state and it accepts the
// parameters. Some verifiers nest the parameters in an object "params"; both forms are accepted.
// Conflicts with other states of an interaction are found when the state is set up.
func CheckState(name string, parameters map[string]any) error {
	_, err := resolve(name, parameters)
	return err
}

// resolved is a state with its arguments, ready to be set up.
type resolved struct {
	State
	arguments arguments
	setUp     setUp
}

// resolve finds a state and parses its arguments. Its error is a *StateError.
func resolve(name string, given map[string]any) (*resolved, error) {
	all := Catalogue()
	i := slices.IndexFunc(all, func(s State) bool { return s.Name == name })
	if i < 0 {
		return nil, &StateError{name, unknownState(name)}
	}
	s := &resolved{State: all[i], arguments: arguments{}}
	given = flat(given)
	for _, p := range s.Parameters {
		s.arguments[p.Name] = p.Default
		v, ok := given[p.Name]
		if !ok || v == nil {
			continue
		}
		v, err := p.accept(v)
		if err != nil {
			return nil, &StateError{name, fmt.Sprintf("parameter %q: %s", p.Name, err)}
		}
		s.arguments[p.Name] = v
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if _, ok := s.arguments[key]; !ok {
			return nil, &StateError{name,
				fmt.Sprintf("it has no parameter %q; it has %s", key, s.ParameterNames())}
		}
	}
	var err error
	if s.setUp, err = s.parse(s.arguments); err != nil {
		return nil, &StateError{name, err.Error()}
	}
	return s, nil
}

// flat moves the parameters under "params" up.
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

// accept returns v in the parameter's Go type: string, int or bool.
func (p *Parameter) accept(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if p.Type == String && (len(p.Choices) == 0 || slices.Contains(p.Choices, v)) {
			return v, nil
		}
	case map[string]any: // and a JSON text into its value
		if text, err := json.Marshal(v); p.Type == String && len(p.Choices) == 0 && err == nil {
			return string(text), nil
		}
	case bool:
		if p.Type == Boolean {
			return v, nil
		}
	case float64:
		return p.accept(json.Number(strconv.FormatFloat(v, 'f', -1, 64)))
	case json.Number:
		if p.Type == String && len(p.Choices) == 0 { // consumer libraries turn "5" into a number
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

// unknownState suggests the state with the most similar name, if there is one.
func unknownState(name string) string {
	if best := Nearest(name, stateNames()); best != "" {
		return fmt.Sprintf("there is no such state; did you mean %q?", best)
	}
	return "there is no such state; pactcheck states lists all"
}

func stateNames() (names []string) {
	for _, s := range Catalogue() {
		names = append(names, s.Name)
	}
	return names
}

// arguments holds the values of a state's parameters by name. Each has its parameter's type or is
// nil.
type arguments map[string]any

// text returns a string argument; "" = none.
func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a arguments) number(name string) int {
	n, _ := a[name].(int)
	return n
}

// within returns an error unless a number is from least to most.
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
