package people_test

import (
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// twins are the services twice on one database, as in two processes, with one user and one client.
type twins struct {
	*testing.T
	a, b   services
	client string
	user   int64
}

func openTwins(t *testing.T) *twins {
	url := sqlitetest.URL(t)
	w := &twins{T: t, a: openTwin(t, url), b: openTwin(t, url)}
	client, _, err := w.a.tokens.CreateClient(t.Context(), oauth.Client{
		Name: "App", Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant, RedirectURIs: []string{"https://app.example/"},
	}, time.Now())
	w.must(err)
	user, err := w.a.CreateUser(t.Context(), account.User{Name: "Ann", Email: "ann@example.com"}, password, time.Now())
	w.must(err)
	w.client, w.user = client.ID, user.ID
	return w
}

func openTwin(t *testing.T, url string) services {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url, Migrate: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return startServices(t, store, store, true, nil).stopAtEnd(t)
}

func (w *twins) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// stored returns the client and the user as the database has them.
func (w *twins) stored() (*oauth.Client, *account.User) {
	w.Helper()
	clients, err := w.b.tokens.Clients(w.Context(), "", 1)
	w.must(err)
	user, err := w.b.User(w.Context(), w.user)
	w.must(err)
	return clients[0], user
}

func (w *twins) renameClient(s services, name string) error {
	_, err := s.tokens.UpdateClient(w.Context(), w.client, func(c *oauth.Client) error { c.Name = name; return nil })
	return err
}

func (w *twins) renameUser(s services, name string) error {
	_, err := s.UpdateUser(w.Context(), w.user, func(u *account.User) error { u.Name = name; return nil }, time.Now())
	return err
}

// TestAChangeInBetweenIsKept has the other process change a record that was read and is not yet written.
func TestAChangeInBetweenIsKept(t *testing.T) {
	w := openTwins(t)
	before, _ := w.stored()
	calls := 0
	client, err := w.a.tokens.UpdateClient(t.Context(), w.client, func(c *oauth.Client) error {
		if calls++; calls == 1 {
			w.must(w.renameClient(w.b, "Shop"))
			_, _, err := w.b.tokens.RotateSecret(t.Context(), w.client, time.Now())
			w.must(err)
		}
		c.Disabled, c.Version = true, 4711
		return nil
	})
	w.must(err)
	if calls != 2 || !client.Disabled || client.Name != "Shop" || len(client.Secrets) != len(before.Secrets)+1 || client.Version != before.Version+3 {
		t.Errorf("client after %d calls: got %+v, want 2 and all three changes", calls, client)
	}
	calls = 0
	user, err := w.a.UpdateUser(t.Context(), w.user, func(u *account.User) error {
		if calls++; calls == 1 {
			w.must(w.b.DisableUser(t.Context(), w.user, time.Now()))
		}
		u.Bio, u.Version = "b", 4711
		return nil
	}, time.Now())
	w.must(err)
	if calls != 2 || !user.Disabled || user.Bio != "b" || user.Version != 2 {
		t.Errorf("user after %d calls: got %+v, want 2 and both changes", calls, user)
	}
	if c, u := w.stored(); c.Version != client.Version || u.Version != user.Version {
		t.Errorf("got versions %d and %d stored, want %d and %d", c.Version, u.Version, client.Version, user.Version)
	}
}

// TestChangesInBetweenWithoutEnd has the other process change the record each time that it was read.
func TestChangesInBetweenWithoutEnd(t *testing.T) {
	w := openTwins(t)
	calls := 0
	_, err := w.a.tokens.UpdateClient(t.Context(), w.client, func(c *oauth.Client) error {
		calls++
		c.Disabled = true
		return w.renameClient(w.b, "App "+strconv.Itoa(calls))
	})
	if !errors.Is(err, oauth.ErrBusy) || calls > 50 {
		t.Errorf("client: got %v after %d calls, want ErrBusy after 50 at most", err, calls)
	}
	calls = 0
	_, err = w.a.UpdateUser(t.Context(), w.user, func(u *account.User) error {
		calls++
		u.Disabled = true
		return w.renameUser(w.b, "Ann "+strconv.Itoa(calls))
	}, time.Now())
	if !errors.Is(err, oauth.ErrBusy) || calls > 50 {
		t.Errorf("user: got %v after %d calls, want ErrBusy after 50 at most", err, calls)
	}
	if c, u := w.stored(); c.Disabled || u.Disabled {
		t.Errorf("got %+v and %+v, want neither disabled", c, u)
	}
}

// TestChangesOfTwoProcessesHold makes all kinds of changes at once, in both processes.
func TestChangesOfTwoProcessesHold(t *testing.T) {
	w := openTwins(t)
	for round := range 4 {
		name, disabled := "Round "+strconv.Itoa(round), round%2 == 0
		oldClient, oldUser := w.stored()
		a, b := w.a, w.b
		if round >= 2 {
			a, b = b, a
		}
		var kept oauth.Secret
		var callers sync.WaitGroup
		for _, change := range []func() error{
			func() error { return w.renameClient(a, name) },
			func() error { return w.renameUser(a, name) },
			func() error {
				return a.ResetPassword(t.Context(), w.user, "another passphrase "+strconv.Itoa(round), "", time.Now())
			},
			func() (err error) {
				if _, kept, err = b.tokens.RotateSecret(t.Context(), w.client, time.Now()); err != nil {
					return err
				}
				return a.tokens.RevokeSecret(t.Context(), w.client, oldClient.Secrets[0].ID)
			},
			func() error {
				_, err := b.tokens.UpdateClient(t.Context(), w.client, func(c *oauth.Client) error { c.Disabled = disabled; return nil })
				return err
			},
			func() error {
				if disabled {
					return b.DisableUser(t.Context(), w.user, time.Now())
				}
				return b.EnableUser(t.Context(), w.user, time.Now())
			},
		} {
			callers.Go(func() {
				if err := change(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		callers.Wait()
		client, user := w.stored()
		if client.Name != name || client.Disabled != disabled || len(client.Secrets) != 1 || client.Secrets[0].ID != kept.ID {
			t.Errorf("%s: got %+v, want its name, disabled %t, only secret %s", name, client, disabled, kept.ID)
		}
		if user.Name != name || user.Disabled != disabled || user.PasswordHash == oldUser.PasswordHash {
			t.Errorf("%s: got %q, disabled %t, want its name, %t and another password", name, user.Name, user.Disabled, disabled)
		}
		if client.Version != oldClient.Version+4 || user.Version != oldUser.Version+3 {
			t.Errorf("%s: got versions %d and %d, want %d and %d", name, client.Version, user.Version, oldClient.Version+4, oldUser.Version+3)
		}
	}
}
