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
		{[]string{"licenses"}, "github.com/oasdiff/oasdiff"},
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
	for _, name := range []string{"STATES.md", "openapi.yaml", "NOTICES.txt", "libpact_ffi.LICENSE", "LICENSE", "README.md",
		"pacts/oauth-app-gatehouse.json", "examples/goconsumer/go.mod",
		"examples/jsconsumer/client.test.js"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Errorf("got %v, want %s in the archive", err, name)
		}
	}
	archivesOfTwoReleases(t, folder)
}

// archivesOfTwoReleases compares the archive with that of a release before: one that had another
// document and a pact of which one interaction no longer holds.
func archivesOfTwoReleases(t *testing.T, newer string) {
	t.Helper()
	older := filepath.Join(t.TempDir(), "older")
	if err := os.MkdirAll(filepath.Join(older, "pacts"), 0o700); err != nil {
		t.Fatal(err)
	}
	document := strings.Replace(string(read(t, filepath.Join(newer, "openapi.yaml"))),
		"ok: {type: boolean, const: true}", "ok: {type: boolean, const: true}\n        planet: {type: string}", 1)
	for name, text := range map[string]string{"openapi.yaml": document,
		"pacts/p.json": pactText("gatehouse", good, bad)} {
		if err := os.WriteFile(filepath.Join(older, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive := older + ".tar.gz"
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", filepath.Dir(older), "-czf", archive,
		"older").CombinedOutput(); err != nil {
		t.Fatalf("got %v: %s", err, out)
	}
	packed, err := filepath.Glob(filepath.Join(newer, "*.tar.gz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("got %q and error %v, want one archive", packed, err)
	}
	got := pactcheck(t, "diff", archive, packed[0])
	for _, want := range []string{"body $.planet is missing (verify); relied on by shop: a lookup of a planet",
		"breaks consumers: GET /api/lookup: "} {
		if got.code != 1 || !strings.Contains(got.stdout, want) ||
			strings.Contains(got.stdout, "relied on by shop: a lookup\n") {
			t.Errorf("got %+v, want %q and nothing about the other interaction", got, want)
		}
	}
	if got := pactcheck(t, "diff", packed[0], write(t, "x.tar.gz", "x")); got.code != 2 ||
		!strings.Contains(got.stderr, "unpack ") {
		t.Errorf("got %+v, want 2", got)
	}
}

// TestLicenses requires the licenses of what is linked.
func TestLicenses(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "run", "./deploy/make", "notices", "./contracts/pactcheck")
	command.Dir = "../.."
	want, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := pactcheck(t, "licenses"); got.stdout != string(want) {
		t.Error("pactcheck licenses prints others than what is linked: run make notices")
	}
}
