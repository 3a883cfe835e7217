package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// postbox is a messenger's webhook. It takes a while for each message, and has accepted one only if
// the server waits until then.
type postbox struct {
	url string

	mu       sync.Mutex
	accepted map[string]bool // kind and recipient
}

func newPostbox(t *testing.T) *postbox {
	p := &postbox{accepted: map[string]bool{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// ServeHTTP accepts a message.
func (p *postbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var m struct{ Kind, To string }
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return
	}
	select {
	case <-time.After(50 * time.Millisecond):
	case <-r.Context().Done(): // the server was killed
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted[m.Kind+" "+m.To] = true
}

// missing returns those of all that were not accepted.
func (p *postbox) missing(all []string) (missing []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range all {
		if !p.accepted[m] {
			missing = append(missing, m)
		}
	}
	return missing
}

var usersChanged atomic.Int64

// userChange is a change of a user's credentials that people have to hear of.
type userChange struct {
	path string         // below that of the user
	body map[string]any // that is sent
	says string         // what the user's record has after it
	told []string       // kind and recipient of the notices
}

// changesOf returns the changes that user number n is to go through: another number, or an e-mail
// address that then is replaced, or gets a password.
func changesOf(n int64) (phone string, all []userChange) {
	phone, other := fmt.Sprintf("+491512%07d", n), fmt.Sprintf("+491513%07d", n)
	first, second := fmt.Sprintf("first%d@example.com", n), fmt.Sprintf("second%d@example.com", n)
	added := userChange{body: map[string]any{"email": first}, says: first,
		told: []string{"email_added " + phone, "email_added " + first}}
	switch n % 3 {
	case 0:
		return phone, []userChange{{body: map[string]any{"phone_number": other}, says: other,
			told: []string{"address_left " + phone, "phone_changed " + other}}}
	case 1:
		return phone, []userChange{added, {body: map[string]any{"email": second}, says: second,
			told: []string{"address_left " + first, "email_changed " + second,
				"email_changed " + phone}}}
	}
	return phone, []userChange{added, {path: "/reset-password",
		body: map[string]any{"password": "tidal-otter-9-lamps"}, says: `"has_password":true`,
		told: []string{"password_set " + first, "password_set " + phone}}}
}

// changeUser creates a user and changes its credentials: all channels have to hear of it.
func (s *fixture) changeUser(l *ledger) error {
	phone, changes := changesOf(usersChanged.Add(1))
	status, body, err := s.manage(http.MethodPost, "/users",
		map[string]any{"name": "User", "phone_number": phone})
	if err != nil {
		return err
	}
	var user record
	if status == http.StatusServiceUnavailable {
		return nil
	}
	if status != http.StatusCreated || json.Unmarshal(body, &user) != nil {
		return fmt.Errorf("%w: got %d for a new user, want 201", errUnexpected, status)
	}
	l.note(func() { l.changes[user.ID] = changes })
	for _, c := range changes {
		method, want := http.MethodPatch, http.StatusOK
		if c.path != "" {
			method, want = http.MethodPost, http.StatusNoContent
		}
		status, _, err = s.manage(method, fmt.Sprintf("/users/%d%s", user.ID, c.path), c.body)
		switch {
		case err != nil || status == http.StatusServiceUnavailable:
			return err
		case status != want:
			return fmt.Errorf("%w: got %d for %v, want %d", errUnexpected, status, c.body, want)
		}
	}
	return nil
}

// checkNotices checks that people hear of each change, and only of those: also if the server was
// killed between the change and the message.
func (s *fixture) checkNotices(t *testing.T, l *ledger) {
	t.Helper()
	var told, untold []string
	for id, changes := range l.changes {
		status, body, err := s.manage(http.MethodGet, fmt.Sprintf("/users/%d", id), nil)
		if err != nil || status != http.StatusOK {
			t.Fatalf("got %d %s and error %v, want user %d", status, body, err, id)
		}
		made := false // those before one that was made were made too
		for _, c := range slices.Backward(changes) {
			if made = made || strings.Contains(string(body), c.says); made {
				told = append(told, c.told...)
			} else {
				untold = append(untold, c.told...)
			}
		}
	}
	for end := time.Now().Add(waitTimeout); len(s.postbox.missing(told)) > 0; {
		if time.Now().After(end) {
			t.Errorf("got no notice %q, want one of each change", s.postbox.missing(told))
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	if got := len(untold) - len(s.postbox.missing(untold)); got != 0 {
		t.Errorf("got %d notices of what was not changed, want none", got)
	}
}
