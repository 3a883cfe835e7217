package people_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
)

func TestConsentsGrow(t *testing.T) {
	h, now := newFixture(t), time.Now()
	for _, c := range []struct{ grant, want oauth.Scopes }{
		{0, 0}, {oauth.ViewUser, oauth.ViewUser}, {oauth.DetailUser, oauth.UserScopes}, {oauth.ViewUser, oauth.UserScopes},
	} {
		if c.grant != 0 {
			if err := h.GrantConsent(t.Context(), h.ann.ID, h.app.ID, c.grant, now); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := h.Consent(t.Context(), h.ann.ID, h.app.ID); oauth.Scopes(got.Scopes) != c.want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, c.want)
		}
	}
}

// letIn makes a client of that name and grants it scopes.
func (h *fixture) letIn(t *testing.T, name string, scopes oauth.Scopes, now time.Time) *oauth.Client {
	t.Helper()
	c := &oauth.Client{ID: uuid.NewString(), Name: name, Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant, Created: now}
	if err := h.store.CreateClient(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := h.GrantConsent(t.Context(), h.ann.ID, c.ID, scopes, now); err != nil {
		t.Fatal(err)
	}
	return c
}

func (h *fixture) connections(t *testing.T) []people.Connection {
	t.Helper()
	all, err := h.Connections(t.Context(), h.ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (h *fixture) codeFor(t *testing.T, clientID string, scopes oauth.Scopes, now time.Time) (string, *oauth.Error) {
	return h.tokens.IssueConsentedCode(t.Context(), oauth.AuthorizationCode{ClientID: clientID, UserID: h.ann.ID, RedirectURI: "https://app.example/",
		Scopes: scopes}, now)
}

func TestConnectionsAreThoseOfTheUser(t *testing.T) {
	h, now := newFixture(t), time.Now().Truncate(time.Millisecond)
	if got := h.connections(t); len(got) != 0 {
		t.Errorf("at first: got %d connections, want none", len(got))
	}
	zoo := h.letIn(t, "zoo", oauth.UserScopes, now.Add(-time.Hour))
	h.letIn(t, "Atlas", oauth.ViewUser, now)
	gone := h.letIn(t, "Gone", oauth.ViewUser, now)
	if err := h.tokens.DeleteClient(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	bo, err := h.CreateUser(t.Context(), account.User{Name: "Bo", Phone: "+14155550123"}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.GrantConsent(t.Context(), bo.ID, h.app.ID, oauth.ViewUser, now); err != nil {
		t.Fatal(err)
	}
	if _, fault := h.codeFor(t, zoo.ID, oauth.ViewUser, now.Add(time.Minute)); fault != nil {
		t.Fatal(fault)
	}
	got := h.connections(t)
	if len(got) != 2 || got[0].Client.Name != "Atlas" || got[1].Client.Name != "zoo" {
		t.Fatalf("got %+v, want Atlas and zoo", got)
	}
	if got[0].Scopes != oauth.ViewUser || got[1].Scopes != oauth.UserScopes {
		t.Errorf("got scopes %v and %v, want what was granted", got[0].Scopes, got[1].Scopes)
	}
	if !got[1].Granted.Equal(now.Add(-time.Hour)) || !got[1].Used.Equal(now.Add(time.Minute)) {
		t.Errorf("got granted %v, used %v, want an hour before and a minute after", got[1].Granted.Sub(now), got[1].Used.Sub(now))
	}
}

func TestDisconnectedClientIsRefusedAtOnce(t *testing.T) {
	h, now := newFixture(t), time.Now()
	if err := h.GrantConsent(t.Context(), h.ann.ID, h.app.ID, oauth.ViewUser, now); err != nil {
		t.Fatal(err)
	}
	other := h.letIn(t, "Other", oauth.ViewUser, now)
	bearer := h.token(t)
	h.wantVerdict(t, "before", bearer, token.Admitted)
	if err := h.Disconnect(t.Context(), h.ann.ID+1, h.app.ID, now); !errors.Is(err, oauth.ErrNotFound) {
		t.Errorf("another user's: got %v, want oauth.ErrNotFound", err)
	}
	h.wantVerdict(t, "after another user's", bearer, token.Admitted)
	for _, want := range []error{nil, oauth.ErrNotFound} {
		if err := h.Disconnect(t.Context(), h.ann.ID, h.app.ID, now); !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		h.wantVerdict(t, "after", bearer, token.TokenInvalid)
	}
	if got := h.connections(t); len(got) != 1 || got[0].Client.ID != other.ID {
		t.Errorf("got %+v, want the other client alone", got)
	}
	for _, id := range []string{"", "none", "a\x00b", "\xff", uuid.NewString()} {
		if err := h.Disconnect(t.Context(), h.ann.ID, id, now); !errors.Is(err, oauth.ErrNotFound) {
			t.Errorf("client %q: got %v, want oauth.ErrNotFound", id, err)
		}
	}
}

// TestCodeEndsWithAConsentThatIsTakenBack while the code is made.
func TestCodeEndsWithAConsentThatIsTakenBack(t *testing.T) {
	h, now := newFixture(t), time.Now()
	app := h.letIn(t, "App", oauth.ViewUser, now)
	h.accounts.beforeConsent = func() {
		h.accounts.beforeConsent = nil
		if err := h.Disconnect(t.Context(), h.ann.ID, app.ID, now); err != nil {
			t.Error(err)
		}
	}
	if _, fault := h.codeFor(t, app.ID, oauth.ViewUser, now); fault == nil || fault.Code != oauth.AccessDenied {
		t.Errorf("got %v, want access_denied", fault)
	}
	if err := h.GrantConsent(t.Context(), h.ann.ID, app.ID, oauth.ViewUser, now); err != nil {
		t.Fatal(err)
	}
	if _, fault := h.codeFor(t, app.ID, oauth.UserScopes, now); fault == nil || fault.Code != oauth.AccessDenied {
		t.Errorf("more than was granted: got %v, want access_denied", fault)
	}
	if err := h.GrantConsent(t.Context(), h.ann.ID, app.ID, oauth.ViewUser, now); err != nil {
		t.Fatal(err)
	}
	code, fault := h.codeFor(t, app.ID, oauth.ViewUser, now)
	if fault != nil {
		t.Fatal(fault)
	}
	if _, err := h.store.AuthorizationCode(context.Background(), oauth.HashOf(code)); err != nil {
		t.Errorf("got %v, want the code kept", err)
	}
}
