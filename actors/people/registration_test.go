package people_test

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// TestPendingRegistrationSurvivesRestart checks that a restart keeps the code, its tries and its
// limits.
func TestPendingRegistrationSurvivesRestart(t *testing.T) {
	url := sqlitetest.URL(t)
	before := openCodeFixture(t, url, 100)
	token := before.register(t, eve)
	code := before.receive(t, eve, account.RegisterCode)
	for range 3 {
		_, err := before.confirm(t, token, wrongCode(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	before.close(t)
	f := openCodeFixture(t, url, 100)
	defer f.close(t)
	f.now = before.now
	wantThrottled(t, "another code", f.Resend(t.Context(), token, testBrowser, f.now), 30*time.Second)
	for range 2 {
		_, err := f.confirm(t, token, wrongCode(code))
		wantError(t, "wrong code", err, people.ErrWrongCode)
	}
	_, err := f.confirm(t, token, code)
	wantError(t, "after five tries", err, people.ErrCodeExpired)
	f.advance(30 * time.Second)
	if err := f.Resend(t.Context(), token, testBrowser, f.now); err != nil {
		t.Fatal(err)
	}
	in, err := f.confirm(t, token, f.receive(t, eve, account.RegisterCode))
	if err != nil || in.User.Email != eve {
		t.Errorf("got %+v, %v, want an account", in, err)
	}
}

// TestTwoRegistrationsOfOneAddress requests two codes before one is entered.
func TestTwoRegistrationsOfOneAddress(t *testing.T) {
	f := newCodeFixture(t)
	first := f.register(t, eve)
	firstCode := f.receive(t, eve, account.RegisterCode)
	f.advance(30 * time.Second)
	second := f.register(t, eve)
	secondCode := f.receive(t, eve, account.RegisterCode)
	if _, err := f.confirm(t, second, secondCode); err != nil {
		t.Fatal(err)
	}
	_, err := f.confirm(t, first, firstCode)
	wantError(t, "the other", err, account.ErrTaken)
}
