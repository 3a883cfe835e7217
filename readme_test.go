package gatehouse_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReadmeCommands runs every command of README.md in a clean copy of the repository, in their order, and compares
// the answers that it prints with the true ones.
func TestReadmeCommands(t *testing.T) {
	r := newReader(t)
	blocks := readBlocks(t)
	for i, b := range blocks {
		var answer block
		if i+1 < len(blocks) && blocks[i+1].language != "sh" {
			answer = blocks[i+1]
		}
		switch b.language {
		case "sh":
			r.run(b, answer)
		case "yaml":
			r.save("gatehouse.yaml", b.text)
		}
		if t.Failed() {
			return
		}
	}
	if r.ran < 10 {
		t.Errorf("got %d blocks of commands in README.md, want 10 or more", r.ran)
	}
}

// block is a fenced block of README.md.
type block struct {
	language, text string
	line           int // of its fence
}

// readBlocks returns the blocks of README.md. Those in sh are commands, what follows one in json or console is what it
// prints, and yaml is the settings file gatehouse.yaml.
func readBlocks(t *testing.T) []block {
	t.Helper()
	var blocks []block
	inside := false
	for i, line := range strings.SplitAfter(readme(t), "\n") {
		fence, ok := strings.CutPrefix(line, "```")
		switch {
		case ok && inside:
			inside = false
		case ok:
			inside = true
			blocks = append(blocks, block{language: strings.TrimSpace(fence), line: i + 1})
		case inside:
			blocks[len(blocks)-1].text += line
		}
	}
	for i, b := range blocks {
		if !slices.Contains([]string{"sh", "json", "console", "yaml"}, b.language) {
			t.Errorf("README.md:%d: got a block of %q, want sh, json, console or yaml", b.line, b.language)
		}
		if (b.language == "json" || b.language == "console") && (i == 0 || blocks[i-1].language != "sh") {
			t.Errorf("README.md:%d: got an answer without a command, want one before it", b.line)
		}
	}
	return blocks
}

// reader follows README.md.
type reader struct {
	t       *testing.T
	ports   *strings.Replacer // the ports that it names, by free ones
	env     []string          // of servers, which then use those ports too
	remote  string            // flags for the commands that speak to those servers
	shell   string            // the file that carries variables from one block to the next
	service *server           // what answers at the public port; nil = nothing yet
	ran     int               // blocks of commands
}

// newReader returns a reader who has a fresh clone: what another made in the copy is gone.
func newReader(t *testing.T) *reader {
	t.Helper()
	for _, made := range []string{"gatehouse-demo", "gatehouse.db", "gatehouse.db-lock", "gatehouse.db-shm", "gatehouse.db-wal"} {
		if err := os.RemoveAll(filepath.Join(cleanCopy, made)); err != nil {
			t.Fatal(err)
		}
	}
	public, admin, upstream := freePort(t), freePort(t), freePort(t)
	return &reader{
		t: t,
		ports: strings.NewReplacer("127.0.0.1:8080", public, "127.0.0.1:8081", admin, "127.0.0.1:8082", upstream,
			url.QueryEscape("127.0.0.1:8080"), url.QueryEscape(public)),
		env:    append(environment(), "GATEHOUSE_LISTEN="+public, "GATEHOUSE_ADMIN_LISTEN="+admin),
		remote: " --base-url http://" + public + " --admin-url http://" + admin,
		shell:  filepath.Join(t.TempDir(), "variables"),
	}
}

// freePort returns an address on loopback that nobody listens on. It is below those that the system gives to programs
// that ask for any, so that tests running beside this one do not take it.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		ln, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("got no free port, want one")
	return ""
}

var (
	remark  = regexp.MustCompile(`(?m)[ \t]+#.*$`)
	serving = regexp.MustCompile(`^(\w+=\S+ )*(make run|bin/gatehouse (serve|demo|sim)\b.*)$`)
	remote  = regexp.MustCompile(`bin/gatehouse (client|keys|user) [a-z-]+`)
)

// run runs a block of commands. A server runs on until another of its kind is started; make test is only looked up,
// since this is part of it.
func (r *reader) run(b, answer block) {
	r.t.Helper()
	r.ran++
	script := strings.TrimSpace(remark.ReplaceAllString(r.ports.Replace(b.text), ""))
	switch {
	case serving.MatchString(script):
		r.serve(b, script)
		return
	case script == "make test":
		script = "make -n test"
	}
	got := r.output(b, script)
	if script == "make -n test" && !strings.Contains(got, "go test") {
		r.t.Errorf("README.md:%d: make test: got %q, want a run of go test", b.line, got)
	}
	if answer.language == "" {
		return
	}
	want := r.ports.Replace(answer.text)
	if answer.language == "json" {
		got, want = r.compact(b, got), r.compact(answer, want)
	}
	if !pattern(want).MatchString(lines(got)) {
		r.t.Errorf("README.md:%d: %s\ngot:\n%s\nwant:\n%s", answer.line, script, got, want)
	}
}

// output runs a script that ends by itself and returns what it prints. The script has the variables that those before it
// set, as in one terminal.
func (r *reader) output(b block, script string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	script = remote.ReplaceAllString(script, "$0"+r.remote)
	command := exec.CommandContext(ctx, "sh", "-euc", "set -a; touch $0; . $0\n"+script+"\nexport -p >$0", r.shell)
	command.Dir, command.Env = cleanCopy, environment()
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		r.t.Fatalf("README.md:%d: %s\ngot %v: %s", b.line, script, err, &stderr)
	}
	return string(out)
}

// serve starts a server in the place of the one that has its ports.
func (r *reader) serve(b block, script string) {
	r.t.Helper()
	ready := "gatehouse sim:"
	if !strings.Contains(script, "gatehouse sim") {
		ready = "serving"
		if r.service != nil {
			r.service.interrupt()
		}
	}
	s := startServer(r.t, script, r.env, ready)
	if ready == "serving" {
		r.service = s
	}
}

func (r *reader) save(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(cleanCopy, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
