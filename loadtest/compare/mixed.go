package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"gatehouse/actors/oauth"
)

// part is one kind of requests in a mix.
type part struct {
	kind  string // see kindOf
	share int    // percent of the requests
	of    *trial // with the same requests alone
}

var mixedParts = []part{
	{"/api/lookup", 60, &hitTrial},
	{"/api/user", 20, &profileTrial},
	{"/oauth/introspect", 10, &introspectTrial},
	{"/oauth/token", 8, &tokenTrial},
	{"/api/bulk", 2, &bulkTrial},
}

// mixedPerToken is how many requests of the mix use each access token once for a profile.
const mixedPerToken = 5

// mixedTrial is what a node serves that does everything: mostly cached lookups.
var mixedTrial = trial{
	name: "mixed", requests: 100_000, tokens: accessTokens, requestsPerToken: mixedPerToken,
	keys: cachedKeys, upstream: true, parts: mixedParts,
	prepare: func(p *plan) (requests [][]byte, err error) {
		p.allRoles = true
		p.flags = append(p.flags, "--ip-provider=sim", "--ip-api-base="+p.upstream)
		return requests, p.makeIdentity(oauth.ClientOptions{}, func(db *identity) error {
			// Each token is used for both profiles and introspection.
			tokens, err := db.seal(p.tokens, oauth.UserScopes)
			if err != nil {
				return err
			}
			kinds := map[string][][]byte{
				"/api/lookup":  lookups(p.keys),
				"/oauth/token": {db.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}})},
				"/api/bulk":    bulks(p.keys),
			}
			for _, token := range tokens {
				kinds["/api/user"] = append(kinds["/api/user"],
					get("/api/user", "Authorization: Bearer "+token+"\r\n"))
				kinds["/oauth/introspect"] = append(kinds["/oauth/introspect"],
					db.post("/oauth/introspect", url.Values{"token": {token}}))
			}
			requests = mix(mixedParts, kinds, mixedPerToken*p.tokens)
			return nil
		})
	},
}

// mix returns n requests, those of each kind in rotation. Each hundred has the shares of the parts,
// in an order of its own.
func mix(parts []part, kinds map[string][][]byte, n int) (mixed [][]byte) {
	var hundred []string
	for _, p := range parts {
		hundred = append(hundred, slices.Repeat([]string{p.kind}, p.share)...)
	}
	random, next := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	for len(mixed) < n {
		random.Shuffle(len(hundred), func(i, j int) {
			hundred[i], hundred[j] = hundred[j], hundred[i]
		})
		for _, kind := range hundred {
			mixed = append(mixed, kinds[kind][next[kind]%len(kinds[kind])])
			next[kind]++
		}
	}
	return mixed
}

// reportParts prints the response times of each kind of a mix.
func reportParts(t *trial, m medians, other string) {
	for _, p := range t.parts {
		raw, gatehouse := m.raw.p99[p.kind], m.gatehouse.p99[p.kind]
		fmt.Printf("%3d %% %-18s p99: %7s %9v   gatehouse %9v   %.2f times\n", p.share, p.kind, other,
			raw.Round(time.Microsecond), gatehouse.Round(time.Microsecond),
			float64(gatehouse)/float64(raw))
	}
}
