//go:build pact

package docs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestContractsPage runs the commands of contracts.md in an empty folder beside a checkout. The
// folder is the same each time, as the Go command builds anew for each place of the library. Then
// it holds the commands for pipelines, which need a broker, against the help of the programs.
func TestContractsPage(t *testing.T) {
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(checkout, ".tools", "guide")
	remove := func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	t.Cleanup(remove)
	// The page has to find the newest archive.
	older := filepath.Join(folder, "pactcheck-v0.0.1-linux-amd64.tar.gz")
	err = errors.Join(os.MkdirAll(folder, 0o755),
		os.Symlink(checkout, filepath.Join(folder, "gatehouse")),
		os.WriteFile(older, nil, 0o600), os.Chtimes(older, time.Unix(1, 0), time.Unix(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	_, service, _ := strings.Cut(freePort(t), ":")
	_, stub, _ := strings.Cut(freePort(t), ":")
	s := &story{
		dir: folder, shell: filepath.Join(t.TempDir(), "variables"),
		ports: strings.NewReplacer("9090", service, "9091", stub),
		env: append(slices.DeleteFunc(os.Environ(), func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return strings.HasPrefix(name, "CGO_") || strings.HasPrefix(name, "PACT_") ||
				strings.HasPrefix(name, "MAKE") || strings.HasSuffix(name, "LIBRARY_PATH")
		}), "npm_config_prefer_offline=true", "NO_COLOR=1"),
	}
	p := readPage(t, contractsPage)
	s.read(t, p)
	pipelines(t, p, filepath.Join(folder, "pactcheck", "pactcheck"),
		filepath.Join(checkout, "contracts/tools/node_modules/.bin/pact-broker"))
}

var option = regexp.MustCompile(`--[a-z-]+`)

// pipelines looks for each option of the commands in yaml in the help of its program.
func pipelines(t *testing.T, p *page, pactcheck, broker string) {
	t.Helper()
	found := 0
	for _, b := range p.blocks {
		if b.language != "yaml" {
			continue
		}
		for line := range strings.Lines(b.text) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "- run: ")
			command, _, _ := strings.Cut(line, " # ")
			words := strings.Fields(command)
			var help *exec.Cmd
			switch {
			case words[0] == "pactcheck":
				t.Errorf("%s: got a program by name, want it by its path", command)
				continue
			case filepath.Base(words[0]) == "pactcheck":
				help = exec.CommandContext(t.Context(), pactcheck, words[1], "--help")
			case strings.HasPrefix(command, "npx pact-broker "):
				help = exec.CommandContext(t.Context(), broker, words[2], "--help")
			default:
				continue
			}
			found++
			out, err := help.CombinedOutput()
			if err != nil {
				t.Errorf("%s: got %v: %s", command, err, out)
			}
			for _, o := range option.FindAllString(command, -1) {
				if !strings.Contains(string(out), o) {
					t.Errorf("%s: got no %s in its help, want it", command, o)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("got %d commands for pipelines, want 5 or more", found)
	}
}
