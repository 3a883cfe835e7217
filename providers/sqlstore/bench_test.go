package sqlstore_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// durable are databases that sync to disk.
var durable = []struct {
	name string
	make func(testing.TB) string
}{
	{databases[0].name, databases[0].make},
	{databases[1].name, func(tb testing.TB) string { return pgtest.StartDurable(tb) }},
}

// BenchmarkFsync measures the disk, for comparison with the writer.
func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fsync/s")
}

// BenchmarkRevoke ends access tokens: 64 goroutines each end one after the other.
func BenchmarkRevoke(b *testing.B) {
	for _, d := range durable {
		b.Run(d.name, func(b *testing.B) {
			s := open(b, sqlstore.Config{URL: d.make(b)})
			client := uuid.NewString()
			run(b, "tokens/s", func() oauth.Operation { return endToken(client) }, s.Submit)
		})
	}
}

// BenchmarkEnds reads 100,000 ended access tokens of 100 clients.
func BenchmarkEnds(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			s := open(b, sqlstore.Config{URL: d.make(b), QueueLength: 1 << 30})
			endMany(b, s, 100_000)
			b.ReportAllocs()
			for b.Loop() {
				_, ends, err := s.Ends(b.Context(), time.Now())
				if err != nil || len(ends) != 100_000 {
					b.Fatalf("got %d ends, error %v", len(ends), err)
				}
			}
		})
	}
}

// endMany ends n access tokens of 100 clients.
func endMany(tb testing.TB, s *sqlstore.Store, n int) {
	tb.Helper()
	var clients [100]string
	for i := range clients {
		clients[i] = uuid.NewString()
	}
	var ended sync.WaitGroup
	for i := range n {
		ended.Add(1)
		op := endToken(clients[i%len(clients)])
		op.OnDone(func(err error) {
			if err != nil {
				tb.Error(err)
			}
			ended.Done()
		})
		s.Submit(op)
	}
	ended.Wait()
}

// BenchmarkRedeem redeems saved codes, each for a family and a refresh token.
func BenchmarkRedeem(b *testing.B) {
	for _, d := range durable {
		b.Run(d.name, func(b *testing.B) {
			s := open(b, sqlstore.Config{URL: d.make(b), QueueLength: 1 << 30})
			user := &account.User{Name: "Ada"}
			if err := s.CreateUser(b.Context(), user); err != nil {
				b.Fatal(err)
			}
			client := uuid.NewString()
			codes := saveCodes(b, s, client, user)
			var next atomic.Int64
			run(b, "codes/s", func() oauth.Operation {
				refresh, now := newHash(), time.Now()
				return &oauth.Redeem{
					Code: codes[next.Add(1)-1], Now: now, Refresh: &refresh,
					Family: oauth.Family{ID: uuid.Must(uuid.NewV7()), ClientID: client,
						UserID: user.ID, Generation: 1, Expires: now.Add(time.Hour),
						Ends: now.Add(time.Hour), AccessExpires: now.Add(time.Hour)},
				}
			}, s.Submit)
		})
	}
}

func saveCodes(b *testing.B, s *sqlstore.Store, client string, user *account.User) []oauth.Hash {
	codes := make([]oauth.Hash, b.N)
	var saved sync.WaitGroup
	for i := range codes {
		codes[i] = newHash()
		saved.Add(1)
		op := &oauth.SaveCode{Code: oauth.AuthorizationCode{
			Hash: codes[i], ClientID: client, UserID: user.ID, RedirectURI: "https://app.example/back",
			Epochs:  oauth.Epochs{User: user.Epoch},
			Expires: time.Now().Add(time.Hour),
		}}
		op.OnDone(func(err error) {
			if err != nil {
				b.Error(err)
			}
			saved.Done()
		})
		s.Submit(op)
	}
	saved.Wait()
	return codes
}

func run(b *testing.B, unit string, operation func() oauth.Operation,
	submit func(oauth.Operation)) {
	const goroutines = 64
	var left atomic.Int64
	left.Store(int64(b.N))
	var ended sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range goroutines {
		ended.Go(func() {
			done := make(chan error, 1)
			for left.Add(-1) >= 0 {
				op := operation()
				op.OnDone(func(err error) { done <- err })
				submit(op)
				if err := <-done; err != nil {
					b.Error(err)
					return
				}
				if r, ok := op.(*oauth.Redeem); ok && r.Outcome != oauth.OutcomeDone {
					b.Errorf("got outcome %d", r.Outcome)
				}
			}
		})
	}
	ended.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit)
}
