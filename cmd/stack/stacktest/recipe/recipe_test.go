package recipe

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRecipes checks that a test connects the program of each recipe, and that the code of the
// recipes is that of the programs that the tests run.
func TestRecipes(t *testing.T) {
	tests := contents(t, "../programs/*_test.go", "../realclients/*_test.go")
	code := contents(t, "../programs/apps/*.mjs", "../programs/apps/*.py",
		"../programs/goapps/*/*.go", "../realclients/*.mjs")
	headings := regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(read(t), -1)
	if len(headings) < 15 {
		t.Errorf("got %d recipes, want 15 or more", len(headings))
	}
	for _, found := range headings {
		heading := found[1]
		isNamed := func(test string) bool { return strings.Contains(test, strconv.Quote(heading)) }
		if !slices.ContainsFunc(tests, isNamed) {
			t.Errorf("%s: got no test of this recipe, want one", heading)
		}
		for _, block := range Read(t, heading).Settings {
			if block.Language != "text" && !slices.ContainsFunc(code, block.isIn) {
				t.Errorf("%s: got no program with this code, want one:\n%s", heading, block.Text)
			}
		}
	}
}

// contents returns the contents of the files that patterns match.
func contents(t *testing.T, patterns ...string) (texts []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("got %q and error %v for %s, want files", files, err, pattern)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
	}
	return texts
}
