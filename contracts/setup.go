package contracts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// settled is a state that was set up: its values, and the client and user that it chose for later
// states, nil = none.
type settled struct {
	values map[string]any
	client *oauth.Client
	secret string
	user   *account.User
}

// setUp puts the fixture into a state and returns the state's values. A *StateError reports a
// mistake in the pact. The same state with the same arguments is set up once. Set up again, it only
// makes later states use its client and user.
func (f *fixture) setUp(ctx context.Context, s *resolved) (map[string]any, error) {
	arguments, err := json.Marshal(s.arguments)
	if err != nil {
		return nil, err
	}
	key := s.Name + string(arguments)
	if before, ok := f.settled[key]; ok {
		f.name(before)
		return before.values, nil
	}
	if err := f.checkUnique(s.arguments); err != nil {
		return nil, &StateError{s.Name, err.Error()}
	}
	client, user := f.client, f.user
	if err := s.setUp(ctx, f); err != nil {
		var wrong *StateError
		if errors.As(err, &wrong) {
			wrong.State = cmp.Or(wrong.State, s.Name)
			return nil, wrong
		}
		return nil, fmt.Errorf("set up the state %q: %w", s.Name, err)
	}
	now := settled{values: map[string]any{}}
	for _, v := range s.Values {
		if value, ok := f.values[v.Name]; ok {
			now.values[v.Name] = value
		}
	}
	if f.client != client {
		now.client, now.secret = f.client, f.secret
	}
	if f.user != user {
		now.user = f.user
	}
	f.settled[key] = now
	return now.values, nil
}

// setUpDefault sets up a state with the defaults of its parameters.
func (f *fixture) setUpDefault(ctx context.Context, name string) error {
	s, err := resolve(name, nil)
	if err != nil {
		return err
	}
	_, err = f.setUp(ctx, s)
	return err
}

// checkUnique returns an error for a code or token that another state has returned.
func (f *fixture) checkUnique(a arguments) error {
	for _, name := range []string{"code", "refresh_token", "access_token"} {
		for _, before := range f.settled {
			if s := a.text(name); s != "" && before.values[name] == s {
				return fmt.Errorf("%s: another state of this interaction has the same", name)
			}
		}
	}
	return nil
}

// name makes later states use the client and user of a state that was set up.
func (f *fixture) name(s settled) {
	if s.client != nil {
		f.client, f.secret = s.client, s.secret
		f.nameClient()
	}
	if s.user != nil {
		f.user = s.user
		f.nameUser()
	}
}
