package contracts

import (
	"context"
	"encoding/json"
	"fmt"
)

// setUp puts the world into a state and returns its values. The same state with the same arguments is set up once.
func (w *world) setUp(ctx context.Context, name string, parameters map[string]any) (map[string]any, error) {
	s, args, err := resolve(name, parameters)
	if err != nil {
		return nil, err
	}
	arguments, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	key := name + string(arguments)
	if values, ok := w.settled[key]; ok {
		return values, nil
	}
	if err := s.setUp(ctx, w, args); err != nil {
		return nil, fmt.Errorf("set up the state %q: %w", name, err)
	}
	values := map[string]any{}
	for _, v := range s.Values {
		if value, ok := w.values[v.Name]; ok {
			values[v.Name] = value
		}
	}
	w.settled[key] = values
	return values, nil
}
