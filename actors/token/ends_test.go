package token_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// TestEndsOfOneClientAreLimited revokes as many tokens as a client may, and one more. A user's token
// ends all the same, with the user's others at all clients, and nothing of another user.
func TestEndsOfOneClientAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		revoke := func(bearer string) *oauth.Error {
			return f.Revoke(t.Context(), f.credentials(), bearer, time.Now())
		}
		own := func(t *oauth.AccessToken) { t.UserID = 0 }
		brief := func(t *oauth.AccessToken) { t.UserID, t.Expires = 0, t.Issued+60 }
		if fault := revoke(f.seal(brief)); fault != nil {
			t.Fatal(fault)
		}
		f.EndTokens(f.client.ID, 9_998)
		if fault := revoke(f.seal(own)); fault != nil {
			t.Fatal(fault)
		}
		next := f.seal(own)
		refuse := func(what string) {
			t.Helper()
			fault := revoke(next)
			if fault == nil || fault.Status() != 503 || fault.RetryAfter <= 0 {
				t.Errorf("%s: got %v, want 503 and when to retry", what, fault)
			}
			f.wantVerdict(t, what, next, token.InsufficientScope) // it has no user
		}
		refuse("number 10,001")
		users, others := f.seal(nil), f.seal(nil)
		grace := &account.User{Name: "Grace", Created: time.Now()}
		if err := f.store.Store.CreateUser(t.Context(), grace); err != nil {
			t.Fatal(err)
		}
		graces := f.seal(func(t *oauth.AccessToken) {
			t.UserID, t.Epochs.User = grace.ID, grace.Epoch
		})
		if fault := revoke(users); fault != nil {
			t.Errorf("a user's token: got %v", fault)
		}
		f.wantVerdict(t, "a user's token", users, token.TokenInvalid)
		f.wantVerdict(t, "the user's other token", others, token.TokenInvalid)
		f.wantVerdict(t, "another user's token", graces, token.Admitted)
		f.wantVerdict(t, "the user's next token", f.newTokens(t).AccessToken, token.Admitted)
		wrong := f.credentials()
		wrong.Secret = "x"
		if fault := f.Revoke(t.Context(), wrong, next, time.Now()); fault == nil || fault.Status() != 401 {
			t.Errorf("wrong secret: got %v, want 401", fault)
		}
		if fault := revoke(f.newTokens(t).RefreshToken); fault != nil {
			t.Errorf("refresh token: got %v", fault)
		}
		first, firstSecret := f.client, f.secret
		other := f.newSubject(t)
		if fault := revoke(other.tokens.AccessToken); fault != nil {
			t.Errorf("another client: got %v", fault)
		}
		f.client, f.secret = first, firstSecret
		time.Sleep(time.Minute + oauth.EndKept - time.Second)
		synctest.Wait()
		refuse("while the first is kept")
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if fault := revoke(next); fault != nil {
			t.Errorf("after the first has expired: got %v", fault)
		}
		f.wantVerdict(t, "after its revocation", next, token.TokenInvalid)
		next = f.seal(own)
		refuse("the next")
	})
}

// gauge returns the value of a metric.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("got no metric %s", name)
	return 0
}

// TestEndsAreDropped waits until a token and a family have expired that were ended.
func TestEndsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		f := newFixture(t, func(c *token.Config) { c.Metrics = registry })
		tokens := f.newTokens(t)
		for _, bearer := range []string{tokens.AccessToken, tokens.RefreshToken} {
			if fault := f.Revoke(t.Context(), f.credentials(), bearer, time.Now()); fault != nil {
				t.Fatal(fault)
			}
		}
		kept := time.Hour + oauth.EndKept
		for _, step := range []struct {
			wait time.Duration
			want float64
		}{{0, 2}, {kept - time.Second, 2}, {time.Second + time.Minute, 0}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if got := gauge(t, registry, "gatehouse_revocations_held"); got != step.want {
				t.Errorf("%v later: got %v held, want %v", step.wait, got, step.want)
			}
		}
	})
}

func TestRevokingTwiceWritesOnce(t *testing.T) {
	f := newFixture(t, nil)
	bearer := f.newTokens(t).AccessToken
	writes := f.store.writes
	for range 2 {
		if fault := f.Revoke(t.Context(), f.credentials(), bearer, time.Now()); fault != nil {
			t.Fatal(fault)
		}
	}
	if got := f.store.writes - writes; got != 1 {
		t.Errorf("got %d writes, want 1", got)
	}
}

// TestKnownEndIsApplied revokes a token that another process has ended: the store has nothing to
// write, and the response still ends it here.
func TestKnownEndIsApplied(t *testing.T) {
	f := newFixture(t, nil)
	bearer := f.newTokens(t).AccessToken
	f.wantVerdict(t, "before", bearer, token.Admitted)
	says := f.open(t, bearer)
	f.store.mustPerform(&oauth.Revoke{Token: &oauth.TokenEnd{
		ID: says.ID, ClientID: says.ClientID, UserID: 7, Expires: time.Unix(says.Expires, 0),
	}})
	if fault := f.Revoke(t.Context(), f.credentials(), bearer, time.Now()); fault != nil {
		t.Fatal(fault)
	}
	f.wantVerdict(t, "after", bearer, token.TokenInvalid)
}

// TestEndsOutliveRestart starts another Service on the store of one that has ended tokens.
func TestEndsOutliveRestart(t *testing.T) {
	f := newFixture(t, nil)
	first, second, kept := f.newTokens(t), f.newTokens(t), f.newTokens(t)
	for _, bearer := range []string{first.AccessToken, second.RefreshToken} {
		if fault := f.Revoke(t.Context(), f.credentials(), bearer, time.Now()); fault != nil {
			t.Fatal(fault)
		}
	}
	again := start(t, f.store, nil)
	again.wantVerdict(t, "token", first.AccessToken, token.TokenInvalid)
	again.wantVerdict(t, "family", second.AccessToken, token.TokenInvalid)
	again.wantVerdict(t, "the other", kept.AccessToken, token.Admitted)
}
