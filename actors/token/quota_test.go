package token_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// newQuotaFixture returns a fixture whose client has a quota.
func newQuotaFixture(t *testing.T, quota int) *fixture {
	t.Helper()
	f := newFixture(t, nil)
	f.updateClient(t, func(c *oauth.Client) { c.TokensPerMinute = quota })
	return f
}

// wantThrottled serves a token request that the quota must refuse until wait has passed.
func (f *fixture) wantThrottled(
	t *testing.T, what string, r *oauth.TokenRequest, wait time.Duration,
) {
	t.Helper()
	fault := f.wantFault(t, what, r, oauth.TemporarilyUnavailable)
	if fault.Status() != 429 || fault.RetryAfter != wait || fault.Description == "" ||
		fault.Hint == "" {
		t.Errorf("%s: got %+v, want 429 for %v", what, fault, wait)
	}
}

// TestQuotaCountsAllGrants uses up a quota with one token of each grant. What is refused then is
// not taken, and is accepted in the next window.
func TestQuotaCountsAllGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newQuotaFixture(t, 3)
		unused := f.newCode(t)
		wrong := f.ownRequest()
		wrong.Secret = "x"
		refuse := func() {
			t.Helper()
			f.wantFault(t, "wrong secret", wrong, oauth.InvalidClient)
			badScope := f.ownRequest()
			badScope.Scope = "view-user"
			f.wantFault(t, "wrong scope", badScope, oauth.InvalidScope)
			badCode := f.codeRequest(unused)
			badCode.RedirectURI += "x"
			f.wantFault(t, "wrong redirect_uri", badCode, oauth.InvalidGrant)
			f.wantFault(t, "wrong token", f.refreshRequest("x"), oauth.InvalidGrant)
		}
		refuse() // opens no window
		time.Sleep(10 * time.Second)
		f.mustToken(t, f.ownRequest())
		time.Sleep(50 * time.Second)
		unused = f.newCode(t)
		refuse()
		first := f.newTokens(t)
		second := f.mustToken(t, f.refreshRequest(first.RefreshToken))
		writes := f.store.writes
		for _, wait := range []time.Duration{10 * time.Second, time.Second} {
			f.wantThrottled(t, "client_credentials", f.ownRequest(), wait)
			f.wantThrottled(t, "code", f.codeRequest(unused), wait)
			f.wantThrottled(t, "refresh token", f.refreshRequest(second.RefreshToken), wait)
			refuse()
			time.Sleep(9 * time.Second)
		}
		if f.store.writes != writes {
			t.Errorf("got %d writes for refused requests, want none", f.store.writes-writes)
		}
		f.wantQuotaEvents(t, 1)
		// 8 s of the next window have passed.
		f.mustToken(t, f.codeRequest(unused))
		f.mustToken(t, f.refreshRequest(second.RefreshToken))
		f.mustToken(t, f.ownRequest())
		f.wantThrottled(t, "the next window", f.ownRequest(), time.Minute)
		f.wantQuotaEvents(t, 2)
	})
}

// wantQuotaEvents checks that the audit trail has one event for each window that was used up.
func (f *fixture) wantQuotaEvents(t *testing.T, want int) {
	t.Helper()
	for _, e := range f.store.recorded {
		if e.Action != audit.BudgetReached || e.Subject != audit.OfClient(f.client.ID) ||
			e.Actor != (audit.Actor{Kind: audit.Client, ID: f.client.ID}) {
			t.Errorf("got event %+v, want the client's quota", e)
		}
	}
	if got := len(f.store.recorded); got != want {
		t.Errorf("got %d events, want %d", got, want)
	}
}

// TestQuotaIsExact asks for tokens by two grants from many goroutines.
func TestQuotaIsExact(t *testing.T) {
	const quota, callers, each = 100, 16, 20
	f := newQuotaFixture(t, quota)
	now := time.Now()
	var issued, refused atomic.Int64
	var group sync.WaitGroup
	for i := range callers {
		var codes []string
		for range each * (i % 2) {
			codes = append(codes, f.newCode(t))
		}
		group.Go(func() {
			for n := range each {
				r := f.ownRequest()
				if codes != nil {
					r = f.codeRequest(codes[n])
				}
				switch _, fault := f.Token(context.Background(), r, now); {
				case fault == nil:
					issued.Add(1)
				case fault.Throttled:
					refused.Add(1)
				default:
					t.Error(fault)
				}
			}
		})
	}
	group.Wait()
	if issued.Load() != quota || refused.Load() != callers*each-quota {
		t.Errorf("got %d tokens and %d refusals, want %d and %d", issued.Load(), refused.Load(),
			quota, callers*each-quota)
	}
	if usage := f.ClientUsage(f.client.ID); usage.Issued != quota {
		t.Errorf("got %+v, want %d issued", usage, quota)
	}
}

