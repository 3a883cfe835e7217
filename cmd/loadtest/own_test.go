package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestOwnScenarioOfTheDocs runs the scenario of the page of load tests: people sign in by OAuth.
func TestOwnScenarioOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/loadtests.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	block := func(kind string) string {
		return string(regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindSubmatch(page)[1])
	}
	write(t, filepath.Join(dir, "people.csv"), block("text"))
	file := write(t, filepath.Join(dir, "sign-in.yaml"), block("yaml"))
	code, stdout, stderr := command(t, "run", file, "--gatehouse", filepath.Join(built, "gatehouse"),
		"--rate", "6:1s,0:5m", "--expect", "token p50<1m") // the page's bound is for idle machines
	if code != exitDone && code != exitCrossed ||
		!strings.Contains(stdout, "statuses of token: 200 × 6") ||
		!strings.Contains(stdout, "ok      errors<0.1%") ||
		!strings.Contains(stdout, "ok      token p50<1m") {
		t.Errorf("got %d %s%s, want 6 people who have signed in", code, stdout, stderr)
	}
}

// TestOwnScenario runs steps, setup and teardown against a server that writes down what it gets.
func TestOwnScenario(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1000)
		n, _ := r.Body.Read(body)
		mu.Lock()
		got = append(got, r.Method+" "+r.RequestURI+" "+r.Header.Get("X-Api-Key")+" "+
			r.Header.Get("X-Tenant")+" "+r.Header.Get("Cookie")+" "+string(body[:n]))
		mu.Unlock()
		http.SetCookie(w, &http.Cookie{Name: "s", Value: "1"})
		w.Header().Set("Location", "/next?a=b")
		w.Write([]byte(`{"a":[{"b/c":7}],"t":"x y&z"}`))
	}))
	defer server.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.csv"), "\ufeffid,who\n1,a b\n2,\"c\"\"&\"\n")
	t.Setenv("OWN_SECRET", "s3cret")
	t.Setenv("GATEHOUSE_API_KEY", "key")
	file := write(t, filepath.Join(dir, "own.yaml"), `
users: 1
duration: 20s
data: {file: d.csv, once: true}
variables: {secret: "${env.OWN_SECRET}"}
setup:
  - {name: row, each_row: true, path: "/setup/${id}", save: {n: {json: "/a/0/b~1c"}}}
steps:
  - {name: one, path: "/x/${who}?t=${secret}", save: {t: {json: /t}, to: {header: location}, a: {header: Location, pattern: "a=(.)"}}}
  - {name: two, path: "${to}", json: {t: "${t}", n: ["${n}", 5, "$${n}"]}, headers: {X-Tenant: "own"}}
  - {name: two, path: "/f", form: {t: "${t}", a: "${a}"}, expect: [200, 201]}
teardown:
  - {name: end, method: DELETE, path: "/end"}
`)
	code, stdout, stderr := command(t, "run", file, "--target", server.URL, "--header", "X-Tenant: all",
		"--expect", "errors<=0", "--json", filepath.Join(dir, "r.json"))
	want := []string{"GET /setup/1 key all  ", "GET /setup/2 key all  ",
		"GET /x/a%20b?t=s3cret key all  ",
		`POST /next?a=b key own s=1 {"n":["7",5,"${n}"],"t":"x y\u0026z"}`,
		"POST /f key all s=1 a=b&t=x+y%26z", `GET /x/c%22%26?t=s3cret key all  `}
	all := strings.Join(got, "\n")
	for _, line := range want {
		if !strings.Contains(all, line) {
			t.Errorf("got\n%s\nwant %s", all, line)
		}
	}
	if code != exitDone || len(got) != 9 || !strings.HasPrefix(got[8], "DELETE /end") {
		t.Errorf("got %d %s%s\n%s\nwant two hits, and teardown at the end", code, stdout, stderr, all)
	}
	if !strings.HasPrefix(stdout, "own\n\n") || !strings.Contains(stdout, "statuses of two: 200 × 4\n") {
		t.Errorf("got %s, want a title that is the name, and two steps of one name counted together", stdout)
	}
	report, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil || strings.Contains(string(report)+stdout, "s3cret") ||
		strings.Contains(string(report), `"key"`) {
		t.Errorf("got %v, %s, want no secrets in reports", err, report)
	}
}

