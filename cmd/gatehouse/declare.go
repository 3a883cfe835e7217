package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/gatehouse/ascode"
	"gatehouse/cmd/stack"
)

// declaredSets reads the files of --declare.
func (p *program) declaredSets(dir string) (all []*oauth.DeclaredSet, err error) {
	sets, err := ascode.Read(dir, p.stdin, p.secretsOfClients())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, s := range sets {
		set := &oauth.DeclaredSet{Name: s.Name, Revision: s.Revision}
		digest := sha256.New()
		for _, o := range s.Objects {
			text, err := json.Marshal(o.Body)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.Where, err)
			}
			fmt.Fprintf(digest, "%s %s %s\n", o.Kind, o.ID, text)
			if err := stack.Describe(set, o.Kind, o.ID, text, now); err != nil {
				return nil, fmt.Errorf("%s: %w", o.Where, err)
			}
		}
		digest.Sum(set.Digest[:0])
		all = append(all, set)
	}
	return all, nil
}

// declare makes clients, resources, groups, attributes and claims what the files of --declare say, and logs what it did.
func (p *program) declare(ctx context.Context, s *stack.Stack, dir string) error {
	sets, err := p.declaredSets(dir)
	if err != nil {
		return refuse("declare", dir, "must describe clients, resources and providers: %v", err)
	}
	done, err := s.Tokens.Declare(ctx, sets)
	var refused *oauth.DeclareError
	switch {
	case errors.As(err, &refused):
		return refuse("declare", dir, "must describe what can be declared: %v", refused)
	case err != nil:
		return err
	}
	for i, d := range done {
		if d.Newer != 0 {
			s.Logger.Warn("a newer revision is declared already: the files change nothing",
				"set", sets[i].Name, "revision", sets[i].Revision, "declared", d.Newer)
			continue
		}
		s.Logger.Info("declared", "set", sets[i].Name, "revision", sets[i].Revision,
			"clients_changed", len(d.Clients))
	}
	return nil
}
