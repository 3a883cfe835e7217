package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/loadtest/lab"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// process is a gatehouse in a process of its own.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *lines
	ended          chan struct{}
}

// gorace keeps a program with the race detector from sleeping a second before it exits.
const gorace = "atexit_sleep_ms=0"

var environ = []string{"GORACE=" + gorace}

// start runs the binary with env as its environment. It is killed at the end of the test.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startTo(t, nil, env, args...)
}

// startTo is start with stderr as a file; nil = the process keeps it.
func startTo(t *testing.T, stderr *os.File, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), stdout: newLines(), stderr: newLines(),
		ended: make(chan struct{})}
	p.cmd.Dir = filepath.Dir(sqlitetest.File(t)) // has the default database
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(slices.Clone(environ), env...), p.stdout,
		p.stderr
	if stderr != nil {
		p.cmd.Stderr = stderr
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		var exit *exec.ExitError
		if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
			fmt.Fprintln(p.stderr, err)
		}
	}()
	t.Cleanup(func() {
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-p.ended
	})
	return p
}

// ready waits until the process serves, and returns its addresses.
func (p *process) ready(t *testing.T) (listen, admin string) {
	t.Helper()
	var line struct {
		Listen  string `json:"listen"`
		Admin   string `json:"admin_listen"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(p.stderr.await(t, `"msg":"serving"`)), &line); err != nil {
		t.Fatal(err)
	}
	if line.Version != lab.Version {
		t.Errorf("got version %q in the start-up line, want %s", line.Version, lab.Version)
	}
	return line.Listen, line.Admin
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// code waits for the end of the process and returns its exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(waitTimeout):
		t.Fatalf("got no end in %v, want one; stderr:\n%s", waitTimeout, p.stderr)
		return -1
	}
}

// stop ends the process in order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if got := p.code(t); got != exitDone {
		t.Errorf("got code %d, want 0; stderr:\n%s", got, p.stderr)
	}
}

// get requests url and returns status and body.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	status, body, err := ask(client, url)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// ask is get for goroutines that must not fail the test.
func ask(client *http.Client, url string) (int, string, error) {
	response, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// newClient returns a client, for a Unix socket if one is named.
func newClient(t *testing.T, socket string) *http.Client {
	transport := &http.Transport{}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: waitTimeout}
}

// anyPorts are the flags that let tests run side by side.
var anyPorts = []string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--ptr=off"}

// slowUpstream responds when it is told to.
type slowUpstream struct {
	*httptest.Server
	arrived chan struct{} // gets a value for each request
	answer  chan struct{} // closed to respond to all of them
}

func newSlowUpstream(t *testing.T) *slowUpstream {
	u := &slowUpstream{arrived: make(chan struct{}, 10), answer: make(chan struct{})}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.arrived <- struct{}{}
		select {
		case <-u.answer:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","query":%q,"city":"Springfield"}`,
			filepath.Base(r.URL.Path))
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *slowUpstream) await(t *testing.T) {
	t.Helper()
	select {
	case <-u.arrived:
	case <-time.After(waitTimeout):
		t.Fatal("got no request to the upstream, want one")
	}
}

func TestServeAnswersFromItsSimulator(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"serve", "--ip-provider=sim"}, anyPorts...)...)
	listen, admin := p.ready(t)
	client := newClient(t, "")
	status, body := get(t, client, "http://"+listen+"/api/lookup?q=8.8.8.8")
	if status != http.StatusOK || !strings.Contains(body, "(simulated)") {
		t.Errorf("got %d %s, want 200 and a simulated answer", status, body)
	}
	if status, body := get(t, client, "http://"+admin+"/readyz"); status != http.StatusOK {
		t.Errorf("got %d %s, want 200", status, body)
	}
	p.signal(t, syscall.SIGINT)
	if got := p.code(t); got != exitDone {
		t.Errorf("got code %d, want 0; stderr:\n%s", got, p.stderr)
	}
	if got := p.stderr.String(); strings.Contains(got, "8.8.8.8") {
		t.Errorf("got a query in the log:\n%s", got)
	}
}

