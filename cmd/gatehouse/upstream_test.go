package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// refusing starts an upstream that responds to every request with a status, and counts them.
func refusing(t *testing.T, status int) (url string, count *atomic.Int64) {
	count = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL, count
}

func TestBreakerSettingsReachTheService(t *testing.T) {
	t.Parallel()
	url, count := refusing(t, http.StatusInternalServerError)
	p := start(t, []string{"IP_PROVIDER=sim", "IP_API_BASE=" + url, "GATEHOUSE_BREAKER_FAILURES=2",
		"GATEHOUSE_BREAKER_COOLDOWN=1h"},
		append([]string{"serve"}, anyPorts...)...)
	listen, _ := p.ready(t)
	client := newClient(t, "")
	for _, ip := range []string{"8.8.8.8", "8.8.8.9", "8.8.8.10", "8.8.8.11"} {
		if status, body := get(t, client, "http://"+listen+"/api/lookup?q="+
			ip); status != http.StatusBadGateway {
			t.Errorf("got %d %s, want 502", status, body)
		}
	}
	if got := count.Load(); got != 2 {
		t.Errorf("got %d requests at the failing upstream, want 2", got)
	}
}

func TestForbiddenHoldReachesTheService(t *testing.T) {
	t.Parallel()
	url, count := refusing(t, http.StatusForbidden)
	p := start(t, []string{"IP_PROVIDER=ip-api-pro", "IP_API_KEY=" + secret, "IP_API_BASE=" + url,
		"GATEHOUSE_FORBIDDEN_HOLD=17m"},
		append([]string{"serve"}, anyPorts...)...)
	listen, _ := p.ready(t)
	client := newClient(t, "")
	for _, ip := range []string{"8.8.8.8", "8.8.8.9"} {
		if status, body := get(t, client, "http://"+listen+"/api/lookup?q="+
			ip); status != http.StatusBadGateway {
			t.Errorf("got %d %s, want 502", status, body)
		}
	}
	if got := count.Load(); got != 1 {
		t.Errorf("got %d requests at the upstream that refuses, want 1", got)
	}
	p.stderr.await(t, `"hold":"17m0s"`)
	if got := p.stderr.String(); strings.Contains(got, secret) {
		t.Errorf("got a secret in the log:\n%s", got)
	}
}
