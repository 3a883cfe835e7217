package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/loadtest/lab"
)

// built is the folder of the programs gatehouse and loadtest.
var built string

func TestMain(m *testing.M) {
	os.Exit(lab.WithProgram(func(program string) (int, error) {
		built = filepath.Dir(program)
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", built)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does, to compile once
		if text, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, text)
		}
		return m.Run(), nil
	}))
}

// unhurried makes 20 hits in a second. The schedule ends minutes later, so that hits that begin
// late on a busy machine make no run invalid. The run itself ends with the last hit.
const unhurried = "20:1s,0:5m"

// fixed is a target that answers lookups after a delay.
func fixed(t *testing.T, after time.Duration) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{IdleTimeout: time.Second, Handler: func(ctx *fasthttp.RequestCtx) {
		time.Sleep(after)
		ctx.SetContentType("application/json")
		ctx.SetBodyString(`{"ok":true}`)
	}}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := server.ShutdownWithContext(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	quick, slow := fixed(t, 0), fixed(t, 300*time.Millisecond)
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	one := func(target string, more ...string) []string {
		return append([]string{"run", "lookup-hot", "--target", target, "--keys", "50", "--rate",
			unhurried}, more...)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string // on either output
	}{
		{"done", one(quick), 0, "statuses of lookup: 200 × 20"},
		{"met", one(quick, "--expect", "lookup p50<5s", "--expect", "errors<1%"), 0,
			"ok      lookup p50<5s"},
		{"crossed", one(quick, "--expect", "lookup p50<5s", "--expect", "lookup p50>5s"), 1,
			"CROSSED lookup p50>5s"},
		{"invalid", []string{"run", "lookup-hot", "--target", slow, "--keys", "50", "--rate", "20",
			"--duration", "1s", "--connections", "2"}, 3, "INVALID"},
		{"closed", []string{"run", "lookup-hot", "--target", quick, "--concurrency", "2",
			"--duration", "1s"}, 0, "closed model: 2 users"},
		{"stages", []string{"run", "lookup-hot", "--target", quick, "--rate", "0..40:1s,40:500ms,0:5m"},
			0, "200 × 40"},
		{"nothing there", []string{"run", "lookup-hot", "--target", "http://127.0.0.1:1"}, 1,
			"reach the bulk endpoint"},
		{"no command", nil, 2, "loadtest list"},
		{"no scenario", []string{"run"}, 2, "scenario"},
		{"unknown scenario", []string{"run", "lookups"}, 2, "there are authorize, bulk"},
		{"unknown flag", one(quick, "--fast"), 2, "--fast"},
		{"bad rate", one(quick, "--rate", "quick"), 2, "--rate: \"quick\": a rate is"},
		{"rate and users", one(quick, "--concurrency", "2"), 2, "choose one"},
		{"bad threshold", one(quick, "--expect", "p99"), 2, "--expect: \"p99\": write"},
		{"bad mix", []string{"run", "mixed", "--mix", "x=1"}, 2, "--mix: there is no scenario"},
		{"no such file", one(quick, "--queries", filepath.Join(dir, "none")), 2, "--queries"},
		{"bad baseline", one(quick, "--baseline", file("bad.json", "{}")), 2, "is no report"},
		{"somebody else's", []string{"run", "lookup-hot", "--target", "http://gatehouse.example"},
			2, "--i-own-this-target gatehouse.example"},
		{"no demo", []string{"run", "lookup-hot", "--demo", dir}, 2, "--demo"},
		{"no program", []string{"run", "lookup-hot", "--gatehouse", filepath.Join(dir, "none")}, 2,
			"--gatehouse"},
		{"a program that fails", []string{"run", "lookup-hot", "--gatehouse", "/bin/false"}, 1,
			"init"},
		{"negative", one(quick, "--keys=-1"), 2, "cannot be negative"},
		{"list", []string{"list"}, 0, "lookup-zipf"},
		{"steps", []string{"list"}, 0, "500/s for 45s; steps: lookup, cold-lookup\n"},
		{"version", []string{"version"}, 0, "loadtest unknown\n"},
		{"version by a flag", []string{"--version"}, 0, "loadtest unknown\n"},
		{"bad number", one(quick, "--concurrency", "x"), 2, "--concurrency"},
		{"help", []string{"run", "--help"}, 0, "Example:"},
		{"queries of the own", []string{"run", "lookup-hot", "--target", quick, "--queries",
			file("queries", "8.8.8.8\n\nexample.com\n"), "--rate", unhurried}, 0,
			"200 × 20"},
		{"some bad queries", []string{"run", "lookup-hot", "--target", quick, "--skip-bad", "--queries",
			file("some", "8.8.8.8\n10.0.0.1\nexample.com\n::1\n"), "--rate", unhurried}, 0,
			"some: 2; the first is line 2: "},
		{"too few queries", one(quick, "--queries", file("query", "8.8.8.8\n")), 2, "two lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := command(t, c.args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("got %d\n%s%s, want %d with %q", code, stdout, stderr, c.code, c.want)
			}
			if c.code == 2 && (stdout != "" || strings.Count(strings.TrimSpace(stderr), "\n") > 0) {
				t.Errorf("got %q and %q, want one line on stderr", stdout, stderr)
			}
		})
	}
}

