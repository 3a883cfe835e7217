package sqlstore_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// TestLogLimit: the log may be as large as the database, within what the volume has.
func TestLogLimit(t *testing.T) {
	const mb = 1 << 20
	for _, row := range []struct{ free, database, log, want int64 }{
		{100_000 * mb, 0, 0, 16 * mb},
		{100_000 * mb, 5 * mb, 12 * mb, 16 * mb},
		{100_000 * mb, 100 * mb, 0, 100 * mb},
		{100_000 * mb, 5_000 * mb, 0, 256 * mb},
		{60 * mb, 0, 0, 15 * mb},
		{30 * mb, 20 * mb, 10 * mb, 10 * mb},
		{0, 50 * mb, 10 * mb, 10 * mb / 4},
		{0, 50 * mb, 0, 1 * mb},
	} {
		if got := sqlstore.LogLimit(row.free, row.database, row.log); got != row.want {
			t.Errorf("%+v: got %d", row, got)
		}
	}
}

// TestLogStaysSmall writes much to a small database without a pause, until the log was emptied: at
// its limit or somewhat later, as the machine allows.
func TestLogStaysSmall(t *testing.T) {
	url, path := sqlite(t)
	metrics := prometheus.NewRegistry()
	s := open(t, sqlstore.Config{URL: url, Metrics: metrics})
	u := &account.User{Name: "Ada"}
	if err := s.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for i, most := 0, int64(0); size() >= most; i++ {
		if most = size(); i == 2000 {
			t.Fatalf("got a log of %d MB beside a database of less than 1 MB, never emptied", most>>20)
		}
		u.Bio = strings.Repeat(string(rune('a'+i%26)), 200_000)
		if err := s.UpdateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "gatehouse_store_wal_bytes" {
			if got := f.GetMetric()[0].GetGauge().GetValue(); got != float64(info.Size()) {
				t.Errorf("got metric %v, want the size of the file, %d", got, info.Size())
			}
		}
	}
}

// TestFullVolume fills a volume with codes that expire, and waits until they are deleted.
func TestFullVolume(t *testing.T) {
	folder := t.TempDir()
	err := syscall.Mount("gatehouse", folder, "tmpfs", 0, "size=24m")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		return // only root may mount one
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := open(t, sqlstore.Config{URL: "sqlite:" + folder + "/g.db", SweepInterval: time.Hour})
	u := &account.User{Name: "Ada"}
	if err := s.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		fillVolume(t, s)
		if err := s.CheckWritable(t.Context()); !errors.Is(err, sqlstore.ErrFull) {
			t.Errorf("got %v of a full volume, want %v", err, sqlstore.ErrFull)
		}
		_, deleted := s.DeleteSessions(t.Context(), u.ID, [32]byte{})
		for what, err := range map[string]error{
			"delete sessions": deleted,
			"revoke":          submit(t, s, &oauth.Revoke{UserID: u.ID}),
		} {
			if err != nil {
				t.Errorf("%s: got %v on a full volume, want none", what, err)
			}
		}
		if removed, err := s.Sweep(t.Context(), time.Now().Add(2*time.Hour)); err != nil ||
			removed < 100 {
			t.Fatalf("got %d deleted codes and error %v, want them deleted", removed, err)
		}
		<-time.After(1100 * time.Millisecond) // the result of the last check is kept for a second
		if err := s.CheckWritable(t.Context()); err != nil {
			t.Errorf("got %v after the codes are deleted, want none", err)
		}
		if err := submit(t, s, save()); err != nil {
			t.Errorf("got %v after the codes are deleted, want none", err)
		}
	}
}

// fillVolume saves codes in batches until there is no space.
func fillVolume(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	const batch = 30
	uri := "https://shop.example/" + strings.Repeat("a", 10_000)
	for range 1000 {
		done := make(chan error, batch)
		for range batch {
			op := save()
			op.Code.RedirectURI = uri
			op.OnDone(func(err error) { done <- err })
			s.Submit(op)
		}
		for range batch {
			if err := <-done; errors.Is(err, sqlstore.ErrFull) {
				return
			} else if err != nil {
				t.Fatalf("got %v, want %v in time", err, sqlstore.ErrFull)
			}
		}
	}
	t.Fatal("got 300 MB of codes on a volume of 24 MB")
}
