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
	"gatehouse/httpedge/edgetest"
	"gatehouse/providers/sqlstore"
)

// sickAccounts is a store of accounts whose reads of users can be made to fail or to hang.
type sickAccounts struct {
	account.Store
	reading func() error
	reads   atomic.Int32
	sick    atomic.Bool
}

func (s *sickAccounts) User(ctx context.Context, id int64) (*account.User, error) {
	if s.sick.Load() {
		s.reads.Add(1)
		if err := s.reading(); err != nil {
			return nil, err
		}
	}
	return s.Store.User(ctx, id)
}

// TestNotReadyWithoutDatabase: /readyz fails in time while the database cannot be read, says why,
// and recovers with it.
func TestNotReadyWithoutDatabase(t *testing.T) {
	heal := make(chan struct{})
	for name, test := range map[string]struct {
		reading func() error
		least   time.Duration
	}{
		"fails": {func() error { return errors.New("connection refused") }, 0},
		"hangs": {func() error { <-heal; return nil }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			accounts := &sickAccounts{reading: test.reading}
			st := edgetest.NewIdentity(t, func(c *stack.Config) {
				c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
					accounts.Store = s
					return s, accounts
				}
			})
			ready := func(status int, word string) {
				t.Helper()
				begun := time.Now()
				a := send(t, st.Stack, "GET", st.AdminURL+"/readyz", "")
				if a.status != status || a.object(t)["status"] != word {
					t.Errorf("got %d %s, want %d %s", a.status, a.body, status, word)
				}
				if took := time.Since(begun); status == 503 && took < test.least {
					t.Errorf("got a response after %v, want it after %v", took, test.least)
				}
			}
			ready(200, "ready")
			accounts.sick.Store(true)
			var probes sync.WaitGroup
			for range 8 {
				probes.Go(func() { ready(503, "database unreadable") })
			}
			probes.Wait()
			if a := send(t, st.Stack, "GET", st.AdminURL+"/healthz", ""); a.status != 200 {
				t.Errorf("got %d from /healthz, want 200: the process lives", a.status)
			}
			if got := accounts.reads.Load(); test.least > 0 && got != 1 {
				t.Errorf("got %d reads that hang, want 1", got)
			}
			accounts.sick.Store(false)
			if test.least > 0 {
				close(heal)
			}
			for end := time.Now().Add(patience); time.Now().Before(end); {
				if a := send(t, st.Stack, "GET", st.AdminURL+"/readyz", ""); a.status == 200 {
					break
				}
			}
			ready(200, "ready")
			if lost, back := len(st.Log.Records("the database cannot be read: /readyz fails")),
				len(st.Log.Records("the database can be read again")); lost != 1 || back != 1 {
				t.Errorf("got %d lines of its loss and %d of its return, want one each", lost, back)
			}
		})
	}
}
