package sqlstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// TestConcurrentUpdatesHaveOneWinner updates one version of a record through two Stores on one
// database.
func TestConcurrentUpdatesHaveOneWinner(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			stores := []*sqlstore.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})}
			user, client := &account.User{Name: "Ada"}, &oauth.Client{ID: "app", Name: "App"}
			if err := errors.Join(stores[0].CreateUser(t.Context(), user),
				stores[0].CreateClient(t.Context(), client)); err != nil {
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

func TestConcurrentClaimsHaveOneWinner(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			claimConcurrently(t, []account.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})})
		})
	}
}

// wins calls change concurrently. It fails the test unless one call succeeds and the others return
// conflict.
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
		t.Errorf("got %d changes, want 1", done)
	}
}

// TestConcurrentChallenges sends, tries and takes codes concurrently through two Stores on one
// database.
func TestConcurrentChallenges(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			stores := []*sqlstore.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})}
			now := time.Now()
			for round := range 5 {
				challenges := make([]*account.Challenge, 8)
				counts := count(t, len(challenges), func(i int) error {
					c := &account.Challenge{Hash: [32]byte{byte(round), byte(i)},
						Purpose: account.ForRegistration, Channel: account.Email,
						Address: fmt.Sprintf("ada%d@example.org",
							round), Ends: now.Add(account.ChallengeLifetime)}
					c.Renew("code", now)
					challenges[i] = c
					_, err := stores[i%2].CreateChallenge(t.Context(), c, [32]byte{})
					return err
				})
				if len(counts) != 1 {
					t.Fatalf("got %d codes sent, want 1", len(counts))
				}
				c := challenges[counts[0]]
				if tried := count(t, 16, func(i int) error {
					return stores[i%2].CountTry(t.Context(), c, now)
				}); len(tried) != account.CodeTries {
					t.Errorf("got %d tries, want %d", len(tried), account.CodeTries)
				}
				made := count(t, 8, func(i int) error {
					return stores[i%2].TakeChallenge(t.Context(), c,
						&account.User{Name: "Ada", Email: c.Address}, now)
				})
				if len(made) != 1 {
					t.Errorf("got the code taken %d times, want once", len(made))
				}
			}
		})
	}
}

// TestLinkThatEndsSessionsIsUsedOnce uses a link concurrently through two Stores on one database.
// Another connection holds the user's row, so that both have read the link before one may use it.
func TestLinkThatEndsSessionsIsUsedOnce(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			stores := []*sqlstore.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})}
			u := &account.User{Name: "Ada", Email: "ada@example.org"}
			link := newHash()
			if err := errors.Join(stores[0].CreateUser(t.Context(), u),
				stores[0].ChangeCredentials(t.Context(), u, linkTo(u, link))); err != nil {
				t.Fatal(err)
			}
			release := func() error { return nil }
			if d.name == "PostgreSQL" {
				release = holdRow(t, url, u.ID)
			}
			ends := make(chan error, len(stores))
			for _, s := range stores {
				go func() { ends <- s.UseLink(t.Context(), link) }()
			}
			if d.name == "PostgreSQL" {
				awaitWaiters(t, url, len(stores))
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			if first, second := <-ends, <-ends; (first == nil) == (second == nil) ||
				!errors.Is(errors.Join(first, second), account.ErrNotFound) {
				t.Errorf("got %v and %v, want one use and account.ErrNotFound", first, second)
			}
		})
	}
}

