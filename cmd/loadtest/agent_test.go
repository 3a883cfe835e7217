package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const agentToken = "0123456789abcdef0123456789abcdef"

// startAgents starts agents on loopback and returns their addresses, with commas between.
func startAgents(t *testing.T, n int) string {
	t.Helper()
	t.Setenv("LOADTEST_AGENT_TOKEN", agentToken)
	var addresses []string
	for range n {
		ctx, cancel := context.WithCancel(context.Background())
		log := &listening{on: make(chan string, 1)}
		done := make(chan int, 1)
		go func() {
			done <- run(ctx, []string{"agent", "--listen", "127.0.0.1:0"}, &bytes.Buffer{}, log)
		}()
		t.Cleanup(func() {
			cancel()
			if code := <-done; code != exitDone {
				t.Errorf("got %d, %s, want an agent that ends well", code, log)
			}
		})
		select {
		case address := <-log.on:
			addresses = append(addresses, address)
		case <-time.After(5 * time.Minute):
			t.Fatalf("got %s, want an agent that listens", log)
		}
	}
	return strings.Join(addresses, ",")
}

// listening is the log of an agent, and tells where it listens.
type listening struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   chan string
}

func (l *listening) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, address, ok := strings.Cut(strings.TrimSpace(string(text)), "listens on "); ok {
		l.on <- address
	}
	return l.text.Write(text)
}

func (l *listening) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestAgentsShareAnOwnScenario runs a scenario with data by three agents: each row is used once,
// each hit has a number of its own, and setup and teardown are made once.
func TestAgentsShareAnOwnScenario(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.RequestURI+" "+r.Header.Get("X-Tenant"))
		mu.Unlock()
		fmt.Fprintf(w, `{"n":"%s-7"}`, r.URL.Path)
	}))
	defer server.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.csv"), "id\n0\n1\n2\n3\n4\n5\n6\n7\n")
	t.Setenv("OWN_SECRET", "s3cret")
	file := write(t, filepath.Join(dir, "own.yaml"), `
users: 4
duration: 5m
data: {file: d.csv, once: true}
variables: {secret: "${env.OWN_SECRET}"}
setup:
  - {name: first, path: /first, save: {first: {json: /n}}}
  - {name: row, each_row: true, path: "/row/${id}", save: {n: {json: /n}}}
steps:
  - {name: one, path: "/hit${n}?s=${secret}&f=${first}&n=${hit}"}
teardown:
  - {name: end, path: /end}
`)
	code, stdout, stderr := command(t, "run", file, "--target", server.URL, "--header", "X-Tenant: a",
		"--agents", startAgents(t, 3), "--json", filepath.Join(dir, "r.json"))
	all := strings.Join(got, "\n")
	hits := map[string]bool{}
	for id := range 8 {
		row := fmt.Sprintf("/hit%%2Frow%%2F%d-7?s=s3cret&f=%%2Ffirst-7&n=", id)
		if strings.Count(all, row) != 1 {
			t.Errorf("got\n%s\nwant row %d once: %s", all, id, row)
		}
		_, rest, _ := strings.Cut(all, row)
		number, tenant, _ := strings.Cut(strings.Split(rest, "\n")[0], " ")
		hits[number] = tenant == "a"
	}
	if len(hits) != 8 || !hits["0"] || strings.Count(all, "/first ") != 1 ||
		strings.Count(all, "/end ") != 1 || strings.Count(all, "/row/") != 8 || len(got) != 18 {
		t.Errorf("got\n%s\nwant hits with numbers of their own, setup and teardown once", all)
	}
	if code != exitDone || !strings.Contains(stdout, "8 hits") {
		t.Errorf("got %d %s%s, want 8 hits", code, stdout, stderr)
	}
	report, err := os.ReadFile(filepath.Join(dir, "r.json"))
	var read struct{ Settings struct{ Agents []string } }
	if err == nil {
		err = json.Unmarshal(report, &read)
	}
	if err != nil || len(read.Settings.Agents) != 3 || strings.Contains(string(report), agentToken) ||
		strings.Contains(string(report), "s3cret") {
		t.Errorf("got %v, %s, want three agents, and no secrets", err, report)
	}
}

