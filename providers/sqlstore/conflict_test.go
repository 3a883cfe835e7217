package sqlstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/storetest"
)

// TestOneOfManyChangesOfARecordIsDone has two Stores on one database write what was made of the same reading.
func TestOneOfManyChangesOfARecordIsDone(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			stores := []*sqlstore.Store{open(t, sqlstore.Config{URL: url}), open(t, sqlstore.Config{URL: url})}
			user, client := &account.User{Name: "Ada"}, &oauth.Client{ID: "app", Name: "App"}
			if err := errors.Join(stores[0].CreateUser(t.Context(), user), stores[0].CreateClient(t.Context(), client)); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				wins(t, account.ErrConflict, func(i int) error {
					changed := *user
					changed.Bio = fmt.Sprint(i)
					return stores[i%2].UpdateUser(t.Context(), &changed)
				})
				wins(t, oauth.ErrConflict, func(i int) error {
					changed := *client
					changed.RedirectURIs = []string{fmt.Sprint("https://app.example/", i)}
					return stores[i%2].UpdateClient(t.Context(), &changed)
				})
				user.Version++
				client.Version++
			}
		})
	}
}

func TestOneOfManyClaimsIsGranted(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			storetest.ClaimAtOnce(t, []account.Store{open(t, sqlstore.Config{URL: url}), open(t, sqlstore.Config{URL: url})})
		})
	}
}

// wins fails the test unless one of several changes at once is done and the others are refused with conflict.
func wins(t *testing.T, conflict error, change func(i int) error) {
	t.Helper()
	var callers sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		callers.Go(func() { errs[i] = change(i) })
	}
	callers.Wait()
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case !errors.Is(err, conflict):
			t.Errorf("got %v, want %v", err, conflict)
		}
	}
	if done != 1 {
		t.Errorf("got %d changes done, want 1", done)
	}
}
