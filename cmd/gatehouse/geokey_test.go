package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var shownKey = regexp.MustCompile(
	`^Key, shown only now:    (gtlk_\w+)\nLine for --geo-keys:    (analytics [0-9a-f]{64})\n$`)

// TestGeoKey makes a key and changes the file of keys of a server that runs.
func TestGeoKey(t *testing.T) {
	t.Parallel() // it mostly waits
	command := start(t, nil, "geo-key", "analytics")
	if got := command.code(t); got != exitDone {
		t.Fatalf("got code %d, want 0; stderr:\n%s", got, command.stderr)
	}
	shown := shownKey.FindStringSubmatch(command.stdout.String())
	if shown == nil {
		t.Fatalf("got %q, want a key and its line", command.stdout)
	}
	key, line := shown[1], shown[2]
	file := filepath.Join(t.TempDir(), "keys")
	set := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("")
	p := start(t, nil, append([]string{"serve", "--ip-provider=sim", "--geo-keys", file,
		"--geo-keys-required=true"}, anyPorts...)...)
	listen, _ := p.ready(t)
	client := newClient(t, "")
	lookUp := func() int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+listen+"/api/lookup?q=8.8.8.8", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Api-Key", key)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if got := lookUp(); got != http.StatusUnauthorized {
		t.Errorf("got %d before the key is in the file, want 401", got)
	}
	for _, step := range []struct {
		file    string
		refused bool // the keys stay as they were
		want    int
	}{
		{"# callers\n" + line + "\n", false, http.StatusOK},
		{"analytics\n", true, http.StatusOK},
		{"", false, http.StatusUnauthorized},
	} {
		set(step.file)
		p.stderr.clear()
		p.signal(t, syscall.SIGHUP)
		p.stderr.await(t, "SIGHUP: settings and certificates are read again")
		log := p.stderr.String()
		if got := strings.Contains(log, "SIGHUP: the API keys stay as they were"); got != step.refused {
			t.Errorf("%q: got a refusal %t, want %t:\n%s", step.file, got, step.refused, log)
		}
		if got := lookUp(); got != step.want {
			t.Errorf("%q: got %d, want %d", step.file, got, step.want)
		}
		if strings.Contains(p.stderr.String(), key) {
			t.Errorf("got a key in the log:\n%s", p.stderr)
		}
	}
	p.signal(t, syscall.SIGTERM)
	if got := p.code(t); got != exitDone {
		t.Errorf("got code %d, want 0; stderr:\n%s", got, p.stderr)
	}
}

// TestGeoKeyName refuses a name that the file could not have.
func TestGeoKeyName(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "geo-key", "data team")
	if got := p.code(t); got != exitUsage || p.stdout.String() != "" {
		t.Errorf("got code %d and %q, want %d and no key", got, p.stdout, exitUsage)
	}
}
