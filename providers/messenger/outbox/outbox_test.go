package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/providers/messenger/outbox"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// flaky is a messenger that panics, fails, and then accepts each message.
type flaky struct {
	mu    sync.Mutex
	tries map[string]int
	sent  []string
}

// Send implements account.CodeSender.
func (f *flaky) Send(_ context.Context, m account.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[m.To]++
	switch f.tries[m.To] {
	case 1:
		panic("no connection")
	case 2:
		return errors.New("no connection")
	}
	f.sent = append(f.sent, m.To)
	return nil
}

func (f *flaky) received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.sent))
}

// TestNoticesAreSentOnce has two servers on a database and a messenger that fails at first. Each
// notice is sent once, and one that is older than a day is not sent.
func TestNoticesAreSentOnce(t *testing.T) {
	t.Parallel() // it mostly waits
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{
		URL: sqlitetest.URL(t), Migrate: true, Logger: slog.New(slog.DiscardHandler),
		WriteTimeout: time.Minute, // of a busy machine
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	u := &account.User{Name: "Ann", Email: "ann@example.com", Phone: "+14155550155"}
	if err := store.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	notice := func(to string, at time.Time) account.Notice {
		return account.Notice{UserID: u.ID, Channel: account.Email, To: to,
			Kind: account.PasswordChanged, Made: at, At: at}
	}
	if err := store.ChangeCredentials(t.Context(), u, account.CredentialChange{
		Notices: []account.Notice{notice("a", now), notice("b", now),
			notice("old", now.Add(-account.NoticeLifetime))},
	}); err != nil {
		t.Fatal(err)
	}
	messenger := &flaky{tries: map[string]int{}}
	for range 2 {
		sender, err := outbox.New(outbox.Config{
			Store: store, Messenger: messenger, Logger: slog.New(slog.DiscardHandler),
			Metrics: prometheus.NewRegistry(),
			Message: func(n *account.Notice) account.Message { return account.Message{To: n.To} },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer sender.Stop()
	}
	for end := now.Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		_, waiting, err := store.DueNotices(t.Context(), now, 10)
		if err != nil {
			t.Fatal(err)
		}
		if waiting == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %d notices that wait, want none", waiting)
		}
	}
	if got := messenger.received(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v, want a and b once", got)
	}
	if messenger.tries["old"] != 0 {
		t.Error("got an old notice, want it dropped")
	}
}
