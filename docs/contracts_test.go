//go:build pact

package docs_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/contracts/broker/brokertest"
)

// TestContractsPage runs the commands of contracts.md in an empty folder beside a checkout. The
// folder is the same each time, as the Go command builds anew for each place of the library. Then
// it runs the pipelines with a stand-in for the broker.
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
	pipelines := newPipelines(t, p, folder, checkout)
	checkArchive(t, folder, pipelines.archive)
	pipelines.run(t)
}

// checkArchive requires that the archive has all it needs: its program runs elsewhere, without
// environment. Then the program compares the archive with that of a release before, which had
// another document and a pact of which one interaction no longer holds.
func checkArchive(t *testing.T, folder, archive string) {
	t.Helper()
	unpacked, older := filepath.Join(folder, "pactcheck"), filepath.Join(t.TempDir(), "older")
	elsewhere := t.TempDir()
	for _, name := range []string{"STATES.md", "NOTICES.txt", "libpact_ffi.LICENSE", "LICENSE",
		"README.md", "pacts/oauth-app-gatehouse.json"} { // the page uses the others
		if _, err := os.Stat(filepath.Join(unpacked, name)); err != nil {
			t.Errorf("got %v, want %s in the archive", err, name)
		}
	}
	document, err := os.ReadFile(filepath.Join(unpacked, "openapi.yaml"))
	pact, err2 := os.ReadFile(filepath.Join(folder, "wrong.json"))
	err = errors.Join(err, err2, os.MkdirAll(filepath.Join(older, "pacts"), 0o700),
		os.WriteFile(filepath.Join(older, "openapi.yaml"), []byte(strings.Replace(string(document),
			"ok: {type: boolean, const: true}",
			"ok: {type: boolean, const: true}\n        planet: {type: string}", 1)), 0o600),
		os.WriteFile(filepath.Join(older, "pacts", "p.json"), pact, 0o600),
		exec.CommandContext(t.Context(), "tar", "-C", filepath.Dir(older), "-czf", older+".tar.gz",
			"older").Run())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ args, want []string }{
		{[]string{"licenses"}, []string{"github.com/oasdiff/oasdiff"}},
		{[]string{"verify", filepath.Join(folder, "greeter", "pacts")}, []string{"4 verified, 0 failed"}},
		{[]string{"diff", older + ".tar.gz", archive}, []string{"breaks consumers: GET /api/lookup: ",
			"body $.location.land is missing (verify); relied on by greeter: a lookup\n"}},
	} {
		command := exec.CommandContext(t.Context(), filepath.Join(unpacked, "pactcheck"), row.args...)
		command.Dir, command.Env = elsewhere, []string{"TMPDIR=" + elsewhere}
		out, _ := command.CombinedOutput() // diff ends with 1
		for _, want := range row.want {
			if !strings.Contains(string(out), want) ||
				strings.Contains(string(out), "relied on by greeter: a request") {
				t.Errorf("%s: got %d %s, want %q", row.args[0], command.ProcessState.ExitCode(), out, want)
			}
		}
	}
}

// pipelines are the commands for CI, which need a broker.
type pipelines struct {
	consumer, provider, webhook, triggered string // scripts
	folder, bin, archive                   string
	broker                                 *brokertest.Broker
	env                                    []string
}

