package token_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

func TestClientUpdateTakesEffectAtOnce(t *testing.T) {
	f := newFixture(t, nil)
	bearer := f.newTokens(t).AccessToken
	f.wantVerdict(t, "before", bearer, token.Admitted)
	f.updateClient(t, func(c *oauth.Client) { c.Disabled = true })
	f.wantFault(t, "disabled", f.ownRequest(), oauth.InvalidClient)
	f.wantVerdict(t, "disabled", bearer, token.TokenInvalid)
	_, fault := f.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: f.client.ID}, time.Now())
	if fault == nil {
		t.Error("code for a disabled client: got one, want an error")
	}
	f.updateClient(t, func(c *oauth.Client) { c.Disabled = false })
	f.mustToken(t, f.ownRequest())
	f.wantVerdict(t, "enabled", bearer, token.Admitted)
	f.updateClient(t, func(c *oauth.Client) { c.Grants = oauth.AuthorizationCodeGrant })
	f.wantFault(t, "grant removed", f.ownRequest(), oauth.UnauthorizedClient)
}

// TestDeleteClientDuringRequests deletes a client while its actor serves requests. Every request
// must end.
func TestDeleteClientDuringRequests(t *testing.T) {
	f := newFixture(t, nil)
	for range 50 {
		c, secret := f.register(t, oauth.Client{
			Name: "Brief", Grants: oauth.ClientCredentialsGrant,
		})
		r := &oauth.TokenRequest{
			Credentials: oauth.Credentials{ClientID: c.ID, Secret: secret},
			Grant:       oauth.ClientCredentialsGrant,
		}
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				for {
					_, fault := f.Token(ctx, r, time.Now())
					if fault != nil && fault.Code == oauth.InvalidClient {
						break
					}
				}
				if ctx.Err() != nil {
					t.Error("got a request without a response")
				}
			})
		}
		if err := f.DeleteClient(t.Context(), c.ID); err != nil {
			t.Error(err)
		}
		callers.Wait()
	}
}

func TestUpdateClientKeepsFixedFields(t *testing.T) {
	f := newFixture(t, nil)
	got, err := f.UpdateClient(t.Context(), f.client.ID, func(c *oauth.Client) error {
		c.ID, c.Public, c.Created, c.Name = "x", true, time.Time{}, "New"
		c.Secrets[0] = oauth.Secret{}
		return nil
	})
	if err != nil || got.ID != f.client.ID || got.Public || got.Created.IsZero() ||
		got.Name != "New" {
		t.Errorf("got %+v, %v", got, err)
	}
	f.mustToken(t, f.ownRequest())
	var wrong *oauth.RegistrationError
	_, err = f.UpdateClient(t.Context(), f.client.ID,
		func(c *oauth.Client) error { c.Name = ""; return nil })
	if !errors.As(err, &wrong) {
		t.Errorf("bad record: got %v, want a *oauth.RegistrationError", err)
	}
	if c, err := f.Client(t.Context(), f.client.ID); err != nil || c.Name != "New" {
		t.Errorf("got %+v, %v, want the record before", c, err)
	}
}

// TestUnknownClientIsNotCached has another process create a client after a request with its ID.
func TestUnknownClientIsNotCached(t *testing.T) {
	f := newFixture(t, nil)
	r := f.ownRequest()
	r.ClientID = "later"
	f.wantFault(t, "before", r, oauth.InvalidClient)
	later := *f.client
	later.ID = "later"
	if err := f.store.CreateClient(t.Context(), &later); err != nil {
		t.Fatal(err)
	}
	f.mustToken(t, r)
}

// TestClientUpdateDuringRead disables a client after its record was read and before it is used.
func TestClientUpdateDuringRead(t *testing.T) {
	f := newFixture(t, nil)
	once := true
	f.store.onClientRead = func() {
		if once {
			once = false
			f.updateClient(t, func(c *oauth.Client) { c.Disabled = true })
		}
	}
	f.wantFault(t, "first use", f.ownRequest(), oauth.InvalidClient)
}

// TestClientChangesByAnotherProcess changes the store without a call of Service.
func TestClientChangesByAnotherProcess(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, func(c *token.Config) { c.OtherWriters = shared })
			bearer := f.newTokens(t).AccessToken
			f.wantVerdict(t, "before", bearer, token.Admitted)
			disable := func(disabled bool) error {
				c, err := f.store.Client(t.Context(), f.client.ID)
				if err != nil {
					return err
				}
				c.Disabled = disabled
				return f.store.UpdateClient(t.Context(), c)
			}
			for _, step := range []struct {
				what    string
				change  func() error
				refused bool
			}{
				{"disabled", func() error { return disable(true) }, true},
				{"enabled again", func() error { return disable(false) }, false},
				{"deleted", func() error { return f.store.DeleteClient(t.Context(), f.client.ID) }, true},
			} {
				if err := step.change(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				_, fault := f.Token(t.Context(), f.ownRequest(), time.Now())
				if (fault != nil) != (shared && step.refused) {
					t.Errorf("shared %t, %s: got %v", shared, step.what, fault)
				}
				got := f.Admit(bearer, token.BasicProfile, time.Now()).Verdict
				if (got == token.TokenInvalid) != (shared && step.refused) {
					t.Errorf("shared %t, %s: got verdict %d", shared, step.what, got)
				}
			}
		})
	}
}
