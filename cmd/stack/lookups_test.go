package stack_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
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
