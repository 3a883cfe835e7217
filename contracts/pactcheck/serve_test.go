package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
)

// served has the addresses of pactcheck serve in this process.
type served struct {
	URL      string `json:"url"`
	StateURL string `json:"state_url"`
}

func serve(t *testing.T) served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"serve", "--port", "0", "--json"}, writer, &stderr) }()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("got %d %s, want it to end in order", code, stderr.String())
		}
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	stacktest.Must(t, err)
	var s served
	stacktest.Must(t, json.Unmarshal([]byte(line), &s))
	return s
}

// TestServeCommand verifies pactcheck serve like any other provider.
func TestServeCommand(t *testing.T) {
	s := serve(t)
	pact := write(t, "p.json", pactText("gatehouse", good,
		interaction("over the budget", "the upstream's budget is empty", `{"ok":true}`)))
	got := pactcheck(t, "verify", "--base-url", s.URL, "--state-url", s.StateURL, pact)
	if got.code != 1 || !strings.Contains(got.stdout, "✓ a lookup") ||
		!strings.Contains(got.stdout, "expected 200, got 429") {
		t.Errorf("got %+v, want the state to make a difference", got)
	}
}

// TestUnknownStateOfRemoteService verifies a service whose states are unknown before the run.
func TestUnknownStateOfRemoteService(t *testing.T) {
	s := serve(t)
	got := pactcheck(t, "verify", "--base-url", s.URL, "--state-url", s.StateURL,
		write(t, "p.json", pactText("gatehouse", interaction("x", "the moon is full", "{}"))))
	if got.code != 1 || !strings.Contains(got.stdout, "state: 400 state \"the moon is full\"") {
		t.Errorf("got %+v, want the state as the reason", got)
	}
}

// TestUnknownValueOfRemoteService uses a value that is unknown until the state is set up.
func TestUnknownValueOfRemoteService(t *testing.T) {
	s := serve(t)
	got := pactcheck(t, "verify", "--base-url", s.URL, "--state-url", s.StateURL,
		write(t, "p.json", pactText("gatehouse", strings.Replace(interaction("x", "an access token",
			"{}"), `"request":{`, `"request":{"generators":{"header":{"Authorization":{"type":"ProviderState","expression":"Bearer ${no_such}"}}},`, 1))))
	if got.code != 1 || !strings.Contains(got.stdout, `state: it uses the value "no_such", and its states give access_token`) {
		t.Errorf("got %+v, want the value as the reason", got)
	}
}

func TestStatesCommand(t *testing.T) {
	got := pactcheck(t, "states", "--json")
	var all []contracts.State
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil ||
		len(all) != len(contracts.Catalogue()) || all[1].Parameters == nil {
		t.Errorf("got %+v and error %v, want the catalogue", got, err)
	}
	if got := pactcheck(t, "states"); got.code != 0 ||
		!strings.Contains(got.stdout, "a confidential client") {
		t.Errorf("got %+v, want a table", got)
	}
}

const redirect = `{"description":"a denial","providerState":"a public client","request":{"method":"GET","path":"/oauth/authorize"},
"response":{"status":302,"headers":{"Location":"https://app.example/"},"matchingRules":{"$.header.Location":{"match":"regex","regex":"https://.*"}}}}`

func TestPrepareCommand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "ready")
	file := write(t, "p.json", pactText("gatehouse", redirect))
	if got := pactcheck(t, "prepare", "--out", out, filepath.Dir(file)); got.code != 0 ||
		got.stdout != filepath.Join(out, "p.json")+"\n" {
		t.Fatalf("got %+v, want the name of the copy", got)
	}
	for _, want := range []string{`"X-Pact-Location":"https://app.example/"`,
		`"$.header['X-Pact-Location']":`, `"X-Pact-Hide-Location":"true"`, `"status":302`} {
		if copied := string(read(t, filepath.Join(out, "p.json"))); !strings.Contains(copied,
			want) {
			t.Errorf("got %s, want %s in it", copied, want)
		}
	}
	before := read(t, file)
	if got := pactcheck(t, "prepare", "--out", filepath.Dir(file), file); got.code != 2 ||
		!bytes.Equal(read(t, file), before) {
		t.Errorf("got %+v, want the original to be left alone", got)
	}
	elsewhere, ambiguous := write(t, "p.json", pactText("gatehouse", redirect)),
		filepath.Join(t.TempDir(), "ambiguous")
	if got := pactcheck(t, "prepare", "--out", ambiguous, file, elsewhere); got.code != 2 ||
		!strings.Contains(got.stderr, "two pacts") {
		t.Errorf("got %+v for two pacts of one name, want an error", got)
	}
	if _, err := os.Stat(ambiguous); err == nil {
		t.Error("got a folder for copies after an error, want none")
	}
	if got := pactcheck(t, "prepare", "--out", out, t.TempDir()); got.code != 2 {
		t.Errorf("got %+v for no pacts, want 2", got)
	}
}
