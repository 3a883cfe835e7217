package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// readDemo reads demo.json in dir.
func readDemo(t *testing.T, dir string) demoFile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file demoFile
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDemo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "demo")
	env := []string{"IP_PROVIDER=ip-api-pro",
		"IP_API_BASE=http://127.0.0.1:1"} // settings of a server; a demo has its own upstream
	args := append([]string{"demo", "--dir", dir}, anyPorts...)
	p := start(t, env, args...)
	p.stderr.await(t, "msg=serving")
	file := readDemo(t, dir)

	info, err := os.Stat(filepath.Join(dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("got mode %o of demo.json, want 600", got)
	}
	client := newClient(t, "")
	status, body := get(t, client, file.BaseURL+"/api/lookup?q=8.8.8.8")
	if status != http.StatusOK || !strings.Contains(body, "(simulated)") {
		t.Errorf("got %d %s, want 200 and a simulated answer", status, body)
	}
	if status, body := get(t, client, file.AdminURL+"/readyz"); status != http.StatusOK {
		t.Errorf("got %d %s, want 200", status, body)
	}
	if status, body := get(t, client, file.UpstreamURL+"/_sim"); status != http.StatusOK ||
		!strings.Contains(body, `"singles":1`) {
		t.Errorf("got %d %s, want 200 and one single lookup counted", status, body)
	}
	if banner := p.stdout.String(); !strings.Contains(banner,
		"curl '"+file.BaseURL+"/api/lookup?q=8.8.8.8'") {
		t.Errorf("got banner\n%s\nwant a curl line to try", banner)
	}
	inspectDemo(t, client, p.stdout.String())

	second := runOnce(t, nil, args...)
	if second.code != exitFailed || strings.Count(second.stderr, "\n") != 1 ||
		!strings.Contains(second.stderr, dir) {
		t.Errorf("got code %d, stderr %q of a second demo, want 1 and one line that names the folder",
			second.code, second.stderr)
	}
	if got := readDemo(t, dir); !reflect.DeepEqual(got, file) {
		t.Errorf("got %v in demo.json after a second demo, want %v as before", got, file)
	}

	p.stop(t)
	again := start(t, nil, args...)
	again.stderr.await(t, "msg=serving")
	if got := readDemo(t, dir).BaseURL; got == file.BaseURL || got == "" {
		t.Errorf("got base_url %q after another start, want a new one", got)
	}
}

// inspectDemo does what MCP Inspector does with the address that the demo prints, until a person has to
// sign in.
func inspectDemo(t *testing.T, client *http.Client, banner string) {
	t.Helper()
	_, rest, _ := strings.Cut(banner, "npx @modelcontextprotocol/inspector --transport http --server-url ")
	server, _, _ := strings.Cut(rest, "\n")
	post := func(address, body string, want int) (got map[string]any) {
		response, err := client.Post(address, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if json.NewDecoder(response.Body).Decode(&got); response.StatusCode != want {
			t.Fatalf("got %d %v from %s, want %d", response.StatusCode, got, address, want)
		}
		return got
	}
	read := func(address string) (got map[string]any) {
		if status, body := get(t, client, address); status != http.StatusOK ||
			json.Unmarshal([]byte(body), &got) != nil {
			t.Fatalf("got %d %s from %s, want JSON", status, body, address)
		}
		return got
	}
	post(server, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`, http.StatusUnauthorized)
	base := strings.TrimSuffix(server, "/oauth/userinfo")
	about := read(base + "/.well-known/oauth-protected-resource")
	if about["resource"] != base || !reflect.DeepEqual(about["authorization_servers"], []any{base}) {
		t.Errorf("got %v, want the demo as resource and as its server", about)
	}
	registration, _ := read(base + "/.well-known/oauth-authorization-server")["registration_endpoint"].(string)
	post(registration, `{"redirect_uris":["http://localhost:6274/oauth/callback"],
"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],
"response_types":["code"],"client_name":"MCP Inspector","scope":""}`, http.StatusCreated)
}

func TestDemoBelievesTheForwardingHeaderOfLoopback(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, nil, append([]string{"demo", "--dir", dir}, anyPorts...)...)
	p.stderr.await(t, "msg=serving")
	request, err := http.NewRequest(http.MethodGet, readDemo(t, dir).BaseURL+"/api/my-ip", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "8.8.4.4")
	response, err := newClient(t, "").Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ IP string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.IP != "8.8.4.4" {
		t.Errorf("got ip %q, want 8.8.4.4", answer.IP)
	}
}

func TestDemoWithTheBudgetsOfTheFreeTier(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, nil, append([]string{"demo", "--dir", dir, "--sim-tier=free"}, anyPorts...)...)
	p.stderr.await(t, "msg=serving")
	client := newClient(t, "")
	if status, body := get(t, client, readDemo(t, dir).UpstreamURL+
		"/_sim"); status != http.StatusOK || !strings.Contains(body, `"tier":"free"`) {
		t.Errorf("got %d %s, want 200 and the free tier", status, body)
	}
}

func TestWrongFlagsOfADemo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ flag, want string }{
		{"--sim-tier=gold", "open or free"},
		{"--sim-listen=here", "HOST:PORT"},
		{"--sim-listen=unix:/tmp/s", "HOST:PORT"},
		{"--ip-provider=ip-api", "--ip-provider"},
	} {
		got := runOnce(t, nil, "demo", "--dir="+filepath.Join(t.TempDir(), "demo"), test.flag)
		if got.code != exitUsage || strings.Count(got.stderr, "\n") != 1 ||
			!strings.Contains(got.stderr, test.want) {
			t.Errorf("%s: got code %d, stderr %q, want 2 and one line with %q", test.flag, got.code,
				got.stderr, test.want)
		}
	}
}