func TestSIGTERMLetsRequestsUnderWayEnd(t *testing.T) {
	t.Parallel()
	upstream := newSlowUpstream(t)
	p := start(t, []string{"IP_PROVIDER=ip-api", "IP_API_BASE=" + upstream.URL},
		append([]string{"serve"}, anyPorts...)...)
	listen, admin := p.ready(t)
	client := newClient(t, "")
	answered := make(chan string, 1)
	go func() {
		status, body, err := ask(client, "http://"+listen+"/api/lookup?q=8.8.8.8")
		answered <- fmt.Sprint(status, " ", body, " ", err)
	}()
	upstream.await(t)

	p.signal(t, syscall.SIGTERM)
	p.stderr.await(t, `"msg":"draining"`)
	if status, body := get(t, client, "http://"+admin+
		"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("got %d %s from /readyz while draining, want 503", status, body)
	}
	select {
	case got := <-answered:
		t.Fatalf("got %s before the upstream answered, want the request to wait", got)
	case <-p.ended:
		t.Fatal("got the end of the process while a request was under way")
	default:
	}
	close(upstream.answer)
	if got := <-answered; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "Springfield") {
		t.Errorf("got %s, want 200 and the upstream's answer", got)
	}
	if got := p.code(t); got != exitDone {
		t.Errorf("got code %d, want 0; stderr:\n%s", got, p.stderr)
	}
}

// TestTrustedPeers warns when everybody is a trusted proxy.
func TestTrustedPeers(t *testing.T) {
	t.Parallel()
	for proxies, warned := range map[string]bool{
		"0.0.0.0/0": true, "10.0.0.0/8,::/0": true, "10.0.0.0/8": false,
	} {
		p := start(t, nil, append([]string{"serve", "--ip-provider=sim",
			"--trusted-proxies=" + proxies}, anyPorts...)...)
		p.ready(t)
		got := strings.Contains(p.stderr.String(), "every peer may say which address")
		if got != warned {
			t.Errorf("%s: got warned %t, want %t; stderr:\n%s", proxies, got, warned, p.stderr)
		}
	}
}

// TestSIGHUP changes the settings file of a server: the log level is in force at once, what needs a
// restart is named, and a wrong file changes nothing.
func TestSIGHUP(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gatehouse.yaml")
	set := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("log-level: info\n")
	p := start(t, nil, append([]string{"serve", "--ip-provider=sim", "--config", file}, anyPorts...)...)
	listen, admin := p.ready(t)
	for _, step := range []struct{ file, want string }{
		{"log-level: info\n", `"changed":[],"need_restart":[]`},
		{"log-level: debug\ngeo-limit: 5\nmax-connections: 7\nmessenger-secret: " +
			strings.Repeat("secret", 6) + "\n",
			`"changed":["log-level"],"need_restart":["geo-limit","max-connections","messenger-secret"]`},
		{"log-level: warn\ngeo-limit: 5\n", `"changed":["log-level"],"need_restart":["geo-limit"]`},
		{"log-level: loud\n", `"msg":"SIGHUP: no setting is changed, since one is wrong","cause":"log-level in ` + file},
		{"log-level: debug\n", `"changed":["log-level"],"need_restart":[]`},
	} {
		set(step.file)
		p.stderr.clear()
		p.signal(t, syscall.SIGHUP)
		if line := p.stderr.await(t, "SIGHUP"); !strings.Contains(line, step.want) {
			t.Errorf("got %s, want %s", line, step.want)
		}
	}
	get(t, newClient(t, ""), "http://"+admin+"/healthz")
	p.stderr.await(t, `"level":"DEBUG"`)
	if strings.Contains(p.stderr.String(), "secret"+"secret") {
		t.Errorf("got a secret in the log:\n%s", p.stderr)
	}
	for _, url := range []string{"http://" + admin + "/readyz", "http://" + listen + "/api/my-ip"} {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode >= 500 {
			t.Errorf("got %d from %s after SIGHUP", response.StatusCode, url)
		}
	}
	p.stop(t)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	upstream := newSlowUpstream(t)
	p := start(t, []string{"IP_PROVIDER=ip-api", "IP_API_BASE=" + upstream.URL},
		append([]string{"serve"}, anyPorts...)...)
	listen, _ := p.ready(t)
	client, cut := newClient(t, ""), make(chan error, 1)
	go func() {
		_, _, err := ask(client, "http://"+listen+"/api/lookup?q=8.8.8.8")
		cut <- err
	}()
	upstream.await(t)
	p.signal(t, syscall.SIGTERM)
	p.stderr.await(t, `"msg":"draining"`)
	p.signal(t, syscall.SIGTERM)
	if got := p.code(t); got != exitFailed {
		t.Errorf("got code %d, want 1", got)
	}
	if err := <-cut; err == nil {
		t.Error("got an answer, want the request cut off")
	}
}

