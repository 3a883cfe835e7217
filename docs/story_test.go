package docs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	ownServer = regexp.MustCompile(`^(\w+=\S+ )*bin/gatehouse (serve|sim)\b`)
	longRun   = regexp.MustCompile(`^make (test|load)$`)
	remark    = regexp.MustCompile(`(?m)[ \t]+#.*$`)
)

// story is somebody who reads one page and does what it says.
type story struct {
	dir     string            // a clean copy of the repository
	shell   string            // the file that carries variables from one block to the next
	env     []string          // of its commands
	ports   *strings.Replacer // the ports that the page names, by free ones
	service *server           // at the public port; nil = none yet
}

// startsServer reports whether a block is a command that serves until Ctrl-C, other than the demo.
func startsServer(b block) bool { return ownServer.MatchString(b.text) }

// freePort returns an address on loopback that nobody listens on. It is below those that the system
// gives to programs that ask for any, so that tests running at the same time do not take it.
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

// read runs the blocks of a page. What follows commands in json or console is what they print.
func (s *story) read(t *testing.T, p *page) {
	for i, b := range p.blocks {
		at := fmt.Sprintf("%s:%d", p.name, b.line)
		if b.language == "yaml" {
			file := filepath.Join(s.dir, "gatehouse.yaml")
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b.language != "sh" {
			continue // compared with the block before
		}
		script := strings.TrimSpace(remark.ReplaceAllString(s.ports.Replace(b.text), ""))
		switch {
		case script == "make run":
			continue // the demo that is there
		case startsServer(b):
			s.serve(t, script)
			continue
		case longRun.MatchString(script):
			script = strings.Replace(script, "make", "make -n", 1) // it takes minutes
		}
		got := s.run(t, at, script)
		var printed block
		if i+1 < len(p.blocks) {
			printed = p.blocks[i+1]
		}
		want := s.ports.Replace(printed.text)
		switch printed.language {
		case "json":
			got, want = compact(t, at, got), compact(t, at, want)
		case "console":
		default:
			continue
		}
		if !pattern(want).MatchString(lines(got)) {
			t.Fatalf("%s: %s\ngot:\n%s\nwant:\n%s", at, script, got, want)
		}
	}
}

// run runs a script that ends by itself and returns what it prints. It has the variables of those
// before it, as in one terminal.
func (s *story) run(t *testing.T, at, script string) string {
	t.Helper()
	ctx, cancel := patience(t)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euc",
		"set -a; touch $0; . $0\n"+script+"\nexport -p >$0", s.shell)
	command.Dir, command.Env, command.WaitDelay = s.dir, s.env, time.Second
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %s\ngot %v: %s%s", at, script, err, out, &stderr)
	}
	return string(out)
}

// patience ends shortly before the test does: how long commands take is no concern of these tests.
func patience(t *testing.T) (context.Context, context.CancelFunc) {
	if deadline, ok := t.Deadline(); ok {
		return context.WithDeadline(context.Background(), deadline.Add(-20*time.Second))
	}
	return context.WithCancel(context.Background())
}

// server is a command that serves until it is interrupted.
type server struct {
	command *exec.Cmd
	ended   chan struct{}
	printed strings.Builder // to be read after the end
}

// serve starts a server in the place of the one that has its ports, and waits until it serves. The
// test interrupts it at the latest.
func (s *story) serve(t *testing.T, script string) {
	t.Helper()
	if strings.Contains(script, "gatehouse sim") {
		startServer(t, s.dir, script, s.env, "gatehouse sim:")
		return
	}
	if s.service != nil {
		s.service.interrupt(t)
	}
	s.service = startServer(t, s.dir, script, s.env, "serving")
}

// startServer starts a command and waits for a line of its output that holds ready.
func startServer(t *testing.T, dir, script string, env []string, ready string) *server {
	t.Helper()
	s := &server{command: exec.Command("sh", "-c", "exec env "+script), ended: make(chan struct{})}
	s.command.Dir, s.command.Env = dir, env
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.command.Stdout, s.command.Stderr = write, write
	if err := errors.Join(s.command.Start(), write.Close()); err != nil {
		t.Fatal(errors.Join(err, read.Close()))
	}
	isReady := make(chan struct{})
	go s.watch(read, ready, isReady)
	t.Cleanup(func() { s.interrupt(t) })
	ctx, cancel := patience(t)
	defer cancel()
	select {
	case <-isReady:
	case <-s.ended:
		t.Fatalf("%s: got an end, want a server:\n%s", script, &s.printed)
	case <-ctx.Done():
		t.Fatalf("%s: got no line with %q, want one", script, ready)
	}
	return s
}

