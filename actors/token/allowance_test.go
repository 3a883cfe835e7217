package token_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/token"
)

// TestAllowances has three nodes share the limit of a token by allowances. Each row does something
// after 60 requests. admitted is of 300 requests more, over all nodes but the one that is gone.
func TestAllowances(t *testing.T) {
	tests := []struct {
		name     string
		change   func(t *testing.T, c *cluster)
		admitted int // at least
		most     int // 0 = admitted
	}{
		{"nothing", func(*testing.T, *cluster) {}, 40, 0},
		{"the holder hands over", func(_ *testing.T, c *cluster) { c.move(1) }, 40, 0},
		{"the holder hands over twice before a request", func(_ *testing.T, c *cluster) {
			c.move(1)
			c.move(2)
		}, 40, 0},
		{"another node leaves", func(t *testing.T, c *cluster) {
			if err := c.nodes[2].GiveBack(context.Background()); err != nil {
				t.Error(err)
			}
			c.change(func() { c.gone = 2 })
		}, 40, 0},
		{"another node leaves after the holder has handed over",
			func(t *testing.T, c *cluster) {
				c.move(1)
				if err := c.nodes[2].GiveBack(context.Background()); err != nil {
					t.Error(err)
				}
				c.change(func() { c.gone = 2 })
			}, 40, 0},
		{"another node fails: what it was granted is lost",
			func(_ *testing.T, c *cluster) { c.change(func() { c.gone = 2 }) }, 25, 40},
		{"the holder fails: what it has counted is known", func(_ *testing.T, c *cluster) { c.claim(1) },
			25, 140},
		{"an older node joins, and takes all", func(_ *testing.T, c *cluster) {
			c.change(func() { c.version = 1 })
			wait(time.Second)
			c.move(2)
		}, 40, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, 0)
				bearer := c.nodes[0].newTokens(t).AccessToken
				c.asks = 0
				before, end := c.admit(t, bearer, token.BasicProfile, 60)
				if before != 60 || c.asks > 8 {
					t.Errorf("admitted %d requests with %d asks, want 60 with at most 8", before, c.asks)
				}
				test.change(t, c)
				after := 0
				for i := range 300 {
					if i%3 == c.gone {
						continue
					}
					a := c.nodes[i%3].Admit(bearer, token.BasicProfile, time.Now())
					if a.Verdict == token.Admitted {
						after++
					}
					if a.Rate.Reset < end-1 || a.Rate.Reset > end {
						t.Fatalf("got %+v, want the end %d", a.Rate, end)
					}
				}
				if after < test.admitted || after > max(test.admitted, test.most) {
					t.Errorf("admitted %d requests more, want %d to %d", after, test.admitted, test.most)
				}
				wait(time.Minute)
				c.change(func() { c.gone = -1 })
				if got, _ := c.admit(t, bearer, token.BasicProfile, 300); got != 100 {
					t.Errorf("admitted %d requests in the next window, want 100", got)
				}
			})
		})
	}
}

// TestAllowanceTells has what a response tells follow what its node knows: the holder and an asker
// that spends its allowance.
func TestAllowanceTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		last := 100
		for i := range 100 {
			a := c.nodes[1].Admit(bearer, token.BasicProfile, time.Now())
			if a.Verdict != token.Admitted || a.Rate.Remaining != last-1 {
				t.Fatalf("request %d: got %+v, want %d remaining", i, a.Rate, last-1)
			}
			last = a.Rate.Remaining
		}
		for node := range 3 {
			a := c.nodes[node].Admit(bearer, token.BasicProfile, time.Now())
			if a.Verdict != token.RateLimited || a.Rate.Remaining != 0 || a.Rate.Wait != 60 {
				t.Errorf("node %d: got %+v, want it refused for 60 s", node, a.Rate)
			}
		}
	})
}

// TestJWTsBesideTheReleaseBefore issues JWTs beside a node of the release before, which opens no
// other part of one than an access token, and without.
func TestJWTsBesideTheReleaseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		n := c.nodes[0]
		n.client, n.secret = n.register(t, oauth.Client{
			Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
			Grants:  oauth.AuthorizationCodeGrant,
			Options: oauth.ClientOptions{JWTAccessTokens: true},
		})
		for version, prefix := range map[int]string{1: "gtat_", partition.Version: "gtjw_"} {
			c.change(func() { c.version = version })
			bearer := n.newTokens(t).AccessToken
			if got := oauth.SealedIn(bearer); !oauth.IsJWT(bearer) || !strings.HasPrefix(got, prefix) {
				t.Errorf("version %d: got %q in %q, want %s…", version, got, bearer, prefix)
			}
			c.change(func() { c.version = partition.Version })
			for _, node := range c.nodes {
				node.wantVerdict(t, "a JWT of version "+strconv.Itoa(version), bearer, token.Admitted)
			}
		}
	})
}
