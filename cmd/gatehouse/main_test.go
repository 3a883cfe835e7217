package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/loadtest/lab"
	"gatehouse/providers/sqlstore/pgtest"
)

// binary is the program, built once for the tests that need a process of its own.
var binary string

var programRace = flag.Bool("program-race", false,
	"build the program that tests start with the race detector: a race ends it with another exit code")

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "gatehouse")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	var race []string
	if *programRace { // RACE in the Makefile says why SQLite is without it
		race = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false"}
	}
	if binary, err = lab.BuildAs(context.Background(), filepath.Join(dir, "gatehouse"), race...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("GORACE", gorace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if code == 0 {
		if err := goleak.Find(fasthttpGoroutines...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// fasthttpGoroutines run as long as the process, or end some time after their server.
var fasthttpGoroutines = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
}

// waitTimeout is how long a test waits for what must happen. It only keeps a test from hanging.
const waitTimeout = 5 * time.Minute

// outcome is the exit code and the output of a command.
type outcome struct {
	code           int
	stdout, stderr string
}

// runOnce runs a command that ends by itself.
func runOnce(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, env, strings.NewReader(""), &stdout, &stderr)
	if ctx.Err() != nil {
		t.Fatalf("gatehouse %s: still ran after %v", strings.Join(args, " "), waitTimeout)
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// lines is a writer that tests can wait on.
type lines struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed when text grows
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	close(l.more)
	l.more = make(chan struct{})
	return len(p), nil
}

// clear forgets what was written.
func (l *lines) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// await waits for a whole line that contains part and returns it.
func (l *lines) await(t *testing.T, part string) string {
	t.Helper()
	timeout := time.After(waitTimeout)
	for {
		l.mu.Lock()
		text, more := string(l.text), l.more
		l.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) && strings.HasSuffix(line, "\n") {
				return line
			}
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("got no line with %q in %v, but\n%s", part, waitTimeout, text)
		}
	}
}

func TestBareCommandPrintsUsage(t *testing.T) {
	t.Parallel()
	got := runOnce(t, nil)
	if got.code != exitUsage || got.stdout != "" ||
		!strings.Contains(got.stderr, "Usage: gatehouse") {
		t.Errorf("got code %d, stdout %q, stderr %q, want 2 and the usage on stderr alone",
			got.code, got.stdout, got.stderr)
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	t.Parallel()
	all := [][]string{{}, {"serve"}, {"demo"}, {"sim"}, {"init"}, {"migrate"},
		{"migrate", "status"}, {"migrate", "up"}, {"client"}, {"user"}, {"keys"}, {"keys", "rewrap"},
		{"keys", "drop"}, {"backup"}, {"config"}, {"version"}}
	for _, args := range append(all, remoteCommands...) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			got := runOnce(t, nil, append(args, "--help")...)
			if got.code != exitDone || got.stderr != "" {
				t.Errorf("got code %d, stderr %q, want 0 and none", got.code, got.stderr)
			}
			if !strings.Contains(got.stdout, "Example:\n\n    ") {
				t.Errorf("got help without an example:\n%s", got.stdout)
			}
		})
	}
}

// remoteCommands call a running server.
var remoteCommands = [][]string{
	{"client", "create"}, {"client", "list"}, {"client", "show"}, {"client", "update"},
	{"client", "approve"}, {"client", "unapprove"}, {"client", "verify"}, {"client", "unverify"},
	{"client", "rotate-secret"}, {"client", "revoke-secret"}, {"client", "disable"},
	{"client", "enable"}, {"client", "delete"},
	{"user", "create"}, {"user", "list"}, {"user", "show"}, {"user", "update"}, {"user", "disable"},
	{"user", "enable"},
	{"user", "reset-password"}, {"user", "revoke-tokens"}, {"user", "sessions"},
	{"user", "end-session"}, {"user", "delete"},
	{"resource", "create"}, {"resource", "list"}, {"resource", "show"}, {"resource", "delete"},
	{"keys", "list"}, {"keys", "rotate"},
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(binary, "version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"version":"` + lab.Version + `"`, `"commit":"`,
		`{"path":"github.com/alecthomas/kong","version":"v1.`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got %s, want %s in it", out, want)
		}
	}
	if got := runOnce(t, nil, "version"); got.code != exitDone ||
		!strings.HasPrefix(got.stdout, "gatehouse ") {
		t.Errorf("got code %d, stdout %q, want 0 and a line", got.code, got.stdout)
	}
}
