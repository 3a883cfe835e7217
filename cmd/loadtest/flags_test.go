package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlagsThatDoNotFitAreRefused has flags that do not go with the scenario or the target, or are
// missing. No request is sent.
func TestFlagsThatDoNotFitAreRefused(t *testing.T) {
	dir := t.TempDir()
	queries := write(t, filepath.Join(dir, "queries"), "8.8.8.8\nexample.com\nEXAMPLE.com\n")
	wrong := write(t, filepath.Join(dir, "wrong"), "8.8.8.8\n\n10.0.0.1\nnot a query\n")
	few := write(t, filepath.Join(dir, "few"), "8.8.8.8\n10.0.0.1\n")
	program := write(t, filepath.Join(dir, "program"), "")
	asked := func(scenario string) []string {
		return []string{scenario, "--target",
			"http://127.0.0.1:1"}
	}
	own := func(scenario string) []string { return []string{scenario, "--gatehouse", program} }
	for _, c := range []struct {
		args []string
		more string // a tab is a space within a flag
		want string
	}{
		{own("lookup-hot"), "--admin http://127.0.0.1:1",
			"--admin: has no meaning without --target"},
		{own("lookup-hot"), "--client-id a", "--client-id: has no meaning without --target"},
		{own("lookup-hot"), "--client-secret a",
			"--client-secret: has no meaning without --target"},
		{own("outage"), "--simulator http://127.0.0.1:1",
			"--simulator: has no meaning without --target"},
		{own("lookup-hot"), "--i-own-this-target a",
			"--i-own-this-target: has no meaning without --target"},
		{asked("lookup-hot"), "--gatehouse " + program,
			"--gatehouse: has no meaning with --target"},
		{asked("lookup-hot"), "--database sqlite:x", "--database: has no meaning with --target"},
		{asked("lookup-hot"), "--demo " + dir, "--demo and --target: choose one"},
		{[]string{"lookup-hot"}, "--target= --rate 5", "--target: is empty"},
		{[]string{"lookup-hot"}, "--demo " + dir + " --admin http://127.0.0.1:1",
			"--admin: has no meaning with --demo"},

		{asked("token"), "--keys 5", "--keys: token does not use it"},
		{asked("lookup-cold"), "--keys 5", "--keys: lookup-cold does not use it"},
		{asked("token"), "--queries " + queries, "--queries: token does not use it"},
		{asked("bulk"), "--people 5", "--people: bulk does not use it"},
		{asked("refresh"), "--tokens " + queries, "--tokens: refresh does not use it"},
		{asked("token"), "--mix bulk=1", "--mix: token does not use it"},
		{asked("mixed"), "--mix bulk=1,my-ip=2 --people 5", "--people: mixed does not use it"},
		{asked("profile"), "--tokens " + queries + " --people 5",
			"--people and --tokens: choose one"},
		{asked("bulk"), "--queries " + queries + " --keys 5", "--keys and --queries: choose one"},
		{asked("mixed"), "--mix bulk=1,bulk=2", "bulk is repeated"},
		{asked("bulk"), "--rate 0..5:1s,5:2s --duration 3s", "--duration: the stages of --rate"},
		{asked("bulk"), "--duration 0s", "--duration: must be more than 0"},
		{asked("bulk"), "--concurrency 0", "--concurrency: must be more than 0"},
		{asked("bulk"), "--keys 0", "--keys: must be more than 0"},
		{asked("token"), "--people 0", "--people: must be more than 0"},
		{asked("bulk"), "--timeout 0s", "--timeout: must be more than 0"},
		{asked("bulk"), "--connections=-1", "--connections: cannot be negative"},
		{asked("lookup-zipf"), "--keys 1", "--keys: lookup-zipf needs at least 2"},

		{asked("bulk"), "--queries " + wrong, `: line 3: "10.0.0.1" is not a valid query`},
		{asked("bulk"), "--queries " + wrong, "--skip-bad"},
		{asked("mixed"), "--mix bulk=1,lookup-hot=1 --queries " + wrong, ": line 3: "},
		{asked("bulk"), "--skip-bad --queries " + few, "needs at least two lines"},
		{asked("bulk"), "--skip-bad", "--skip-bad: is of use with --queries only"},
		{asked("my-ip"), "--queries " + queries, `: line 2: "example.com" is not an IP address`},
		{asked("lookup-cold"), "--queries " + queries + " --rate 3 --duration 1s",
			"2 different queries and 3 hits"},
		{asked("bulk"), "--expect errors<1% --expect lookup\tp99<1s",
			"bulk has no step lookup: its steps are bulk"},
		{asked("mixed"), "--mix bulk=1,my-ip=1 --expect token\tp99<1s",
			"its steps are bulk, my-ip"},

		{asked("token"), "",
			"token creates clients and users with an operator client of the target (gatehouse init creates one): give --admin, --client-id, --client-secret"},
		{asked("token"), "--admin http://127.0.0.1:1 --client-id a", ": give --client-secret, or"},
		{asked("mixed"), "--mix bulk=1,refresh=1", "mixed includes refresh, which creates clients"},
		{asked("soak"), "--mix bulk=1", "soak reads the target's memory: give --admin"},
		{asked("outage"), "", "give --simulator"},
		{asked("outage"), "--simulator http://127.0.0.1:1 --duration 32s",
			"outage needs at least 33s"},
		{own("outage"), "--duration 5s", "outage needs at least 6s"},
		{own("soak"), "--duration 9s", "soak needs at least 10s"},

		{[]string{"bulk"}, "--target 127.0.0.1:8080",
			`--target "127.0.0.1:8080": write scheme, host and port, such as http://127.0.0.1:8080`},
		{[]string{"bulk"}, "--target http://127.0.0.1:8080/api",
			"write only scheme, host and port, such as http://127.0.0.1:8080"},
		{[]string{"bulk"}, "--target http://127.0.0.1:65536", "the port must be 1 to 65535"},
		{[]string{"bulk"}, "--target http://127.0.0.1:0", "the port must be 1 to 65535"},
		{asked("bulk"), "--admin ftp://127.0.0.1", `--admin "ftp://127.0.0.1": write scheme`},
		{asked("bulk"), "--simulator http://192.0.2.1",
			"--simulator: 192.0.2.1 is not this machine"},
	} {
		args := append([]string{"run"}, c.args...)
		for arg := range strings.SplitSeq(c.more, " ") {
			if arg != "" {
				args = append(args, strings.ReplaceAll(arg, "\t", " "))
			}
		}
		code, stdout, stderr := command(t, args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: got %d %s%s, want %d with %q", args, code, stdout, stderr, exitUsage,
				c.want)
		}
	}
}

