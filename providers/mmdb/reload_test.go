package mmdb_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

const check = 5 * time.Second

// recorder returns a logger and a function that returns its output so far.
func recorder() (*slog.Logger, func() string) {
	b := &lockedBuffer{}
	return slog.New(slog.NewTextHandler(b, nil)), b.String
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// writeCity writes a City file in which 2.125.160.0/24 is in city.
func writeCity(t *testing.T, path, city string) {
	t.Helper()
	mmdbtest.WriteCity(t, path, map[string]geo.Location{"2.125.160.0/24": {City: city, Lat: 1}})
}

// pass waits for n checks.
func pass(n int) {
	time.Sleep(time.Duration(n) * check)
	synctest.Wait()
}

func TestChangedFileIsReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "city.mmdb")
		built := time.Unix(1_000_000_000, 0)
		writeCity(t, path, "Old")
		setTime(t, path, built)
		p := open(t, mmdb.Config{}, path)
		defer p.Close()
		wantCity(t, p, "2.125.160.1", "Old")

		writeCity(t, path+".new", "New") // same size and time
		setTime(t, path+".new", built)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		pass(2)
		wantCity(t, p, "2.125.160.1", "New")

		writeCity(t, path, "Longer, with the same time")
		setTime(t, path, built)
		pass(2)
		wantCity(t, p, "2.125.160.1", "Longer, with the same time")

		writeCity(t, path, "Later, with the same size.")
		pass(2)
		wantCity(t, p, "2.125.160.1", "Later, with the same size.")

		p.Close()
		p.Close()
		writeCity(t, path, "After Close")
		pass(3)
		wantCity(t, p, "2.125.160.1", "Later, with the same size.")
	})
}

func setTime(t *testing.T, path string, to time.Time) {
	t.Helper()
	if err := os.Chtimes(path, to, to); err != nil {
		t.Fatal(err)
	}
}

func TestUnchangedFileIsNotReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		city, asn := cityAndASN(t)
		logger, logged := recorder()
		p := open(t, mmdb.Config{Logger: logger}, city, asn)
		defer p.Close()
		mmdbtest.WriteASN(t, asn, map[string]mmdbtest.AS{"2.125.160.0/24": {Number: 64500,
			Organization: "New"}})
		pass(2)
		wantCity(t, p, "2.125.160.1", "Boxford")
		if got := single(t, p, "2.125.160.1").Result.Network.AS; got != "AS64500 New" {
			t.Errorf("got %q, want AS64500 New", got)
		}
		if got := logged(); strings.Count(got, "reloaded") != 1 ||
			strings.Contains(got, "city.mmdb") {
			t.Errorf("got log %q, want one line about asn.mmdb", got)
		}
	})
}

func TestFileBeingWrittenIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "city.mmdb")
		writeCity(t, path, "Old")
		logger, logged := recorder()
		p := open(t, mmdb.Config{Logger: logger}, path)
		defer p.Close()
		for n := range 5 { // longer at each check
			if err := os.WriteFile(path, make([]byte, 100*(n+1)), 0o600); err != nil {
				t.Fatal(err)
			}
			pass(1)
		}
		writeCity(t, path, "New")
		pass(1)
		wantCity(t, p, "2.125.160.1", "Old")
		pass(1)
		wantCity(t, p, "2.125.160.1", "New")
		if got := logged(); strings.Contains(got, "WARN") {
			t.Errorf("got log %q, want no warning", got)
		}
	})
}

func TestBrokenFileKeepsOldData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "city.mmdb")
		writeCity(t, path, "Old")
		logger, logged := recorder()
		p := open(t, mmdb.Config{Logger: logger}, path)
		defer p.Close()

		if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
			t.Fatal(err)
		}
		pass(10)
		wantCity(t, p, "2.125.160.1", "Old")
		if got := logged(); strings.Count(got, "WARN") != 1 || !strings.Contains(got, path) {
			t.Errorf("broken: got log %q, want one warning with %s", got, path)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		pass(10)
		wantCity(t, p, "2.125.160.1", "Old")
		if got := logged(); strings.Count(got, "WARN") != 2 {
			t.Errorf("missing: got log %q, want one more warning", got)
		}
		writeCity(t, path, "New")
		pass(2)
		wantCity(t, p, "2.125.160.1", "New")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		pass(2)
		if got := logged(); strings.Count(got, "WARN") != 3 {
			t.Errorf("missing again: got log %q, want one more warning", got)
		}
	})
}

func TestLookupsDuringReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	writeCity(t, path, "Place ")
	p := open(t, mmdb.Config{Check: time.Millisecond}, path)
	ctx, cancel := context.WithCancel(context.Background())
	q := query(t, "2.125.160.1")
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				reply, err := p.Single(context.Background(), q)
				if err != nil ||
					!strings.HasPrefix(reply.Answers[0].Result.Location.City, "Place ") {
					t.Errorf("got %+v, error %v, want a place", reply, err)
					return
				}
				o := p.Find(q.Addr(), time.Now())
				if got := o.AppendJSON(nil, ""); !bytes.Contains(got, []byte(`"city":"Place `)) {
					t.Errorf("got %s, want a place", got)
					return
				}
			}
		})
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, city := range []string{"Place 1", "Place 22", "Place 333"} {
		writeCity(t, path, city)
		for ask(t, p, "2.125.160.1").Result.Location.City != city {
			if time.Now().After(deadline) {
				t.Fatalf("%s was not loaded within 10 s", city)
			}
		}
		o := p.Find(q.Addr(), time.Now())
		if got := o.AppendJSON(nil, ""); !bytes.Contains(got, []byte(`"city":"`+city+`"`)) {
			t.Errorf("got %s after the reload, want %s", got, city)
		}
	}
	cancel()
	readers.Wait()
}
