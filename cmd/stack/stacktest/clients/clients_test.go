// Package clients_test generates clients from the OpenAPI document, compiles them and runs them
// against the real service over HTTP.
package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge"
)

// root is the folder of the repository, and page tells how to generate clients.
const (
	root = "../../../.."
	page = root + "/docs/lookups.md"
)

// printed is what each program prints.
const printed = `8.8.8.8 Honolulu 21.3069
8.8.4.4 Bangkok
printer.local invalid_query
400 invalid_query
Rosa rosa@example.com
`

// start starts a service and returns its values for the placeholders of programs: its URL, and an
// access token of a user.
func start(t *testing.T) *strings.Replacer {
	t.Helper()
	st := stacktest.NewIdentity(t)
	user, client := st.NewUser(t, "Rosa", "rosa@example.com"), st.NewClient(t, nil)
	token := st.Seal(t, oauth.AccessToken{ClientID: client.ID, UserID: user.ID,
		Scopes: oauth.ViewUser})
	return strings.NewReplacer("http://127.0.0.1:8080", st.URL, "ACCESS_TOKEN", token)
}

// copyProgram copies files to a new folder with the values of placeholders, and adds the OpenAPI
// document. It returns the folder.
func copyProgram(t *testing.T, values *strings.Replacer, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, file := range files {
		write(t, filepath.Join(folder, filepath.Base(file)), values.Replace(read(t, file)))
	}
	write(t, filepath.Join(folder, "openapi.yaml"), string(httpedge.OpenAPI()))
	return folder
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in a folder and returns what it prints.
func run(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.WaitDelay = folder, time.Second
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: got %v, want no error:\n%s%s", command.Args, err, out, &stderr)
	}
	return string(out)
}

// abs returns the path of a file of the repository.
func abs(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// checkPage fails the test unless the page's blocks of a language are in a file.
func checkPage(t *testing.T, language, file string) {
	t.Helper()
	blocks := strings.Split(read(t, page), "\n```"+language+"\n")[1:]
	if len(blocks) == 0 {
		t.Errorf("got no block of %s in %s, want one", language, page)
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "\n```")
		if !strings.Contains(flush(read(t, file)), flush(block)) {
			t.Errorf("got no such code in %s, want that of %s:\n%s", file, page, block)
		}
	}
}

// flush returns a text without the indentation of its lines.
func flush(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, " \t")
	}
	return strings.Join(lines, "\n")
}

// TestGo generates a client by oapi-codegen.
func TestGo(t *testing.T) {
	checkPage(t, "go", "goclient/main.go")
	checkPage(t, "yaml", "goclient/oapi-codegen.yaml")
	folder := copyProgram(t, start(t), "goclient/main.go", "goclient/go.mod", "goclient/go.sum")
	client := filepath.Join(folder, "gatehouse")
	if err := os.Mkdir(client, 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, abs(t, "tools"), "go", "tool", "oapi-codegen",
		"-config", abs(t, "cmd/stack/stacktest/clients/goclient/oapi-codegen.yaml"),
		"-o", filepath.Join(client, "gatehouse.go"), filepath.Join(folder, "openapi.yaml"))
	run(t, folder, "go", "vet", "./...")
	if got := run(t, folder, "go", "run", "."); got != printed {
		t.Errorf("got:\n%s\nwant:\n%s", got, printed)
	}
}

// TestTypeScript generates a client by openapi-typescript. `make setup` installs it.
func TestTypeScript(t *testing.T) {
	checkPage(t, "ts", "client.ts")
	folder := copyProgram(t, start(t), "client.ts", "package.json", "tsconfig.json")
	const modules = "node_modules"
	bin := abs(t, "cmd/stack/stacktest/clients/"+modules)
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("got %v, want the packages installed: make setup", err)
	}
	if err := os.Symlink(bin, filepath.Join(folder, modules)); err != nil {
		t.Fatal(err)
	}
	run(t, folder, modules+"/.bin/openapi-typescript", "openapi.yaml", "-o", "gatehouse.d.ts")
	run(t, folder, modules+"/.bin/tsc", "-p", ".")
	if got := run(t, folder, "node", "client.js"); got != printed {
		t.Errorf("got:\n%s\nwant:\n%s", got, printed)
	}
}
