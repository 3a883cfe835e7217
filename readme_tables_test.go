package gatehouse_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// table is a table of README.md: the cells of its rows.
type table [][]string

// readTable returns the rows of the table with that header.
func readTable(t *testing.T, header ...string) table {
	t.Helper()
	_, rest, ok := strings.Cut(readme(t), "\n| "+strings.Join(header, " | ")+" |\n")
	if !ok {
		t.Fatalf("got no table with the header %q in README.md, want one", header)
	}
	var rows table
	for i, line := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 0 {
			continue // the rule
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// plain returns a cell without its marks.
func plain(cell string) string { return strings.ReplaceAll(cell, "`", "") }

// gatehouse runs a command of the program that ends by itself.
func gatehouse(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	command := exec.Command(filepath.Join(cleanCopy, "bin", "gatehouse"), args...)
	command.Dir, command.Env, command.Stdout, command.Stderr = cleanCopy, environment(), &out, &errs
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// TestReadmeSettings compares the table of settings with the program's own: names, variables, defaults, and what a
// value may be.
func TestReadmeSettings(t *testing.T) {
	var settings []struct{ Setting, Value string }
	out, _ := gatehouse(t, "config", "--json")
	if err := json.Unmarshal([]byte(out), &settings); err != nil {
		t.Fatal(err)
	}
	variables := settingVariables(t)
	rows := readTable(t, "Flag", "Variable", "Default", "Meaning")
	if len(rows) != len(settings) {
		t.Errorf("got %d settings, want %d", len(rows), len(settings))
	}
	for i, s := range settings[:min(len(rows), len(settings))] {
		want := []string{"--" + s.Setting, variables[s.Setting], s.Value}
		if s.Value == "" {
			want[2] = "none"
		}
		got := []string{plain(rows[i][0]), plain(rows[i][1]), plain(rows[i][2])}
		if !slices.Equal(got, want) {
			t.Errorf("got setting %v, want %v", got, want)
		}
		for _, phrase := range allowed(t, s.Setting) {
			if !strings.Contains(rows[i][3], phrase) {
				t.Errorf("--%s: got no %q in its meaning, want it", s.Setting, phrase)
			}
		}
	}
}

var flagHelp = regexp.MustCompile(`(?s)--([a-z-]+)=\S+\s[^$]*?\[\$([A-Z_]+)\]`)

// settingVariables returns the variable of each setting, as the help tells.
func settingVariables(t *testing.T) map[string]string {
	t.Helper()
	help, _ := gatehouse(t, "serve", "--help")
	_, help, _ = strings.Cut(help, "--config=")
	variables := map[string]string{}
	for _, found := range flagHelp.FindAllStringSubmatch(help, -1) {
		variables[found[1]] = found[2]
	}
	return variables
}

var (
	allowedRange = regexp.MustCompile(`must be .* (from \S+ to \S+)$`)
	allowedWords = regexp.MustCompile(`must be ((?:[\w-]+, )*[\w-]+ or [\w-]+)$`)
)

// allowed returns the range or the words that the program names when it refuses a value, as the table writes them.
func allowed(t *testing.T, setting string) []string {
	t.Helper()
	_, refusal := gatehouse(t, "config", "--"+setting+"=!")
	refusal = strings.TrimSpace(refusal)
	if found := allowedRange.FindStringSubmatch(refusal); found != nil {
		return []string{strings.TrimPrefix(found[1], "from ")}
	}
	var words []string
	if found := allowedWords.FindStringSubmatch(refusal); found != nil {
		for _, word := range regexp.MustCompile(`[\w-]+`).FindAllString(found[1], -1) {
			if word != "or" {
				words = append(words, "`"+word+"`")
			}
		}
	}
	return words
}

// TestReadmeCommandTable compares the table of commands with the program's own. A row names the commands of a group one
// after the other, the group with the first alone.
func TestReadmeCommandTable(t *testing.T) {
	var got, want []string
	for _, row := range readTable(t, "Command", "What it does") {
		for i, command := range strings.Split(plain(row[0]), ", ") {
			if i > 0 {
				last := got[len(got)-1]
				command = last[:strings.LastIndex(last, " ")+1] + command
			}
			got = append(got, command)
		}
	}
	help, _ := gatehouse(t, "--help")
	_, help, _ = strings.Cut(help, "Commands:\n")
	for _, found := range regexp.MustCompile(`(?m)^  ([a-z-]+(?: [a-z-]+)?)  `).FindAllStringSubmatch(help, -1) {
		want = append(want, "gatehouse "+found[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got commands %q, want %q", got, want)
	}
}

// TestReadmeMap checks that the map of the repository leads somewhere, and that no package of the upper two levels is
// missing from it.
func TestReadmeMap(t *testing.T) {
	mapped := map[string]bool{}
	for _, row := range readTable(t, "Path", "What is there") {
		mapped[plain(row[0])] = true
	}
	for _, path := range slices.Sorted(maps.Keys(mapped)) {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("got %s in the map, want a path that exists", path)
		}
	}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		dir := filepath.ToSlash(filepath.Dir(path))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.Count(filepath.ToSlash(path), "/") > 1:
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && dir != "." && !mapped[dir]:
			t.Errorf("got no %s in the map, want it: it is a package", dir)
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadmeLinks checks that every link within the repository leads somewhere.
func TestReadmeLinks(t *testing.T) {
	text := readme(t)
	headings := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		headings["#"+strings.NewReplacer(" ", "-", "'", "").Replace(strings.ToLower(found[1]))] = true
	}
	for _, found := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		if target := found[1]; strings.HasPrefix(target, "#") {
			if !headings[target] {
				t.Errorf("got a link to %s, want a heading of that name", target)
			}
		} else if _, err := os.Stat(target); err != nil {
			t.Errorf("got a link to %s, want a file that exists", target)
		}
	}
}
