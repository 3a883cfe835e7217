package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/providers/sqlstore/sqlitetest"
)

const webhookSecret = "0123456789abcdef0123456789abcdef"

// siem receives the audit trail.
type siem struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	requests int
	faulty   bool // every other request fails
	all      []audit.Event
}

func newSIEM(t *testing.T) *siem {
	r := &siem{t: t}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ServeHTTP accepts events, unless it is faulty.
func (r *siem) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	body, err := io.ReadAll(h.Body)
	if err != nil {
		return // the server was killed
	}
	at, signature, _ := strings.Cut(strings.TrimPrefix(h.Header.Get("X-Gatehouse-Signature"), "t="),
		",v1=")
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	fmt.Fprintf(mac, "%s.%s", at, body)
	if hex.EncodeToString(mac.Sum(nil)) != signature {
		r.t.Errorf("got signature %q, want that of the body", signature)
	}
	var batch struct {
		ID     string
		Events []audit.Event
	}
	if err := json.Unmarshal(body, &batch); err != nil || batch.ID == "" ||
		batch.ID != h.Header.Get("Idempotency-Key") {
		r.t.Errorf("got error %v and id %q, want a batch with its id", err, batch.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.faulty && r.requests%2 == 0 {
		if r.requests%4 == 0 {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.all = append(r.all, batch.Events...)
}

// events returns what was accepted.
func (r *siem) events() []audit.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func (r *siem) setFaulty(faulty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faulty = faulty
}

// receives waits until each event of the trail behind after has arrived. They came first in order.
func (r *siem) receives(t *testing.T, s *fixture, after int64) {
	t.Helper()
	// Reading the trail takes a good part of a processor, which the servers need.
	for end := time.Now().Add(waitTimeout); ; <-time.After(500 * time.Millisecond) {
		got := map[int64]int{}
		last := int64(0)
		for _, e := range r.events() {
			if _, again := got[e.Number]; !again && e.Number < last {
				t.Fatalf("got event %d after %d, want them in order", e.Number, last)
			}
			got[e.Number] = e.Count
			last = max(last, e.Number)
		}
		var missing []int64
		for _, e := range events(t, s.operatorEnv()) {
			if e.Number > after && got[e.Number] != e.Count {
				missing = append(missing, e.Number)
			}
		}
		if missing == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got no events %v; the server says:\n%s", missing, s.server.stderr)
		}
	}
}

// flags make a server send its trail to r.
func (r *siem) flags() []string {
	return []string{"--audit-webhook=" + r.url, "--audit-webhook-secret=" + webhookSecret}
}

// changes makes events at a server until it is gone or stop is closed.
func (s *fixture) changes(admin string, stop <-chan struct{}) (wait func()) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(60 * time.Millisecond):
				}
				path := fmt.Sprintf("%s/admin/v1/clients/%s", admin, s.client.ClientID)
				request, err := http.NewRequest(http.MethodPatch, path,
					strings.NewReader(fmt.Sprintf(`{"name":"Shop %d %d"}`, i, n)))
				if err != nil {
					return
				}
				request.Header.Set("Authorization", "Bearer "+s.token)
				request.Header.Set("Content-Type", "application/json")
				status, _, err := s.do(request)
				if err != nil {
					return
				}
				if status == http.StatusOK && i == 0 && n%5 == 0 { // an event of another subject
					_, _, _ = s.manage(http.MethodPost, "/clients", map[string]any{
						"name": fmt.Sprint("Other ", n), "scopes": []string{},
						"grants": []string{"client_credentials"}})
				}
			}
		})
	}
	return all.Wait
}

// TestAuditWebhookSurvivesCrashes kills the server while events are made and a receiver fails.
func TestAuditWebhookSurvivesCrashes(t *testing.T) {
	t.Parallel() // it mostly waits
	r := newSIEM(t)
	s := newFixture(t, sqlitetest.URL(t), r.flags()...)
	first := events(t, s.operatorEnv())[0].Number // made by init, before the webhook was new
	r.setFaulty(true)
	for range 2 {
		wait := s.changes(s.admin, nil)
		<-time.After(time.Second + rand.N(time.Second))
		s.server.signal(t, syscall.SIGKILL)
		<-s.server.ended
		wait()
		s.http.CloseIdleConnections()
		s.serve(t)
	}
	r.setFaulty(false)
	r.receives(t, s, first)
	if got := r.events(); len(got) == 0 || got[0].Number <= first {
		t.Errorf("got %d events, want those after %d", len(got), first)
	}
	began := time.Now()
	s.server.signal(t, syscall.SIGTERM)
	if code := s.server.code(t); code != exitDone {
		t.Errorf("got code %d after %v, want 0", code, time.Since(began))
	}
}

func TestAuditWebhookSettings(t *testing.T) {
	t.Parallel()
	secret := "--audit-webhook-secret=" + webhookSecret
	for _, row := range []struct {
		args []string
		says string
	}{
		{[]string{"--audit-webhook=http://siem.example/in?key=hidden", secret}, "https"},
		{[]string{"--audit-webhook=siem.example", secret}, "https"},
		{[]string{"--audit-webhook=https://siem.example/#a", secret}, "fragment"},
		{[]string{"--audit-webhook=https://u:hidden@siem.example/"}, "GATEHOUSE_AUDIT_WEBHOOK_SECRET"},
		{[]string{"--audit-webhook=https://siem.example/", "--audit-webhook-secret=hidden"}, "32"},
	} {
		got := runOnce(t, nil, append([]string{"serve"}, row.args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, row.says) ||
			strings.Contains(got.stderr, "hidden") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: got code %d, stderr %q, want 2 and a line with %q", row.args, got.code,
				got.stderr, row.says)
		}
	}
}
