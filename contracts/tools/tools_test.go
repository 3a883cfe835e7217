//go:build pact

package tools_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// built is the folder with pactcheck.
var built string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	folder, err := os.MkdirTemp("", "gatehouse-tools-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	built = folder
	if out, err := exec.Command("go", "build", "-tags", "pact,netgo,osusergo", "-trimpath", "-o",
		filepath.Join(folder, "pactcheck"),
		"../pactcheck").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pactcheck: %v: %s\n", err, out)
		return 1
	}
	return m.Run()
}

// limit returns a context that ends shortly before the time limit of the tests, so that no program
// outlives them.
func limit(t *testing.T) (context.Context, context.CancelFunc) {
	if deadline, ok := t.Deadline(); ok {
		return context.WithDeadline(t.Context(), deadline.Add(-10*time.Second))
	}
	return context.WithCancel(t.Context())
}

// run runs a program and returns its output and exit code.
func run(t *testing.T, folder, name string, args ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := limit(t)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = folder, append(os.Environ(), "PACT_DO_NOT_TRACK=true", "NO_COLOR=1",
		// verifiers read certificates for each interaction: nothing here is TLS
		"SSL_CERT_FILE="+os.DevNull, "SSL_CERT_DIR="+os.DevNull)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: got %v", name, err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// tool returns the path of a program that npm has installed.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("got no %s: scripts/contract-tools installs it", name)
	}
	return path
}

func pactcheck(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	return run(t, ".", filepath.Join(built, "pactcheck"), args...)
}

