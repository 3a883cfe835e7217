package gatehouse_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	describedPath   = regexp.MustCompile(`^  (/\S+):$`)
	describedMethod = regexp.MustCompile(`^    (get|post|patch|delete):$`)
)

// TestReadmeEndpoints compares the tables of endpoints with the public ones of openapi.yaml, and looks for all of its
// other paths on the page.
func TestReadmeEndpoints(t *testing.T) {
	var got []string
	for _, header := range [][]string{{"Method", "Path", "What it is"}, {"Method", "Path", "Input", "Answer"}} {
		for _, row := range readTable(t, header...) {
			got = append(got, plain(row[0])+" "+plain(row[1]))
		}
	}
	page := readme(t)
	want := describedEndpoints(t)
	for _, endpoint := range want {
		_, path, _ := strings.Cut(endpoint, " ")
		if !slices.Contains(got, endpoint) && !strings.Contains(page, "`"+path+"`") {
			t.Errorf("got no %s, want it: openapi.yaml describes it", endpoint)
		}
	}
	for _, endpoint := range got {
		if !slices.Contains(want, endpoint) {
			t.Errorf("got %s in a table, want an endpoint of openapi.yaml", endpoint)
		}
	}
}

// describedEndpoints returns "METHOD path" of each operation in openapi.yaml, without those that are about one record
// or profile.
func describedEndpoints(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("httpedge/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, paths, _ := strings.Cut(string(text), "\npaths:\n")
	paths, _, found := strings.Cut(paths, "\ncomponents:\n")
	if !found {
		t.Fatal("got no paths in openapi.yaml, want them")
	}
	var all []string
	var path string
	for line := range strings.Lines(paths) {
		line = strings.TrimSuffix(line, "\n")
		if head := describedPath.FindStringSubmatch(line); head != nil {
			path = head[1]
		}
		if method := describedMethod.FindStringSubmatch(line); method != nil && !strings.Contains(path, "{") {
			all = append(all, strings.ToUpper(method[1])+" "+path)
		}
	}
	return all
}
