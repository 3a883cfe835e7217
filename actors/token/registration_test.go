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

func (h *fixture) own() *oauth.TokenRequest {
	return &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant}
}

func (h *fixture) change(t *testing.T, change func(*oauth.Client)) {
	t.Helper()
	if _, err := h.UpdateClient(t.Context(), h.client.ID, func(c *oauth.Client) error { change(c); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestAChangeIsSeenAtOnce(t *testing.T) {
	h := newFixture(t, nil)
	bearer := h.tokens(t).AccessToken
	h.wantVerdict(t, "before", bearer, token.Admitted)
	h.change(t, func(c *oauth.Client) { c.Disabled = true })
	h.wantFault(t, "disabled", h.own(), oauth.InvalidClient)
	h.wantVerdict(t, "disabled", bearer, token.TokenInvalid)
	if _, fault := h.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: h.client.ID}, time.Now()); fault == nil {
		t.Error("code for a disabled client: got one, want an error")
	}
	h.change(t, func(c *oauth.Client) { c.Disabled = false })
	h.must(t, h.own())
	h.wantVerdict(t, "enabled", bearer, token.Admitted)
	h.change(t, func(c *oauth.Client) { c.Grants = oauth.AuthorizationCodeGrant })
	h.wantFault(t, "grant taken", h.own(), oauth.UnauthorizedClient)
}

func TestBothSecretsWorkUntilOneIsEnded(t *testing.T) {
	h := newFixture(t, nil)
	first := h.client.Secrets[0].ID
	second, kept, err := h.RotateSecret(t.Context(), h.client.ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h.must(t, h.own())
	newer := h.own()
	newer.Secret = second
	h.must(t, newer)
	var wrong *oauth.RegistrationError
	if _, _, err := h.RotateSecret(t.Context(), h.client.ID, time.Now()); !errors.As(err, &wrong) {
		t.Errorf("third secret: got %v, want a refusal", err)
	}
	if err := h.RevokeSecret(t.Context(), h.client.ID, "nothing"); !errors.Is(err, oauth.ErrNotFound) {
		t.Errorf("unknown secret: got %v, want not found", err)
	}
	if err := h.RevokeSecret(t.Context(), h.client.ID, first); err != nil {
		t.Fatal(err)
	}
	h.wantFault(t, "first secret", h.own(), oauth.InvalidClient)
	h.must(t, newer)
	if err := h.RevokeSecret(t.Context(), h.client.ID, kept.ID); !errors.As(err, &wrong) {
		t.Errorf("last secret: got %v, want a refusal", err)
	}
}

func TestADeletedClientIsGone(t *testing.T) {
	h := newFixture(t, nil)
	bearer := h.tokens(t).AccessToken
	h.wantVerdict(t, "before", bearer, token.Admitted)
	if err := h.DeleteClient(t.Context(), h.client.ID); err != nil {
		t.Fatal(err)
	}
	h.wantVerdict(t, "after", bearer, token.TokenInvalid)
	h.wantFault(t, "after", h.own(), oauth.InvalidClient)
	if err := h.DeleteClient(t.Context(), h.client.ID); !errors.Is(err, oauth.ErrNotFound) {
		t.Errorf("again: got %v, want not found", err)
	}
	if _, err := h.UpdateClient(t.Context(), h.client.ID, func(*oauth.Client) error { return nil }); !errors.Is(err, oauth.ErrNotFound) {
		t.Errorf("update: got %v, want not found", err)
	}
}

// TestNobodyHangsOnAClientThatIsDeleted deletes a client while others ask its actor.
func TestNobodyHangsOnAClientThatIsDeleted(t *testing.T) {
	h := newFixture(t, nil)
	for range 50 {
		c, secret := h.register(t, oauth.Client{Name: "Brief", Grants: oauth.ClientCredentialsGrant})
		r := &oauth.TokenRequest{Credentials: oauth.Credentials{ClientID: c.ID, Secret: secret}, Grant: oauth.ClientCredentialsGrant}
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				for {
					if _, fault := h.Token(ctx, r, time.Now()); fault != nil && fault.Code == oauth.InvalidClient {
						break
					}
				}
				if ctx.Err() != nil {
					t.Error("an ask was answered by nobody")
				}
			})
		}
		if err := h.DeleteClient(t.Context(), c.ID); err != nil {
			t.Error(err)
		}
		callers.Wait()
	}
}

