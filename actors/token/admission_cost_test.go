//go:build !race

package token

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// TestAdmitAllocatesNothing admits requests with a token in use.
func TestAdmitAllocatesNothing(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.UserScopes)
	now := time.Now()
	f.Admit(token, BasicProfile, now)
	got := testing.AllocsPerRun(1000, func() { f.Admit(token, DetailedProfile, now) })
	if got > 0.01 {
		t.Errorf("got %v allocations a request, want none", got)
	}
}

// TestMemoryPerActor measures the memory of a token in use, without its row.
func TestMemoryPerActor(t *testing.T) {
	const n, limit = 100_000, 600
	f := newFixture(t, nil)
	hashes := make([]oauth.Hash, n)
	expires := time.Now().Add(time.Hour)
	for i := range hashes {
		hashes[i] = oauth.HashOf(fmt.Sprint(i))
		f.store.tokens[hashes[i]] = oauth.AccessToken{
			Hash:     hashes[i],
			ClientID: "app",
			UserID:   7,
			Scopes:   oauth.UserScopes,
			Expires:  expires,
		}
	}
	before := heap()
	for i := range hashes {
		f.admitAfterLoad(hashes[i], nil, BasicProfile, time.Now())
		f.admitAfterLoad(hashes[i], nil, DetailedProfile, time.Now())
	}
	each := (heap() - before) / n
	t.Logf("%d bytes per actor", each)
	if f.actors() != n || each > limit {
		t.Errorf("got %d bytes for each of %d actors, want at most %d for %d", each, f.actors(),
			limit, n)
	}
	runtime.KeepAlive(hashes)
}

// heap returns the number of bytes in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
