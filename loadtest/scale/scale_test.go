package main

import (
	"testing"
	"time"
)

// TestRun measures with few tokens.
func TestRun(t *testing.T) {
	if err := run(t.Context(), config{active: 100, revoked: 10, share: 0.1, rounds: 2,
		length: 100 * time.Millisecond, people: 10}); err != nil {
		t.Fatal(err)
	}
}

func TestCheckConfig(t *testing.T) {
	good := config{active: 1, share: 1, rounds: 1, length: time.Second}
	for name, change := range map[string]func(*config){
		"no active token":         func(c *config) { c.active = 0 },
		"less than no revocation": func(c *config) { c.revoked = -1 },
		"no tokens":               func(c *config) { c.share = 0 },
		"no round":                func(c *config) { c.rounds = 0 },
		"no time":                 func(c *config) { c.length = time.Millisecond },
	} {
		c := good
		if change(&c); c.check() == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}
