package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

func pactcheck(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// interaction returns an interaction that is verified if body is part of a lookup's response.
func interaction(description, state, body string) string {
	return fmt.Sprintf(`{"type":"Synchronous/HTTP","description":%q,"providerStates":[{"name":%q}],
"request":{"method":"GET","path":"/api/lookup","query":{"q":["8.8.8.8"]}},
"response":{"status":200,"body":{"contentType":"application/json","encoded":false,"content":%s}}}`, description, state, body)
}

// given returns a lookup in a state with parameters.
func given(state, parameters string) string {
	return strings.Replace(interaction("x", state, "{}"), `}],`, `,"params":`+parameters+`}],`, 1)
}

const known = "the upstream knows a query"

// good is verified, bad fails.
var (
	good = interaction("a lookup", known, `{"ok":true}`)
	bad  = interaction("a lookup of a planet", known, `{"planet":"Earth"}`)
)

func pactText(provider string, interactions ...string) string {
	return `{"consumer":{"name":"shop"},"provider":{"name":"` + provider + `"},"interactions":[` +
		strings.Join(interactions, ",") +
		`],"metadata":{"pactSpecification":{"version":"4.0"}}}`
}

// write writes a file into a new folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	stacktest.Must(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

func TestExitCodes(t *testing.T) {
	pact := func(interactions ...string) string {
		return write(t, "p.json",
			pactText("gatehouse", interactions...))
	}
	link := filepath.Join(t.TempDir(), "r.json")
	stacktest.Must(t, os.Symlink("/nowhere/r.json", link))
	for _, row := range []struct {
		name string
		args []string
		want int
		said string // on stderr, or on stdout for 0 and 1
	}{
		{"nothing", nil, 2, "--help"},
		{"unknown flag", []string{"verify", "--nonsense", "x"}, 2, "--nonsense"},
		{"no pact", []string{"verify"}, 2, "source"},
		{"no file", []string{"verify", "/nowhere/p.json"}, 2, "/nowhere/p.json"},
		{"no JSON", []string{"verify", write(t, "p.json", "x")}, 2, "is not a pact"},
		{"empty folder", []string{"verify", t.TempDir()}, 2, "nothing to verify"},
		{"no interaction", []string{"verify", pact()}, 2, "nothing to verify"},
		{"other provider", []string{"verify", write(t, "p.json", pactText("bank", good))}, 2,
			"nothing to verify"},
		{"other consumer", []string{"verify", "--consumer", "bank", pact(good)}, 2,
			"nothing to verify"},
		{"unknown state", []string{"verify",
			pact(good, interaction("x", "the upstream knows a quary", "{}"))}, 2,
			`did you mean "the upstream knows a query"?`},
		{"impossible value", []string{"verify", pact(good, given("a user", `{"email":"nope"}`))}, 2,
			`interaction "x": state "a user": email is not`},
		{"value out of range", []string{"verify",
			pact(good, given("the upstream's budget is empty", `{"seconds":600}`))}, 2,
			"seconds: got 600, want 1 to 60"},
		{"unknown value", []string{"verify", pact(good, strings.Replace(good, `"request":{`,
			`"request":{"generators":{"header":{"Authorization":{"type":"ProviderState","expression":"Bearer ${no_such}"}}},`, 1))}, 2,
			`interaction "a lookup": it uses the value "no_such", and its states give none`},
		{"string as status", []string{"verify",
			pact(good, strings.Replace(good, `"status":200`, `"status":"200"`, 1))}, 2,
			`interaction "a lookup": the status is "200"`},
		{"no response", []string{"verify",
			pact(good, `{"description":"x","request":{"method":"GET","path":"/"}}`)}, 2,
			`interaction "x": it has no response`},
		{"copies of no response", []string{"prepare", "--out", t.TempDir(),
			pact(`{"description":"x","request":{"method":"GET","path":"/"}}`)}, 2,
			`interaction "x": it has no response`},
		{"no response of another service", []string{"verify", "--base-url", "http://127.0.0.1:1",
			pact(`{"description":"x","request":{"method":"GET","path":"/"}}`)}, 2,
			`interaction "x": it has no response`},
		{"trailing text", []string{"verify", write(t, "p.json",
			pactText("gatehouse", good)+"\n  x")}, 2, "p.json is not a pact: line 4, column 3: "},
		{"byte order mark", []string{"verify", write(t, "p.json",
			"\ufeff"+pactText("gatehouse", good))}, 2, "byte order mark"},
		{"publish what", []string{"verify", "--publish", pact(good)}, 2, "--provider-version"},
		{"publish a file", append(slices.Clone(publishing), pact(good)), 2,
			"publish it with pact-broker publish"},
		{"publish without a branch", []string{"verify", "--publish", "--provider-version", "1",
			"http://127.0.0.1:1"}, 2, "--publish needs --provider-branch"},
		{"a specification that does not exist", []string{"verify", write(t, "p.json",
			strings.Replace(pactText("gatehouse", good), `"4.0"`, `"9.0"`, 1))}, 2,
			`its version of the Pact specification is "9.0", want 1 to 4`},
		{"report to standard output", []string{"verify", "--markdown", "-", pact(good)}, 2,
			"/dev/stdout"},
		{"matching what", []string{"verify", "--matching-branch", pact(good)}, 2,
			"--provider-branch"},
		{"no address", []string{"verify", "--base-url", "x", pact(good)}, 2, "--base-url"},
		{"states of what", []string{"verify", "--state-url", "http://127.0.0.1:1", pact(good)}, 2,
			"--base-url"},
		{"all holds", []string{"verify", pact(good)}, 0, "✓ a lookup  [GET /api/lookup]"},
		{"something does not", []string{"verify", pact(good, bad)}, 1,
			"✗ a lookup of a planet  [GET /api/lookup]"},
		{"report to nowhere", []string{"verify", "--json", "/nowhere/r.json", pact(good)}, 2,
			"--json"},
		{"report to a folder", []string{"verify", "--junit", t.TempDir(), pact(good)}, 2,
			"is a folder"},
		{"report where nobody can write", []string{"verify", "--markdown", "/proc/r.md",
			pact(good)}, 2, "/proc/r.md cannot be written"},
		{"report at a link to nowhere", []string{"verify", "--json", link, pact(good)}, 2,
			"cannot be written"},
		{"copies below a file", []string{"prepare", "--out", pact() + "/ready", pact(good)}, 2,
			"not a directory"},
		{"no port", []string{"serve", "--port", "70000"}, 2, "0 to 65535"},
		{"help", []string{"verify", "--help"}, 0, "Example"},
	} {
		got := pactcheck(t, row.args...)
		said := got.stderr
		if row.want < 2 {
			said = got.stdout
		}
		if got.code != row.want || !strings.Contains(said, row.said) {
			t.Errorf("%s: got %+v, want %d and %q", row.name, got, row.want, row.said)
		}
	}
}

// TestErrorsStopNothingElse verifies a folder with good pacts and with everything that can be wrong
// with a file or an interaction.
func TestErrorsStopNothingElse(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.json":                   pactText("gatehouse", interaction("x", "the moon is full", "{}"), good),
		"b.json":                   "{",
		"deep/er/c.json":           pactText("gatehouse", good),
		"package.json":             `{"name":"shop"}`,
		"node_modules/pact/d.json": pactText("gatehouse", bad),
		"deep/e.json":              pactText("bank", good),
		"deep/interactions.json":   `{"interactions":[]}`,
		".git/f.json":              "x",
	} {
		file := filepath.Join(folder, name)
		stacktest.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		stacktest.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	js := filepath.Join(t.TempDir(), "r.json")
	got := pactcheck(t, "verify", "--json", js, folder)
	for _, want := range []string{"left out: " + folder + "/package.json is not a pact",
		"left out: " + folder + "/deep/e.json is a contract with the provider bank",
		"5 interactions of 4 pacts: 2 verified, 3 failed"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got %s, want %q in it", got.stdout, want)
		}
	}
	for _, want := range []string{`a.json: interaction "x": state "the moon is full"`,
		"b.json is not a pact: line 1, column 1", "interactions.json is not a pact: it names no"} {
		if !strings.Contains(got.stderr, want) || !strings.Contains(string(read(t, js)),
			strings.ReplaceAll(want[max(0, strings.LastIndex(want, `": `)+3):], `"`, `\"`)) {
			t.Errorf("got %s and report %s, want %q in both", got.stderr, read(t, js), want)
		}
	}
	if got.code != 2 {
		t.Errorf("got %d, want 2", got.code)
	}
}

