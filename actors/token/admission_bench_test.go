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
			f := newFixture(b, func(c *Config) { c.MaxActive = 1 << 26 })
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

// BenchmarkAdmitWithEnds admits a token in use while no end is held, or 100,000 of one client.
func BenchmarkAdmitWithEnds(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("ends=%d", n), func(b *testing.B) {
			f := newFixture(b, func(c *Config) { c.MaxActive = 1 << 26 })
			for range n {
				f.revoke(f.token("app", oauth.ViewUser))
			}
			tokens := make([]string, 1000)
			now := time.Now()
			for i := range tokens {
				tokens[i] = f.token("app", oauth.ViewUser)
				f.Admit(tokens[i], BasicProfile, now)
			}
			runtime.GC()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Admit(tokens[i%len(tokens)], BasicProfile, now)
			}
		})
	}
}

// BenchmarkAsk finds a token's actor and asks it, without comparing the token.
func BenchmarkAsk(b *testing.B) {
	f := newFixture(b, func(c *Config) { c.MaxActive = 1 << 26 })
	token, now := f.token("app", oauth.ViewUser), time.Now()
	f.Admit(token, BasicProfile, now)
	id := idOf(token)
	b.ReportAllocs()
	for b.Loop() {
		f.admitInUse(f.directory.find(&id), BasicProfile, now)
	}
}

// BenchmarkRefuseGarbage refuses a token that another key has sealed.
func BenchmarkRefuseGarbage(b *testing.B) {
	f := newFixture(b, func(c *Config) { c.MaxActive = 1 << 26 })
	token, now := foreignToken(), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		f.Admit(token, BasicProfile, now)
	}
}

// foreignToken returns a token that another key with the number of the current one has sealed.
func foreignToken() string {
	key := oauth.NewTokenKey(&oauth.Key{Number: 1, Secret: [32]byte{9}})
	return key.Seal(&oauth.AccessToken{ClientID: "app", Expires: time.Now().Unix() + 3600})
}

// BenchmarkAdmitAt admits requests to GET /api/user and to userinfo.
func BenchmarkAdmitAt(b *testing.B) {
	for name, endpoint := range map[string]Endpoint{"user": BasicProfile, "userinfo": UserInfo} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, func(c *Config) { c.MaxActive = 1 << 26 })
			token, now := f.token("app", oauth.ViewUser|oauth.OpenIDScopes), time.Now()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Admit(token, endpoint, now.Add(time.Duration(i)*time.Second))
			}
		})
	}
}