// newPipelines reads the pipelines of a page. Programs that a pipeline installs are there already:
// shims take their place.
func newPipelines(t *testing.T, p *page, folder, checkout string) *pipelines {
	t.Helper()
	var scripts []string
	for _, b := range p.blocks {
		if b.language != "yaml" {
			continue
		}
		script := "set -e\n"
		for line := range strings.Lines(b.text) {
			command, ok := strings.CutPrefix(line, "- run: ")
			if !ok {
				t.Fatalf("got %s in a pipeline, want a command", line)
			}
			script += command
		}
		// A test does not wait for minutes.
		scripts = append(scripts, strings.NewReplacer("--retry-while-unknown 30 --retry-interval 10",
			"--retry-while-unknown 20 --retry-interval 1").Replace(script))
	}
	if len(scripts) != 4 {
		t.Fatalf("got %d pipelines, want 4", len(scripts))
	}
	s := &pipelines{scripts[0], scripts[1], scripts[2], scripts[3], folder, t.TempDir(),
		"", brokertest.New(t), nil}
	s.broker.WantToken("secret")
	client := filepath.Join(checkout, "contracts/tools/node_modules/.bin/pact-broker")
	gatehouse := filepath.Join(folder, "ci")
	for name, script := range map[string]string{
		filepath.Join(s.bin, "npx"): "#!/bin/sh\n[ \"$1\" = pact-broker ] && shift && exec " + client + " \"$@\"\n",
		filepath.Join(s.bin, "npm"): "#!/bin/sh\n", filepath.Join(s.bin, "make"): "#!/bin/sh\n",
		filepath.Join(s.bin, "git"): "#!/bin/sh\n", filepath.Join(s.bin, "go"): "#!/bin/sh\n",
		filepath.Join(folder, "greeter", "deploy"): "#!/bin/sh\necho deployed\n",
		filepath.Join(gatehouse, "deploy"):         "#!/bin/sh\necho deployed\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(gatehouse, "bin"), 0o755),
			os.WriteFile(name, []byte(script), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(folder, "pactcheck", "pactcheck"),
		filepath.Join(gatehouse, "bin", "pactcheck")); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(folder, "pactcheck-*.tar.gz"))
	if err != nil || len(archives) != 2 {
		t.Fatalf("got %q and error %v, want two archives", archives, err)
	}
	s.archive = slices.MaxFunc(archives, func(a, b string) int { // the other is empty
		return cmp.Compare(size(t, a), size(t, b))
	})
	s.env = append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"), "PACTCHECK="+s.archive,
		"PACT_BROKER_BASE_URL="+s.broker.URL, "PACT_BROKER_TOKEN=secret",
		"PACT_DO_NOT_TRACK=true", "NO_COLOR=1")
	return s
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// step runs a script with variables and returns its output.
func (s *pipelines) step(t *testing.T, script, folder string, variables ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir, command.Env = filepath.Join(s.folder, folder), append(slices.Clone(s.env),
		variables...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// run deploys a first pact, then a changed one, which the broker has verified by its webhook.
func (s *pipelines) run(t *testing.T) {
	t.Helper()
	deployed := func(name, want string) {
		t.Helper()
		if got := s.broker.Deployed(name, "production"); got != want {
			t.Errorf("got %s %s in production, want %s", name, got, want)
		}
	}
	impatient := strings.Replace(s.consumer, "--retry-while-unknown 20", "--retry-while-unknown 1", 1)
	out, err := s.step(t, impatient, "greeter", "COMMIT=c1", "BRANCH=main")
	if err == nil || !strings.Contains(out, "no version is currently recorded as deployed") {
		t.Fatalf("got %v %s, want no without a gatehouse in production", err, out)
	}
	deployed("greeter", "")
	out, err = s.step(t, s.provider, "ci", "COMMIT=g1", "BRANCH=main")
	if err != nil || !strings.Contains(out, "4 verified, 0 failed") {
		t.Fatalf("got %v %s, want gatehouse to be deployed", err, out)
	}
	deployed("gatehouse", "g1")
	verified := make(chan string, 1)
	trigger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ Pact, Commit, Branch string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("got %v, want JSON of the webhook", err)
		}
		out, err := s.step(t, s.triggered, "ci", "PACT_URL="+body.Pact, "COMMIT="+body.Commit,
			"BRANCH="+body.Branch)
		if err != nil {
			t.Errorf("got %v %s, want the pact verified", err, out)
		}
		verified <- body.Commit + " on " + body.Branch
	}))
	defer trigger.Close()
	if out, err := s.step(t, s.webhook, "ci", "CI_TRIGGER="+trigger.URL); err != nil {
		t.Fatalf("got %v %s, want a webhook", err, out)
	}
	if out, err := s.step(t, s.consumer, "greeter", "COMMIT=c1", "BRANCH=main"); err != nil {
		t.Fatalf("got %v %s, want yes after gatehouse's pipeline", err, out)
	}
	deployed("greeter", "c1")
	file := filepath.Join(s.folder, "greeter", "pacts", "greeter-gatehouse.json")
	text, err := os.ReadFile(file)
	if err := errors.Join(err, os.WriteFile(file, []byte(strings.Replace(string(text), "a lookup\"",
		"a changed lookup\"", 1)), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := s.step(t, s.consumer, "greeter", "COMMIT=c2", "BRANCH=main"); err != nil {
		t.Fatalf("got %v %s, want yes after the webhook's verification", err, out)
	}
	if got := <-verified; got != "g1 on main" {
		t.Errorf("got a verification by %s, want g1 on main", got)
	}
	deployed("greeter", "c2")
	s.broker.Deploy("gatehouse", "g2", "test") // a version that has verified nothing
	_, last, _ := strings.Cut(s.provider, "npx pact-broker can-i-deploy")
	out, err = s.step(t, "set -e\nnpx pact-broker can-i-deploy"+last, "ci", "COMMIT=g2",
		"BRANCH=main")
	if err == nil || !strings.Contains(out, "no verified pact between version c2") {
		t.Errorf("got %v %s, want no for a gatehouse without results", err, out)
	}
}
