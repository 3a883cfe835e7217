package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

func TestSimIsAnUpstreamForServe(t *testing.T) {
	t.Parallel()
	upstream := start(t, nil, "sim", "--listen=127.0.0.1:0", "--tier=free", "--singles=7",
		"--fault=status,status=503,rate=0.5,times=0")
	_, base, _ := strings.Cut(strings.TrimSpace(upstream.stdout.await(t, "interface at ")), " at ")
	if line := upstream.stdout.await(t, "curl"); !strings.Contains(line, "curl '"+base+"/_sim'") {
		t.Errorf("got %q, want the curl line of the settings", line)
	}
	client := newClient(t, "")
	status, body := get(t, client, base+"/_sim")
	for _, want := range []string{`"tier":"free"`, `"singles_per_window":7`, `"kind":"status"`} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("got %d %s, want 200 and %s", status, body, want)
		}
	}
	request, err := http.NewRequest(http.MethodPut, base+"/_sim",
		strings.NewReader(`{"tier":"open","faults":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Do(request); err != nil || response.Body.Close() != nil ||
		response.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v for a change of the settings, want 200", response, err)
	}

	p := start(t, []string{"IP_PROVIDER=sim", "IP_API_BASE=" + base},
		append([]string{"serve"}, anyPorts...)...)
	listen, _ := p.ready(t)
	if status, body := get(t, client, "http://"+listen+
		"/api/lookup?q=8.8.8.8"); status != http.StatusOK ||
		!strings.Contains(body, "(simulated)") {
		t.Errorf("got %d %s, want 200 and a simulated answer", status, body)
	}
	upstream.signal(t, syscall.SIGTERM)
	if got := upstream.code(t); got != exitDone {
		t.Errorf("got code %d, want 0; stderr:\n%s", got, upstream.stderr)
	}
}

func TestWrongFlagsOfTheSimulator(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ flag, want string }{
		{"--tier=gold", "open, free or pro"},
		{"--latency=fast", "--latency"},
		{"--jitter=-1s", "--jitter"},
		{"--window=1ms", "--window"},
		{"--singles=0", "--singles"},
		{"--batches=x", "--batches"},
		{"--fault=smoke", "smoke"},
		{"--fault=status,status=200", "--fault"},
		{"--listen=here", "--listen"},
	} {
		got := runOnce(t, []string{"GATEHOUSE_LISTEN=a server's"}, "sim", test.flag)
		if got.code != exitUsage || strings.Count(got.stderr, "\n") != 1 ||
			!strings.Contains(got.stderr, test.want) {
			t.Errorf("%s: got code %d, stderr %q, want 2 and one line with %q", test.flag, got.code,
				got.stderr, test.want)
		}
	}
}