// TestQuotaCountsIssuedTokensOnly makes the store refuse, fail, or not begin in time. No token is
// counted then, unless the store may still have issued it.
func TestQuotaCountsIssuedTokensOnly(t *testing.T) {
	for _, row := range []struct {
		name    string
		refuse  func(*fixture, *oauth.TokenRequest) *oauth.Error
		want    oauth.Code
		counted bool
	}{
		{"disabled user", func(f *fixture, r *oauth.TokenRequest) *oauth.Error {
			f.disableUser(t, true)
			defer f.disableUser(t, false)
			_, fault := f.Token(context.Background(), r, time.Now())
			return fault
		}, oauth.InvalidGrant, false},
		{"store fails", func(f *fixture, r *oauth.TokenRequest) *oauth.Error {
			f.store.writeError = errors.New("disk full")
			defer func() { f.store.writeError = nil }()
			_, fault := f.Token(context.Background(), r, time.Now())
			return fault
		}, oauth.TemporarilyUnavailable, false},
		{"store does not begin", func(f *fixture, r *oauth.TokenRequest) *oauth.Error {
			f.store.pause()
			defer f.store.flush()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, fault := f.Token(ctx, r, time.Now())
			return fault
		}, oauth.TemporarilyUnavailable, false},
		{"outcome unknown", func(f *fixture, r *oauth.TokenRequest) *oauth.Error {
			f.store.writeError = oauth.ErrUnknownOutcome
			defer func() { f.store.writeError = nil }()
			_, fault := f.Token(context.Background(), r, time.Now())
			return fault
		}, oauth.TemporarilyUnavailable, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newQuotaFixture(t, 2)
				requests := []*oauth.TokenRequest{
					f.refreshRequest(f.newTokens(t).RefreshToken), f.codeRequest(f.newCode(t)),
				}
				for _, r := range requests {
					fault := row.refuse(f, r)
					if fault == nil || fault.Code != row.want || fault.Throttled {
						t.Fatalf("got %v, want %s", fault, row.want)
					}
					if row.counted {
						break
					}
				}
				if usage := f.ClientUsage(f.client.ID); usage.Issued != 1 {
					t.Errorf("got %+v, want one issued", usage)
				}
				if !row.counted {
					f.mustToken(t, f.ownRequest())
				}
				_, fault := f.Token(t.Context(), f.ownRequest(), time.Now())
				if fault == nil || !fault.Throttled {
					t.Errorf("got %v, want the quota used up", fault)
				}
			})
		})
	}
}

// TestLateRefusalLeavesNextWindow ends a write in the window after the one that counts its token.
func TestLateRefusalLeavesNextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newQuotaFixture(t, 2)
		f.mustToken(t, f.ownRequest())
		time.Sleep(58 * time.Second)
		code := f.newCode(t)
		f.store.pause()
		var caller sync.WaitGroup
		caller.Go(func() {
			f.wantFault(t, "late", f.codeRequest(code), oauth.TemporarilyUnavailable)
		})
		synctest.Wait()
		time.Sleep(3 * time.Second)
		f.mustToken(t, f.ownRequest())
		f.store.writeError = errors.New("disk full")
		f.store.flush()
		caller.Wait()
		f.store.writeError = nil
		f.mustToken(t, f.ownRequest())
		f.wantThrottled(t, "third of the window", f.ownRequest(), time.Minute)
	})
}

// TestReuseIsFoundBeyondQuota presents a used code and an outdated refresh token when the quota is
// used up. Each ends its family.
func TestReuseIsFoundBeyondQuota(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.Lifetimes.RefreshGrace = 0 })
	for name, reuse := range map[string]func(code, refresh string) *oauth.TokenRequest{
		"code":          func(code, _ string) *oauth.TokenRequest { return f.codeRequest(code) },
		"refresh token": func(_, refresh string) *oauth.TokenRequest { return f.refreshRequest(refresh) },
	} {
		s := f.newSubject(t)
		newest := f.mustToken(t, f.refreshRequest(s.tokens.RefreshToken))
		f.updateClient(t, func(c *oauth.Client) { c.TokensPerMinute = 1 })
		f.mustToken(t, f.ownRequest())
		f.wantVerdict(t, name+" before", newest.AccessToken, token.Admitted)
		f.wantFault(t, name, reuse(s.code, s.tokens.RefreshToken), oauth.InvalidGrant)
		f.wantVerdict(t, name+" after", newest.AccessToken, token.TokenInvalid)
	}
}

func TestQuotaChangesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		for _, step := range []struct{ quota, issued int }{{0, 7}, {2, 2}, {5, 3}, {1, 0}, {0, 7}} {
			f.updateClient(t, func(c *oauth.Client) { c.TokensPerMinute = step.quota })
			for range step.issued {
				f.mustToken(t, f.ownRequest())
			}
			if step.quota > 0 {
				f.wantThrottled(t, "used up", f.ownRequest(), time.Minute)
			}
		}
	})
}

func TestClientUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		want := func(issued int64, last time.Time) {
			t.Helper()
			if got := f.ClientUsage(f.client.ID); got.Issued != issued || !got.Last.Equal(last) {
				t.Errorf("got %+v, want %d and %v", got, issued, last)
			}
		}
		want(0, time.Time{})
		f.wantFault(t, "refresh token", f.refreshRequest("x"), oauth.InvalidGrant)
		want(0, time.Time{})
		f.mustToken(t, f.ownRequest())
		want(1, time.Now())
		time.Sleep(time.Minute)
		refresh := f.newTokens(t).RefreshToken
		want(2, time.Now())
		time.Sleep(time.Minute)
		f.mustToken(t, f.refreshRequest(refresh))
		last := time.Now()
		want(3, last)
		time.Sleep(time.Minute)
		f.wantFault(t, "wrong scope", &oauth.TokenRequest{Credentials: f.credentials(),
			Grant: oauth.ClientCredentialsGrant, Scope: "view-user"}, oauth.InvalidScope)
		f.updateClient(t, func(c *oauth.Client) { c.Name = "The Shop" })
		want(3, last)
		if got := f.ClientUsage("nobody"); got != (token.Usage{}) {
			t.Errorf("unknown client: got %+v, want none", got)
		}
	})
}