// TestReportsOfNothing requires reports also when there is nothing to verify.
func TestReportsOfNothing(t *testing.T) {
	folder := t.TempDir()
	junit := filepath.Join(folder, "r.xml")
	got := pactcheck(t, "verify", "--junit", junit, "--json", filepath.Join(folder, "r.json"),
		"--markdown", filepath.Join(folder, "r.md"), "--consumer", "bank",
		write(t, "p.json", pactText("gatehouse", good)))
	const want = "no pact of the consumer bank with the provider gatehouse"
	for _, text := range []string{got.stderr, string(read(t, junit)),
		string(read(t, filepath.Join(folder, "r.json"))),
		string(read(t, filepath.Join(folder, "r.md")))} {
		if !strings.Contains(text, want) || got.code != 2 {
			t.Errorf("got %d and %s, want 2 and %q", got.code, text, want)
		}
	}
	if text := string(read(t, junit)); !strings.Contains(text, `tests="1" failures="0" errors="1"`) {
		t.Errorf("got %s, want an error", text)
	}
}

// TestArgumentsAreCheckedBeforeTheBroker requires that a wrong argument leaves the broker alone.
func TestArgumentsAreCheckedBeforeTheBroker(t *testing.T) {
	for _, wrong := range [][]string{{"--markdown", "/nowhere/r.md"}, {"--publish"},
		{"--state-url", "http://127.0.0.1:1"},
		{"/nowhere/p.json"}, {"--publish", "--provider-version", "1", "--no-pending", t.TempDir()},
		{"http://user:password@broker.example"}} {
		b := newBroker(t, false, good)
		got := pactcheck(t, append([]string{"verify", b.URL}, wrong...)...)
		if got.code != 2 || b.Asked() != 0 {
			t.Errorf("%q: got %+v and %d requests to the broker, want 2 and none", wrong, got,
				b.Asked())
		}
	}
}

