package sqlstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// hold keeps the writer busy until the returned function is called.
func hold(s *sqlstore.Store) (release func()) {
	held, free := make(chan struct{}), make(chan struct{})
	first := save()
	first.OnDone(func(error) { close(held); <-free })
	s.Submit(first)
	<-held
	return func() { close(free) }
}

func TestCloseWritesQueue(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			s := open(t, sqlstore.Config{URL: url, Exclusive: true})
			release := hold(s)
			ops := make([]*oauth.SaveCode, 50)
			ends := make(chan error, len(ops))
			for i := range ops {
				ops[i] = save()
				ops[i].OnDone(func(err error) { ends <- err })
				s.Submit(ops[i])
			}
			closed := make(chan error)
			go func() { closed <- s.Close() }()
			var refused error
			for !errors.Is(refused, sqlstore.ErrClosed) { // until Close has begun
				late, ended := save(), make(chan error, 1)
				late.OnDone(func(err error) { ended <- err })
				s.Submit(late)
				select {
				case refused = <-ended:
				default:
					late.Cancel()
				}
			}
			release()
			if err := <-closed; err != nil {
				t.Fatal(err)
			}
			again := open(t, sqlstore.Config{URL: url, Exclusive: true})
			for _, op := range ops {
				if err := <-ends; err != nil {
					t.Errorf("queued write: got %v, want none", err)
				}
				if _, err := again.AuthorizationCode(t.Context(), op.Code.Hash); err != nil {
					t.Errorf("code after a restart: got %v, want none", err)
				}
			}
		})
	}
}

// TestStoreInSynctest checks that a Store and its sweeper work with a fake clock.
func TestStoreInSynctest(t *testing.T) {
	url, _ := sqlite(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, sqlstore.Config{URL: url, SweepInterval: 50 * time.Minute})
		op := save()
		if err := submit(t, s, op); err != nil {
			t.Fatal(err)
		}
		for _, want := range []error{nil, oauth.ErrNotFound} {
			time.Sleep(59 * time.Minute)
			synctest.Wait()
			if _, err := s.AuthorizationCode(t.Context(), op.Code.Hash); !errors.Is(err, want) {
				t.Errorf("code with a lifetime of an hour, at %v: got %v, want %v",
					time.Now(), err, want)
			}
		}
	})
}

// TestCheckpointDuringWrites writes until the checkpointer has copied the log into the database
// file.
func TestCheckpointDuringWrites(t *testing.T) {
	url, path := sqlite(t)
	registry := prometheus.NewRegistry()
	s := open(t, sqlstore.Config{URL: url, Metrics: registry})
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for batch := 0; checkpoints(t, registry) == 0; batch++ {
		if batch == 2000 {
			t.Fatal("got no checkpoint after 2,000,000 codes")
		}
		var ended sync.WaitGroup
		for range 1000 {
			ended.Add(1)
			op := save()
			op.OnDone(func(error) { ended.Done() })
			s.Submit(op)
		}
		ended.Wait()
	}
	if after, err := os.Stat(path); err != nil || after.Size() == before.Size() {
		t.Errorf("database file: got its old size, error %v, want it to grow before Close", err)
	}
}

func checkpoints(t *testing.T, registry *prometheus.Registry) uint64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "gatehouse_store_checkpoint_duration_seconds" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("no metric for checkpoints")
	return 0
}

func TestStoreSweepsPeriodically(t *testing.T) {
	url, _ := sqlite(t)
	registry := prometheus.NewRegistry()
	s := open(t, sqlstore.Config{URL: url, SweepInterval: time.Millisecond, Metrics: registry})
	op := save()
	op.Code.Expires = time.Now().Add(-time.Second)
	if err := submit(t, s, op); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		_, err := s.AuthorizationCode(ctx, op.Code.Hash)
		if errors.Is(err, oauth.ErrNotFound) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, sqlstore.Config{URL: url, Metrics: registry}) // Close unregistered the metrics
}

// TestWriteThatHasBegunIsAwaited lets a commit on SQLite take longer than any time limit. The
// caller must learn of it: it makes requests read the user again, and nobody else would.
func TestWriteThatHasBegunIsAwaited(t *testing.T) {
	url, _ := sqlite(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, sqlstore.Config{URL: url, SweepInterval: time.Hour})
		u := &account.User{Name: "Ada"}
		if err := s.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		err := sqlstore.SetFault(t.Context(), s, func(statement string) error {
			if statement == "COMMIT" {
				time.Sleep(time.Minute)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, before := time.Now(), u.Epoch
		if err := s.ChangeCredentials(ctx, u, account.CredentialChange{EndTokens: true}); err != nil || u.Epoch <= before {
			t.Errorf("got %v after %v, epoch %d, want none", err, time.Since(start), u.Epoch-before)
		}
	})
}

func endToken(client string) *oauth.Revoke {
	var id oauth.TokenID
	rand.Read(id[:])
	return &oauth.Revoke{Token: &oauth.TokenEnd{ID: id, ClientID: client,
		Expires: time.Now().Add(time.Hour)}}
}
