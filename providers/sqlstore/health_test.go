package sqlstore_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/providers/sqlstore"
)

// TestProbesAreRare: there is at most one probe a second, and none while other writes succeed. A
// write that the database refuses shows at once.
func TestProbesAreRare(t *testing.T) {
	for _, database := range databases {
		t.Run(database.name, func(t *testing.T) {
			s := open(t, sqlstore.Config{URL: database.make(t), SweepInterval: time.Hour})
			var probes, saves atomic.Int64
			var fail atomic.Bool
			err := sqlstore.SetFault(t.Context(), s, func(statement string) error {
				switch {
				case strings.HasPrefix(statement, "INSERT INTO counters (name, value) VALUES"):
					probes.Add(1)
				case strings.Contains(statement, "INSERT INTO authorization_codes"):
					saves.Add(1)
				}
				if fail.Load() && statement == "COMMIT" {
					return errors.New("disk full")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(1100 * time.Millisecond) // the writes of the start are forgotten
			begun := time.Now()
			for range 100 {
				if err := s.CheckWritable(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got, most := probes.Load(), 1+int64(time.Since(begun)/time.Second); got < 1 ||
				got > most {
				t.Errorf("got %d probes, want 1 to %d", got, most)
			}
			probes.Store(0)
			begun = time.Now()
			for range 50 {
				if err := errors.Join(submit(t, s, save()), s.CheckWritable(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			if got, most := probes.Load(), int64(time.Since(begun)/time.Second); got > most {
				t.Errorf("got %d probes beside writes, want %d at most", got, most)
			}
			fail.Store(true)
			if err := submit(t, s, save()); err == nil {
				t.Fatal("got a write without a commit")
			}
			if err := s.CheckWritable(t.Context()); err == nil ||
				!strings.Contains(err.Error(), "disk full") {
				t.Errorf("got %v after a write has failed, want its error", err)
			}
			fail.Store(false)
			for end := time.Now().Add(time.Minute); s.CheckWritable(t.Context()) != nil; {
				if time.Now().After(end) {
					t.Fatal("got no end of the failure")
				}
				<-time.After(50 * time.Millisecond)
			}
		})
	}
}
