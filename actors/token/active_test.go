package token_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// TestTokensInUseAreLimited has room for 16 tokens in use, so for two of each client.
func TestTokensInUseAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *token.Config) { c.MaxActive = 16 })
		resource, secret := f.register(t, oauth.Client{
			Name: "Resource", Grants: oauth.ClientCredentialsGrant, IntrospectAny: true,
		})
		refuse := func(what, bearer string) {
			t.Helper()
			f.wantVerdict(t, what, bearer, token.TryLater)
			asker := oauth.Credentials{ClientID: resource.ID, Secret: secret}
			about, fault := f.Introspect(asker, bearer, time.Now())
			if fault != nil || !about.Active || about.ClientID != f.client.ID || about.UserID != 7 {
				t.Errorf("%s: got %+v, %v, want it active", what, about, fault)
			}
		}
		var used []string
		for range 8 {
			f.newSubject(t)
			for range 2 {
				bearer := f.seal(nil)
				f.wantVerdict(t, "with room", bearer, token.Admitted)
				used = append(used, bearer)
			}
			refuse("the client's third token", f.seal(nil))
		}
		last := f.client
		f.newSubject(t)
		refuse("token 17", f.seal(nil))
		for _, bearer := range used {
			f.wantVerdict(t, "in use", bearer, token.Admitted)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		for _, f.client = range []*oauth.Client{f.client, last} {
			for range 2 {
				f.wantVerdict(t, "room again", f.seal(nil), token.Admitted)
			}
			refuse("the third token again", f.seal(nil))
		}
	})
}

// TestTokensInUseOfOneUserAreLimited has one user keep as many tokens in use as possible. Another
// token of the same client works, and the user's do again after a pause.
func TestTokensInUseOfOneUserAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *token.Config) { c.MaxActive = 1000 })
		for range 100 {
			f.wantVerdict(t, "with room", f.seal(nil), token.Admitted)
		}
		f.wantVerdict(t, "the user's token 101", f.seal(nil), token.TryLater)
		own := f.seal(func(a *oauth.AccessToken) { a.UserID = 0 })
		f.wantVerdict(t, "a token of the client itself", own, token.InsufficientScope)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		for range 100 {
			f.wantVerdict(t, "room again", f.seal(nil), token.Admitted)
		}
	})
}

// TestOperatorsNeedNoRoom fills the room for tokens in use. The admin API admits operators still,
// and nobody else.
func TestOperatorsNeedNoRoom(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.MaxActive = 1 })
	f.wantVerdict(t, "the only room", f.seal(nil), token.Admitted)
	f.wantVerdict(t, "no room", f.seal(nil), token.TryLater)
	ordinary := f.seal(func(a *oauth.AccessToken) { a.Scopes = oauth.ServerOperations })
	if got, _ := f.AdmitOperator(ordinary, time.Now()); got != token.InsufficientScope {
		t.Errorf("another client: got %v, want %v", got, token.InsufficientScope)
	}
	var secret string
	f.client, secret = f.register(t, oauth.Client{
		Name: "Operator", Operator: true, Scopes: oauth.ServerOperations,
		Grants: oauth.ClientCredentialsGrant,
	})
	f.secret = secret
	bearer := f.seal(func(a *oauth.AccessToken) { a.UserID, a.Scopes = 0, oauth.ServerOperations })
	if got, _ := f.AdmitOperator(bearer, time.Now()); got != token.Admitted {
		t.Errorf("operator: got %v, want %v", got, token.Admitted)
	}
	if fault := f.Revoke(t.Context(), f.credentials(), bearer, time.Now()); fault != nil {
		t.Fatal(fault)
	}
	if got, _ := f.AdmitOperator(bearer, time.Now()); got != token.TokenInvalid {
		t.Errorf("revoked: got %v, want %v", got, token.TokenInvalid)
	}
}
