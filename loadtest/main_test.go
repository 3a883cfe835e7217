package loadtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// gatehouse is the program that scenarios are tried with.
var gatehouse string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "loadtest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	gatehouse = filepath.Join(dir, "gatehouse")
	build := exec.Command("go", "build", "-trimpath", "-o", gatehouse, "gatehouse/cmd/gatehouse")
	// As make build does, so that Go compiles once for both.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build gatehouse: %v\n%s", err, text)
		return 1
	}
	return m.Run()
}
