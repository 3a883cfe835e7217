//go:build pact

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackedTool unpacks the archive for teams without a checkout, and runs it elsewhere without
// environment. On machines that cannot run it, it says so in one line.
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
		{[]string{"version"}, "libpact_ffi 0.4.28"},
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
	link := filepath.Join(elsewhere, "pactcheck")
	if err := os.Symlink(filepath.Join(folder, "pactcheck"), link); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, getconf, ldd, uname string
		want                      string // "" = it starts
	}{
		{"this machine", "", "", "", ""},
		{"a new glibc", "echo glibc 2.100", "", "", ""},
		{"a glibc of another major version", "echo glibc 3.1", "", "", ""},
		{"an old glibc", "echo glibc 2.31", "", "", "this system has glibc 2.31, and pactcheck needs 2."},
		{"an old glibc without getconf", "exit 127", "echo 'ldd (GNU libc) 2.17'", "",
			"this system has glibc 2.17, and pactcheck needs 2."},
		{"musl", "exit 1", "echo 'musl libc (x86_64)' >&2; exit 1", "",
			"this system has musl, and pactcheck needs glibc 2."},
		{"neither", "exit 127", "exit 127", "", ""},
		{"another system", "", "", "echo Darwin", "this is Darwin, and pactcheck needs Linux"},
		{"another processor", "", "", `[ "$1" = -s ] && echo Linux || echo riscv64`,
			"this machine is riscv64, and this pactcheck is for "},
	} {
		fakes := t.TempDir()
		for name, script := range map[string]string{"getconf": row.getconf, "ldd": row.ldd,
			"uname": row.uname} {
			if script == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(fakes, name), []byte("#!/bin/sh\n"+script+"\n"),
				0o700); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.CommandContext(t.Context(), link, "version")
		command.Env = []string{"PATH=" + fakes + ":" + os.Getenv("PATH")}
		out, err := command.CombinedOutput()
		said := string(out)
		if row.want == "" && (err != nil || !strings.Contains(said, "libpact_ffi")) ||
			row.want != "" && (command.ProcessState.ExitCode() != 2 ||
				strings.Count(said, "\n") != 1 ||
				!strings.HasPrefix(said, "pactcheck: "+row.want)) {
			t.Errorf("%s: got %v: %s, want %q in one line", row.name, err, said, row.want)
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
