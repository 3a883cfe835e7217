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

// settled is a state that was set up: its values, and the client and user that it names for later states, nil = none.
type settled struct {
	values map[string]any
	client *oauth.Client
	secret string
	user   *account.User
}

// setUp puts the fixture into a state and returns its values; a *StateError says that the pact is to blame. The same state with the
// same arguments is set up once; again, later states are about its client and user.
func (f *fixture) setUp(ctx context.Context, name string, parameters map[string]any) (map[string]any, error) {
	s, args, err := resolve(name, parameters)
	if err != nil {
		return nil, err
	}
	arguments, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	key := name + string(arguments)
	if before, ok := f.settled[key]; ok {
		f.name(before)
		return before.values, nil
	}
	if err := f.checkUnique(args); err != nil {
		return nil, &StateError{name, err.Error()}
	}
	client, user := f.client, f.user
	if err := s.setUp(ctx, f, args); err != nil {
		var wrong *StateError
		if errors.As(err, &wrong) {
			wrong.State = cmp.Or(wrong.State, name)
			return nil, wrong
		}
		return nil, fmt.Errorf("set up the state %q: %w", name, err)
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

// checkUnique returns an error when a code or token is given that another state has given back already.
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

// name makes later states be about the client and the user of a state that was set up.
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