// TestAgentsRunScenarios runs built-in scenarios by two agents: against a server with a known
// latency, and against a gatehouse of its own, for which the agents create clients.
func TestAgentsRunScenarios(t *testing.T) {
	agents := startAgents(t, 2)
	target := fixed(t, 30*time.Millisecond)
	code, stdout, stderr := command(t, "run", "lookup-hot", "--target", target, "--agents", agents,
		"--rate", unhurried, "--expect", "lookup p50>=30ms", "--expect", "errors<=0")
	if code != exitDone || !strings.Contains(stdout, "statuses of lookup: 200 × 20") {
		t.Errorf("got %d %s%s, want 20 responses", code, stdout, stderr)
	}
	queries := write(t, filepath.Join(t.TempDir(), "q"), "8.8.8.8\n8.8.4.4\nexample.com\n1.1.1.1\n"+
		"EXAMPLE.com\n")
	code, stdout, stderr = command(t, "run", "lookup-cold", "--target", target, "--agents", agents,
		"--queries", queries, "--concurrency", "2", "--duration", "5m")
	if code != exitCrossed || !strings.Contains(stdout, "statuses of cold-lookup: 200 × 4") {
		t.Errorf("got %d %s%s, want each query once", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "run", "token", "--agents", agents, "--people", "4", "--rate",
		unhurried, "--gatehouse", filepath.Join(built, "gatehouse"))
	if code != exitDone || !strings.Contains(stdout, "statuses of token: 200 × 20") ||
		!strings.Contains(stdout, "target: ") {
		t.Errorf("got %d %s%s, want 20 tokens and the target's memory", code, stdout, stderr)
	}
}

// TestWrongAgentsAreRefused has wrong flags, and agents that cannot be used.
func TestWrongAgentsAreRefused(t *testing.T) {
	target := fixed(t, 0)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"agent"}, exitUsage, "--listen"},
		{[]string{"agent", "--listen", "127.0.0.1:0"}, exitUsage, "at least 32 characters"},
		{[]string{"agent", "--listen", "7070", "--agent-token", agentToken}, exitUsage,
			"write HOST:PORT"},
		{[]string{"agent", "--listen", "192.0.2.1:1", "--agent-token", agentToken}, exitCrossed,
			"--listen: "},
		{[]string{"run", "lookup-hot", "--agent-token", agentToken}, exitUsage, "with --agents only"},
		{[]string{"run", "outage", "--agents", "127.0.0.1:1", "--agent-token", agentToken, "--gatehouse",
			filepath.Join(built, "gatehouse")}, exitUsage, "run it without agents"},
		{[]string{"run", "lookup-hot", "--target", target, "--agents", "127.0.0.1:1"}, exitUsage,
			"--agent-token"},
		{[]string{"run", "lookup-hot", "--target", target, "--agents", "127.0.0.1:1", "--agent-token",
			agentToken}, exitCrossed, "agent 127.0.0.1:1: "},
	} {
		code, stdout, stderr := command(t, c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) ||
			strings.Contains(stderr, agentToken) {
			t.Errorf("%v: got %d %s%s, want %d with %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
	agents := strings.Split(startAgents(t, 1), ",")
	if code, _, stderr := command(t, slices.Concat([]string{"run", "lookup-hot", "--target",
		"http://192.0.2.1:1", "--i-own-this-target", "192.0.2.1", "--rate", "1"},
		[]string{"--agents", agents[0]})...); code != exitCrossed ||
		!strings.Contains(stderr, "refuses the target") {
		t.Errorf("got %d %s, want the agent to refuse the target", code, stderr)
	}
}
