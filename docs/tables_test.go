package docs_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/gatehouse/ascode"
)

// tables are what TestTables compares: the lines that each row of a table says, with those that the
// program says. The order does not count.
var tables = []struct {
	page, header string
	got          func(t *testing.T, row []string) []string
	want         func(t *testing.T) []string
}{
	{"docs/operations.md", "Command | What it does", commandNames, commands},
	{"docs/operations.md", "Flag of client create | What the client is registered for", flagsOf,
		registrationFlags},
	{"docs/configuration.md", "Flag | Variable | Default | Meaning", settingOf, settings},
	{"docs/configuration.md", "IP_PROVIDER | Source | X-Geo-Source", first, providers},
	{"docs/operations.md", "Metric | Type | Labels | Meaning", metricOf, metrics},
	{"docs/cluster.md", "Metric of a node | Type | Labels | Meaning", metricOf, nodeMetrics},
	{"docs/operations.md", "Admin error | Status", firstTwo, adminErrors},
	{"docs/lookups.md", "Code | Status | When | What to do", firstTwo, lookupErrors},
	{"docs/lookups.md", "Reason | When", first, reasons},
	{"docs/lookups.md", "Code | Status | When", firstTwo, problems},
	{"docs/apps.md", "OAuth error | Status | By redirect | When", oauthErrorOf, oauthErrors},
	{"docs/apps.md", "Profile error | Status | When", firstTwo, profileErrors},
	{"docs/apps.md", "Scope | What it allows", first, scopes},
	{"docs/identity.md", "What expires | After | Setting", lifetimeOf, lifetimes},
	{"docs/operations.md", "Action | Recorded when | Details", actionsOf, actions},
	{"docs/loadtests.md", "Scenario | What it measures | Steps", scenarioOf, scenarios},
	{"docs/ascode.md", "Key of a file | Type | Meaning", keyOf, keysOf(ascode.SetKeys)},
	{"docs/ascode.md", "Key of a resource | Type | Meaning", keyOf, keysOf(ascode.ResourceKeys)},
	{"docs/ascode.md", "Key of a provider | Type | Meaning", keyOf, keysOf(ascode.ProviderKeys)},
	{"docs/ascode.md", "Key of a client | Type | Meaning", keyOf, keysOf(ascode.ClientKeys)},
	{"docs/ascode.md", "Key of a group | Type | Meaning", keyOf, keysOf(ascode.GroupKeys)},
	{"docs/ascode.md", "Key of an attribute | Type | Meaning", keyOf, keysOf(ascode.AttributeKeys)},
	{"docs/ascode.md", "Key of a claim | Type | Meaning", keyOf, keysOf(ascode.ClaimKeys)},
	{"docs/development.md", "Folder | What is there", folderOf, packages},
}

// keyOf returns the key and the meaning of a row.
func keyOf(_ *testing.T, row []string) []string { return []string{row[0] + ": " + row[2]} }

// keysOf returns the keys of files for gatehouse apply, with their meaning.
func keysOf(keys []ascode.Key) func(*testing.T) []string {
	return func(*testing.T) (lines []string) {
		for _, k := range keys {
			lines = append(lines, k.Name+": "+k.Help)
		}
		return lines
	}
}

func actionsOf(_ *testing.T, row []string) []string { return strings.Split(row[0], ", ") }

// actions returns the actions of the audit trail.
func actions(*testing.T) (names []string) {
	for _, action := range audit.Actions {
		names = append(names, string(action))
	}
	return names
}

// TestTables compares the tables of the handbook with the program.
func TestTables(t *testing.T) {
	for _, c := range tables {
		t.Run(c.page+" "+c.header, func(t *testing.T) {
			var got []string
			for _, row := range readPage(t, c.page).rows(t, c.header) {
				got = append(got, c.got(t, row)...)
			}
			compare(t, got, c.want(t))
		})
	}
}

// rows returns the rows of the table with that header.
func (p *page) rows(t *testing.T, header string) [][]string {
	t.Helper()
	for _, table := range p.tables {
		if table.header == header {
			return table.rows
		}
	}
	t.Fatalf("%s: got no table with the header %q, want one", p.name, header)
	return nil
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Error("got nothing from the program, want lines to compare")
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("got %q on the page, want only what the program has", line)
		}
	}
	for i, line := range want {
		if !slices.Contains(got, line) && !slices.Contains(want[:i], line) {
			t.Errorf("got no %q on the page, want it", line)
		}
	}
}

func first(_ *testing.T, row []string) []string { return row[:1] }

func firstTwo(_ *testing.T, row []string) []string { return []string{row[0] + " " + row[1]} }

