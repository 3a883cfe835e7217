package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackedTool unpacks the archive for teams without a checkout, and runs it elsewhere without
// environment.
func TestPackedTool(t *testing.T) {
	folder := t.TempDir()
	packed, err := exec.CommandContext(t.Context(), "../../scripts/pactcheck-dist",
		folder).CombinedOutput()
	if err != nil {
		t.Fatalf("got %v: %s", err, packed)
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("got %q and error %v, want one archive", archives, err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archives[0], "-C", folder,
		"--strip-components=1").CombinedOutput(); err != nil {
		t.Fatalf("got %v: %s", err, out)
	}
	elsewhere := t.TempDir()
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"version"}, "pactcheck "},
		{[]string{"states"}, "a confidential client"},
		{[]string{"verify", write(t, "p.json", pactText("gatehouse", good))},
			"1 verified, 0 failed"},
	} {
		command := exec.CommandContext(t.Context(), filepath.Join(folder, "pactcheck"), row.args...)
		command.Dir, command.Env = elsewhere, []string{"TMPDIR=" + elsewhere}
		if out, err := command.CombinedOutput(); err != nil ||
			!strings.Contains(string(out), row.want) {
			t.Errorf("%s: got %v: %s, want %q", row.args[0], err, out, row.want)
		}
	}
	for _, name := range []string{"STATES.md", "LICENSE", "README.md",
		"pacts/oauth-app-gatehouse.json", "examples/goconsumer/go.mod",
		"examples/jsconsumer/client.test.js"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Errorf("got %v, want %s in the archive", err, name)
		}
	}
}
