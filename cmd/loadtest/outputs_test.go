package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputsAreTriedBeforeTheRun names files that cannot be written: nobody is asked anything.
func TestOutputsAreTriedBeforeTheRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Link(write(t, file("old"), "before"), file("link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		more []string
		want string
	}{
		{[]string{"--html", file("none/report")}, "--html: open "},
		{[]string{"--json", dir}, "--json: open "},
		{[]string{"--json", file("a"), "--hdr", file("a")},
			"--hdr: " + file("a") + " is the file of --json"},
		{[]string{"--json", file("old"), "--html", file("link")}, "is the file of --json"},
		{[]string{"--html", "-"}, "--html: only --json can"},
		{[]string{"--hdr", "-"}, "--hdr: only --json can"},
		{[]string{"--json", file("b"), "--html", "-"}, "--html: only --json can"},
	} {
		code, stdout, stderr := command(t, append([]string{"run", "lookup-hot", "--target",
			"http://127.0.0.1:1"}, c.more...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: got %d %s%s, want %d with %q", c.more, code, stdout, stderr, exitUsage,
				c.want)
		}
	}
	code, _, _ := command(t, "run", "lookup-hot", "--target", "http://127.0.0.1:1", "--json",
		file("old"), "--html", file("new"))
	if text, err := os.ReadFile(file("old")); code != exitCrossed || err != nil ||
		string(text) != "before" {
		t.Errorf("got %d, %q, %v after a run that was not made, want the file as it was", code,
			text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("got %v, %v, want no new file", left, err)
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestFailingOutputsSpareTheOthers writes one form to a device that is full.
func TestFailingOutputsSpareTheOthers(t *testing.T) {
	name := write(t, filepath.Join(t.TempDir(), "report"), strings.Repeat("before ", 10_000))
	code, stdout, stderr := command(t, "run", "lookup-hot", "--target", fixed(t, 0), "--keys", "50",
		"--rate", "20", "--duration", "1s", "--json", "/dev/full", "--html", "/dev/full", "--hdr",
		name)
	if code != exitCrossed || !strings.Contains(stdout, "200 × 20") ||
		!strings.Contains(stderr, "--json: ") || !strings.Contains(stderr, "--html: ") {
		t.Errorf("got %d %s%s, want %d, the figures and both errors", code, stdout, stderr,
			exitCrossed)
	}
	if text, err := os.ReadFile(name); err != nil ||
		!strings.Contains(string(text), "Percentile") || strings.Contains(string(text), "before") {
		t.Errorf("got %v, %.200s, want the percentiles", err, text)
	}
}
