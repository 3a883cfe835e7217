package gatehouse_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// environment is that of this process without the settings of gatehouse and without what make hands down.
func environment() []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GATEHOUSE_") || strings.HasPrefix(v, "IP_") || strings.HasPrefix(v, "MAKE") ||
			strings.HasPrefix(v, "MFLAGS=")
	}), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
}

// cleanCopy is a copy of the repository, built.
var cleanCopy string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gatehouse")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cleanCopy = dir
	if err := copyRepository(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	build := exec.Command("make", "build")
	build.Dir, build.Env = dir, environment()
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// copyRepository copies what a clone would hold to dir.
func copyRepository(dir string) error {
	return filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains([]string{".git", "bin", "gatehouse-demo"}, path) || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(dir, path), 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, path), text, info.Mode().Perm())
	})
}