// TestChangeWaitsForEndOfItsSession has a link end all sessions while a change of credentials from
// one of them is under way: nothing changes. Another connection holds the user's row until both
// wait for it, the link first.
func TestChangeWaitsForEndOfItsSession(t *testing.T) {
	url := pgtest.Migrated(t)
	link, change := open(t, sqlstore.Config{URL: url}), open(t, sqlstore.Config{URL: url})
	u := &account.User{Name: "Ada", Email: "ada@example.org"}
	hash, now := newHash(), time.Now()
	if err := link.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	session := &account.Session{Hash: newHash(), UserID: u.ID, Created: now, SignedIn: now,
		Seen: now, Expires: now.Add(time.Hour)}
	_, err := link.CreateSession(t.Context(), session)
	if err := errors.Join(err, link.ChangeCredentials(t.Context(), u, linkTo(u, hash))); err != nil {
		t.Fatal(err)
	}
	release := holdRow(t, url, u.ID)
	used, changed := make(chan error, 1), make(chan error, 1)
	go func() { used <- link.UseLink(t.Context(), hash) }()
	awaitWaiters(t, url, 1)
	go func() {
		next := *u
		next.Email = "eve@example.org"
		changed <- change.ChangeCredentials(t.Context(), &next,
			account.CredentialChange{Session: session.Hash})
	}()
	awaitWaiters(t, url, 2)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := <-used; err != nil {
		t.Errorf("got %v, want the link used", err)
	}
	if err := <-changed; !errors.Is(err, account.ErrNotFound) {
		t.Errorf("got %v, want account.ErrNotFound for a session that has ended", err)
	}
	if kept, err := link.User(t.Context(), u.ID); err != nil || kept.Email != u.Email {
		t.Errorf("got %+v and error %v, want the account as it was", kept, err)
	}
}

// linkTo returns a change that adds a link to end sessions, in a notice to u's e-mail address.
func linkTo(u *account.User, link oauth.Hash) account.CredentialChange {
	return account.CredentialChange{Notices: []account.Notice{{UserID: u.ID, Channel: account.Email,
		To: u.Email, Kind: account.NewBrowser, Made: time.Now(), At: time.Now(), Seed: "seed",
		Link: link}}}
}

// holdRow locks the row of a user in a transaction of PostgreSQL until release.
func holdRow(t *testing.T, url string, user int64) (release func() error) {
	t.Helper()
	tx, err := direct(t, url).BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), `SELECT id FROM users WHERE id = $1 FOR UPDATE`, user)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tx.Rollback
}

// awaitWaiters returns when n sessions of PostgreSQL wait for a lock.
func awaitWaiters(t *testing.T, url string, n int) {
	t.Helper()
	db := direct(t, url)
	for waiting := 0; waiting < n; time.Sleep(time.Millisecond) {
		if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinksOfOlderProgramsWork reads and uses links that were stored without the address that the
// message went to (before migration 23), of users with one address, with both, and with none left.
func TestLinksOfOlderProgramsWork(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			s := open(t, sqlstore.Config{URL: url})
			for name, u := range map[string]*account.User{
				"one address":    {Name: "Ada", Email: "ada@example.org"},
				"both":           {Name: "Ada", Email: "eve@example.org", Phone: "+14155550123"},
				"another number": {Name: "Ada", Phone: "+14155550124"},
			} {
				link := newHash()
				if err := errors.Join(s.CreateUser(t.Context(), u),
					s.ChangeCredentials(t.Context(), u, linkTo(u, link))); err != nil {
					t.Fatal(err)
				}
				if _, err := direct(t, url).ExecContext(t.Context(),
					`UPDATE links SET sent_to = ''`); err != nil {
					t.Fatal(err)
				}
				if l, err := s.Link(t.Context(), link); err != nil || l.UserID != u.ID {
					t.Errorf("%s: got %+v and error %v, want the link", name, l, err)
				}
				if err := s.UseLink(t.Context(), link); err != nil {
					t.Errorf("%s: got %v, want the link used", name, err)
				}
			}
		})
	}
}

// count calls do n times concurrently and returns the calls that succeed. The others must fail with
// an expected error.
func count(t *testing.T, n int, do func(i int) error) (done []int) {
	t.Helper()
	var callers sync.WaitGroup
	errs := make([]error, n)
	for i := range errs {
		callers.Go(func() { errs[i] = do(i) })
	}
	callers.Wait()
	for i, err := range errs {
		var limit *account.SendLimitError
		switch {
		case err == nil:
			done = append(done, i)
		case !errors.As(err, &limit) && !errors.Is(err, account.ErrNotFound) &&
			!errors.Is(err, account.ErrTaken):
			t.Error(err)
		}
	}
	return done
}
