package contracts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Malformed returns an error for interactions that have a Problem. It joins one error for each,
// with the name of the interaction.
func (p *Pact) Malformed() error {
	return p.each(func(it *Interaction) error {
		if it.Problem == "" {
			return nil
		}
		return errors.New(it.Problem)
	})
}

// Check returns an error for interactions that have a Problem or that Interaction.Check rejects. It
// joins one error for each problem, with the name of the interaction.
func (p *Pact) Check() error {
	return errors.Join(p.Malformed(), p.each((*Interaction).Check))
}

func (p *Pact) each(check func(*Interaction) error) error {
	var all []error
	for i := range p.Interactions {
		it := &p.Interactions[i]
		for _, err := range Errors(check(it)) {
			all = append(all, fmt.Errorf("%s: interaction %q: %w", p.Source, it.Description, err))
		}
	}
	return errors.Join(all...)
}

// Errors returns the errors that errors.Join has joined.
func Errors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, Errors(one)...)
	}
	return all
}

// Check returns an error unless the Catalogue has the states and they give every value that the
// interaction uses. It joins one error for each problem.
func (it *Interaction) Check() error {
	var all []error
	given := map[string]bool{}
	for _, use := range it.States {
		all = append(all, CheckState(use.Name, use.Parameters))
		for _, v := range valuesOf(use.Name) {
			given[v.Name] = true
		}
	}
	if err := errors.Join(all...); err != nil {
		return err // an unknown state gives unknown values
	}
	for _, name := range it.Uses() {
		if !given[name] {
			all = append(all, fmt.Errorf("it uses the value %q, and its states give %s", name,
				cmp.Or(strings.Join(slices.Sorted(maps.Keys(given)), ", "), "none")))
		}
	}
	return errors.Join(all...)
}

// valuesOf returns the values of the state with that name.
func valuesOf(name string) []Value {
	all := Catalogue()
	if i := slices.IndexFunc(all, func(s State) bool { return s.Name == name }); i >= 0 {
		return all[i].Values
	}
	return nil
}

// expression matches a value of a state inside text.
var expression = regexp.MustCompile(`\$\{([^}]*)\}`)

// Uses returns the names of the values that generators take from states, each once.
func (it *Interaction) Uses() []string {
	found := map[string]bool{}
	for _, part := range []string{"request", "response"} {
		one, _ := it.body[part].(map[string]any)
		generators(one["generators"], func(text string) {
			for _, name := range expressionNames(text) {
				found[name] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// expressionNames returns the names of the values in an expression. Text without ${…} is a name.
func expressionNames(text string) (names []string) {
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	if names == nil {
		return []string{text}
	}
	return names
}

// generators passes the expression of each generator that takes a value from a state.
func generators(v any, each func(string)) {
	o, _ := v.(map[string]any)
	if text, ok := o["expression"].(string); ok && o["type"] == "ProviderState" {
		each(text)
	}
	for _, member := range o {
		generators(member, each)
	}
}
