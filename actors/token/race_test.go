package token_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// raceRounds is how often each race is run.
const raceRounds = 10

// subject is a token that a race ends, with what may end it.
type subject struct {
	code   string
	tokens *oauth.TokenResponse
}

// newSubject registers a client and gets tokens for it.
func (f *fixture) newSubject(t *testing.T) subject {
	t.Helper()
	c := *f.client
	c.Secrets = nil
	f.client, f.secret = f.register(t, c)
	code := f.newCode(t)
	return subject{code, f.mustToken(t, f.codeRequest(code))}
}

// TestNothingIsAdmittedAfterItsEnd ends tokens in all ways while many goroutines use them. No
// request that begins after a response to the end is admitted.
func TestNothingIsAdmittedAfterItsEnd(t *testing.T) {
	noFault := func(t *testing.T, fault *oauth.Error) {
		if fault != nil {
			t.Error(fault)
		}
	}
	noError := func(t *testing.T, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for name, end := range map[string]func(*testing.T, *fixture, subject){
		"revoke token": func(t *testing.T, f *fixture, s subject) {
			noFault(t, f.Revoke(t.Context(), f.credentials(), s.tokens.AccessToken, time.Now()))
		},
		"revoke family": func(t *testing.T, f *fixture, s subject) {
			noFault(t, f.Revoke(t.Context(), f.credentials(), s.tokens.RefreshToken, time.Now()))
		},
		"replay code": func(t *testing.T, f *fixture, s subject) {
			f.wantFault(t, "replay", f.codeRequest(s.code), oauth.InvalidGrant)
		},
		"withdraw consent": func(t *testing.T, f *fixture, s subject) {
			grant := oauth.Grant{UserID: 7, ClientID: f.client.ID}
			noError(t, f.RevokeAll(t.Context(), &oauth.Revoke{Consent: &grant}))
		},
		"new user epoch": func(t *testing.T, f *fixture, s subject) {
			noError(t, f.RevokeAll(t.Context(), &oauth.Revoke{UserID: 7}))
		},
		"new client epoch": func(t *testing.T, f *fixture, s subject) {
			noError(t, f.RevokeAll(t.Context(), &oauth.Revoke{ClientID: f.client.ID}))
		},
		"disable user": func(_ *testing.T, f *fixture, s subject) { f.disableUser(t, true) },
		"disable client": func(t *testing.T, f *fixture, s subject) {
			f.updateClient(t, func(c *oauth.Client) { c.Disabled = true })
		},
		"delete client": func(t *testing.T, f *fixture, s subject) {
			err := f.DeleteClient(t.Context(), f.client.ID)
			if !errors.Is(err, oauth.ErrNotFound) {
				noError(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			resource, secret := f.register(t, oauth.Client{
				Name: "Resource", Grants: oauth.ClientCredentialsGrant, IntrospectAny: true,
			})
			asker := oauth.Credentials{ClientID: resource.ID, Secret: secret}
			for round := range raceRounds {
				f.disableUser(t, false)
				s := f.newSubject(t)
				if round%2 == 0 { // else its first use is a part of the race
					f.wantVerdict(t, "before", s.tokens.AccessToken, token.Admitted)
				}
				f.raceWithEnd(t, asker, s.tokens.AccessToken, func() { end(t, f, s) })
			}
		})
	}
}

// raceWithEnd calls end on two goroutines, while others use the token.
func (f *fixture) raceWithEnd(
	t *testing.T, asker oauth.Credentials, bearer string, end func(),
) {
	t.Helper()
	var ended atomic.Bool // some response to an end has been sent
	var callers sync.WaitGroup
	use := func(refused func() bool) {
		callers.Go(func() {
			for after := 0; after < 3; {
				known := ended.Load()
				if refused := refused(); known && !refused {
					t.Error("got a token accepted after its end")
				}
				if known {
					after++
				}
			}
		})
	}
	for range 2 {
		use(func() bool {
			return f.Admit(bearer, token.BasicProfile, time.Now()).Verdict == token.TokenInvalid
		})
		use(func() bool {
			about, fault := f.Introspect(asker, bearer, time.Now())
			return fault == nil && !about.Active
		})
		callers.Go(func() {
			end()
			ended.Store(true)
		})
	}
	callers.Wait()
}

// TestRotationKeepsTokensThatAreBeingIssued rotates the keys while tokens are issued: all are
// accepted, at once and later.
func TestRotationKeepsTokensThatAreBeingIssued(t *testing.T) {
	for round := range 10 {
		f := newFixture(t, func(c *token.Config) { c.OtherWriters = round%2 == 0 })
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				var issued []string
				for range 50 {
					bearer := f.mustToken(t, f.ownRequest()).AccessToken
					f.wantVerdict(t, "at once", bearer, token.InsufficientScope)
					issued = append(issued, bearer)
				}
				for _, bearer := range issued {
					f.wantVerdict(t, "later", bearer, token.InsufficientScope)
				}
			})
		}
		callers.Go(func() {
			_, err := f.RotateKeys(t.Context(), oauth.TokenKeys, false, time.Now())
			if err != nil {
				t.Error(err)
			}
		})
		callers.Wait()
	}
}

// TestDropEndsTokensThatWereIssued drops the keys twice at once while tokens are issued. No token
// that was issued before a drop was requested is accepted after its response.
func TestDropEndsTokensThatWereIssued(t *testing.T) {
	for round := range 10 {
		f := newFixture(t, func(c *token.Config) { c.OtherWriters = round%2 == 0 })
		var mu sync.Mutex
		var before []string // issued before any drop was requested
		var requested atomic.Bool
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				for range 40 {
					bearer := f.mustToken(t, f.ownRequest()).AccessToken
					mu.Lock()
					if !requested.Load() {
						before = append(before, bearer)
					}
					mu.Unlock()
				}
			})
		}
		for range 2 {
			callers.Go(func() {
				time.Sleep(time.Millisecond)
				mu.Lock()
				requested.Store(true)
				mu.Unlock()
				_, err := f.RotateKeys(t.Context(), oauth.TokenKeys, true, time.Now())
				if err != nil {
					t.Error(err)
				}
				for _, bearer := range before {
					f.wantVerdict(t, "issued before the drop", bearer, token.TokenInvalid)
				}
			})
		}
		callers.Wait()
		bearer := f.mustToken(t, f.ownRequest()).AccessToken
		f.wantVerdict(t, "issued after the drop", bearer, token.InsufficientScope)
	}
}
