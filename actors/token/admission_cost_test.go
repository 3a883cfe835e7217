//go:build !race

package token

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// TestAdmitAllocatesNothing holds the way of every request of a token in use.
func TestAdmitAllocatesNothing(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.UserScopes)
	now := time.Now()
	d.Admit(token, BasicProfile, now)
	if got := testing.AllocsPerRun(1000, func() { d.Admit(token, DetailedProfile, now) }); got > 0.01 {
		t.Errorf("got %v allocations a request, want none", got)
	}
}

// TestMemoryOfAnIdleActor measures what a token in use costs beside its row.
func TestMemoryOfAnIdleActor(t *testing.T) {
	const n, limit = 100_000, 600
	d := newFixture(t, nil)
	hashes := make([]oauth.Hash, n)
	expires := time.Now().Add(time.Hour)
	for i := range hashes {
		hashes[i] = oauth.HashOf(fmt.Sprint(i))
		d.store.tokens[hashes[i]] = oauth.AccessToken{Hash: hashes[i], ClientID: "app", UserID: 7, Scopes: oauth.UserScopes, Expires: expires}
	}
	before := heap()
	for i := range hashes {
		d.admitAfterLoad(hashes[i], BasicProfile, time.Now())
		d.admitAfterLoad(hashes[i], DetailedProfile, time.Now())
	}
	each := (heap() - before) / n
	t.Logf("%d bytes an actor", each)
	if d.actors() != n || each > limit {
		t.Errorf("got %d bytes for each of %d actors, want at most %d for %d", each, d.actors(), limit, n)
	}
	runtime.KeepAlive(hashes)
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
