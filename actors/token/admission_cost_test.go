//go:build !race

package token

import (
	"runtime"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// TestAdmitAllocatesNothing admits requests with a token in use.
func TestAdmitAllocatesNothing(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.UserScopes|oauth.OpenIDScopes)
	now := time.Now()
	for endpoint := range limitOf {
		f.Admit(token, Endpoint(endpoint), now)
		got := testing.AllocsPerRun(1000, func() { f.Admit(token, Endpoint(endpoint), now) })
		if got > 0.01 {
			t.Errorf("endpoint %d: got %v allocations a request, want none", endpoint, got)
		}
	}
}

// TestRefuseAllocatesNothing refuses tokens that are not genuine.
func TestRefuseAllocatesNothing(t *testing.T) {
	f := newFixture(t, nil)
	now := time.Now()
	for name, token := range map[string]string{
		"sealed by another key": foreignToken(), "short": "gtat_x", "not a token": "x",
	} {
		got := testing.AllocsPerRun(1000, func() { f.Admit(token, BasicProfile, now) })
		if got > 0.01 {
			t.Errorf("%s: got %v allocations a request, want none", name, got)
		}
	}
}

// TestMemoryPerActor measures the memory of a token in use.
func TestMemoryPerActor(t *testing.T) {
	const n, limit = 20_000, 750
	f := newFixture(t, func(c *Config) { c.MaxActive = 64 * n }) // one user has a 64th
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = f.token("app", oauth.UserScopes)
	}
	before := heap()
	for _, token := range tokens {
		f.Admit(token, BasicProfile, time.Now())
		f.Admit(token, DetailedProfile, time.Now())
	}
	each := (heap() - before) / n
	t.Logf("%d bytes per actor", each)
	if f.actors() != n || each > limit {
		t.Errorf("got %d bytes for each of %d actors, want at most %d for %d", each, f.actors(),
			limit, n)
	}
	runtime.KeepAlive(tokens)
}

// heap returns the number of bytes in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
