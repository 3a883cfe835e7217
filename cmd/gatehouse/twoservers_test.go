package main

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/providers/sqlstore/pgtest"
)

// secondServer starts another server on the same database and returns its base URL.
func (s *fixture) secondServer(t *testing.T) (base string) {
	t.Helper()
	p := start(t, s.env, append([]string{"serve", "--roles=identity"}, anyPorts...)...)
	listen, _ := p.ready(t)
	return "http://" + listen
}

// tokens issues tokens for another code.
func (s *fixture) tokens(t *testing.T) reply {
	t.Helper()
	code, err := s.browser.code(s.base)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ask("/oauth/token", s.redemption(code))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// shows waits until the server at base responds with this status. The tests of package token show
// in virtual time that a server sees another's change within a second.
func (s *fixture) shows(t *testing.T, base, path, token string, want int) {
	t.Helper()
	for from := time.Now(); ; <-time.After(50 * time.Millisecond) {
		status, _, err := s.profile(base, path, token)
		if err != nil {
			t.Fatal(err)
		}
		if status == want {
			return
		}
		if time.Since(from) > waitTimeout {
			t.Fatalf("got %d from %s after %v, want %d", status, path, waitTimeout, want)
		}
	}
}

// TestTwoServers makes requests at two servers on one database.
func TestTwoServers(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newFixture(t, pgtest.Start(t), "--refresh-grace=0s")
	other := s.secondServer(t)
	for _, part := range []struct {
		name string
		test func(t *testing.T, s *fixture, other string)
	}{
		{"one code", testOneCode}, {"changes", testChanges}, {"rotated keys", testRotatedKeys},
		{"refresh", testRefresh}, {"consent", testConsent},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, s, other) })
	}
}

func testOneCode(t *testing.T, s *fixture, other string) {
	bases := []string{s.base, other}
	for range 3 {
		code, err := s.browser.code(s.base)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var winner atomic.Pointer[reply]
		var granted, refused atomic.Int32
		for i := range 64 {
			all.Go(func() {
				got, err := s.postAt(bases[i%2], "/oauth/token", s.redemption(code))
				switch {
				case err == nil && got.status == http.StatusOK:
					granted.Add(1)
					winner.Store(&got)
				case err == nil && got.status == http.StatusBadRequest &&
					got.Error == "invalid_grant":
					refused.Add(1)
				default:
					t.Errorf("got %v and error %v, want 200 or 400 invalid_grant", got, err)
				}
			})
		}
		all.Wait()
		if granted.Load() != 1 || refused.Load() != 63 {
			t.Fatalf("got %d redemptions and %d refusals, want 1 and 63", granted.Load(),
				refused.Load())
		}
		for _, base := range bases {
			s.shows(t, base, "/api/user", winner.Load().AccessToken, http.StatusUnauthorized)
		}
	}
}

// testChanges changes a token, its client or its user at one server while both
// have the token in memory.
func testChanges(t *testing.T, s *fixture, other string) {
	token := s.tokens(t).AccessToken
	steps := []struct {
		what, path string // of the change; "" = none
		profile    string
		want       int
	}{
		{"", "", "/api/user", http.StatusOK},
		{"", "", "/api/user/details", http.StatusForbidden},
		{"approval", "/clients/" + s.client.ClientID + "/approve", "/api/user/details",
			http.StatusOK},
		{"end of approval", "/clients/" + s.client.ClientID + "/unapprove", "/api/user/details",
			http.StatusForbidden},
		{"disabled client", "/clients/" + s.client.ClientID + "/disable", "/api/user",
			http.StatusUnauthorized},
		{"enabled client", "/clients/" + s.client.ClientID + "/enable", "/api/user", http.StatusOK},
	}
	for _, step := range steps {
		if step.path != "" {
			if status, body, err := s.manage(http.MethodPost, step.path, nil); err != nil ||
				status >= 300 {
				t.Fatalf("%s: got %d %s and error %v, want it done", step.what, status, body, err)
			}
			if status, _, err := s.profile(s.base, step.profile, token); err != nil ||
				status != step.want {
				t.Errorf("%s: got %d and error %v at once where it was made, want %d", step.what,
					status, err, step.want)
			}
		}
		s.shows(t, other, step.profile, token, step.want)
	}
	if _, err := s.ask("/oauth/revoke", s.asClient("token", token)); err != nil {
		t.Fatal(err)
	}
	s.shows(t, other, "/api/user", token, http.StatusUnauthorized)
}

