package stack_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
	"gatehouse/providers/mmdb/update"
	"gatehouse/providers/ptr"
)

// nobody is the address of no caller.
func nobody() netip.Addr { return netip.Addr{} }

// filesOnly returns a service of offline files, which know 9.0.0.0/8, without listeners.
func filesOnly(t *testing.T, change func(*stack.Lookups)) *stack.Stack {
	t.Helper()
	path := filepath.Join(t.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(t, path, map[string]geo.Location{"9.0.0.0/8": {City: "Boxford"}})
	c := stack.Defaults()
	c.Identity, c.Log, c.Lookups.Upstream.Tier = nil, new(bytes.Buffer), ""
	c.Lookups.Files, c.Lookups.Reverse = mmdb.Config{Files: []string{path}}, ptr.Config{}
	change(c.Lookups)
	s, err := stack.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// TestFilesAreKeptUpToDate waits until a new file of a publisher is in use, and its age and update
// are counted.
func TestFilesAreKeptUpToDate(t *testing.T) {
	next := filepath.Join(t.TempDir(), "next.mmdb")
	mmdbtest.WriteCity(t, next, map[string]geo.Location{"9.0.0.0/8": {City: "Newtown"}, "10.0.0.0/8": {City: "x"}})
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, next)
	}))
	defer publisher.Close()
	s := filesOnly(t, func(c *stack.Lookups) {
		c.Files.Check = 10 * time.Millisecond
		c.Update = &update.Config{Interval: time.Millisecond, State: filepath.Join(t.TempDir(), "state"),
			Sources: []update.Source{{File: c.Files.Files[0], URL: publisher.URL}}}
	})
	for {
		found := s.Lookups.Lookup("9.1.1.1", nobody, time.Now())
		if found.Err == nil && bytes.Contains(found.AppendJSON(nil, "9.1.1.1"), []byte("Newtown")) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for seen := 0; seen < 2; time.Sleep(10 * time.Millisecond) { // the update is counted at its end
		families, err := s.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		seen = 0
		for _, f := range families {
			for _, m := range f.Metric {
				if f.GetName() == "gatehouse_mmdb_built_timestamp_seconds" && m.GetGauge().GetValue() > 1e9 ||
					f.GetName() == "gatehouse_mmdb_updates_total" && m.GetCounter().GetValue() > 0 {
					seen++
				}
			}
		}
	}
}

// TestResolverThatHangs looks up addresses and domains whose names no server resolves.
func TestResolverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := filesOnly(t, func(c *stack.Lookups) {
			c.Files.Resolver = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		var texts []string
		for i := range 50 {
			texts = append(texts, fmt.Sprintf("9.0.0.%d", i))
			if i%2 == 0 {
				texts[i] = fmt.Sprintf("host-%d.example.com", i)
			}
		}
		began, done := time.Now(), make(chan []geo.Outcome)
		go func() {
			outcomes := make([]geo.Outcome, len(texts))
			s.Lookups.LookupAll(texts, nobody, began, outcomes)
			done <- outcomes
		}()
		synctest.Wait()
		if o := s.Lookups.Lookup("9.9.9.9", nobody, began); o.Err != nil || time.Since(began) > 0 {
			t.Errorf("another address: got %v after %v, want its result at once", o.Err, time.Since(began))
		}
		for i, o := range <-done {
			switch isAddress := i%2 == 1; {
			case isAddress && o.Err != nil:
				t.Errorf("%s: got %v", texts[i], o.Err)
			case !isAddress && (o.Err == nil || o.Err.Code != geo.CodeProviderUnreachable &&
				o.Err.Code != geo.CodeOverloaded):
				t.Errorf("%s: got %v, want it to fail alone", texts[i], o.Err)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("got the response after %v, want the lookup timeout at most", took)
		}
	})
}
