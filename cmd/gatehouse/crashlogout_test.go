package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// listener is a client that is told of the ends of sessions. It takes a while for each, and has
// accepted a logout token only if the server waits until then. It refuses some.
type listener struct {
	url string

	mu       sync.Mutex
	requests int
	accepted []string // logout tokens
}

func newListener(t *testing.T) *listener {
	l := &listener{}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// ServeHTTP accepts a logout token after a while, unless this is an eighth request.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := r.PostFormValue("logout_token")
	select {
	case <-time.After(100 * time.Millisecond):
	case <-r.Context().Done(): // the server was killed
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests++; l.requests%8 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	l.accepted = append(l.accepted, token)
}

// tokens returns what was accepted.
func (l *listener) tokens() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.accepted...)
}

// visit is a session of the user at both listeners.
type visit struct {
	*browser
	hint  string             // an id_token
	sids  map[string]*listed // by sid: the end of the session at each listener
	ended fate               // of the session
}

// listed is what a listener knows of a session.
type listed struct {
	at *listener
	id string // jti of the accepted logout token; empty = none
}

// prepareListeners registers two clients that are told of logouts, to which the user consents.
func (s *fixture) prepareListeners(t *testing.T) {
	t.Helper()
	s.listeners = map[string]*listener{}
	for range 2 {
		l := newListener(t)
		status, body, err := s.manage(http.MethodPost, "/clients", map[string]any{"name": "Notes",
			"redirect_uris": []string{callback}, "scopes": []string{"openid"}, "public": true,
			"grants": []string{"authorization_code"}, "backchannel_logout_uri": l.url})
		var client record
		if err != nil || status != http.StatusCreated || json.Unmarshal(body, &client) != nil {
			t.Fatalf("got %d %s and error %v, want a client", status, body, err)
		}
		s.listeners[client.ClientID] = l
		// A change that servers count, however little happens before they are killed.
		status, body, err = s.manage(http.MethodPost, "/clients/"+client.ClientID+"/disable", nil)
		if err == nil && status == http.StatusOK {
			status, body, err = s.manage(http.MethodPost, "/clients/"+client.ClientID+"/enable", nil)
		}
		if err != nil || status != http.StatusOK {
			t.Fatalf("got %d %s and error %v, want the client enabled again", status, body, err)
		}
		b := newBrowser(t, client.ClientID)
		b.query.Set("scope", "openid")
		b.consent(t, s.base, b.signInPatiently(t, s.base))
	}
}

// newVisits signs the user in with further browsers, each at both listeners, until there are 12.
func (s *fixture) newVisits(t *testing.T) {
	t.Helper()
	open := 0
	for _, v := range s.visits {
		if v.ended != done {
			open++
		}
	}
	for range 12 - open {
		v := &visit{browser: newBrowser(t, ""), sids: map[string]*listed{}, ended: pending}
		v.query.Set("scope", "openid")
		for id, l := range s.listeners {
			v.query.Set("client_id", id)
			if v.hint == "" {
				v.signInPatiently(t, s.base)
			}
			code, err := v.code(s.base)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.ask("/oauth/token", url.Values{"grant_type": {"authorization_code"},
				"client_id": {id}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}})
			if err != nil {
				t.Fatal(err)
			}
			v.hint = got.IDToken
			v.sids[said(t, got.IDToken, nil).SID] = &listed{at: l}
		}
		s.visits = append(s.visits, v)
	}
}

// endVisits ends each session that was not ended before, at a random moment, until the server is
// gone. wait waits for it.
func (s *fixture) endVisits(t *testing.T) (wait func()) {
	var people sync.WaitGroup
	for _, v := range s.visits {
		if v.ended == done {
			continue
		}
		people.Go(func() {
			<-time.After(rand.N(600 * time.Millisecond))
			v.ended = unsure
			status, page, err := ask(v.client, s.base+"/oauth/logout?"+
				url.Values{"id_token_hint": {v.hint}}.Encode())
			switch {
			case err != nil: // the server is gone
			case status == http.StatusOK && strings.Contains(page, "You are signed out"):
				v.ended = done
			case status != http.StatusServiceUnavailable:
				t.Errorf("got %d %s at the end of a session, want 200", status, page)
			}
		})
	}
	return people.Wait
}