// TestFailureCanBeActedOn requires everything that a consumer team needs.
func TestFailureCanBeActedOn(t *testing.T) {
	const secret = "gtcs_0123456789abcdef"
	got := pactcheck(t, "verify", write(t, "p.json", pactText("gatehouse",
		interaction("a misspelling", known, `{"location":{"contry":"x","planet":"Earth"}}`),
		`{"type":"Synchronous/HTTP","description":"a wrong path","request":{"method":"POST","path":"/oauth/tokn","headers":{"Content-Type":"application/x-www-form-urlencoded","X-It's":"me"},
"body":{"contentType":"application/x-www-form-urlencoded","encoded":false,"content":"client_secret=`+secret+`&password=hunter2&scope=x y"}},"response":{"status":200}}`,
		`{"type":"Synchronous/HTTP","description":"a forgotten state","request":{"method":"GET","path":"/api/user","headers":{"Authorization":"Bearer mine"}},"response":{"status":200}}`)))
	for _, want := range []string{"body $.location.planet is missing",
		"try:      the response has no $.location.contry; did you mean $.location.country?",
		"given:    the upstream knows a query", "response: 200 {\"ok\":true",
		"request:  GET /api/lookup?q=8.8.8.8\n",
		"repeat:   curl -i 'http://127.0.0.1:9080/api/lookup?q=8.8.8.8'",
		"gatehouse has no path /oauth/tokn; did you mean /oauth/token?", "given:    none",
		"X-It's: me; body client_secret=gtcs_…&password=…&scope=x y", `-H 'X-It'\''s: me' --data-raw `,
		`did the pact forget the state "an access token"?`, "Authorization: Bearer …"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got %s, want %q in it", got.stdout, want)
		}
	}
	for _, secret := range []string{secret, "hunter2", "Bearer mine"} {
		if strings.Contains(got.stdout, secret) {
			t.Errorf("got %s, want no %s", got.stdout, secret)
		}
	}
}

