package token_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

func TestAnAccessTokenIsRevokedAlone(t *testing.T) {
	h := newFixture(t, nil)
	tokens := h.tokens(t)
	h.wantVerdict(t, "before", tokens.AccessToken, token.Admitted)
	for range 2 {
		if fault := h.Revoke(t.Context(), h.credentials(), tokens.AccessToken, time.Now()); fault != nil {
			t.Fatal(fault)
		}
	}
	h.wantVerdict(t, "after", tokens.AccessToken, token.TokenInvalid)
	h.must(t, h.refreshRequest(tokens.RefreshToken))
}

func TestARefreshTokenIsRevokedWithItsFamily(t *testing.T) {
	h := newFixture(t, nil)
	first := h.tokens(t)
	second := h.must(t, h.refreshRequest(first.RefreshToken))
	h.wantVerdict(t, "before", second.AccessToken, token.Admitted)
	if fault := h.Revoke(t.Context(), h.credentials(), first.RefreshToken, time.Now()); fault != nil {
		t.Fatal(fault)
	}
	h.wantVerdict(t, "first", first.AccessToken, token.TokenInvalid)
	h.wantVerdict(t, "second", second.AccessToken, token.TokenInvalid)
	h.wantFault(t, "refresh", h.refreshRequest(second.RefreshToken), oauth.InvalidGrant)
}

func TestWhatIsNotTheClientsIsLeftAlone(t *testing.T) {
	h := newFixture(t, nil)
	other, secret := h.register(t, oauth.Client{Name: "Other", Grants: oauth.ClientCredentialsGrant})
	tokens := h.tokens(t)
	writes := h.store.writes
	credentials := oauth.Credentials{ClientID: other.ID, Secret: secret}
	for _, token := range []string{tokens.AccessToken, tokens.RefreshToken, h.code(t), h.secret, oauth.NewRefreshToken(), "x"} {
		if fault := h.Revoke(t.Context(), credentials, token, time.Now()); fault != nil {
			t.Errorf("got %v, want nil", fault)
		}
	}
	if got := h.store.writes - writes - 1; got != 0 { // the code is one
		t.Errorf("got %d writes, want none", got)
	}
	for _, c := range []oauth.Credentials{{ClientID: other.ID, Secret: "x"}, {ClientID: "nobody", Secret: "x"}} {
		if fault := h.Revoke(t.Context(), c, tokens.AccessToken, time.Now()); fault == nil || fault.Code != oauth.InvalidClient {
			t.Errorf("%s: got %v, want invalid_client", c.ClientID, fault)
		}
	}
	h.wantVerdict(t, "after", tokens.AccessToken, token.Admitted)
	h.must(t, h.refreshRequest(tokens.RefreshToken))
}

func TestARevocationThatFailsSaysSo(t *testing.T) {
	h := newFixture(t, nil)
	token := h.tokens(t).AccessToken
	h.store.failing = errors.New("disk full")
	if fault := h.Revoke(t.Context(), h.credentials(), token, time.Now()); fault == nil || fault.Status() != 503 {
		t.Errorf("write: got %v, want 503", fault)
	}
	h.store.failing, h.store.readable = nil, errors.New("disk gone")
	if fault := h.Revoke(t.Context(), h.credentials(), token, time.Now()); fault == nil || fault.Status() != 503 {
		t.Errorf("read: got %v, want 503", fault)
	}
}

func TestIntrospection(t *testing.T) {
	for name, shared := range map[string]bool{"of the only process": false, "of one of several": true} {
		t.Run(name, func(t *testing.T) {
			introspectAll(t, newFixture(t, func(c *token.Config) { c.Shared = shared }))
		})
	}
}

// disableUser does what the service for people does, with the user 7.
func (h *fixture) disableUser(disabled bool) {
	h.store.mu.Lock()
	changed := *h.store.users[7]
	changed.Disabled = disabled
	h.store.users[7] = &changed
	h.store.mu.Unlock()
	h.UserChanged(7, nil)
}

func introspectAll(t *testing.T, h *fixture) {
	resource, resourceSecret := h.register(t, oauth.Client{Name: "Resource", Grants: oauth.ClientCredentialsGrant, IntrospectAny: true})
	other, otherSecret := h.register(t, oauth.Client{Name: "Other", Grants: oauth.ClientCredentialsGrant})
	public, _ := h.register(t, oauth.Client{Name: "App", Public: true, Grants: oauth.AuthorizationCodeGrant, RedirectURIs: []string{"https://app.example/"}})
	own := h.must(t, h.own())
	first := h.tokens(t)
	second := h.must(t, h.refreshRequest(first.RefreshToken))
	any := oauth.Credentials{ClientID: resource.ID, Secret: resourceSecret}
	now := time.Now()
	for _, row := range []struct {
		name   string
		by     oauth.Credentials
		token  string
		at     time.Time
		active bool
	}{
		{"own access token", h.credentials(), second.AccessToken, now, true},
		{"own access token of no user", h.credentials(), own.AccessToken, now, true},
		{"own refresh token", h.credentials(), second.RefreshToken, now, true},
		{"own refresh token, replaced", h.credentials(), first.RefreshToken, now, false},
		{"by a resource server", any, second.AccessToken, now, true},
		{"by another", oauth.Credentials{ClientID: other.ID, Secret: otherSecret}, second.AccessToken, now, false},
		{"expired", any, second.AccessToken, now.Add(61 * time.Minute), false},
		{"refresh token, expired", any, second.RefreshToken, now.Add(25 * time.Hour), false},
		{"code", any, h.code(t), now, false},
		{"garbage", any, "x", now, false},
		{"unknown", any, oauth.NewRefreshToken(), now, false},
	} {
		got, fault := h.Introspect(row.by, row.token, row.at)
		if fault != nil || got.Active != row.active {
			t.Errorf("%s: got %+v, %v, want active %t", row.name, got, fault, row.active)
		}
	}
	got, _ := h.Introspect(any, second.AccessToken, now)
	if got.ClientID != h.client.ID || got.UserID != 7 || got.Scopes != oauth.ViewUser || got.Refresh || got.Expires.Unix()-got.Issued.Unix() != 3600 {
		t.Errorf("got %+v", got)
	}
	for _, c := range []oauth.Credentials{{ClientID: public.ID}, {ClientID: resource.ID, Secret: "x"}, {ClientID: "nobody"}} {
		if _, fault := h.Introspect(c, second.AccessToken, now); fault == nil || fault.Code != oauth.InvalidClient {
			t.Errorf("%+v: got %v, want invalid_client", c, fault)
		}
	}
	h.disableUser(true)
	if got, _ := h.Introspect(any, second.AccessToken, now); got.Active {
		t.Error("disabled user: got active")
	}
	h.disableUser(false)
	if got, _ := h.Introspect(any, second.AccessToken, now); !got.Active {
		t.Error("enabled user: got inactive")
	}
	h.change(t, func(c *oauth.Client) { c.Disabled = true })
	if got, _ := h.Introspect(any, second.AccessToken, now); got.Active {
		t.Error("disabled client: got active")
	}
	h.change(t, func(c *oauth.Client) { c.Disabled = false })
	if got, _ := h.Introspect(any, second.AccessToken, now); !got.Active {
		t.Error("enabled client: got inactive")
	}
	if fault := h.Revoke(t.Context(), h.credentials(), second.AccessToken, now); fault != nil {
		t.Fatal(fault)
	}
	if got, _ := h.Introspect(any, second.AccessToken, now); got.Active {
		t.Error("revoked: got active")
	}
}