func TestWhatAnUpdateCannotChange(t *testing.T) {
	h := newFixture(t, nil)
	got, err := h.UpdateClient(t.Context(), h.client.ID, func(c *oauth.Client) error {
		c.ID, c.Public, c.Created, c.Name = "x", true, time.Time{}, "New"
		c.Secrets[0] = oauth.Secret{}
		return nil
	})
	if err != nil || got.ID != h.client.ID || got.Public || got.Created.IsZero() || got.Name != "New" {
		t.Errorf("got %+v, %v", got, err)
	}
	h.must(t, h.own())
	var wrong *oauth.RegistrationError
	if _, err := h.UpdateClient(t.Context(), h.client.ID, func(c *oauth.Client) error { c.Name = ""; return nil }); !errors.As(err, &wrong) {
		t.Errorf("bad record: got %v, want a refusal", err)
	}
	if c, err := h.Client(t.Context(), h.client.ID); err != nil || c.Name != "New" {
		t.Errorf("got %+v, %v, want the record before", c, err)
	}
}

func TestRegisteringAClient(t *testing.T) {
	h := newFixture(t, nil)
	public, secret := h.register(t, oauth.Client{Name: "App", Public: true, RedirectURIs: []string{"https://app.example/"},
		Grants: oauth.AuthorizationCodeGrant})
	if secret != "" || len(public.Secrets) != 0 || len(public.ID) != 36 || public.Created.IsZero() {
		t.Errorf("public: got %+v, %q", public, secret)
	}
	if !oauth.LooksLikeClientSecret(h.secret) || h.client.Secrets[0].Hash != oauth.HashOf(h.secret) {
		t.Error("confidential: the secret is not what is kept")
	}
	if _, _, err := h.CreateClient(t.Context(), oauth.Client{Name: "Bad"}, time.Now()); err == nil {
		t.Error("bad record: got nil, want an error")
	}
	list, err := h.Clients(t.Context(), "", 1)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v, %v, want one", list, err)
	}
	if rest, err := h.Clients(t.Context(), list[0].ID, 10); err != nil || len(rest) != 1 {
		t.Errorf("got %v, %v, want the other", rest, err)
	}
}

// TestAnUnknownClientIsNotRemembered lets another process register a client that was asked for before.
func TestAnUnknownClientIsNotRemembered(t *testing.T) {
	h := newFixture(t, nil)
	r := h.own()
	r.ClientID = "later"
	h.wantFault(t, "before", r, oauth.InvalidClient)
	later := *h.client
	later.ID = "later"
	if err := h.store.CreateClient(t.Context(), &later); err != nil {
		t.Fatal(err)
	}
	h.must(t, r)
}

// TestARecordReadBeforeAChangeIsNotBelieved disables a client between the read of its record and its use.
func TestARecordReadBeforeAChangeIsNotBelieved(t *testing.T) {
	h := newFixture(t, nil)
	once := true
	h.store.between = func() {
		if once {
			once = false
			h.change(t, func(c *oauth.Client) { c.Disabled = true })
		}
	}
	h.wantFault(t, "first use", h.own(), oauth.InvalidClient)
}

func TestChangesOfAnotherProcess(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { changeClientElsewhere(t, shared) })
	}
}

// changeClientElsewhere changes the store behind the back of the process.
func changeClientElsewhere(t *testing.T, shared bool) {
	h := newFixture(t, func(c *token.Config) { c.Shared = shared })
	bearer := h.tokens(t).AccessToken
	h.wantVerdict(t, "before", bearer, token.Admitted)
	disabled := *h.client
	disabled.Disabled = true
	if err := h.store.UpdateClient(t.Context(), &disabled); err != nil {
		t.Fatal(err)
	}
	if _, fault := h.Token(t.Context(), h.own(), time.Now()); fault != nil {
		t.Errorf("shared %t, at once: got %v, want a token", shared, fault)
	}
	time.Sleep(2 * time.Second)
	if _, fault := h.Token(t.Context(), h.own(), time.Now()); (fault != nil) != shared {
		t.Errorf("shared %t, after 2s: got %v", shared, fault)
	}
	if err := h.store.UpdateClient(t.Context(), h.client); err != nil { // the token's use is not to fail for that
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if _, fault := h.Token(t.Context(), h.own(), time.Now()); fault != nil {
		t.Errorf("shared %t, enabled again: got %v, want a token", shared, fault)
	}
	if _, err := h.store.DeleteClient(t.Context(), h.client.ID); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if _, fault := h.Token(t.Context(), h.own(), time.Now()); (fault != nil) != shared {
		t.Errorf("shared %t, deleted: got %v", shared, fault)
	}
	if got := h.Admit(bearer, token.BasicProfile, time.Now()).Verdict; (got == token.TokenInvalid) != shared {
		t.Errorf("shared %t, token of a deleted client: got verdict %d", shared, got)
	}
}
