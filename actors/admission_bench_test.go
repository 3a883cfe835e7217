package actors

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// BenchmarkAdmit asks for basic profiles with many tokens in use, each of which is admitted 100 times in its window and
// then refused.
func BenchmarkAdmit(b *testing.B) {
	for _, n := range []int{1, 1_000, 10_000, 200_000} {
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			d := openDoor(b, nil)
			tokens := make([]string, n)
			for i := range tokens {
				tokens[i] = d.token("app", oauth.ViewUser)
				d.Admit(tokens[i], BasicProfile, time.Now())
			}
			now := time.Now()
			runtime.GC()
			b.ReportAllocs()
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				random := rand.New(rand.NewPCG(1, rand.Uint64()))
				for pb.Next() {
					if v := d.Admit(tokens[random.IntN(n)], BasicProfile, now).Verdict; v != Admitted && v != RateLimited {
						b.Errorf("got verdict %d", v)
					}
				}
			})
		})
	}
}

// BenchmarkAsk is the part of an admission that looks for the actor and asks it.
func BenchmarkAsk(b *testing.B) {
	d := openDoor(b, nil)
	hash := oauth.HashOf(d.token("app", oauth.ViewUser))
	now := time.Now()
	d.limits.admit(hash, BasicProfile, now)
	b.ReportAllocs()
	for b.Loop() {
		d.limits.admit(hash, BasicProfile, now)
	}
}

// BenchmarkRefuseGarbage refuses tokens of another key.
func BenchmarkRefuseGarbage(b *testing.B) {
	d := openDoor(b, nil)
	foreign := oauth.Keys{Current: [32]byte{9}}
	token := foreign.NewAccessToken(time.Now().Add(time.Hour))
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		d.Admit(token, BasicProfile, now)
	}
}

// TestAdmitAllocatesNothing holds the way of every request of a token in use.
func TestAdmitAllocatesNothing(t *testing.T) {
	d := openDoor(t, nil)
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
	d := openDoor(t, nil)
	hashes := make([]oauth.Hash, n)
	expires := time.Now().Add(time.Hour)
	for i := range hashes {
		hashes[i] = oauth.HashOf(fmt.Sprint(i))
		d.shelf.tokens[hashes[i]] = oauth.AccessToken{Hash: hashes[i], ClientID: "app", UserID: 7, Scopes: oauth.UserScopes, Expires: expires}
	}
	before := heap()
	for i := range hashes {
		d.limits.admit(hashes[i], BasicProfile, time.Now())
		d.limits.admit(hashes[i], DetailedProfile, time.Now())
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
