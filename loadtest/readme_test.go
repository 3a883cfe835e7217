package loadtest_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/loadtest"
)

// TestReadmeTellsEveryScenario compares the README's table of scenarios with the program.
func TestReadmeTellsEveryScenario(t *testing.T) {
	text, err := os.ReadFile("../docs/loadtests.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Scenarios\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var told, there []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (.+?[?].*?) \\|").FindAllStringSubmatch(table, -1) {
		told = append(told, m[1])
		s, err := loadtest.ScenarioNamed(m[1])
		if err != nil {
			continue // told below
		}
		question, _, _ := strings.Cut(s.About, "?")
		if !strings.HasPrefix(m[2], question[:strings.IndexAny(question+",:", ",:")]) {
			t.Errorf("%s: got %q in the README, want the question %q", m[1], m[2], s.About)
		}
	}
	for _, s := range loadtest.Scenarios {
		there = append(there, s.Name)
	}
	if !slices.Equal(told, there) {
		t.Errorf("got %v in the README, want %v", told, there)
	}
}
