// Package recipe lets tests connect programs as docs/apps.md says. Its paths hold for tests of
// packages in a folder of stacktest.
package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// root is the folder of the repository.
const root = "../../../.."

// page has the recipes: a heading of the third level for each program.
const page = "docs/apps.md"

// Recipe is what the page says of one program.
type Recipe struct {
	Register string // shell commands that register clients
	Settings []Block
}

// Block is settings, commands or code of a program.
type Block struct {
	Language string // text for settings and commands
	Text     string
}

// Client is what a program needs of a registered client.
type Client struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"` // "" for a public client
	Key    string `json:"-"`             // PEM; "" if the recipe makes none
}

// keyFile is where recipes write a key.
const keyFile = "service.pem"

// Read returns the recipe below a heading of the page.
func Read(t testing.TB, heading string) Recipe {
	t.Helper()
	_, section, found := strings.Cut(read(t), "\n### "+heading+"\n")
	if !found {
		t.Fatalf("got no heading %q in %s, want one", heading, page)
	}
	var r Recipe
	fenced := strings.Split(section, "\n```")
	for i := 1; i < len(fenced) && !strings.Contains(fenced[i-1], "\n#"); i += 2 {
		language, block, _ := strings.Cut(fenced[i], "\n")
		if language == "sh" {
			r.Register += block + "\n"
		} else {
			r.Settings = append(r.Settings, Block{language, block + "\n"})
		}
	}
	if r.Register == "" || len(r.Settings) == 0 {
		t.Fatalf("got %+v below %q, want a command that registers a client, and settings", r, heading)
	}
	return r
}

// read returns the recipes of the page.
func read(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Connect your app\n")
	if !found {
		t.Fatalf("got no recipes in %s, want some", page)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// CheckCode fails the test if a block of the recipe is not in a file, which is the program's code.
// The file may indent it.
func (r Recipe) CheckCode(t testing.TB, file string) {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range r.Settings {
		if !block.isIn(string(code)) {
			t.Errorf("got no such code in %s, want that of %s:\n%s", file, page, block.Text)
		}
	}
}

// isIn reports whether code has the block, with any indentation.
func (b Block) isIn(code string) bool { return strings.Contains(flush(code), flush(b.Text)) }

// flush returns a text without the indentation of its lines.
func flush(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}

// Addresses replaces the issuer of the page, and the port of its program: 3000, or the one that
// kubelogin prefers.
func Addresses(issuer string, port int) *strings.Replacer {
	to := fmt.Sprintf(":%d", port)
	return strings.NewReplacer("http://localhost:8080", issuer, ":3000", to, ":8000", to)
}

// Create runs the commands of the recipe at st, with more flags for client create, and returns the
// clients. It trusts the certificates in the file that GATEHOUSE_CA names.
func (r Recipe) Create(t testing.TB, st *stacktest.IdentityStack, addresses *strings.Replacer,
	flags ...string) (made []Client) {
	t.Helper()
	folder := newFolder(t, st)
	create := strings.Join(append([]string{"client create --json"}, flags...), " ")
	script := strings.NewReplacer("client create", create, "resource create",
		"resource create --json", "bin/gatehouse apply", "bin/gatehouse apply >&2").Replace(addresses.Replace(r.Register))
	command := exec.CommandContext(t.Context(), "bash", "-euc", script)
	command.Dir = folder
	command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GATEHOUSE_") && !strings.HasPrefix(v, "GATEHOUSE_CA=")
	}), "CGO_ENABLED=0")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, &stderr)
	}
	key, err := os.ReadFile(filepath.Join(folder, keyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for objects := json.NewDecoder(bytes.NewReader(out)); objects.More(); {
		c := Client{Key: string(key)}
		if err := objects.Decode(&c); err != nil {
			t.Fatalf("%s: got %s and error %v, want JSON", script, out, err)
		}
		if c.ID != "" {
			made = append(made, c)
		}
	}
	return made
}

// newFolder returns a folder in which the commands of the page work at st: it has bin/gatehouse,
// and the file of a demo.
func newFolder(t testing.TB, st *stacktest.IdentityStack) (folder string) {
	t.Helper()
	operator := st.NewClient(t, func(c *oauth.Client) {
		c.Operator, c.Scopes, c.Grants = true, oauth.ServerOperations, oauth.ClientCredentialsGrant
		c.RedirectURIs = nil
	})
	demo, err := json.Marshal(map[string]any{
		"base_url": st.URL, "admin_url": st.AdminURL,
		"clients": map[string]any{"operator": Client{ID: operator.ID, Secret: operator.Secret}},
	})
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	for name, text := range map[string]string{
		"gatehouse-demo/demo.json": string(demo),
		"bin/gatehouse": fmt.Sprintf(`#!/bin/sh
exec go -C %q run -trimpath -exec "env -C $PWD" ./cmd/gatehouse "$@"
`, repository),
	} {
		path := filepath.Join(folder, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
