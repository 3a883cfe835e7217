package token

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// BenchmarkAdmit requests basic profiles with many tokens in use. Each token is admitted 100 times,
// then refused, because its window does not end.
func BenchmarkAdmit(b *testing.B) {
	for _, n := range []int{1, 1_000, 10_000, 200_000} {
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			f := newFixture(b, nil)
			tokens := make([]string, n)
			for i := range tokens {
				tokens[i] = f.token("app", oauth.ViewUser)
				f.Admit(tokens[i], BasicProfile, time.Now())
			}
			now := time.Now()
			runtime.GC()
			b.ReportAllocs()
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				random := rand.New(rand.NewPCG(1, rand.Uint64()))
				for pb.Next() {
					v := f.Admit(tokens[random.IntN(n)], BasicProfile, now).Verdict
					if v != Admitted && v != RateLimited {
						b.Errorf("got verdict %d", v)
					}
				}
			})
		})
	}
}

// BenchmarkAsk finds a token's actor and asks it, without hashing the token.
func BenchmarkAsk(b *testing.B) {
	f := newFixture(b, nil)
	hash := oauth.HashOf(f.token("app", oauth.ViewUser))
	now := time.Now()
	f.admitAfterLoad(hash, nil, BasicProfile, now)
	b.ReportAllocs()
	for b.Loop() {
		f.admitInUse(f.directory.find(&hash), BasicProfile, now)
	}
}

// BenchmarkRefuseGarbage refuses a token that another key has signed.
func BenchmarkRefuseGarbage(b *testing.B) {
	f := newFixture(b, nil)
	foreign := oauth.Keys{Current: [32]byte{9}}
	token := foreign.NewAccessToken(time.Now().Add(time.Hour))
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		f.Admit(token, BasicProfile, now)
	}
}
