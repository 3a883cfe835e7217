package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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

var addressesChanged atomic.Int64

// changeAddress gives a user a number in place of another: both have to hear of it.
func (s *fixture) changeAddress(l *ledger) error {
	n := addressesChanged.Add(1)
	before, after := fmt.Sprintf("+491512%07d", n), fmt.Sprintf("+491513%07d", n)
	status, body, err := s.manage(http.MethodPost, "/users",
		map[string]any{"name": "User", "phone_number": before})
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
	l.note(func() { l.addresses[user.ID] = [2]string{before, after} })
	status, _, err = s.manage(http.MethodPatch, fmt.Sprintf("/users/%d", user.ID),
		map[string]any{"phone_number": after})
	if err == nil && status != http.StatusOK && status != http.StatusServiceUnavailable {
		err = fmt.Errorf("%w: got %d for a new number, want 200", errUnexpected, status)
	}
	return err
}

// checkNotices checks that people hear of each new number, and only of those: also if the server
// was killed between the change and the message.
func (s *fixture) checkNotices(t *testing.T, l *ledger) {
	t.Helper()
	var told, untold []string
	for id, a := range l.addresses {
		status, body, err := s.manage(http.MethodGet, fmt.Sprintf("/users/%d", id), nil)
		if err != nil || status != http.StatusOK {
			t.Fatalf("got %d %s and error %v, want user %d", status, body, err, id)
		}
		both := []string{"address_left " + a[0], "phone_changed " + a[1]}
		if strings.Contains(string(body), a[1]) {
			told = append(told, both...)
		} else {
			untold = append(untold, both...)
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