// program runs a command that ends by itself and returns what it prints, on stdout and on stderr.
func program(t *testing.T, name string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := patience(t)
	defer cancel()
	var out, errs strings.Builder
	command := exec.CommandContext(ctx, filepath.Join(built, "bin", name), args...)
	command.Dir, command.Env, command.Stdout, command.Stderr = built, environment(), &out, &errs
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// commandNames returns the commands that a row names one after the other, their group with the
// first alone.
func commandNames(_ *testing.T, row []string) []string {
	names := strings.Split(row[0], ", ")
	group := names[0][:strings.LastIndex(names[0], " ")+1]
	for i := range names[1:] {
		names[i+1] = group + names[i+1]
	}
	return names
}

func commands(t *testing.T) []string {
	help, _ := program(t, "gatehouse", "--help")
	_, help, _ = strings.Cut(help, "Serve:\n")
	var names []string
	command := regexp.MustCompile(`(?m)^  ([a-z-]+(?: [a-z-]+)?)  `)
	for _, found := range command.FindAllStringSubmatch(help, -1) {
		names = append(names, "gatehouse "+found[1])
	}
	return names
}

// settingOf returns a setting's flag, variable and default, and that its meaning names the values
// that it may have.
func flagsOf(_ *testing.T, row []string) []string { return strings.Split(row[0], ", ") }

// registrationFlags returns the flags of client create that describe the client.
func registrationFlags(t *testing.T) []string {
	var names []string
	help := func(command ...string) [][]string {
		text, _ := program(t, "gatehouse", append(command, "--help")...)
		return regexp.MustCompile(`(?m)^ +(?:-\w, )?--(?:\[no-\])?([a-z-]+)`).FindAllStringSubmatch(text, -1)
	}
	var others []string // of all such commands
	for _, flag := range help("client", "list") {
		others = append(others, flag[1])
	}
	for _, flag := range help("client", "create") {
		if !slices.Contains(others, flag[1]) {
			names = append(names, "--"+flag[1])
		}
	}
	return names
}

func settingOf(t *testing.T, row []string) []string {
	for _, phrase := range allowed(t, strings.TrimPrefix(row[0], "--")) {
		if !strings.Contains(row[3], phrase) {
			t.Errorf("%s: got no %q in its meaning, want it", row[0], phrase)
		}
	}
	return []string{strings.Join(row[:3], " ")}
}

var flagHelp = regexp.MustCompile(`(?sm)^ +--([a-z-]+)(?:=\S+)?\s[^$]*?\[\$([A-Z_]+)\]`)

// settings returns "flag variable default" of each setting.
func settings(t *testing.T) []string {
	var all []struct{ Setting, Value string }
	out, _ := program(t, "gatehouse", "config", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	help, _ := program(t, "gatehouse", "serve", "--help")
	_, help, _ = strings.Cut(help, "--config=")
	variables := map[string]string{}
	for _, found := range flagHelp.FindAllStringSubmatch(help, -1) {
		variables[found[1]] = found[2]
	}
	var lines []string
	for _, s := range all {
		if s.Value == "" {
			s.Value = "none"
		}
		lines = append(lines, "--"+s.Setting+" "+variables[s.Setting]+" "+s.Value)
	}
	return lines
}

var (
	allowedRange = regexp.MustCompile(`must be .* (from \S+ to \S+)$`)
	allowedWords = regexp.MustCompile(`must be ((?:[\w-]+, )*[\w-]+ or [\w-]+)$`)
)

// allowed returns the range or the words that the program names when it refuses a value, as the
// table writes them.
func allowed(t *testing.T, setting string) []string {
	t.Helper()
	_, refusal := program(t, "gatehouse", "config", "--"+setting+"=!")
	refusal = strings.TrimSpace(refusal)
	if found := allowedRange.FindStringSubmatch(refusal); found != nil {
		return []string{strings.TrimPrefix(found[1], "from ")}
	}
	var words []string
	if found := allowedWords.FindStringSubmatch(refusal); found != nil {
		for _, word := range regexp.MustCompile(`[\w-]+`).FindAllString(found[1], -1) {
			if word != "or" {
				words = append(words, word)
			}
		}
	}
	return words
}

func providers(t *testing.T) []string { return allowed(t, "ip-provider") }

// oauthErrorOf returns the code of a row whose status is that of the code, or none where only
// redirects carry it.
func oauthErrorOf(t *testing.T, row []string) []string {
	status := strconv.Itoa((&oauth.Error{Code: oauth.Code(row[0])}).Status())
	if row[1] != status && (row[1] != "none" || row[2] != "yes") {
		t.Errorf("got %s: status %s, redirect %s, want status %s", row[0], row[1], row[2], status)
	}
	return row[:1]
}

func scopes(*testing.T) []string { return oauth.AllScopes.Names() }

// lifetimeOf returns "variable default" of a lifetime.
func lifetimeOf(_ *testing.T, row []string) []string {
	lasts, _, _ := strings.Cut(row[1], " ")
	return []string{row[2] + " " + lasts}
}

func lifetimes(t *testing.T) []string {
	var lines []string
	for _, setting := range settings(t) {
		words := strings.Fields(setting)
		switch name := words[1]; {
		case name == "GATEHOUSE_CACHE_TTL": // of lookups
		case strings.HasSuffix(name, "_TTL"), name == "GATEHOUSE_REFRESH_GRACE",
			name == "GATEHOUSE_SESSION_MAX":
			lines = append(lines, words[1]+" "+words[2])
		}
	}
	return lines
}

// scenarioOf returns "name: steps" of a scenario of load tests.
func scenarioOf(_ *testing.T, row []string) []string {
	if strings.Contains(row[2], "those of") {
		return row[:1]
	}
	return []string{row[0] + ": " + row[2]}
}

var listed = regexp.MustCompile(`(?m)^([a-z-]+) +.*\n .*; steps: (.*)$`)

// scenarios are those that loadtest lists; the steps of the two that are mixed from others are left
// out.
func scenarios(t *testing.T) []string {
	out, _ := program(t, "loadtest", "list")
	var lines []string
	for _, found := range listed.FindAllStringSubmatch(out, -1) {
		if found[1] == "mixed" || found[1] == "soak" {
			lines = append(lines, found[1])
			continue
		}
		lines = append(lines, found[1]+": "+found[2])
	}
	return lines
}

// folderOf returns the folder of a row if it holds a package of the upper two levels.
func folderOf(t *testing.T, row []string) []string {
	if _, err := os.Stat(filepath.Join(root, row[0])); err != nil {
		t.Errorf("got %s in the map, want a folder that exists", row[0])
	}
	files, err := filepath.Glob(filepath.Join(root, row[0], "*.go"))
	if err != nil || len(files) == 0 || strings.Count(row[0], "/") > 2 {
		return nil
	}
	return row[:1]
}

// packages are the folders of the upper three levels that hold Go files.
func packages(t *testing.T) []string {
	var folders []string
	for _, pattern := range []string{"[^.]*/*.go", "[^.]*/*/*.go", "[^.]*/*/*/*.go"} { // not .tools
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folders = append(folders, filepath.Dir(file))
		}
	}
	return slices.Compact(folders)
}

// TestEndpoints compares the paths in all tables of the handbook with those of openapi.yaml, apart
// from those of one record or profile, and the methods where a table has them.
func TestEndpoints(t *testing.T) {
	described := describedEndpoints(t)
	var got, want []string
	for _, p := range handbook(t) {
		for _, table := range p.tables {
			for _, row := range table.rows {
				switch {
				case strings.HasPrefix(table.header, "Path | "):
					got = append(got, strings.Split(row[0], ", ")...)
				case strings.HasPrefix(table.header, "Method | Path | "):
					got = append(got, row[1])
					if !slices.Contains(described, row[0]+" "+row[1]) {
						t.Errorf("%s: got %s %s, want one of openapi.yaml", p.name, row[0], row[1])
					}
				}
			}
		}
	}
	for _, endpoint := range described {
		_, path, _ := strings.Cut(endpoint, " ")
		want = append(want, path)
	}
	compare(t, got, want)
}

// describedEndpoints returns "METHOD path" of each operation in openapi.yaml whose path has no
// parameter.
func describedEndpoints(t *testing.T) []string {
	t.Helper()
	var all []string
	for path, operations := range openAPI(t)["paths"].(map[string]any) {
		for method := range operations.(map[string]any) {
			isMethod := slices.Contains([]string{"get", "post", "patch", "delete"}, method)
			if isMethod && !strings.Contains(path, "{") {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return all
}

// openAPI returns openapi.yaml.
func openAPI(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "httpedge/openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// enum returns the values that openapi.yaml allows for a component.
func enum(t *testing.T, path ...string) []string {
	t.Helper()
	at := openAPI(t)["components"]
	for _, key := range append(path, "enum") {
		at = at.(map[string]any)[key]
	}
	var values []string
	for _, value := range at.([]any) {
		values = append(values, value.(string))
	}
	return values
}

// TestLoadtestFlags compares the flags that the page of load tests names with those of loadtest run
// and loadtest agent.
func TestLoadtestFlags(t *testing.T) {
	text, err := os.ReadFile("loadtests.md")
	if err != nil {
		t.Fatal(err)
	}
	help, _ := program(t, "loadtest", "run", "--help")
	agent, _ := program(t, "loadtest", "agent", "--help")
	help += agent
	find := func(text, before string) (flags []string) {
		flag := regexp.MustCompile(before + `(--[a-z][a-z0-9-]*)`)
		for _, found := range flag.FindAllStringSubmatch(text, -1) {
			if found[1] != "--help" && found[1] != "--version" {
				flags = append(flags, found[1])
			}
		}
		return flags
	}
	compare(t, find(string(text), "[ `'\\[]"), find(help, `(?m)^ +`))
}

// TestNodeVersion compares the lowest version of Node.js wherever one is named.
func TestNodeVersion(t *testing.T) {
	const want = "18"
	for file, version := range map[string]string{
		"docs/development.md":               `Node\.js (\d+)`,
		contractsPage:                       `Node\.js (\d+)`,
		"scripts/setup":                     `versions\.node\) < (\d+)`,
		"contracts/tools/package.json":      `"node": ">=(\d+)"`,
		"contracts/jsconsumer/package.json": `"node": ">=(\d+)"`,
		"contracts/pactlib/package.json":    `"node": ">=(\d+)"`,
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(version).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s: got no version of Node.js, want %s", file, want)
		}
		for _, one := range found {
			if one[1] != want {
				t.Errorf("%s: got Node.js %s, want %s", file, one[1], want)
			}
		}
	}
}