// pacts returns the committed pacts with gatehouse.
func pacts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../pacts/*-gatehouse.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("got %v and error %v, want the pacts of two consumers", files, err)
	}
	return files
}

// serve runs pactcheck serve until the test ends.
func serve(t *testing.T) (base, states string) {
	t.Helper()
	command := exec.Command(filepath.Join(built, "pactcheck"), "serve", "--port", "0", "--json", "--log")
	var log bytes.Buffer
	command.Stderr = &log
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("got %v, want pactcheck serve to end in order", err)
		}
		for line := range strings.Lines(log.String()) {
			if t.Failed() && strings.Contains(line, "level=ERROR") {
				t.Log(line)
			}
		}
	})
	var addresses struct {
		URL      string `json:"url"`
		StateURL string `json:"state_url"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err := errors.Join(err, json.Unmarshal(line, &addresses)); err != nil {
		t.Fatalf("got %s and error %v, want addresses", line, err)
	}
	return addresses.URL, addresses.StateURL
}

// verdict is the report of the verifier of pact-cli.
type verdict struct {
	InteractionResults []struct{ Description, Result string }
}

// verifyElsewhere runs that verifier on pacts. It names each file: the verifier finds no pacts in a
// folder.
func verifyElsewhere(t *testing.T, base, states string, files ...string) (v verdict, output string,
	code int) {
	t.Helper()
	ready := t.TempDir()
	if out, code := pactcheck(t, append([]string{"prepare", "--out", ready},
		files...)...); code != 0 {
		t.Fatalf("got %d %s, want copies", code, out)
	}
	host, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"--hostname", host, "--port", port, "--state-change-url", states,
		"--state-change-teardown", "--loglevel", "error", "--json", report}
	for _, file := range files {
		args = append(args, "--file", filepath.Join(ready, filepath.Base(file)))
	}
	output, code = run(t, ready, tool(t, "pact-verifier"), args...)
	text, err := os.ReadFile(report)
	if err := errors.Join(err, json.Unmarshal(text, &v)); err != nil {
		t.Fatalf("got %v, want a report: %s", err, output)
	}
	return v, output, code
}

// TestVerifierOfPactCLI verifies interactions of the committed pacts with an independent verifier,
// which changes states by HTTP: the first one with each state and parameters, and the first without a
// state. TestCommittedPacts verifies all. Of the admin API, which TestMutants verifies with our own
// engine, it looks at one interaction of twenty.
func TestVerifierOfPactCLI(t *testing.T) {
	base, states := serve(t)
	folder, want, files, seen := t.TempDir(), 0, []string(nil), map[string]bool{}
	for _, file := range pacts(t) {
		var pact map[string]any
		text, err := os.ReadFile(file)
		if err := errors.Join(err, json.Unmarshal(text, &pact)); err != nil {
			t.Fatal(err)
		}
		var kept []any
		for i, one := range pact["interactions"].([]any) {
			interaction := one.(map[string]any)
			path := interaction["request"].(map[string]any)["path"].(string)
			if i%20 > 0 && strings.HasPrefix(path, "/admin/") {
				continue
			}
			given, _ := interaction["providerStates"].([]any)
			fresh := false
			for _, state := range append(given, nil)[:max(1, len(given))] {
				use := fmt.Sprint(state) // the members of maps are sorted
				fresh, seen[use] = fresh || !seen[use], true
			}
			if fresh {
				kept = append(kept, one)
			}
		}
		pact["interactions"], want = kept, want+len(kept)
		text, err = json.Marshal(pact)
		file = filepath.Join(folder, filepath.Base(file))
		if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	v, out, code := verifyElsewhere(t, base, states, files...)
	if code != 0 || len(v.InteractionResults) != want || want < 100 {
		t.Errorf("got %d and %d interactions, want all of %d verified:\n%s", code,
			len(v.InteractionResults), want, out[max(0, len(out)-4000):])
	}
	for _, one := range v.InteractionResults {
		if one.Result != "OK" {
			t.Errorf("%s: got %s, want OK", one.Description, one.Result)
		}
	}
}

// wanting is a pact that gatehouse does not fulfil.
const wanting = `{"consumer":{"name":"shop"},"provider":{"name":"gatehouse"},"interactions":[{"type":"Synchronous/HTTP",
"description":"a lookup of a planet","providerStates":[{"name":"the upstream knows a query","params":{"query":"8.8.8.8"}}],
"request":{"method":"GET","path":"/api/lookup","query":{"q":["8.8.8.8"]}},
"response":{"status":200,"body":{"contentType":"application/json","encoded":false,"content":{"ok":"yes","location":{"planet":"Earth"}}}}}],
"metadata":{"pactSpecification":{"version":"4.0"}}}`

// TestFailureCanBeActedOn requires that the output names what was expected, what came and where.
func TestFailureCanBeActedOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop-gatehouse.json")
	if err := os.WriteFile(file, []byte(wanting), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := pactcheck(t, "verify", file)
	if code != 1 {
		t.Errorf("got %d, want 1", code)
	}
	for _, want := range []string{"✗ a lookup of a planet  [GET /api/lookup]",
		`body $.ok: expected "yes", got true`, "body $.location", "planet",
		`given:    the upstream knows a query {"query":"8.8.8.8"}`,
		`response: 200 {"ok":true,"query":"8.8.8.8"`, "0 verified, 1 failed"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %s, want %q in it", out, want)
		}
	}
	base, states := serve(t)
	if _, out, code := verifyElsewhere(t, base, states, file); code != 1 ||
		!strings.Contains(out, "planet") {
		t.Errorf("pact-cli: got %d %s, want it to fail as well", code, out)
	}
}

// finding is a result of the comparator for one interaction.
type finding struct {
	Type, Code, Message string
	MockDetails         struct{ InteractionDescription string }
	SpecDetails         struct{ Location string }
}

// TestOpenAPIAgreesWithPacts compares the pacts with the document that the service serves. A
// request may violate the document if the pact expects an error. The admin API is left to the check
// of pactcheck: this comparator takes every open object for a closed one, and wants X-Request-Id,
// which all responses have, at each of them.
func TestOpenAPIAgreesWithPacts(t *testing.T) {
	expectsError := map[string]bool{}
	for _, file := range pacts(t) {
		var pact struct {
			Interactions []struct {
				Description string
				Response    struct {
					Status  int
					Headers map[string][]string
				}
			}
		}
		text, err := os.ReadFile(file)
		if err := errors.Join(err, json.Unmarshal(text, &pact)); err != nil {
			t.Fatal(err)
		}
		for _, i := range pact.Interactions {
			expectsError[i.Description] = i.Response.Status >= 400 ||
				strings.Contains(strings.Join(i.Response.Headers["Location"], ""), "error=")
		}
	}
	// It ends before a pipe has taken all that it says.
	said := filepath.Join(t.TempDir(), "findings")
	run(t, ".", "sh", append([]string{"-c", `"$@" >"$0"`, said, tool(t, "openapi-pact-comparator"),
		"../../httpedge/openapi.yaml"}, pacts(t)...)...)
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	out, compared := string(text), 0
	for line := range strings.Lines(out) {
		var all []finding
		if err := json.Unmarshal([]byte(line), &all); err != nil {
			t.Fatalf("got %.300s, want findings: %v", line, err)
		}
		compared++
		for _, f := range all {
			name := f.MockDetails.InteractionDescription
			if strings.HasPrefix(f.SpecDetails.Location, "[root].paths./admin/") {
				continue
			}
			if f.Type == "error" && (!strings.HasPrefix(f.Code, "request.") || !expectsError[name]) {
				t.Errorf("%s: %s (%s)", name, f.Message, f.SpecDetails.Location)
			}
		}
	}
	if compared != len(pacts(t)) {
		t.Errorf("got %d pacts compared, want %d: %.300s", compared, len(pacts(t)), out)
	}
}

// TestComparatorFindsDisagreement checks the comparator of the previous test.
func TestComparatorFindsDisagreement(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop-gatehouse.json")
	if err := os.WriteFile(file, []byte(wanting), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, ".", tool(t, "openapi-pact-comparator"), "../../httpedge/openapi.yaml",
		file); code != 1 || !strings.Contains(out, "planet") {
		t.Errorf("got %d %s, want a disagreement about planet", code, out)
	}
}

// TestConsumerInJavaScript runs the example's consumer test and verifies its pact.
func TestConsumerInJavaScript(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"package.json", "client.js", "client.test.js"} {
		text, err := os.ReadFile(filepath.Join("../jsconsumer", name))
		if err := errors.Join(err, os.WriteFile(filepath.Join(folder, name), text,
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := filepath.Abs("../jsconsumer/node_modules")
	if err := errors.Join(err, os.Symlink(modules,
		filepath.Join(folder, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, folder, "npm", "test"); code != 0 || !strings.Contains(out, "fail 0") {
		t.Fatalf("got %d %s, want the consumer test to pass", code, out)
	}
	out, code := pactcheck(t, "verify", filepath.Join(folder, "pacts"))
	if code != 0 || !strings.Contains(out, "7 interactions of 1 pact: 7 verified, 0 failed") {
		t.Errorf("got %d %s, want the pact verified", code, out)
	}
}

// TestLockfilesNameNoHost requires lockfiles without addresses: each machine chooses its npm
// registry.
func TestLockfilesNameNoHost(t *testing.T) {
	for _, folder := range []string{".", "../jsconsumer", "../pactlib"} {
		text, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"resolved"`) ||
			!strings.Contains(string(text), `"integrity": "sha512-`) {
			t.Errorf("%s: got addresses of packages or no sums, want sums alone", folder)
		}
	}
}
