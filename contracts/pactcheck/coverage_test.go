package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCoverage(t *testing.T) {
	folder := t.TempDir()
	one := write(t, "p.json", pactText("gatehouse", good))
	markdown, list := filepath.Join(folder, "c.md"), filepath.Join(folder, "c.json")
	for _, row := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"our own pacts", []string{"--complete", "../../contracts/pacts"}, 0,
			"100% of the contract is pinned"},
		{"one pact", []string{"--markdown", markdown, "--json", list, one}, 0,
			"✗ POST /oauth/token\n"},
		{"what one pact pins", []string{"--pinned", one}, 0,
			"✓ GET /api/lookup 200  [shop: a lookup]\n"},
		{"one pact that has to pin all", []string{"--complete", one}, 1, "✗ POST /oauth/token\n"},
		{"a folder without pacts", []string{folder + "/none"}, 2, ""},
		{"what is no pact", []string{write(t, "no.json", "[]")}, 2, ""},
		{"nothing", nil, 2, ""},
	} {
		got := pactcheck(t, append([]string{"coverage"}, row.args...)...)
		if got.code != row.code || !strings.Contains(got.stdout, row.want) {
			t.Errorf("%s: got %d %.300s %s, want %d and %q", row.name, got.code, got.stdout,
				got.stderr, row.code, row.want)
		}
	}
	for file, want := range map[string]string{markdown: "# Coverage of the contract",
		list: `"pinned_by": [`} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %.200s and error %v, want %q", text, err, want)
		}
	}
}