// TestDeadServerKeepsTheReport has a server that ends with the tenth hit. The report shows what
// came before and the refusals after it, and that teardown failed, each step of it.
func TestDeadServerKeepsTheReport(t *testing.T) {
	var hits atomic.Int64
	var server *httptest.Server
	die := sync.OnceFunc(func() {
		server.Listener.Close()
		server.CloseClientConnections()
	})
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hit" && hits.Add(1) > 10 {
			die()
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.csv"), "id\n1\n2\n")
	file := write(t, filepath.Join(dir, "own.yaml"), `
data: {file: d.csv}
thresholds: ["errors<10%"]
setup: [{name: before, path: /}]
steps: [{name: one, path: /hit}]
teardown:
  - {name: rows, each_row: true, path: "/${id}"}
  - {name: end, path: /end}
`)
	report := filepath.Join(dir, "r.json")
	code, stdout, stderr := command(t, "run", file, "--target", server.URL, "--rate", unhurried,
		"--connections", "1", "--json", report)
	text, err := os.ReadFile(report)
	if code != exitCrossed || err != nil {
		t.Fatalf("got %d, %v, %s%s, want %d and a report", code, err, stdout, stderr, exitCrossed)
	}
	for _, want := range []string{`"attempts": 20`, `"responses": 10`, `"connection refused": 9`,
		`"what": "teardown succeeds"`,
		`"seen": "teardown: rows: connection `, `; end: connection refused"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	for _, want := range []string{"CROSSED errors<10%: 50% (10 of 20)",
		"CROSSED teardown succeeds: teardown: rows"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("got %s, want %s", stdout, want)
		}
	}
}

// TestWrongFilesAreRefused has files with one mistake each. The error has the line and what to do.
func TestWrongFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty.csv"), "id\n")
	write(t, filepath.Join(dir, "short.csv"), "id,who\n1\n")
	for _, c := range []struct{ text, want string }{
		{"", ":1: is empty"},
		{"steps:\n\t- a", "is no YAML: line 2"},
		{"name: a\n", ":1: missing property 'steps'"},
		{"name: a\nstep: []\n", ":2: additional properties 'step' not allowed"},
		{"steps:\n- {name: a, path: /}\nrate: 5\n", ":3: additional properties 'rate' not allowed"},
		{"steps:\n- name: a\n  path: a\n", ":3: steps.0.path: 'a' does not match"},
		{"steps:\n- name: a\n  path: /\n  expect: ok\n", ":4: steps.0.expect: got string"},
		{"steps:\n- name: a\n  path: /${b}\n", `:3: a: there is no variable "b" here: there are hit`},
		{"steps:\n- name: a\n  path: /\n  json:\n    b: ${c}\n", `:4: a: there is no variable "c"`},
		{"steps:\n- name: a\n  path: /\n  path: /b\n", `:4: "path" is repeated`},
		{"steps:\n- {name: a, path: /, form: {a: b}, body: c}\n", ":2: a: form, json and body"},
		{"steps:\n- name: a\n  path: /\n  save:\n    b: {pattern: b}\n", ":5: pattern: needs one group"},
		{"steps:\n- {name: a, path: /}\nstages: [fast]\n", `:3: stages: "fast": a rate is`},
		{"steps:\n- {name: a, path: /}\nthresholds:\n- b p99<1s\n", `:4: thresholds: "b p99<1s": there is no step b`},
		{"steps:\n- {name: a, path: /}\nusers: 1\nstages: [5]\n", ":3: stages and users"},
		{"steps:\n- {name: a, path: /}\nduration: 5\n", ":3: duration: got number"},
		{"steps:\n- {name: a, path: /}\ndata: {file: none.csv}\n", ":3: open "},
		{"steps:\n- {name: a, path: /}\ndata: {file: empty.csv}\n", ":3: empty.csv: has no rows"},
		{"steps:\n- {name: a, path: /}\ndata: {file: short.csv}\n", ":3: short.csv: record on line 2"},
		{"steps:\n- {name: a, path: /}\nname: bulk\n", ":3: a built-in scenario is called bulk"},
		{"steps:\n- {name: a, path: /}\nvariables:\n  a: ${env.NOT_THERE}\n", ":4: a: set the environment variable NOT_THERE"},
		{"steps:\n- {name: a, path: /, server: admin}\n", ":2: server: only setup"},
		{"setup:\n- {name: b, path: /, server: admin}\nsteps:\n- {name: a, path: /}\n", "give --admin"},
	} {
		file := write(t, filepath.Join(dir, "own.yaml"), c.text)
		code, stdout, stderr := command(t, "run", file, "--target", "http://127.0.0.1:1")
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %d %s%s, want %d with %q", c.text, code, stdout, stderr, exitUsage, c.want)
		}
	}
	file := write(t, filepath.Join(dir, "own.yaml"), "setup:\n- {name: b, path: /}\nsteps:\n- {name: a, path: /}\n")
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	for target, want := range map[string]string{"http://127.0.0.1:1": "connection refused",
		secure.URL: "certificate not trusted", strings.Replace(fixed(t, 0), "http", "https", 1): "no TLS"} {
		if code, _, stderr := command(t, "run", file, "--target", target); code != exitCrossed ||
			!strings.Contains(stderr, "setup: b: ") || !strings.Contains(stderr, want) {
			t.Errorf("got %d %s, want a setup that fails with %s", code, stderr, want)
		}
	}
	for _, args := range [][]string{{"--header", "a"}, {"--header", "a b: c"}, {"--api-key", "a\nb"},
		{"--api-key", "a", "--header", "x-api-key: b"}} {
		if code, _, stderr := command(t, append([]string{"run", "lookup-hot", "--target",
			"http://127.0.0.1:1"}, args...)...); code != exitUsage || !strings.Contains(stderr, args[0]) {
			t.Errorf("%v: got %d %s, want wrong usage", args, code, stderr)
		}
	}
	if code, stdout, _ := command(t, "schema"); code != exitDone || !strings.Contains(stdout, `"steps"`) {
		t.Errorf("got %d %s, want the schema", code, stdout)
	}
}
