package httpedge_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore"
)

// sickAccounts is a store of accounts whose reads of users, or writes, can be made to fail or to
// hang.
type sickAccounts struct {
	account.Store
	reading func() error
	reads   atomic.Int32
	sick    atomic.Bool
	writes  bool // they are sick, and reads are not
}

func (s *sickAccounts) CheckWritable(ctx context.Context) error {
	if s.sick.Load() && s.writes {
		s.reads.Add(1)
		if err := s.reading(); err != nil {
			return err
		}
	}
	return s.Store.CheckWritable(ctx)
}

func (s *sickAccounts) User(ctx context.Context, id int64) (*account.User, error) {
	if s.sick.Load() && !s.writes {
		s.reads.Add(1)
		if err := s.reading(); err != nil {
			return nil, err
		}
	}
	return s.Store.User(ctx, id)
}

// TestNotReadyWithoutDatabase: /readyz fails in time while the database cannot be read or written,
// says why, and recovers with it.
func TestNotReadyWithoutDatabase(t *testing.T) {
	heal, healWrites := make(chan struct{}), make(chan struct{})
	for name, test := range map[string]struct {
		reading func() error
		least   time.Duration
		writes  bool
	}{
		"fails":       {func() error { return errors.New("connection refused") }, 0, false},
		"hangs":       {func() error { <-heal; return nil }, time.Second, false},
		"write fails": {func() error { return errors.New("disk full") }, 0, true},
		"write hangs": {func() error { <-healWrites; return nil }, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			accounts := &sickAccounts{reading: test.reading, writes: test.writes}
			st := stacktest.NewIdentity(t, func(c *stack.Config) {
				c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
					accounts.Store = s
					return s, accounts
				}
			})
			ready := func(status int, word string) {
				t.Helper()
				begun := time.Now()
				a := st.Send(t, "GET", st.AdminURL+"/readyz", "")
				if a.Status != status || a.Object(t)["status"] != word {
					t.Errorf("got %d %s, want %d %s", a.Status, a.Body, status, word)
				}
				if took := time.Since(begun); status == 503 && took < test.least {
					t.Errorf("got a response after %v, want it after %v", took, test.least)
				}
			}
			ready(200, "ready")
			accounts.sick.Store(true)
			status, line := "database unreadable", "the database cannot be read: /readyz fails"
			if test.writes {
				status, line = "database unwritable", "the database cannot be written: /readyz fails"
			}
			var probes sync.WaitGroup
			for range 8 {
				probes.Go(func() { ready(503, status) })
			}
			probes.Wait()
			if a := st.Send(t, "GET", st.AdminURL+"/healthz", ""); a.Status != 200 {
				t.Errorf("got %d from /healthz, want 200: the process lives", a.Status)
			}
			if got := accounts.reads.Load(); test.least > 0 && got != 1 {
				t.Errorf("got %d reads that hang, want 1", got)
			}
			accounts.sick.Store(false)
			if test.least > 0 {
				close(map[bool]chan struct{}{false: heal, true: healWrites}[test.writes])
			}
			for end := time.Now().Add(stacktest.Patience); time.Now().Before(end); {
				if a := st.Send(t, "GET", st.AdminURL+"/readyz", ""); a.Status == 200 {
					break
				}
			}
			ready(200, "ready")
			if lost, back := len(st.Log.Records(line)),
				len(st.Log.Records("the database can be read and written again")); lost != 1 || back != 1 {
				t.Errorf("got %d lines of its loss and %d of its return, want one each", lost, back)
			}
		})
	}
}