// TestDemosElsewhereAreRefused reads demo files whose addresses are not all on this machine: nobody
// is asked anything.
func TestDemosElsewhereAreRefused(t *testing.T) {
	quick := fixed(t, 0)
	for _, c := range []struct {
		demo string
		more []string
		code int
		want string
	}{
		{`{"base_url":"http://192.0.2.7:1"}`, nil, 2, "--i-own-this-target 192.0.2.7"},
		{`{"base_url":"` + quick + `","admin_url":"http://192.0.2.7:1"}`, nil, 2,
			"192.0.2.7 is not this machine"},
		{`{"base_url":"` + quick + `","upstream_url":"http://192.0.2.7:1"}`, nil, 2,
			"192.0.2.7 is not this machine"},
		{`{"base_url":"http://192.0.2.7:1"}`, []string{"--i-own-this-target", "192.0.2.8"}, 2,
			"192.0.2.7 is not this machine"},
		{`{"base_url":"` + quick + `","upstream_url":"http://192.0.2.7:1"}`,
			[]string{"--i-own-this-target", "192.0.2.7"}, 0, "200 × 20"},
		{`{}`, nil, 2, "not what a demo writes"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "demo.json"), []byte(c.demo), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, append([]string{"run", "lookup-hot", "--demo", dir,
			"--keys", "50", "--rate", unhurried}, c.more...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s %v: got %d %s%s, want %d with %q", c.demo, c.more, code, stdout, stderr,
				c.code, c.want)
		}
	}
}

// TestReportFiles writes every form of report, and takes the JSON as the baseline of another run.
func TestReportFiles(t *testing.T) {
	target, dir := fixed(t, 0), t.TempDir()
	names := map[string]string{}
	args := []string{"run", "lookup-hot", "--target", target, "--rate", unhurried}
	for _, form := range []string{"json", "html", "hdr"} {
		names[form] = filepath.Join(dir, "report."+form)
		args = append(args, "--"+form, names[form])
	}
	if code, stdout, stderr := command(t, args...); code != 0 {
		t.Fatalf("got %d %s%s, want 0", code, stdout, stderr)
	}
	for form, want := range map[string]string{"json": `"verdict": "passed"`, "html": "</html>",
		"hdr": "Percentile"} {
		text, err := os.ReadFile(names[form])
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %v, %.200s, want %q in it", form, err, text, want)
		}
	}
	slower := fixed(t, 2*time.Second)
	code, stdout, stderr := command(t, "run", "lookup-hot", "--target", slower, "--rate", unhurried,
		"--json", "-", "--baseline", names["json"])
	var report struct{ Worse []string }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 ||
		!strings.Contains(strings.Join(report.Worse, "\n"), "lookup p50") {
		t.Errorf("got %d, %v, %q, %s, want a slower target to be worse", code, err, report.Worse,
			stderr)
	}
	if code, _, stderr := command(t, "run", "lookup-hot", "--target", target, "--rate", "5",
		"--duration", "1s", "--baseline", names["json"]); code != 2 ||
		!strings.Contains(stderr, "20:1s") {
		t.Errorf("got %d %s, want 2: another rate", code, stderr)
	}
	if code, _, stderr := command(t, "run", "bulk", "--target", target, "--rate", "5", "--duration",
		"1s", "--baseline", names["json"]); code != 2 ||
		!strings.Contains(stderr, "the baseline is of lookup-hot") {
		t.Errorf("got %d %s, want 2: another scenario", code, stderr)
	}
}

// TestOwnServer starts a gatehouse of its own, and leaves no process and no folder.
func TestOwnServer(t *testing.T) {
	program := filepath.Join(built, "gatehouse")
	t.Setenv("TMPDIR", t.TempDir())
	code, stdout, stderr := command(t, "run", "token", "--gatehouse", program, "--people", "2",
		"--rate", unhurried)
	if code != 0 || !strings.Contains(stdout, "statuses of token: 200 × 20") ||
		!strings.Contains(stdout, "target: ") {
		t.Errorf("got %d %s%s, want 0 with 20 tokens and the target's memory", code, stdout, stderr)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("got %v, %v left, want nothing", left, err)
	}
}

func TestLiveLine(t *testing.T) {
	for _, over := range []bool{false, true} {
		var out bytes.Buffer
		line := &liveLine{w: &out, over: over, name: "lookup-hot"}
		line.progress(1, 2, "users")
		line.progress(2, 2, "users")
		line.end()
		want := "lookup-hot: preparing, 1 of 2 users\nlookup-hot: preparing, 2 of 2 users\n"
		if over {
			want = "\r\x1b[Klookup-hot: preparing, 1 of 2 users\r\x1b[Klookup-hot: preparing, 2 of 2 users\r\x1b[K"
		}
		if out.String() != want {
			t.Errorf("%v: got %q, want %q", over, out.String(), want)
		}
	}
	if isTerminal(&bytes.Buffer{}) {
		t.Error("got true for a buffer, want false")
	}
}

func Example_usage() {
	fmt.Println(run(context.Background(), []string{"version"}, os.Stdout, os.Stderr))
	// Output:
	// loadtest unknown
	// 0
}
