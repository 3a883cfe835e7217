package token

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
			d := newFixture(b, nil)
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
	d := newFixture(b, nil)
	hash := oauth.HashOf(d.token("app", oauth.ViewUser))
	now := time.Now()
	d.admitAfterLoad(hash, BasicProfile, now)
	b.ReportAllocs()
	for b.Loop() {
		d.admitInUse(d.directory.find(&hash), BasicProfile, now)
	}
}

// BenchmarkRefuseGarbage refuses tokens of another key.
func BenchmarkRefuseGarbage(b *testing.B) {
	d := newFixture(b, nil)
	foreign := oauth.Keys{Current: [32]byte{9}}
	token := foreign.NewAccessToken(time.Now().Add(time.Hour))
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		d.Admit(token, BasicProfile, now)
	}
}
