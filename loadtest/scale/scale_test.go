package main

import (
	"testing"
	"time"
)

// TestRun measures with few tokens.
func TestRun(t *testing.T) {
	if err := run(t.Context(), config{tokens: 300, active: 100, rounds: 1, length: time.Second,
		people: 10}); err != nil {
		t.Fatal(err)
	}
}

func TestCheckConfig(t *testing.T) {
	good := config{tokens: 2, active: 1, rounds: 1, length: time.Second}
	for name, change := range map[string]func(*config){
		"no active token":         func(c *config) { c.active = 0 },
		"more active than tokens": func(c *config) { c.active = 3 },
		"no round":                func(c *config) { c.rounds = 0 },
		"no time":                 func(c *config) { c.length = time.Millisecond },
	} {
		c := good
		if change(&c); c.check() == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}
