package contracts

import "context"

// Catalogue returns all provider states, in the order in which they are documented.
func Catalogue() []State {
	all := []State{{
		Name:        "",
		Description: "A service that holds no clients and no users, whose upstream answers. Interactions without a state get it.",
		setUp:       func(context.Context, *fixture, arguments) error { return nil },
	}}
	all = append(all, clientStates()...)
	all = append(all, userStates()...)
	all = append(all, tokenStates()...)
	all = append(all, browserStates()...)
	all = append(all, lookupStates()...)
	return append(all, troubleStates()...)
}

// find returns the state of that name.
func find(name string) (State, bool) {
	for _, s := range Catalogue() {
		if s.Name == name {
			return s, true
		}
	}
	return State{}, false
}
