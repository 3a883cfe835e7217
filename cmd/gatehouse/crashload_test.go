package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/actors/oauth"
)

// fate is what a client knows about a request.
type fate int

const (
	unsure  fate = iota // it got no response
	pending             // it has not sent it yet
	done                // it got the response
)

// family is the tokens that were issued from one code.
type family struct {
	code            string
	access, refresh []string // by generation
}

// ledger is what the clients of a server know.
type ledger struct {
	mu       sync.Mutex
	tokens   map[string]fate  // of access tokens: whether they were revoked
	codes    map[string]fate  // whether they were redeemed
	users    map[string]int64 // ids by phone number; 0 = unsure
	families []*family
	// changes are those of users' credentials, which may have been cut off after any of them.
	changes map[int64][]userChange

	usedUnseen int // codes that were redeemed although the response was lost
}

func newLedger() *ledger {
	return &ledger{tokens: map[string]fate{}, codes: map[string]fate{}, users: map[string]int64{},
		changes: map[int64][]userChange{}}
}

// note changes the ledger.
func (l *ledger) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// String returns the counts.
func (l *ledger) String() string {
	tokens, codes, users := map[fate]int{}, map[fate]int{}, 0
	for _, f := range l.tokens {
		tokens[f]++
	}
	devices := 0
	for code, f := range l.codes {
		codes[f]++
		if oauth.LooksLikeDeviceCode(code) {
			devices++
		}
	}
	for _, id := range l.users {
		users += min(1, int(id))
	}
	return fmt.Sprintf("%d tokens, %d revoked, %d unsure; %d codes, %d redeemed, %d unsure (%d had been redeemed), %d of devices; %d families; %d users, %d unsure; %d users changed",
		len(l.tokens), tokens[done], tokens[unsure], len(l.codes), codes[done], codes[unsure],
		l.usedUnseen, devices, len(l.families), users, len(l.users)-users, len(l.changes))
}

// errUnexpected is a response that a healthy server does not send. It is reported already.
var errUnexpected = errors.New("unexpected answer")

// load runs clients that send requests of all kinds until the server is gone. wait waits for them.
func (s *fixture) load(t *testing.T, l *ledger) (wait func()) {
	var workers sync.WaitGroup
	for _, work := range []func(*ledger) error{s.issueAndRevoke, s.redeemAndRotate,
		s.redeemAndRotate, s.leaveCode, s.connectDevice, s.addUser, s.changeUser} {
		for range 6 {
			workers.Go(func() {
				for {
					err := work(l)
					if errors.Is(err, errUnexpected) {
						t.Error(err)
					}
					if err != nil {
						return
					}
				}
			})
		}
	}
	return workers.Wait
}

// errLater is a response of an overloaded server.
var errLater = errors.New("temporarily unavailable")

// ask is post for a response that must be 200.
func (s *fixture) ask(path string, form url.Values) (reply, error) {
	r, err := s.post(path, form)
	switch {
	case err == nil && r.status == http.StatusServiceUnavailable:
		err = errLater
	case err == nil && r.status != http.StatusOK:
		err = fmt.Errorf("%w: got %v from %s for %s, want 200", errUnexpected, r, path,
			form.Get("grant_type"))
	}
	return r, err
}

// issueAndRevoke gets two tokens and revokes one.
func (s *fixture) issueAndRevoke(l *ledger) error {
	for _, revoke := range []bool{false, true} {
		got, err := s.ask("/oauth/token", s.asClient("grant_type", "client_credentials"))
		if err != nil {
			return err
		}
		if !revoke {
			l.note(func() { l.tokens[got.AccessToken] = pending })
			continue
		}
		l.note(func() { l.tokens[got.AccessToken] = unsure })
		if _, err := s.ask("/oauth/revoke", s.asClient("token", got.AccessToken)); err != nil {
			return err
		}
		l.note(func() { l.tokens[got.AccessToken] = done })
	}
	return nil
}

// redeemAndRotate gets a code, redeems it and refreshes three times.
func (s *fixture) redeemAndRotate(l *ledger) error {
	code, err := s.browser.code(s.base)
	if err != nil {
		return err
	}
	l.note(func() { l.codes[code] = unsure })
	got, err := s.ask("/oauth/token", s.redemption(code))
	if err != nil {
		return err
	}
	f := &family{code: code}
	add := func() {
		f.access, f.refresh = append(f.access, got.AccessToken), append(f.refresh, got.RefreshToken)
		l.tokens[got.AccessToken] = pending
	}
	l.note(func() {
		l.codes[code] = done
		l.families = append(l.families, f)
		add()
	})
	for range 3 {
		if got, err = s.ask("/oauth/token", s.rotation(got.RefreshToken)); err != nil {
			return err
		}
		l.note(add)
	}
	return nil
}

// connectDevice allows two devices, and one of them gets its tokens.
func (s *fixture) connectDevice(l *ledger) error {
	for _, redeem := range []bool{false, true} {
		device, err := s.ask("/oauth/device_authorization", s.asClient("scope", "view-user"))
		if err != nil {
			return err
		}
		l.note(func() { l.codes[device.DeviceCode] = unsure })
		if err := s.browser.allowDevice(s.base, device.UserCode); err != nil {
			return err
		}
		if !redeem {
			l.note(func() { l.codes[device.DeviceCode] = pending })
			continue
		}
		got, err := s.ask("/oauth/token", s.redemption(device.DeviceCode))
		if err != nil {
			return err
		}
		l.note(func() {
			l.codes[device.DeviceCode], l.tokens[got.AccessToken] = done, pending
			l.families = append(l.families, &family{code: device.DeviceCode,
				access: []string{got.AccessToken}, refresh: []string{got.RefreshToken}})
		})
	}
	return nil
}

// leaveCode gets a code.
func (s *fixture) leaveCode(l *ledger) error {
	code, err := s.browser.code(s.base)
	if err == nil {
		l.note(func() { l.codes[code] = pending })
	}
	return err
}

var usersAdded atomic.Int64

// addUser creates a user.
func (s *fixture) addUser(l *ledger) error {
	phone := fmt.Sprintf("+491511%07d", usersAdded.Add(1))
	l.note(func() { l.users[phone] = 0 })
	status, body, err := s.manage(http.MethodPost, "/users",
		map[string]any{"name": "User", "phone_number": phone})
	if err != nil {
		return err
	}
	var user record
	if status != http.StatusCreated || json.Unmarshal(body, &user) != nil {
		return fmt.Errorf("%w: got %d for a new user, want 201", errUnexpected, status)
	}
	l.note(func() { l.users[phone] = user.ID })
	return nil
}