// TestTheEnvironmentIsNoFlag has an operator in the environment. A run without a target ignores it.
func TestTheEnvironmentIsNoFlag(t *testing.T) {
	t.Setenv("GATEHOUSE_ADMIN_URL", "http://127.0.0.1:1")
	t.Setenv("GATEHOUSE_CLIENT_ID", "a")
	t.Setenv("GATEHOUSE_CLIENT_SECRET", "b")
	if code, stdout, stderr := command(t, "run", "bulk", "--gatehouse",
		"/bin/false"); code != exitCrossed || !strings.Contains(stderr, "init") {
		t.Errorf("got %d %s%s, want a start of the program", code, stdout, stderr)
	}
	if code, _, stderr := command(t, "run", "token", "--target",
		"http://127.0.0.1:1"); code != exitCrossed || !strings.Contains(stderr, "token endpoint") {
		t.Errorf("got %d %s, want the operator to be taken", code, stderr)
	}
}

// TestBaselinesOfOtherLoadsAreRefused checks that this happens before the start.
func TestBaselinesOfOtherLoadsAreRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.json")
	if code, stdout, stderr := command(t, "run", "lookup-hot", "--target", fixed(t, 0), "--rate",
		"20", "--duration", "1s", "--json", name); code != exitDone {
		t.Fatalf("got %d %s%s, want 0", code, stdout, stderr)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	better := write(t, filepath.Join(t.TempDir(), "better.json"),
		strings.ReplaceAll(string(before), `"rate": `, `"rate": 9`))
	for flag, want := range map[string]int{"--fail-on-worse": exitCrossed, "--timeout=10s": exitDone} {
		if code, stdout, stderr := command(t, "run", "lookup-hot", "--target", fixed(t, 0), "--rate",
			"20", "--duration", "1s", "--baseline", better, flag); code != want ||
			strings.Contains(stderr, flag+": a figure is worse") != (want == exitCrossed) ||
			!strings.Contains(stdout, "worse than in better.json") {
			t.Errorf("%s: got %d %s%s, want %d", flag, code, stdout, stderr, want)
		}
	}
	if code, _, stderr := command(t, "run", "bulk", "--fail-on-worse"); code != exitUsage ||
		!strings.Contains(stderr, "--baseline") {
		t.Errorf("got %d %s, want wrong usage without a baseline", code, stderr)
	}
	for _, args := range [][]string{{"bulk"}, {"lookup-hot", "--concurrency", "2"}} {
		code, stdout, stderr := command(t, append(append([]string{"run"}, args...), "--target",
			"http://127.0.0.1:1", "--baseline", name, "--json", name)...)
		after, err := os.ReadFile(name)
		if code != exitUsage || stdout != "" ||
			!strings.Contains(stderr, "--baseline report.json: ") || err != nil ||
			string(after) != string(before) {
			t.Errorf("%v: got %d %s%s, %v, want %d and the file as it was", args, code, stdout,
				stderr, err, exitUsage)
		}
	}
}
