//go:build pact

package tools_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is a fenced block of the guide.
type block struct {
	language, text string
	line           int // of its fence
}

func guide(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	inside := false
	for i, line := range strings.SplitAfter(string(text), "\n") {
		fence, ok := strings.CutPrefix(line, "```")
		switch {
		case ok && inside:
			inside = false
		case ok:
			inside = true
			blocks = append(blocks, block{strings.TrimSpace(fence), "", i + 1})
		case inside:
			blocks[len(blocks)-1].text += line
		}
	}
	return blocks
}

// TestGuide follows the guide in an empty folder beside a checkout, in one shell, and compares the output. The folder
// is the same each time: the Go command rebuilds everything for a new value of CGO_LDFLAGS.
func TestGuide(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, ".tools", "guide")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(folder, "gatehouse")); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(folder, "pactcheck-v0.0.1-linux-amd64.tar.gz") // the guide must choose its new archive instead
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.Chtimes(old, time.Unix(1, 0), time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	ports := strings.NewReplacer("9090", freePort(t), "9091", freePort(t))
	blocks := guide(t)
	script := ""
	for i, b := range blocks {
		if b.language == "sh" {
			script += fmt.Sprintf("echo; echo '=== %d'\n%s\n", i, ports.Replace(b.text))
		}
	}
	sections := strings.Split(shell(t, folder, script), "\n=== ")
	printed := map[string]string{}
	for _, s := range sections {
		number, text, _ := strings.Cut(s, "\n")
		printed[number] = strings.TrimSpace(text)
	}
	compared := 0
	for i, b := range blocks {
		if b.language != "console" {
			continue
		}
		compared++
		if got := printed[fmt.Sprint(i-1)]; !pattern(ports.Replace(b.text)).MatchString(got) {
			t.Errorf("README.md:%d: got:\n%s\nwant:\n%s", b.line, got, b.text)
		}
	}
	if compared < 8 {
		t.Errorf("got %d outputs in the guide, want 8 or more", compared)
	}
}

// shell runs a script without the environment of make and of this test.
func shell(t *testing.T, folder, script string) string {
	t.Helper()
	ctx, cancel := limit(t)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir = folder
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !strings.HasPrefix(name, "CGO_") && !strings.HasPrefix(name, "PACT_") && !strings.HasPrefix(name, "MAKE") &&
			!strings.HasSuffix(name, "LIBRARY_PATH") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "npm_config_prefer_offline=true", "NO_COLOR=1")
	command.WaitDelay = time.Second
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("got %v\n%s\n%s", err, out, stderr.String())
	}
	return string(out)
}

// pattern returns a pattern for the output in the guide. … matches anything.
func pattern(text string) *regexp.Regexp {
	parts := strings.Split(strings.TrimSpace(text), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`)
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

var option = regexp.MustCompile(`--[a-z-]+`)

// TestGuideForCI compares the commands for pipelines, which need a broker, with the help of the programs.
func TestGuideForCI(t *testing.T) {
	found := 0
	for _, b := range guide(t) {
		if b.language != "yaml" {
			continue
		}
		for line := range strings.Lines(b.text) {
			command, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- run: "), " # ")
			words := strings.Fields(command)
			var help string
			switch {
			case words[0] == "pactcheck":
				t.Errorf("README.md:%d: %s: got a program by name, want it by its path: no step puts it into PATH", b.line, command)
				continue
			case filepath.Base(words[0]) == "pactcheck":
				help, _ = pactcheck(t, words[1], "--help")
			case strings.HasPrefix(command, "npx pact-broker "):
				help, _ = run(t, ".", tool(t, "pact-broker"), words[2], "--help")
			default:
				continue
			}
			found++
			for _, o := range option.FindAllString(command, -1) {
				if !strings.Contains(help, o) {
					t.Errorf("README.md:%d: %s: got no %s in its help, want it", b.line, command, o)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("got %d commands for pipelines, want 5 or more", found)
	}
}

// TestGuideLinks requires that the guide's links and folders exist.
func TestGuideLinks(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("..", found[1])); err != nil {
			t.Errorf("got a link to %s, want a file that exists", found[1])
		}
	}
	_, table, _ := strings.Cut(string(text), "## What is here")
	for _, found := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(strings.ReplaceAll(table, "`pactcheck", ""), -1) {
		if _, err := os.Stat(filepath.Join("..", found[1])); err != nil {
			t.Errorf("got %s in the table, want a folder that exists", found[1])
		}
	}
}

// TestNodeVersion requires the same minimum version of Node.js everywhere.
func TestNodeVersion(t *testing.T) {
	const want = "18"
	for file, version := range map[string]string{
		"../../README.md": `Node\.js (\d+)`, "../README.md": `Node\.js (\d+)`,
		"../../scripts/setup": `versions\.node\) < (\d+)`,
		"package.json":        `"node": ">=(\d+)"`, "../jsconsumer/package.json": `"node": ">=(\d+)"`,
		"../pactlib/package.json": `"node": ">=(\d+)"`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(version).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s: got no version of Node.js, want %s", file, want)
		}
		for _, one := range found {
			if one[1] != want {
				t.Errorf("%s: got Node.js %s, want %s", file, one[1], want)
			}
		}
	}
}