// checkVisits checks that each acknowledged end of a session reaches both listeners, and that a
// session has ended if and only if they are told.
func (s *fixture) checkVisits(t *testing.T) {
	keys := s.signingKeys(t)
	for _, v := range s.visits {
		if v.ended == unsure && !v.isOpen(t, s.base) {
			v.ended = done
		}
	}
	missing := ""
	for end := time.Now().Add(waitTimeout); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		s.readLogouts(t, keys)
		if missing = s.untold(); missing == "" {
			break
		}
	}
	if missing != "" {
		t.Errorf("got no logout token for %s", missing)
	}
	for _, v := range s.visits {
		for sid, l := range v.sids {
			if v.ended != done && l.id != "" && v.isOpen(t, s.base) {
				t.Errorf("got a logout token for session %s, which is open", sid)
			}
		}
	}
}

// countVisits counts the sessions by what is known of their ends, and the accepted logout tokens.
func (s *fixture) countVisits() string {
	ended, told := map[fate]int{}, 0
	for _, v := range s.visits {
		ended[v.ended]++
	}
	for _, l := range s.listeners {
		told += len(l.tokens())
	}
	return fmt.Sprintf("; %d sessions, %d ended, %d unsure; %d logout tokens", len(s.visits),
		ended[done], ended[unsure], told)
}

// untold describes the ended sessions that a listener was not told of.
func (s *fixture) untold() string {
	var all []string
	for i, v := range s.visits {
		for sid, l := range v.sids {
			if v.ended == done && l.id == "" {
				all = append(all, fmt.Sprintf("session %d (%s)", i, sid))
			}
		}
	}
	return strings.Join(all, ", ")
}

// readLogouts checks the accepted logout tokens and notes them.
func (s *fixture) readLogouts(t *testing.T, keys *jose.JSONWebKeySet) {
	t.Helper()
	for client, l := range s.listeners {
		for _, token := range l.tokens() {
			claims := said(t, token, keys)
			var known *listed
			for _, v := range s.visits {
				if v.sids[claims.SID] != nil {
					known = v.sids[claims.SID]
				}
			}
			if known == nil || known.at != l || claims.Audience != client ||
				known.id != "" && known.id != claims.ID {
				t.Fatalf("got a logout token that says %+v at client %s, want one for each session of it",
					claims, client)
			}
			known.id = claims.ID
		}
	}
}

// isOpen reports whether the browser is signed in.
func (v *visit) isOpen(t *testing.T, base string) bool {
	t.Helper()
	location := v.open(t, base, v.authorize()+"&prompt=none").To
	if location == "" {
		t.Fatal("got no redirect, want a code or login_required")
	}
	return !strings.Contains(location, "login_required")
}

// signed are the claims of an id_token or logout token that the tests read.
type signed struct {
	SID      string `json:"sid"`
	ID       string `json:"jti"`
	Audience string `json:"aud"`
}

// said returns the claims of a JWT. With keys it checks the signature.
func said(t *testing.T, jwt string, keys *jose.JSONWebKeySet) (claims signed) {
	t.Helper()
	parsed, err := jose.ParseSignedCompact(jwt, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	payload := parsed.UnsafePayloadWithoutVerification()
	if keys != nil {
		if payload, err = parsed.Verify(keys); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.SID == "" {
		t.Fatalf("got %s and error %v, want a sid", payload, err)
	}
	return claims
}

// signingKeys reads the key set of the server.
func (s *fixture) signingKeys(t *testing.T) *jose.JSONWebKeySet {
	t.Helper()
	status, body := get(t, s.http, s.base+"/oauth/jwks")
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(body), &keys); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s and error %v, want a key set", status, body, err)
	}
	return &keys
}

// endLeases ends the leases of a killed server, as the time does: its successor goes on at once.
func endLeases(t *testing.T, env []string) {
	t.Helper()
	_, db := openDatabase(t, env)
	defer db.Close()
	if _, err := db.Exec("UPDATE leases SET until = 0"); err != nil {
		t.Fatal(err)
	}
}
