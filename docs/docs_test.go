// Package docs_test runs every command of README.md and of the handbook, and compares their tables
// with the program.
package docs_test

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/providers/sqlstore/pgtest"
)

// built is a copy of the repository with its programs built.
var built string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gatehouse")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	if err := copyRepository(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	build := exec.Command("sh", "-ec",
		"make build; CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/loadtest ./cmd/loadtest")
	build.Dir, build.Env = dir, environment()
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// environment is this process's own without settings of gatehouse and without what make hands down.
func environment() []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GATEHOUSE_") || strings.HasPrefix(v, "IP_") ||
			strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	}), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
}

// copyRepository copies what a clone would hold to dir.
func copyRepository(dir string) error {
	notCloned := []string{".git", ".tools", "bin", "gatehouse-demo"}
	return fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		from, to := filepath.Join(root, path), filepath.Join(dir, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(notCloned, path) || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(to, 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, info.Mode().Perm())
	})
}

// TestCommands runs the commands of each page in their order in a clean copy of the repository, and
// compares what they print. Pages that start no server of their own use the demo that README.md
// starts.
func TestCommands(t *testing.T) {
	demo := newStory(t)
	demo.serve(t, "make run")
	for _, p := range handbook(t) {
		if len(p.blocks) == 0 || p.name == contractsPage {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			switch {
			case slices.ContainsFunc(p.blocks, exportsAll):
				s.serve(t, "make run")
			case !slices.ContainsFunc(p.blocks, startsServer):
				s.use(t, demo)
			}
			s.read(t, p)
		})
	}
}

// exportsAll reports whether a block exports all clients: its page needs a demo that no other page
// changes meanwhile.
func exportsAll(b block) bool { return strings.Contains(b.text, "bin/gatehouse export") }

// newStory returns a reader with a clean copy of the repository and ports of its own.
func newStory(t *testing.T) *story {
	t.Helper()
	dir := t.TempDir()
	links := exec.CommandContext(t.Context(), "cp", "-rl", built+"/.", dir)
	if out, err := links.CombinedOutput(); err != nil {
		t.Fatalf("copy the repository: %v: %s", err, out)
	}
	public, admin, upstream := freePort(t), freePort(t), freePort(t)
	local := strings.Replace(public, "127.0.0.1", "localhost", 1)
	return &story{
		dir: dir, shell: filepath.Join(t.TempDir(), "variables"),
		env: append(environment(), "GATEHOUSE_LISTEN="+public, "GATEHOUSE_ADMIN_LISTEN="+admin,
			"GATEHOUSE_BASE_URL=http://"+local, "GATEHOUSE_ADMIN_URL=http://"+admin,
			"GATEHOUSE_LOOKUP_TIMEOUT=1m", "GATEHOUSE_CODE_TTL=10m"), // for a busy machine
		ports: strings.NewReplacer("127.0.0.1:8080", public, "127.0.0.1:8081", admin,
			"127.0.0.1:8082", upstream, "localhost:8080", local,
			url.QueryEscape("localhost:8080"), url.QueryEscape(local)),
	}
}

// use lets a page's commands ask the demo of another story.
func (s *story) use(t *testing.T, demo *story) {
	t.Helper()
	s.env, s.ports = environment(), demo.ports
	const name = "gatehouse-demo"
	if err := os.Symlink(filepath.Join(demo.dir, name), filepath.Join(s.dir, name)); err != nil {
		t.Fatal(err)
	}
}
