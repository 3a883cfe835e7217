package token_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// TestAcknowledgedEndIsApplied checks that a token is refused once the store has acknowledged its
// end, before the caller is told: another request for the same end finds nothing to end then.
func TestAcknowledgedEndIsApplied(t *testing.T) {
	f := newFixture(t, nil)
	for range 20 {
		tokens := f.newTokens(t)
		f.wantVerdict(t, "before", tokens.AccessToken, token.Admitted)
		f.store.pause()
		var caller sync.WaitGroup
		caller.Go(func() {
			fault := f.Revoke(t.Context(), f.credentials(), tokens.RefreshToken, time.Now())
			if fault != nil {
				t.Error(fault)
			}
		})
		for queued := 0; queued == 0; runtime.Gosched() {
			f.store.locked(func() { queued = len(f.store.queue) })
		}
		f.store.finish(f.store.begin())
		f.wantVerdict(t, "acknowledged", tokens.AccessToken, token.TokenInvalid)
		caller.Wait()
	}
}

func TestRevokeIgnoresForeignTokens(t *testing.T) {
	f := newFixture(t, nil)
	other, secret := f.register(t, oauth.Client{
		Name: "Other", Grants: oauth.ClientCredentialsGrant,
	})
	tokens := f.newTokens(t)
	writes := f.store.writes
	credentials := oauth.Credentials{ClientID: other.ID, Secret: secret}
	for _, token := range []string{tokens.AccessToken, tokens.RefreshToken, f.newCode(t), f.secret,
		oauth.NewRefreshToken(), "x"} {
		if fault := f.Revoke(t.Context(), credentials, token, time.Now()); fault != nil {
			t.Errorf("got %v, want nil", fault)
		}
	}
	if got := f.store.writes - writes - 1; got != 0 { // one saved the code
		t.Errorf("got %d writes, want none", got)
	}
	for _, c := range []oauth.Credentials{{ClientID: other.ID, Secret: "x"},
		{ClientID: "nobody", Secret: "x"}} {
		fault := f.Revoke(t.Context(), c, tokens.AccessToken, time.Now())
		if fault == nil || fault.Code != oauth.InvalidClient {
			t.Errorf("%s: got %v, want invalid_client", c.ClientID, fault)
		}
	}
	f.wantVerdict(t, "after", tokens.AccessToken, token.Admitted)
	f.mustToken(t, f.refreshRequest(tokens.RefreshToken))
}

func TestRevokeReportsStoreErrors(t *testing.T) {
	f := newFixture(t, nil)
	tokens := f.newTokens(t)
	f.store.writeError = errors.New("disk full")
	fault := f.Revoke(t.Context(), f.credentials(), tokens.AccessToken, time.Now())
	if fault == nil || fault.Status() != 503 {
		t.Errorf("write: got %v, want 503", fault)
	}
	f.wantVerdict(t, "after a failed write", tokens.AccessToken, token.Admitted)
	f.store.writeError, f.store.readError = nil, errors.New("disk gone")
	fault = f.Revoke(t.Context(), f.credentials(), tokens.RefreshToken, time.Now())
	if fault == nil || fault.Status() != 503 {
		t.Errorf("read: got %v, want 503", fault)
	}
}

func TestIntrospection(t *testing.T) {
	for name, shared := range map[string]bool{"one process": false, "shared store": true} {
		t.Run(name, func(t *testing.T) {
			testIntrospection(t, newFixture(t, func(c *token.Config) { c.OtherWriters, c.Stale = shared, 48*time.Hour }))
		})
	}
}

// disableUser disables or enables user 7, as the service for people does.
func (f *fixture) disableUser(t *testing.T, disabled bool) {
	t.Helper()
	f.disableInStore(disabled)
	if err := f.UserChanged(7, nil); err != nil {
		t.Error(err)
	}
}

func testIntrospection(t *testing.T, f *fixture) {
	resource, resourceSecret := f.register(t, oauth.Client{
		Name: "Resource", Grants: oauth.ClientCredentialsGrant, IntrospectAny: true,
	})
	other, otherSecret := f.register(t, oauth.Client{
		Name: "Other", Grants: oauth.ClientCredentialsGrant,
	})
	public, _ := f.register(t, oauth.Client{
		Name:         "App",
		Public:       true,
		Grants:       oauth.AuthorizationCodeGrant,
		RedirectURIs: []string{"https://app.example/"},
	})
	own := f.mustToken(t, f.ownRequest())
	first := f.newTokens(t)
	second := f.mustToken(t, f.refreshRequest(first.RefreshToken))
	any := oauth.Credentials{ClientID: resource.ID, Secret: resourceSecret}
	now := time.Now()
	for _, row := range []struct {
		name   string
		by     oauth.Credentials
		token  string
		at     time.Time
		active bool
	}{
		{"own access token", f.credentials(), second.AccessToken, now, true},
		{"own access token of no user", f.credentials(), own.AccessToken, now, true},
		{"own refresh token", f.credentials(), second.RefreshToken, now, true},
		{"own refresh token, replaced", f.credentials(), first.RefreshToken, now, false},
		{"by a resource server", any, second.AccessToken, now, true},
		{"by another", oauth.Credentials{ClientID: other.ID, Secret: otherSecret}, second.AccessToken, now, false},
		{"expired", any, second.AccessToken, now.Add(61 * time.Minute), false},
		{"refresh token, expired", any, second.RefreshToken, now.Add(25 * time.Hour), false},
		{"code", any, f.newCode(t), now, false},
		{"garbage", any, "x", now, false},
		{"unknown", any, oauth.NewRefreshToken(), now, false},
	} {
		got, fault := f.Introspect(row.by, row.token, row.at)
		if fault != nil || got.Active != row.active {
			t.Errorf("%s: got %+v, %v, want active %t", row.name, got, fault, row.active)
		}
	}
	got, _ := f.Introspect(any, second.AccessToken, now)
	if got.ClientID != f.client.ID || got.UserID != 7 || got.Scopes != oauth.ViewUser ||
		got.Refresh || got.Expires.Unix()-got.Issued.Unix() != 3600 {
		t.Errorf("got %+v", got)
	}
	for _, c := range []oauth.Credentials{{ClientID: public.ID},
		{ClientID: resource.ID, Secret: "x"}, {ClientID: "nobody"}} {
		_, fault := f.Introspect(c, second.AccessToken, now)
		if fault == nil || fault.Code != oauth.InvalidClient {
			t.Errorf("%+v: got %v, want invalid_client", c, fault)
		}
	}
	f.disableUser(t, true)
	if got, _ := f.Introspect(any, second.AccessToken, now); got.Active {
		t.Error("disabled user: got active")
	}
	f.disableUser(t, false)
	if got, _ := f.Introspect(any, second.AccessToken, now); !got.Active {
		t.Error("enabled user: got inactive")
	}
	f.updateClient(t, func(c *oauth.Client) { c.Disabled = true })
	if got, _ := f.Introspect(any, second.AccessToken, now); got.Active {
		t.Error("disabled client: got active")
	}
	f.updateClient(t, func(c *oauth.Client) { c.Disabled = false })
	if got, _ := f.Introspect(any, second.AccessToken, now); !got.Active {
		t.Error("enabled client: got inactive")
	}
	if fault := f.Revoke(t.Context(), f.credentials(), second.AccessToken, now); fault != nil {
		t.Fatal(fault)
	}
	if got, _ := f.Introspect(any, second.AccessToken, now); got.Active {
		t.Error("revoked: got active")
	}
}
