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