// watch reads what the server prints to its end, and closes isReady at the first line that holds
// ready.
func (s *server) watch(output io.ReadCloser, ready string, isReady chan<- struct{}) {
	defer close(s.ended)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		s.printed.WriteString(lines.Text() + "\n")
		if isReady != nil && strings.Contains(lines.Text(), ready) {
			close(isReady)
			isReady = nil
		}
	}
	if err := output.Close(); err != nil {
		s.printed.WriteString(err.Error())
	}
}

// interrupt ends the server as Ctrl-C does and checks that it ends in order: with exit code 0, or
// under make, which itself dies of the signal, without a complaint. It does nothing the second
// time.
func (s *server) interrupt(t *testing.T) {
	t.Helper()
	if s.command.ProcessState != nil {
		return
	}
	group := -s.command.Process.Pid
	if err := syscall.Kill(group, syscall.SIGINT); err != nil {
		t.Errorf("%v: interrupt: %v", s.command.Args, err)
	}
	ctx, cancel := patience(t)
	defer cancel()
	select {
	case <-s.ended:
	case <-ctx.Done():
		t.Errorf("%v: got no end after SIGINT, want one", s.command.Args)
		if err := syscall.Kill(group, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-s.ended
	}
	err := s.command.Wait()
	if strings.Contains(s.command.Args[2], "make") {
		if strings.Contains(s.printed.String(), "***") {
			t.Errorf("%v: got a failure after SIGINT, want none:\n%s", s.command.Args, &s.printed)
		}
		return
	}
	if err != nil {
		t.Errorf("%v: got %v after SIGINT, want exit code 0:\n%s", s.command.Args, err, &s.printed)
	}
}

// compact returns a JSON text without space between its tokens.
func compact(t *testing.T, at, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatalf("%s: %v: %s", at, err, text)
	}
	return out.String()
}

// lines returns an output with the line ends of the pages.
func lines(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

var (
	space    = regexp.MustCompile(` {2,}`)
	anyLines = regexp.MustCompile(`(?m)^…$`)
	restOf   = regexp.MustCompile(`(?m)…$`)
)

// pattern returns what an output on a page stands for. An ellipsis stands for one or more words
// with single spaces between, without quotation marks and ampersands; at the end of a line for all
// the rest of it; and alone on a line for any number of lines. The width of the space between
// columns does not count.
func pattern(output string) *regexp.Regexp {
	words := regexp.QuoteMeta(lines(output))
	words = space.ReplaceAllString(words, ` {2,}`)
	words = anyLines.ReplaceAllString(words, `.*(?:\n.*)*`)
	words = restOf.ReplaceAllString(words, `.+`)
	words = strings.ReplaceAll(words, "…", `[^"&\s]+(?: [^"&\s]+)*`)
	return regexp.MustCompile(`\A` + words + `\z`)
}

// TestPattern holds the ellipsis to what it stands for.
func TestPattern(t *testing.T) {
	for _, c := range []struct {
		page, output string
		want         bool
	}{
		{`{"token":"…","n":1}`, `{"token":"gtat_0","n":1}`, true},
		{`{"token":"…","n":1}`, `{"token":"","n":1}`, false},
		{`{"token":"…","n":1}`, `{"token":"gtat_0","more":"","n":1}`, false},
		{`{"token":"x","n":…}`, `{"token":"x","n":12}`, true},
		{`?code=…&state=xyz`, `?code=gtac_0&state=xyz`, true},
		{`?code=…&state=xyz`, `?code=gtac_0&error=no&state=xyz`, false},
		{"Date: …\nAge: …", "Date: Sat, 21 Nov 2026 09:00:00 GMT\r\nAge: 14\r\n", true},
		{"Date: …\nAge: …", "Date: Sat, 21 Nov 2026\nVary: Origin\nAge: 14", false},
		{"…    Shop   yes", "0-1-2  Shop  yes", true},
		{"…    Shop   yes", "0-1-2  Shop  no  yes", false},
		{"…    Shop   yes", "0-1-2 Shop yes", false},
		{"got …", `got ["a", "b"]`, true},
		{"got …\nend", "got a\nb\nend", false},
		{"one\n…\nend", "one\ntwo\n\nthree\nend", true},
		{"one\n…\nend", "one\ntwo\nthe end", false},
		{"a.c", "abc", false},
		{"exact", "exactly", false},
	} {
		if got := pattern(c.page).MatchString(lines(c.output)); got != c.want {
			t.Errorf("got %v for %q as %q, want %v", got, c.output, c.page, c.want)
		}
	}
}
