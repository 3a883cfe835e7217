package people_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// processes are the services of two processes on one database, with one user and one client.
type processes struct {
	*testing.T
	a, b   services
	client string
	user   int64
}

func newProcesses(t *testing.T) *processes {
	url := sqlitetest.URL(t)
	p := &processes{T: t, a: startProcess(t, url), b: startProcess(t, url)}
	client, _, err := p.a.tokens.CreateClient(t.Context(), oauth.Client{
		Name: "App", Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant,
		RedirectURIs: []string{"https://app.example/"},
	}, time.Now())
	p.must(err)
	user, err := p.a.CreateUser(t.Context(), account.User{Name: "Ann", Email: "ann@example.com"},
		password, time.Now())
	p.must(err)
	p.client, p.user = client.ID, user.ID
	return p
}

func startProcess(t *testing.T, url string) services {
	t.Helper()
	s := startServices(t, openStore(t, url), func(_ *people.Config, tokens *token.Config) {
		tokens.OtherWriters = true
	})
	t.Cleanup(func() { s.close(t) })
	return s
}

func (p *processes) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// stored reads the client and the user from the database.
func (p *processes) stored() (*oauth.Client, *account.User) {
	p.Helper()
	clients, err := p.b.tokens.Clients(p.Context(), "", 1)
	p.must(err)
	user, err := p.b.User(p.Context(), p.user)
	p.must(err)
	return clients[0], user
}

func (p *processes) renameClient(s services, name string) error {
	_, err := s.tokens.UpdateClient(p.Context(), p.client,
		func(c *oauth.Client) error { c.Name = name; return nil })
	return err
}

func (p *processes) renameUser(s services, name string) error {
	_, err := s.UpdateUser(p.Context(), p.user,
		func(u *account.User) error { u.Name = name; return nil }, time.Now())
	return err
}

// TestUpdateRetriesAfterConflict changes a record in another process between its read and its
// write.
func TestUpdateRetriesAfterConflict(t *testing.T) {
	p := newProcesses(t)
	before, _ := p.stored()
	calls := 0
	client, err := p.a.tokens.UpdateClient(t.Context(), p.client, func(c *oauth.Client) error {
		if calls++; calls == 1 {
			p.must(p.renameClient(p.b, "Shop"))
			_, _, err := p.b.tokens.RotateSecret(t.Context(), p.client, time.Now())
			p.must(err)
		}
		c.Disabled, c.Version = true, 4711
		return nil
	})
	p.must(err)
	if calls != 2 || !client.Disabled || client.Name != "Shop" ||
		len(client.Secrets) != len(before.Secrets)+1 || client.Version != before.Version+3 {
		t.Errorf("client after %d calls: got %+v, want 2 and all three changes", calls, client)
	}
	calls = 0
	user, err := p.a.UpdateUser(t.Context(), p.user, func(u *account.User) error {
		if calls++; calls == 1 {
			p.must(p.b.DisableUser(t.Context(), p.user, time.Now()))
		}
		u.Bio, u.Version = "b", 4711
		return nil
	}, time.Now())
	p.must(err)
	if calls != 2 || !user.Disabled || user.Bio != "b" || user.Version != 2 {
		t.Errorf("user after %d calls: got %+v, want 2 and both changes", calls, user)
	}
	if c, u := p.stored(); c.Version != client.Version || u.Version != user.Version {
		t.Errorf("got versions %d and %d stored, want %d and %d", c.Version, u.Version,
			client.Version, user.Version)
	}
}

// TestUpdateGivesUpAfterConflicts changes a record in another process after every read.
func TestUpdateGivesUpAfterConflicts(t *testing.T) {
	p := newProcesses(t)
	calls := 0
	_, err := p.a.tokens.UpdateClient(t.Context(), p.client, func(c *oauth.Client) error {
		calls++
		c.Disabled = true
		return p.renameClient(p.b, "App "+strconv.Itoa(calls))
	})
	if !errors.Is(err, oauth.ErrBusy) || calls > 50 {
		t.Errorf("client: got %v after %d calls, want ErrBusy after 50 at most", err, calls)
	}
	calls = 0
	_, err = p.a.UpdateUser(t.Context(), p.user, func(u *account.User) error {
		calls++
		u.Disabled = true
		return p.renameUser(p.b, "Ann "+strconv.Itoa(calls))
	}, time.Now())
	if !errors.Is(err, oauth.ErrBusy) || calls > 50 {
		t.Errorf("user: got %v after %d calls, want ErrBusy after 50 at most", err, calls)
	}
	if c, u := p.stored(); c.Disabled || u.Disabled {
		t.Errorf("got %+v and %+v, want neither disabled", c, u)
	}
}

// TestConcurrentUpdatesOfTwoProcesses makes changes of all kinds in both processes.
func TestConcurrentUpdatesOfTwoProcesses(t *testing.T) {
	p := newProcesses(t)
	for round := range 4 {
		name, disabled := "Round "+strconv.Itoa(round), round%2 == 0
		oldClient, oldUser := p.stored()
		a, b := p.a, p.b
		if round >= 2 {
			a, b = b, a
		}
		var kept oauth.Secret
		var callers sync.WaitGroup
		for _, change := range []func() error{
			func() error { return p.renameClient(a, name) },
			func() error { return p.renameUser(a, name) },
			func() error {
				return a.ResetPassword(t.Context(), p.user,
					"another passphrase "+strconv.Itoa(round), time.Now())
			},
			func() (err error) {
				_, kept, err = b.tokens.RotateSecret(t.Context(), p.client, time.Now())
				if err != nil {
					return err
				}
				return a.tokens.RevokeSecret(t.Context(), p.client, oldClient.Secrets[0].ID)
			},
			func() error {
				_, err := b.tokens.UpdateClient(t.Context(), p.client,
					func(c *oauth.Client) error { c.Disabled = disabled; return nil })
				return err
			},
			func() error {
				if disabled {
					return b.DisableUser(t.Context(), p.user, time.Now())
				}
				return b.EnableUser(t.Context(), p.user, time.Now())
			},
		} {
			callers.Go(func() {
				if err := change(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		callers.Wait()
		client, user := p.stored()
		if client.Name != name || client.Disabled != disabled || len(client.Secrets) != 1 ||
			client.Secrets[0].ID != kept.ID {
			t.Errorf("%s: got %+v, want the name, disabled %t and only secret %s", name, client,
				disabled, kept.ID)
		}
		if user.Name != name || user.Disabled != disabled ||
			user.PasswordHash == oldUser.PasswordHash {
			t.Errorf("%s: got %q, disabled %t, want the name, %t and a new password", name,
				user.Name, user.Disabled, disabled)
		}
		if client.Version != oldClient.Version+4 || user.Version != oldUser.Version+3 {
			t.Errorf("%s: got versions %d and %d, want %d and %d", name, client.Version,
				user.Version, oldClient.Version+4, oldUser.Version+3)
		}
	}
}