// testConsent sends the consent form of one server to the other. Cookies are the same
// for all ports.
func testConsent(t *testing.T, s *fixture, other string) {
	s.browser.query.Set("prompt", "consent")
	fields := url.Values{"decision": {"allow"}}
	target := fillIn(t, s.browser.open(t, http.MethodGet,
		s.base+"/oauth/authorize?"+s.browser.query.Encode(), nil), fields)
	for _, step := range []struct {
		base string
		want int
	}{{s.base, http.StatusSeeOther}, {other, http.StatusForbidden},
		{s.base, http.StatusForbidden}} {
		if got := s.browser.open(t, http.MethodPost, step.base+target.RequestURI(),
			fields); got.StatusCode != step.want {
			t.Errorf("got %s to %q, want %d", got.Status, got.Header.Get("Location"), step.want)
		}
	}
	again := s.browser.open(t, http.MethodGet, other+"/oauth/authorize?"+s.browser.query.Encode(),
		nil)
	if again.StatusCode != http.StatusOK {
		t.Fatalf("got %s, want the question once more", again.Status)
	}
	s.browser.consent(t, again)
}

// testRotatedKeys checks that neither server ever refuses a token of the other.
func testRotatedKeys(t *testing.T, s *fixture, other string) {
	bases := []string{s.base, other}
	old := s.tokens(t).AccessToken
	if status, body, err := s.manage(http.MethodPost, "/keys/rotate", nil); err != nil ||
		status != http.StatusOK {
		t.Fatalf("got %d %s and error %v, want a rotation", status, body, err)
	}
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end) &&
		!t.Failed(); <-time.After(100 * time.Millisecond) {
		for i, issuer := range bases {
			got, err := s.postAt(issuer, "/oauth/token",
				s.asClient("grant_type", "client_credentials"))
			if err != nil || got.status != http.StatusOK {
				t.Fatalf("got %v and error %v, want a token", got, err)
			}
			about, err := s.postAt(bases[1-i], "/oauth/introspect",
				s.asClient("token", got.AccessToken))
			if err != nil || !about.Active {
				t.Errorf("got %v, active %t, and error %v for a token of the other server, want it good",
					about, about.Active, err)
			}
			if status, _, err := s.profile(issuer, "/api/user", old); err != nil ||
				status != http.StatusOK {
				t.Errorf("got %d and error %v for a token from before the rotation, want 200",
					status, err)
			}
		}
	}
}

// testRefresh checks that a token used at one server is used at the other at once.
func testRefresh(t *testing.T, s *fixture, other string) {
	first := s.tokens(t)
	second, err := s.postAt(other, "/oauth/token", s.rotation(first.RefreshToken))
	if err != nil || second.status != http.StatusOK {
		t.Fatalf("got %v and error %v at the other server, want 200", second, err)
	}
	if got, err := s.post("/oauth/token", s.rotation(first.RefreshToken)); err != nil ||
		got.Error != "invalid_grant" {
		t.Errorf("got %v and error %v for a used token, want invalid_grant", got, err)
	}
	if got, err := s.postAt(other, "/oauth/token", s.rotation(second.RefreshToken)); err != nil ||
		!strings.Contains(got.Error, "invalid_grant") {
		t.Errorf("got %v and error %v after a reuse in the family, want invalid_grant", got, err)
	}
	s.shows(t, other, "/api/user", second.AccessToken, http.StatusUnauthorized)
}
