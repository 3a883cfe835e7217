package sqlstore_test

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var providerTests = map[string]func(*testing.T, *fixture){
	"ProviderRoundTrip":       providerRoundTrip,
	"ProviderAttemptOnce":     providerAttemptOnce,
	"ProviderAttemptsAreGone": providerAttemptsGone,
}

func providerRoundTrip(t *testing.T, f *fixture) {
	p := &oauth.Provider{ID: "acme", Kind: oauth.OpenIDProvider, Issuer: "https://acme.example",
		ClientID: "gate", Secret: "hunter2", SecretSet: f.now.UTC(), Label: "Acme “Ltd”",
		AllowedDomains: []string{"acme.example"}, TrustEmail: true, CreateAccounts: true,
		Groups: map[string]string{"A": "a"}, Set: "s", Created: f.now}
	f.must(f.SaveProvider(f.ctx, p))
	bare := &oauth.Provider{ID: "bare", Kind: oauth.GitHubProvider, Issuer: oauth.GitHubIssuer,
		ClientID: "x", Created: f.now}
	f.must(f.SaveProvider(f.ctx, bare))
	all, err := f.Providers(f.ctx)
	if err != nil || !reflect.DeepEqual(all, []*oauth.Provider{p, bare}) {
		t.Errorf("got %+v and error %v, want %+v and %+v", all, err, p, bare)
	}
	again := *p
	again.Version = 0
	f.wantError("provider", f.SaveProvider(f.ctx, &again), oauth.ErrConflict)
	again = *p
	again.Secret = "hunter3"
	f.must(f.SaveProvider(f.ctx, &again))
	f.wantError("provider", f.SaveProvider(f.ctx, p), oauth.ErrConflict)
	if all, err := f.Providers(f.ctx); err != nil || all[0].Secret != "hunter3" || all[0].Version != 2 {
		t.Errorf("got %+v and error %v, want the other secret", all, err)
	}
	f.must(f.DeleteProvider(f.ctx, "acme"))
	f.wantError("provider", f.DeleteProvider(f.ctx, "acme"), oauth.ErrNotFound)
	if all, err := f.Providers(f.ctx); err != nil || len(all) != 1 {
		t.Errorf("got %+v and error %v, want the other one", all, err)
	}
}

func (f *fixture) attempt(user int64) *oauth.ProviderAttempt {
	f.Helper()
	a := &oauth.ProviderAttempt{Hash: oauth.HashOf(account.NewSecret()), Browser: [32]byte{1},
		Provider: "acme", Purpose: "sign_in", Session: [32]byte{2}, Query: "scope=ü&x=y", UserID: user,
		Identity: `{"x":1}`, Ends: f.now.Add(time.Minute)}
	f.must(f.CreateAttempt(f.ctx, a))
	return a
}

func providerAttemptOnce(t *testing.T, f *fixture) {
	a := f.attempt(0)
	if got, err := f.Attempt(f.ctx, a.Hash, a.Browser); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("got %+v and error %v, want %+v", got, err, a)
	}
	_, err := f.Attempt(f.ctx, a.Hash, [32]byte{9})
	f.wantError("provider", err, oauth.ErrNotFound)
	_, err = f.TakeAttempt(f.ctx, a.Hash, [32]byte{9})
	f.wantError("provider", err, oauth.ErrNotFound)
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := f.TakeAttempt(f.ctx, a.Hash, a.Browser); err == nil && reflect.DeepEqual(got, a) {
				taken.Add(1)
			}
		})
	}
	if all.Wait(); taken.Load() != 1 {
		t.Errorf("got it %d times, want once", taken.Load())
	}
}

func providerAttemptsGone(t *testing.T, f *fixture) {
	u := &account.User{Name: "Ann", Email: "ann@example.com", Created: f.now, Updated: f.now}
	f.must(f.CreateUser(f.ctx, u))
	of, ended := f.attempt(u.ID), f.attempt(0)
	f.must(f.DeleteUser(f.ctx, u.ID, [32]byte{}))
	_, err := f.Attempt(f.ctx, of.Hash, of.Browser)
	f.wantError("provider", err, oauth.ErrNotFound)
	if _, err := f.Sweep(f.ctx, ended.Ends); err != nil {
		t.Fatal(err)
	}
	_, err = f.Attempt(f.ctx, ended.Hash, ended.Browser)
	f.wantError("provider", err, oauth.ErrNotFound)
}