func TestDrainDelayServesOn(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"serve", "--ip-provider=sim", "--drain-delay=1m"},
		anyPorts...)...)
	listen, admin := p.ready(t)
	p.signal(t, syscall.SIGTERM)
	p.stderr.await(t, `"msg":"draining"`)
	client := newClient(t, "")
	if status, body := get(t, client, "http://"+admin+
		"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("got %d %s from /readyz, want 503", status, body)
	}
	if status, body := get(t, client, "http://"+listen+
		"/api/lookup?q=8.8.8.8"); status != http.StatusOK {
		t.Errorf("got %d %s during the delay, want 200", status, body)
	}
}

func TestServeOnUnixSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	public, admin := filepath.Join(dir, "public.sock"), filepath.Join(dir, "admin.sock")
	p := start(t, nil, "serve", "--ip-provider=sim", "--listen=unix:"+public,
		"--admin-listen=unix:"+admin)
	gotPublic, gotAdmin := p.ready(t)
	if gotPublic != "unix:"+public || gotAdmin != "unix:"+admin {
		t.Errorf("got %s and %s in the start-up line, want the sockets", gotPublic, gotAdmin)
	}
	if status, body := get(t, newClient(t, public),
		"http://localhost/api/lookup?q=8.8.8.8"); status != http.StatusOK {
		t.Errorf("got %d %s, want 200", status, body)
	}
	if status, body := get(t, newClient(t, admin),
		"http://localhost/healthz"); status != http.StatusOK {
		t.Errorf("got %d %s, want 200", status, body)
	}
	p.stop(t)
	if _, err := os.Stat(public); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for the socket after the end, want it gone", err)
	}
}

func TestListenerThatCannotBeBound(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, flag := range []string{"--listen", "--admin-listen"} {
		got := runOnce(t, nil, append(append([]string{"serve", "--ip-provider=sim"}, anyPorts...),
			flag+"="+taken.Addr().String())...)
		if got.code != exitFailed || strings.Count(got.stderr, "\n") != 1 ||
			!strings.Contains(got.stderr, flag) {
			t.Errorf("got code %d, stderr %q, want 1 and one line that names %s", got.code,
				got.stderr, flag)
		}
	}
}

func TestWarningsOfAStart(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"GATEHOUSE_PORT=tcp://" + secret, "IP_API_KEY=" + secret},
		append([]string{"serve"}, anyPorts...)...)
	p.ready(t)
	p.stderr.await(t, "non-commercial")
	p.stderr.await(t, "only the provider ip-api-pro sends a key")
	if line := p.stderr.await(t, "GATEHOUSE_PORT"); !strings.Contains(line, `"level":"WARN"`) {
		t.Errorf("got %s, want a warning", line)
	}
	p.stop(t)
	if got := p.stderr.String(); strings.Contains(got, secret) {
		t.Errorf("got a secret in the log:\n%s", got)
	}
}
