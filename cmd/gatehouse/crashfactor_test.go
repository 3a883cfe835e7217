package main

import (
	"encoding/json"
	"html"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gatehouse/actors/people/passkeytest"
	"gatehouse/loadtest/lab"
)

var passkeyOptions = regexp.MustCompile(`data-options="([^"]*)"`)

// passkeyForm sends the form of a page that goes to a path with what a passkey has made of its options.
func (b *browser) passkeyForm(
	t *testing.T, base string, page *lab.Page, path string, use func(testing.TB, []byte) []byte,
) (again func(base string) *lab.Page, response *lab.Page) {
	t.Helper()
	found := passkeyOptions.FindStringSubmatch(page.Body)
	for _, f := range page.Forms() {
		if found == nil || f.Action != path {
			continue
		}
		form := f.With("current_password", password,
			"credential", string(use(t, []byte(html.UnescapeString(found[1])))))
		again = func(base string) *lab.Page {
			t.Helper()
			p, err := b.at(base).Open(t.Context(), http.MethodPost, path, form)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		return again, again(base)
	}
	t.Fatalf("got %d at %s without a form to %s", page.Status, page.Path, path)
	return nil, nil
}

// countSessions returns how many sessions the user has.
func (s *fixture) countSessions(t *testing.T) int {
	t.Helper()
	var page struct{ Sessions []json.RawMessage }
	_, body, err := s.manage(http.MethodGet, "/users/1/sessions", nil)
	if err != nil || json.Unmarshal(body, &page) != nil {
		t.Fatalf("got %s and error %v, want the sessions", body, err)
	}
	return len(page.Sessions)
}

// kill kills the server and starts another on its database.
func (s *fixture) kill(t *testing.T) {
	t.Helper()
	s.server.signal(t, syscall.SIGKILL)
	<-s.server.ended
	s.http.CloseIdleConnections()
	s.browser.client.CloseIdleConnections()
	s.serve(t)
}

// TestSignInOutlivesKills kills the server between each challenge and its answer: the next one takes the
// answer, by passkey and as the second step by security key. After another kill, no answer counts again.
func TestSignInOutlivesKills(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := freeAddress(t)
			_, port, _ := net.SplitHostPort(at)
			origin := "http://localhost:" + port
			s := newFixture(t, database(t), "--listen="+at, "--base-url="+origin)
			passkey, key := passkeytest.New(t, origin), passkeytest.New(t, origin)
			key.Flags = passkeytest.UserPresent
			page := s.browser.send(t, s.base, s.browser.open(t, s.base, "/me/passkeys/add"),
				"current_password", password)
			s.kill(t)
			_, page = s.browser.passkeyForm(t, s.base, page, "/me/passkeys/add", passkey.Create)
			if page.Status != http.StatusOK || page.Path == "/me/passkeys/add" {
				t.Fatalf("got %d at %s, want a passkey", page.Status, page.Path)
			}
			page = s.browser.open(t, s.base, "/me/factors/key")
			s.kill(t)
			_, page = s.browser.passkeyForm(t, s.base, page, "/me/factors/key", key.Create)
			if !strings.Contains(page.Body, "Two-step sign-in is on.") {
				t.Fatalf("got %d at %s, want a security key", page.Status, page.Path)
			}
			for _, row := range []struct {
				path   string
				key    *passkeytest.Key
				second bool
			}{{"/login/passkey", passkey, false}, {"/login/factor/key", key, true}} {
				b := newBrowser(t, s.client.ClientID)
				page := b.open(t, s.base, "/login")
				if row.second {
					page = b.send(t, s.base, page, "email", person, "password", password)
				}
				s.kill(t)
				again, page := b.passkeyForm(t, s.base, page, row.path, row.key.Get)
				if page.Status != http.StatusOK || page.Path != "/me" {
					t.Errorf("%s: got %d at %s, want the account", row.path, page.Status, page.Path)
				}
				before := s.countSessions(t)
				s.kill(t)
				again(s.base)
				if n := s.countSessions(t); n != before {
					t.Errorf("%s, again: got %d sessions, want %d", row.path, n, before)
				}
			}
			s.server.stop(t)
		})
	}
}
