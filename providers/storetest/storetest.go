// Package storetest is the conformance test suite for stores of clients, users and tokens.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// Store is the interface under test.
type Store interface {
	oauth.Store
	account.Store
	// Sweep deletes the rows that have expired at now and returns their number.
	Sweep(ctx context.Context, now time.Time) (removed int, err error)
}

// Run runs all tests, each with a Store from open. It must be empty, and must not sweep during the
// test.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, suite := range []map[string]func(*testing.T, *fixture){
		codeTests, rotationTests, revocationTests, orderTests, clientTests, userTests, sessionTests,
		challengeTests, sweepTests,
	} {
		for name, test := range suite {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				t.Cleanup(cancel)
				f := &fixture{T: t, Store: open(t), ctx: ctx,
					now: time.Now().UTC().Truncate(time.Millisecond)}
				f.user, f.client = f.newUser(), f.newClient()
				test(t, f)
			})
		}
	}
}

// fixture is a Store with a user and a client.
type fixture struct {
	*testing.T
	Store
	ctx    context.Context
	now    time.Time
	user   *account.User
	client *oauth.Client
}

func (f *fixture) newUser() *account.User {
	f.Helper()
	u := &account.User{Name: "Ada", Created: f.now, Updated: f.now}
	f.must(f.CreateUser(f.ctx, u))
	return u
}

func (f *fixture) newClient() *oauth.Client {
	f.Helper()
	c := &oauth.Client{ID: uuid.NewString(), Name: "App", Created: f.now}
	f.must(f.CreateClient(f.ctx, c))
	return c
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func newHash() (h oauth.Hash) {
	rand.Read(h[:])
	return h
}

// submit submits operations and returns a function that waits for their ends.
func (f *fixture) submit(ops ...oauth.Operation) (wait func() []error) {
	ends := make([]chan error, len(ops))
	for i, op := range ops {
		ends[i] = make(chan error, 1)
		op.OnDone(func(err error) { ends[i] <- err })
	}
	for _, op := range ops {
		f.Submit(op)
	}
	return func() []error {
		f.Helper()
		errs := make([]error, len(ops))
		for i, end := range ends {
			select {
			case errs[i] = <-end:
			case <-f.ctx.Done():
				f.Fatalf("operation %d of %d has not ended", i+1, len(ops))
			}
		}
		return errs
	}
}

// do executes operations in order. It fails the test if one of them fails.
func (f *fixture) do(ops ...oauth.Operation) {
	f.Helper()
	f.must(errors.Join(f.submit(ops...)()...))
}

// inOneBatch executes operations in one batch: it blocks the writer until all of them are queued.
func (f *fixture) inOneBatch(ops ...oauth.Operation) []error {
	f.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.Issue{Token: f.token()}
	first.OnDone(func(error) { close(held); <-hold })
	f.Submit(first)
	<-held
	wait := f.submit(ops...)
	close(hold)
	return wait()
}

func (f *fixture) token() oauth.AccessToken {
	return oauth.AccessToken{Hash: newHash(), ClientID: f.client.ID, Scopes: oauth.ServerOperations,
		Issued: f.now, Expires: f.now.Add(time.Hour)}
}

func (f *fixture) code() oauth.AuthorizationCode {
	return oauth.AuthorizationCode{
		Hash: newHash(), ClientID: f.client.ID, UserID: f.user.ID,
		RedirectURI: "https://app.example/back?a=b", Scopes: oauth.ViewUser,
		DefaultScopes: true, CodeChallenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		Expires: f.now.Add(time.Minute),
	}
}

// redeem returns the redemption of a code for the fixture's user and client.
func (f *fixture) redeem(code oauth.Hash, now time.Time) *oauth.Redeem {
	refresh := newHash()
	family := oauth.Family{
		ID: uuid.NewString(), ClientID: f.client.ID, UserID: f.user.ID, Scopes: oauth.ViewUser,
		Generation: 1, Advanced: now,
		Expires: now.Add(24 * time.Hour), Ends: now.Add(72 * time.Hour),
	}
	access := f.token()
	access.UserID, access.FamilyID, access.Scopes = f.user.ID, family.ID, oauth.ViewUser
	return &oauth.Redeem{Code: code, Now: now, Family: family, Access: access, Refresh: &refresh}
}

// family saves and redeems a code for the fixture's user and client.
func (f *fixture) family() *oauth.Redeem {
	f.Helper()
	code := f.code()
	r := f.redeem(code.Hash, f.now)
	f.do(&oauth.SaveCode{Code: code}, r)
	f.outcome("redeem", r.Outcome, oauth.OutcomeDone)
	return r
}

// rotate returns the rotation of a refresh token.
func (f *fixture) rotate(family oauth.Family, generation int64, now time.Time,
	grace time.Duration) *oauth.Rotate {
	access := f.token()
	access.UserID, access.FamilyID, access.Scopes = family.UserID, family.ID, family.Scopes
	return &oauth.Rotate{
		FamilyID: family.ID, Generation: generation, Now: now, Grace: grace,
		Expires: now.Add(24 * time.Hour),
		Access:  access, Refresh: newHash(),
	}
}

func (f *fixture) outcome(what string, got, want oauth.Outcome) {
	f.Helper()
	if got != want {
		f.Errorf("%s: got outcome %d, want %d", what, got, want)
	}
}

// alive checks whether an access token exists.
func (f *fixture) alive(what string, hash oauth.Hash, want bool) {
	f.Helper()
	_, err := f.AccessToken(f.ctx, hash)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		f.Fatal(err)
	}
	if got := err == nil; got != want {
		f.Errorf("%s: got alive %t, want %t", what, got, want)
	}
}

// revoked checks the access tokens that an operation reported as revoked, in any order.
func (f *fixture) revoked(what string, got []oauth.Hash, want ...oauth.Hash) {
	f.Helper()
	left := map[oauth.Hash]bool{}
	for _, h := range want {
		left[h] = true
	}
	for _, h := range got {
		if !left[h] {
			f.Errorf("%s: got a revoked token that is not wanted, or twice", what)
		}
		delete(left, h)
	}
	if len(left) > 0 {
		f.Errorf("%s: got %d revoked tokens, %d are missing", what, len(got), len(left))
	}
}

// wantError fails the test unless err wraps want.
func (f *fixture) wantError(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: got %v, want %v", what, err, want)
	}
}
