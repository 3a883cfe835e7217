package token_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// BenchmarkIssue issues access tokens to a client.
func BenchmarkIssue(b *testing.B) {
	f := newFixture(b, nil)
	r := f.ownRequest()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	now := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, fault := f.Token(ctx, r, now); fault != nil {
				b.Error(fault)
			}
		}
	})
}

// BenchmarkIntrospect describes an access token in use.
func BenchmarkIntrospect(b *testing.B) {
	f := newFixture(b, nil)
	bearer := f.newTokens(b).AccessToken
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		about, fault := f.Introspect(f.credentials(), bearer, now)
		if fault != nil || !about.Active {
			b.Fatal(about, fault)
		}
	}
}

// BenchmarkSign signs the claims of an id_token.
func BenchmarkSign(b *testing.B) {
	f := newFixture(b, nil)
	claims := token.IDToken{Issuer: "https://id.example", Subject: "7", Audience: f.client.ID}
	for _, alg := range oauth.IDTokenAlgs {
		b.Run(alg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Sign(alg, token.IDTokenTyp, claims); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