func TestFoldersAndOtherProviders(t *testing.T) {
	folder := filepath.Dir(write(t, "a.json", pactText("gatehouse", good)))
	for name, content := range map[string]string{"b.json": pactText("bank", bad),
		"notes.txt": "x"} {
		stacktest.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	got := pactcheck(t, "verify", folder)
	if got.code != 0 || !strings.Contains(got.stdout, "1 interaction of 1 pact: 1 verified") ||
		!strings.Contains(got.stdout, "left out: "+filepath.Join(folder, "b.json")) {
		t.Errorf("got %+v, want one pact verified and one left out", got)
	}
}

// TestEveryCommandHasHelpAndExample reads the help of all commands.
func TestEveryCommandHasHelpAndExample(t *testing.T) {
	for _, command := range []string{"", "verify", "states", "serve", "prepare", "coverage", "check", "diff", "stub",
		"licenses", "version"} {
		got := pactcheck(t, strings.Fields(command+" --help")...)
		if got.code != 0 || !strings.Contains(got.stdout, "Example") ||
			!strings.Contains(got.stdout, "pactcheck "+command) {
			t.Errorf("%s: got %+v, want help with an example", command, got)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := pactcheck(t, "version"); got.code != 0 ||
		!strings.HasPrefix(got.stdout, "pactcheck (development)") {
		t.Errorf("got %+v, want the version", got)
	}
}

// TestReportIsTriedBeforeTheRun requires that the check of a report leaves nothing behind, and
// nothing changed.
func TestReportIsTriedBeforeTheRun(t *testing.T) {
	folder := t.TempDir()
	kept := filepath.Join(folder, "kept.json")
	stacktest.Must(t, os.WriteFile(kept, []byte("before"), 0o600))
	got := pactcheck(t, "verify", "--json", kept, "--junit", filepath.Join(folder, "new.xml"),
		"--publish", "p.json")
	files, err := os.ReadDir(folder)
	stacktest.Must(t, err)
	if got.code != 2 || len(files) != 1 || string(read(t, kept)) != "before" {
		t.Errorf("got %+v and %v, want the folder as it was", got, files)
	}
}

// TestForeignTextIsOneLine verifies pacts whose names and files contain lines for CI systems.
func TestForeignTextIsOneLine(t *testing.T) {
	const forged = "\\n::error::forged\\n##vso[task.complete]\\u001b[31m\\u202e"
	folder := t.TempDir()
	named := strings.Replace(strings.Replace(pactText("gatehouse", good, bad), `"a lookup`,
		`"a lookup`+forged, 2), `"shop"`, `"::error::shop`+forged+`"`, 1)
	for name, text := range map[string]string{"a.json": named,
		"b\n::error::file\x1b.json": strings.Replace(named, `"gatehouse"`,
			`"other`+forged+`"`, 1)} {
		stacktest.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	unknown := strings.Replace(pactText("gatehouse", interaction("x", "y", "{}")), `"y"`,
		`"y`+forged+`"`, 1)
	for _, args := range [][]string{{"verify", folder},
		{"verify", write(t, "p\n::error::p\x1b.json", unknown)},
		{"verify", "/nowhere\n::error::x"}, {"coverage", "--pinned", folder}} {
		got := pactcheck(t, args...)
		for line := range strings.Lines(got.stdout + got.stderr) {
			if strings.ContainsAny(line, "\x1b\u202e") || strings.Contains(line, "::error") ||
				strings.Contains(line, "##vso[") {
				t.Errorf("%q: got %q, want text alone", args, line)
			}
		}
		if args[1] == folder && !strings.Contains(got.stdout, "forged") {
			t.Errorf("%q: got %+v, want the names", args, got)
		}
	}
}
