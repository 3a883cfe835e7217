package token_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

func TestDeleteClientWithUnknownOutcome(t *testing.T) {
	f := newFixture(t, nil)
	bearer := f.newTokens(t).AccessToken
	f.wantVerdict(t, "before", bearer, token.Admitted)
	f.store.writeError = oauth.ErrUnknownOutcome
	if err := f.DeleteClient(t.Context(), f.client.ID); !errors.Is(err, oauth.ErrUnknownOutcome) {
		t.Fatalf("got %v, want %v", err, oauth.ErrUnknownOutcome)
	}
	f.wantVerdict(t, "after", bearer, token.TokenInvalid)
	f.wantFault(t, "after", f.ownRequest(), oauth.InvalidClient)
}

// TestClientChangesDuringRequest changes the client while its code, or the refresh token for an ID-JAG,
// is being read: the request must see the change.
func TestClientChangesDuringRequest(t *testing.T) {
	const audience = "https://tasks.example"
	idJAG := func(f *fixture) *oauth.TokenRequest {
		return &oauth.TokenRequest{Grant: oauth.TokenExchangeGrant, Credentials: f.credentials(),
			TokenExchange: oauth.TokenExchange{SubjectToken: f.newTokens(t).RefreshToken,
				SubjectTokenType: oauth.RefreshTokenType, RequestedTokenType: oauth.IDJAGTokenType,
				Audiences: []string{audience}}}
	}
	code := func(f *fixture) *oauth.TokenRequest { return f.codeRequest(f.newCode(t)) }
	revokeSecret := func(f *fixture) error {
		return f.RevokeSecret(t.Context(), f.client.ID, f.client.Secrets[0].ID)
	}
	for name, c := range map[string]struct {
		request func(*fixture) *oauth.TokenRequest
		change  func(*fixture) error
		want    oauth.Code
	}{
		"secret revoked":         {code, revokeSecret, oauth.InvalidClient},
		"secret revoked, id-jag": {idJAG, revokeSecret, oauth.TemporarilyUnavailable},
		"client disabled": {code, func(f *fixture) error {
			_, err := f.UpdateClient(t.Context(), f.client.ID, func(c *oauth.Client) error {
				c.Disabled = true
				return nil
			})
			return err
		}, oauth.InvalidClient},
		"client deleted": {code, func(f *fixture) error {
			return f.DeleteClient(t.Context(), f.client.ID)
		}, oauth.TemporarilyUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			entered, release := make(chan struct{}), make(chan struct{})
			f := newFixture(t, func(c *token.Config) { c.Issuer, c.IDJAG = testIssuer, true })
			f.updateClient(t, func(c *oauth.Client) {
				c.Grants |= oauth.TokenExchangeGrant
				c.Options.IDJAG.Audiences = []string{audience}
			})
			r := c.request(f)
			f.store.onGrantRead = func() { entered <- struct{}{}; <-release }
			if _, _, err := f.RotateSecret(t.Context(), f.client.ID, time.Now()); err != nil {
				t.Fatal(err)
			}
			var fault *oauth.Error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, fault = f.Token(t.Context(), r, time.Now())
			}()
			<-entered
			if err := c.change(f); err != nil {
				t.Error(err)
			}
			close(release)
			<-ended
			if fault == nil || fault.Code != c.want {
				t.Errorf("got %v, want %s", fault, c.want)
			}
		})
	}
}

// TestFailedRevocationKeepsWindow revokes with a wrong secret while the store cannot be read: the
// token keeps its window.
func TestFailedRevocationKeepsWindow(t *testing.T) {
	f := newFixture(t, nil)
	bearer, now := f.newTokens(t).AccessToken, time.Now()
	for range 100 {
		f.Admit(bearer, token.BasicProfile, now)
	}
	f.store.locked(func() { f.store.readError = errors.New("planted") })
	c := f.credentials()
	c.Secret = "wrong"
	if fault := f.Revoke(t.Context(), c, bearer, now); fault == nil {
		t.Error("got the token revoked, want an error")
	}
	f.store.locked(func() { f.store.readError = nil })
	if got := f.Admit(bearer, token.BasicProfile, now).Verdict; got != token.RateLimited {
		t.Errorf("got verdict %d for request 101, want %d", got, token.RateLimited)
	}
}

// TestClientIDPinsNoRequest sends ids that share memory with a large request: none of it is kept.
func TestClientIDPinsNoRequest(t *testing.T) {
	f := newFixture(t, nil)
	freed := make(chan struct{})
	func() {
		body := []byte(f.client.ID + strings.Repeat("x", 60<<10))
		runtime.AddCleanup(&body[0], func(struct{}) { close(freed) }, struct{}{})
		id := unsafe.String(&body[0], len(f.client.ID))
		if _, err := f.Client(t.Context(), id); err != nil {
			t.Error(err)
		}
	}()
	for {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-t.Context().Done():
			t.Fatal("got the request kept")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestConcurrentRequestsShareReads has another process change a client, so that its record is read
// again: one request reads for all.
func TestConcurrentRequestsShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *token.Config) { c.OtherWriters = true })
		if _, err := f.Client(t.Context(), f.client.ID); err != nil {
			t.Fatal(err)
		}
		if err := f.store.UpdateClient(t.Context(), f.client); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		var reads atomic.Int64
		f.store.onClientRead = func() {
			reads.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
		var callers sync.WaitGroup
		for range 200 {
			callers.Go(func() {
				if _, err := f.Client(t.Context(), f.client.ID); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if reads.Load() != 1 {
			t.Errorf("got %d reads, want 1", reads.Load())
		}
	})
}
