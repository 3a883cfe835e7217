// Package storetest says what a store of clients, users and tokens has to do, as tests that run on any of them.
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

// Store is what is tested.
type Store interface {
	oauth.Store
	account.Store
	// Sweep removes what had expired at now and returns how many rows that were.
	Sweep(ctx context.Context, now time.Time) (removed int, err error)
}

// Run runs all tests, each on a Store that open returns: an empty one that does not sweep by itself while the test lasts.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, suite := range []map[string]func(*testing.T, *world){
		codeTests, rotationTests, revocationTests, orderTests, clientTests, userTests, sessionTests, challengeTests, sweepTests,
	} {
		for name, test := range suite {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				t.Cleanup(cancel)
				w := &world{T: t, Store: open(t), ctx: ctx, now: time.Now().UTC().Truncate(time.Millisecond)}
				w.user, w.client = w.newUser(), w.newClient()
				test(t, w)
			})
		}
	}
}

// world is a Store with a user and a client in it.
type world struct {
	*testing.T
	Store
	ctx    context.Context
	now    time.Time
	user   *account.User
	client *oauth.Client
}

func (w *world) newUser() *account.User {
	w.Helper()
	u := &account.User{Name: "Ada", Created: w.now, Updated: w.now}
	w.must(w.CreateUser(w.ctx, u))
	return u
}

func (w *world) newClient() *oauth.Client {
	w.Helper()
	c := &oauth.Client{ID: uuid.NewString(), Name: "App", Created: w.now}
	w.must(w.CreateClient(w.ctx, c))
	return c
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func newHash() (h oauth.Hash) {
	rand.Read(h[:])
	return h
}

// submit queues operations and returns what waits for their ends.
func (w *world) submit(ops ...oauth.Operation) (wait func() []error) {
	ends := make([]chan error, len(ops))
	for i, op := range ops {
		ends[i] = make(chan error, 1)
		op.OnDone(func(err error) { ends[i] <- err })
	}
	for _, op := range ops {
		w.Submit(op)
	}
	return func() []error {
		w.Helper()
		errs := make([]error, len(ops))
		for i, end := range ends {
			select {
			case errs[i] = <-end:
			case <-w.ctx.Done():
				w.Fatalf("operation %d of %d has not ended", i+1, len(ops))
			}
		}
		return errs
	}
}

// do executes operations in order and fails the test when one fails.
func (w *world) do(ops ...oauth.Operation) {
	w.Helper()
	w.must(errors.Join(w.submit(ops...)()...))
}

// together executes operations in one batch: the writer is held at the end of another until they all wait.
func (w *world) together(ops ...oauth.Operation) []error {
	w.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.Issue{Token: w.token()}
	first.OnDone(func(error) { close(held); <-hold })
	w.Submit(first)
	<-held
	wait := w.submit(ops...)
	close(hold)
	return wait()
}

func (w *world) token() oauth.AccessToken {
	return oauth.AccessToken{Hash: newHash(), ClientID: w.client.ID, Scopes: oauth.ServerOperations, Issued: w.now, Expires: w.now.Add(time.Hour)}
}

func (w *world) code() oauth.AuthorizationCode {
	return oauth.AuthorizationCode{
		Hash: newHash(), ClientID: w.client.ID, UserID: w.user.ID, RedirectURI: "https://app.example/back?a=b", Scopes: oauth.ViewUser,
		DefaultScopes: true, CodeChallenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", Expires: w.now.Add(time.Minute),
	}
}

// redeem returns the redemption of a code of w's user and client.
func (w *world) redeem(code oauth.Hash, now time.Time) *oauth.Redeem {
	refresh := newHash()
	family := oauth.Family{
		ID: uuid.NewString(), ClientID: w.client.ID, UserID: w.user.ID, Scopes: oauth.ViewUser, Generation: 1, Advanced: now,
		Expires: now.Add(24 * time.Hour), Ends: now.Add(72 * time.Hour),
	}
	access := w.token()
	access.UserID, access.FamilyID, access.Scopes = w.user.ID, family.ID, oauth.ViewUser
	return &oauth.Redeem{Code: code, Now: now, Family: family, Access: access, Refresh: &refresh}
}

// family saves and redeems a code of w's user and client.
func (w *world) family() *oauth.Redeem {
	w.Helper()
	code := w.code()
	r := w.redeem(code.Hash, w.now)
	w.do(&oauth.SaveCode{Code: code}, r)
	w.outcome("redeem", r.Outcome, oauth.OutcomeDone)
	return r
}

// rotate returns the rotation of a refresh token.
func (w *world) rotate(family oauth.Family, generation int64, now time.Time, grace time.Duration) *oauth.Rotate {
	access := w.token()
	access.UserID, access.FamilyID, access.Scopes = family.UserID, family.ID, family.Scopes
	return &oauth.Rotate{
		FamilyID: family.ID, Generation: generation, Now: now, Grace: grace, Expires: now.Add(24 * time.Hour),
		Access: access, Refresh: newHash(),
	}
}

func (w *world) outcome(what string, got, want oauth.Outcome) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got outcome %d, want %d", what, got, want)
	}
}

// alive checks whether an access token is there.
func (w *world) alive(what string, hash oauth.Hash, want bool) {
	w.Helper()
	_, err := w.AccessToken(w.ctx, hash)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		w.Fatal(err)
	}
	if got := err == nil; got != want {
		w.Errorf("%s: got alive %t, want %t", what, got, want)
	}
}

// revoked checks which access tokens an operation said to have ended, in any order.
func (w *world) revoked(what string, got []oauth.Hash, want ...oauth.Hash) {
	w.Helper()
	left := map[oauth.Hash]bool{}
	for _, h := range want {
		left[h] = true
	}
	for _, h := range got {
		if !left[h] {
			w.Errorf("%s: a token ended that should not, or twice", what)
		}
		delete(left, h)
	}
	if len(left) > 0 {
		w.Errorf("%s: got %d tokens ended, %d are missing", what, len(got), len(left))
	}
}

// gone fails the test unless err is missing.
func (w *world) gone(what string, err, missing error) {
	w.Helper()
	if !errors.Is(err, missing) {
		w.Errorf("%s: got %v, want %v", what, err, missing)
	}
}
