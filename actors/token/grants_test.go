package token_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

func TestEachGrantGetsItsTokens(t *testing.T) {
	h := newFixture(t, nil)
	own := h.must(t, &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant})
	if own.AccessToken == "" || own.RefreshToken != "" || own.Scopes != 0 || own.ShowScope || own.ExpiresIn != time.Hour {
		t.Errorf("client_credentials: got %+v", own)
	}
	first := h.tokens(t)
	if first.RefreshToken == "" || first.Scopes != oauth.ViewUser || first.ShowScope {
		t.Errorf("authorization_code: got %+v", first)
	}
	h.wantVerdict(t, "first access token", first.AccessToken, token.Admitted)
	second := h.must(t, h.refreshRequest(first.RefreshToken))
	if second.RefreshToken == "" || second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken || !second.ShowScope {
		t.Errorf("refresh_token: got %+v", second)
	}
	asked := h.refreshRequest(second.RefreshToken)
	asked.Scope = "view-user"
	if third := h.must(t, asked); third.ShowScope {
		t.Errorf("refresh_token with the same scope: got %+v", third)
	}
}

func TestAnAccessTokenLastsAsLongAsItSays(t *testing.T) {
	h := newFixture(t, nil)
	now := time.Date(2026, 11, 21, 12, 0, 0, 999_999_999, time.UTC)
	own, fault := h.Token(t.Context(), &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant}, now)
	if fault != nil {
		t.Fatal(fault)
	}
	keys, _ := h.store.AccessTokenKeys(t.Context())
	expires, _ := keys.CheckAccessToken(own.AccessToken)
	row, err := h.store.AccessToken(t.Context(), oauth.HashOf(own.AccessToken))
	want := now.Truncate(time.Second).Add(own.ExpiresIn)
	if err != nil || own.ExpiresIn != time.Hour || !expires.Equal(want) || !row.Expires.Equal(want) {
		t.Errorf("got %v and %v, want %v", expires, row.Expires, want)
	}
	for at, active := range map[time.Time]bool{want.Add(-1): true, want: false} {
		got, fault := h.Introspect(h.credentials(), own.AccessToken, at)
		if fault != nil || got.Active != active {
			t.Errorf("at %v: got %+v, %v, want active %t", at, got, fault, active)
		}
		if verdict := h.Admit(own.AccessToken, token.BasicProfile, at).Verdict; (verdict == token.TokenExpired) == active {
			t.Errorf("at %v: got verdict %v, want active %t", at, verdict, active)
		}
	}
}

func TestAnOperatorsTokenIsShort(t *testing.T) {
	h := newFixture(t, nil)
	operator, secret := h.register(t, oauth.Client{
		Name: "operator", Operator: true, Scopes: oauth.ServerOperations, Grants: oauth.ClientCredentialsGrant,
	})
	answer := h.must(t, &oauth.TokenRequest{
		Credentials: oauth.Credentials{ClientID: operator.ID, Secret: secret}, Grant: oauth.ClientCredentialsGrant, Scope: "server-operations",
	})
	if answer.ExpiresIn != 5*time.Minute {
		t.Errorf("got %v, want 5m", answer.ExpiresIn)
	}
}

// TestLifetimes follows a code and its family of refresh tokens through their lives.
func TestLifetimes(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		refresh time.Duration // from the last use; the family lasts 48 hours in all
		uses    []time.Duration
		ends    []time.Duration
	}{
		{24 * time.Hour, []time.Duration{23 * time.Hour, 46 * time.Hour}, []time.Duration{24 * time.Hour, 47 * time.Hour, 48 * time.Hour}},
		{72 * time.Hour, []time.Duration{time.Hour}, []time.Duration{48 * time.Hour, 48 * time.Hour}},
	} {
		h := newFixture(t, func(c *token.Config) { c.Lifetimes.RefreshToken = row.refresh })
		code, _ := h.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: h.client.ID, UserID: 7,
			RedirectURI: "https://shop.example/cb", Scopes: oauth.ViewUser}, start)
		if got := h.store.codes[oauth.HashOf(code)].Expires; !got.Equal(start.Add(time.Minute)) {
			t.Errorf("code: got %v, want a minute", got.Sub(start))
		}
		request := h.codeRequest(code)
		for i, end := range row.ends {
			at := start
			if i > 0 {
				at = start.Add(row.uses[i-1])
			}
			answer, fault := h.Token(t.Context(), request, at)
			if fault != nil {
				t.Fatal(fault)
			}
			for _, f := range h.store.families {
				if !f.Expires.Equal(start.Add(end)) || !f.Ends.Equal(start.Add(48*time.Hour)) {
					t.Errorf("use %d: got %v of %v, want %v of 48h", i, f.Expires.Sub(start), f.Ends.Sub(start), end)
				}
			}
			request = h.refreshRequest(answer.RefreshToken)
		}
	}
}

// TestTheGraceOfAnAdvance refreshes with one token again and again, as a client does that loses the answers.
func TestTheGraceOfAnAdvance(t *testing.T) {
	h := newFixture(t, nil)
	now := time.Now()
	r := h.refreshRequest(h.tokens(t).RefreshToken)
	for _, after := range []time.Duration{0, time.Second, 9 * time.Second} {
		if _, fault := h.Token(t.Context(), r, now.Add(after)); fault != nil {
			t.Errorf("after %v: got %v, want tokens", after, fault)
		}
	}
	if _, fault := h.Token(t.Context(), r, now.Add(10*time.Second)); fault == nil || fault.Code != oauth.InvalidGrant {
		t.Errorf("after 10s: got %v, want invalid_grant", fault)
	}
}

func TestAssumedScopesAreShown(t *testing.T) {
	h := newFixture(t, nil)
	code, fault := h.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: h.client.ID, UserID: 7, DefaultScopes: true,
		RedirectURI: "https://shop.example/cb", Scopes: oauth.ViewUser}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	if got := h.must(t, h.codeRequest(code)); !got.ShowScope {
		t.Error("got no scope, want it")
	}
}

// TestAClientThatLostAScope holds that a code grants no more than the client may still ask for.
func TestAClientThatLostAScope(t *testing.T) {
	h := newFixture(t, nil)
	code := h.code(t)
	h.change(t, func(c *oauth.Client) { c.Scopes = oauth.DetailUser })
	if got := h.must(t, h.codeRequest(code)); got.Scopes != 0 || !got.ShowScope {
		t.Errorf("got %+v, want no scope, shown", got)
	}
}

func TestNoRefreshTokenForWhoMayNotUseIt(t *testing.T) {
	h := newFixture(t, nil)
	if _, err := h.UpdateClient(t.Context(), h.client.ID, func(c *oauth.Client) error {
		c.Grants = oauth.AuthorizationCodeGrant
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := h.tokens(t); got.RefreshToken != "" {
		t.Error("got a refresh token, want none")
	}
}

// TestTwoRedemptionsInOneBatch holds that one of two gets tokens, and that these end with the other's refusal.
func TestTwoRedemptionsInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, nil)
		code := h.code(t)
		h.store.hold()
		var answers [2]*oauth.TokenResponse
		var faults [2]*oauth.Error
		var callers sync.WaitGroup
		for i := range answers {
			callers.Go(func() {
				answers[i], faults[i] = h.Token(context.Background(), h.codeRequest(code), time.Now())
			})
			synctest.Wait()
		}
		if got := len(h.store.waiting); got != 2 {
			t.Fatalf("got %d operations waiting, want 2", got)
		}
		h.store.flush()
		callers.Wait()
		if faults[0] != nil || faults[1] == nil || faults[1].Code != oauth.InvalidGrant {
			t.Fatalf("got %v and %v, want tokens and invalid_grant", faults[0], faults[1])
		}
		h.wantVerdict(t, "its access token", answers[0].AccessToken, token.TokenInvalid)
		h.wantFault(t, "its refresh token", h.refreshRequest(answers[0].RefreshToken), oauth.InvalidGrant)
	})
}

func TestReplayEndsWhatIsInUse(t *testing.T) {
	h := newFixture(t, nil)
	code := h.code(t)
	first := h.must(t, h.codeRequest(code))
	second := h.must(t, h.refreshRequest(first.RefreshToken))
	h.wantVerdict(t, "before", second.AccessToken, token.Admitted)
	h.wantFault(t, "replay", h.codeRequest(code), oauth.InvalidGrant)
	h.wantVerdict(t, "first", first.AccessToken, token.TokenInvalid)
	h.wantVerdict(t, "second", second.AccessToken, token.TokenInvalid)
	h.wantFault(t, "refresh", h.refreshRequest(second.RefreshToken), oauth.InvalidGrant)
}

// TestAnOldRefreshTokenEndsTheFamilyWhateverItAsksFor presents an outdated token with scopes that are refused.
func TestAnOldRefreshTokenEndsTheFamilyWhateverItAsksFor(t *testing.T) {
	for _, scope := range []string{"bogus", "server-operations", "view-user detail-user"} {
		h := newFixture(t, nil)
		first := h.tokens(t)
		second := h.must(t, h.refreshRequest(first.RefreshToken))
		withinGrace := h.refreshRequest(first.RefreshToken)
		withinGrace.Scope = scope
		h.wantFault(t, scope+" within the grace", withinGrace, oauth.InvalidScope)
		third := h.must(t, h.refreshRequest(second.RefreshToken))
		h.wantVerdict(t, scope+" before", third.AccessToken, token.Admitted)
		h.wantFault(t, scope+" two generations back", withinGrace, oauth.InvalidGrant)
		h.wantVerdict(t, scope+" after", third.AccessToken, token.TokenInvalid)
		h.wantFault(t, scope+" and the family", h.refreshRequest(third.RefreshToken), oauth.InvalidGrant)
	}
}

func TestAnOldRefreshTokenEndsTheFamily(t *testing.T) {
	h := newFixture(t, func(c *token.Config) { c.Lifetimes.RefreshGrace = 0 })
	first := h.tokens(t)
	second := h.must(t, h.refreshRequest(first.RefreshToken))
	h.wantVerdict(t, "before", second.AccessToken, token.Admitted)
	h.wantFault(t, "reuse", h.refreshRequest(first.RefreshToken), oauth.InvalidGrant)
	h.wantVerdict(t, "after", second.AccessToken, token.TokenInvalid)
}

func TestWhatIsWrongConsumesNothing(t *testing.T) {
	h := newFixture(t, nil)
	other, otherSecret := h.register(t, oauth.Client{Name: "Other", RedirectURIs: []string{"https://shop.example/cb"},
		Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant})
	code, refresh := h.code(t), h.tokens(t).RefreshToken
	writes := h.store.writes
	for _, row := range []struct {
		name   string
		change func(*oauth.TokenRequest)
		want   oauth.Code
	}{
		{"another client", func(r *oauth.TokenRequest) { r.ClientID, r.Secret = other.ID, otherSecret }, oauth.InvalidGrant},
		{"unknown client", func(r *oauth.TokenRequest) { r.ClientID = "nobody" }, oauth.InvalidClient},
		{"wrong secret", func(r *oauth.TokenRequest) { r.Secret = otherSecret }, oauth.InvalidClient},
		{"no secret", func(r *oauth.TokenRequest) { r.Secret = "" }, oauth.InvalidClient},
		{"wrong redirect_uri", func(r *oauth.TokenRequest) { r.RedirectURI += "/" }, oauth.InvalidGrant},
		{"verifier without challenge", func(r *oauth.TokenRequest) { r.CodeVerifier = strings.Repeat("a", 43) }, oauth.InvalidGrant},
		{"unknown code", func(r *oauth.TokenRequest) {
			r.Code, r.RefreshToken = oauth.NewAuthorizationCode(), oauth.NewRefreshToken()
		}, oauth.InvalidGrant},
		{"garbled code", func(r *oauth.TokenRequest) { r.Code, r.RefreshToken = r.Code+"x", r.RefreshToken+"x" }, oauth.InvalidGrant},
		{"no code, wrong secret", func(r *oauth.TokenRequest) { r.Code, r.RefreshToken, r.Secret = "", "", "x" }, oauth.InvalidClient},
		{"no code", func(r *oauth.TokenRequest) { r.Code, r.RefreshToken = "", "" }, oauth.InvalidRequest},
	} {
		r := h.codeRequest(code)
		row.change(r)
		h.wantFault(t, "code: "+row.name, r, row.want)
		if strings.Contains(row.name, "redirect_uri") || strings.Contains(row.name, "verifier") {
			continue
		}
		r = h.refreshRequest(refresh)
		row.change(r)
		h.wantFault(t, "refresh: "+row.name, r, row.want)
	}
	if h.store.writes != writes {
		t.Errorf("got %d writes, want none", h.store.writes-writes)
	}
	h.must(t, h.codeRequest(code))
	h.must(t, h.refreshRequest(refresh))
}

func TestADisabledUserGetsNothing(t *testing.T) {
	h := newFixture(t, nil)
	refresh, code := h.tokens(t).RefreshToken, h.code(t)
	h.store.users[7].Disabled = true
	h.wantFault(t, "code", h.codeRequest(code), oauth.InvalidGrant)
	h.wantFault(t, "refresh", h.refreshRequest(refresh), oauth.InvalidGrant)
}

// TestACallerThatLeavesWhileQueued holds that its code is not burned.
func TestACallerThatLeavesWhileQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, nil)
		code := h.code(t)
		h.store.hold()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, fault := h.Token(ctx, h.codeRequest(code), start)
		if fault == nil || fault.Status() != 503 || fault.RetryAfter == 0 || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want 503 after 1s", fault, time.Since(start))
		}
		h.store.flush()
		h.must(t, h.codeRequest(code))
	})
}

// TestAWriteThatHasBegunIsAwaited holds that the caller's time does not cut it off, and that it ends for the caller after
// five seconds more; the tokens that end later are refused all the same.
func TestAWriteThatHasBegunIsAwaited(t *testing.T) {
	for _, takes := range []time.Duration{4 * time.Second, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := newFixture(t, nil)
			code := h.code(t)
			first := h.must(t, h.codeRequest(code))
			h.wantVerdict(t, "before", first.AccessToken, token.Admitted)
			h.store.hold()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			start := time.Now()
			var fault *oauth.Error
			var caller sync.WaitGroup
			caller.Go(func() { _, fault = h.Token(ctx, h.codeRequest(code), start) })
			synctest.Wait()
			begun := h.store.take()
			if len(begun) != 1 {
				t.Fatalf("got %d operations, want 1", len(begun))
			}
			time.AfterFunc(takes, func() { h.store.end(begun) })
			caller.Wait()
			want, status := takes, 400
			if takes > 6*time.Second {
				want, status = 6*time.Second, 503
			}
			if fault == nil || fault.Status() != status || time.Since(start) != want {
				t.Errorf("got %v after %v, want %d after %v", fault, time.Since(start), status, want)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			h.wantVerdict(t, "after", first.AccessToken, token.TokenInvalid)
		})
	}
}

func TestAStoreThatFails(t *testing.T) {
	h := newFixture(t, nil)
	code, refresh := h.code(t), h.tokens(t).RefreshToken
	requests := map[string]*oauth.TokenRequest{"code": h.codeRequest(code), "refresh": h.refreshRequest(refresh),
		"own": {Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant}}
	for err, want := range map[error]oauth.Code{
		oauth.ErrBusy: oauth.TemporarilyUnavailable, oauth.ErrUnknownOutcome: oauth.TemporarilyUnavailable,
		errors.New("disk full"): oauth.ServerError,
	} {
		h.store.failing = err
		for name, r := range requests {
			if fault := h.wantFault(t, name, r, oauth.TemporarilyUnavailable); fault.Status() != 503 || fault.RetryAfter == 0 {
				t.Errorf("%s: got %+v", name, fault)
			}
		}
		if _, fault := h.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: h.client.ID}, time.Now()); fault == nil || fault.Code != want {
			t.Errorf("code while %v: got %v, want %s", err, fault, want)
		}
	}
	h.store.failing, h.store.readable = nil, errors.New("disk gone")
	h.wantFault(t, "read code", requests["code"], oauth.TemporarilyUnavailable)
	h.wantFault(t, "read refresh token", requests["refresh"], oauth.TemporarilyUnavailable)
	h.store.readable = nil
	h.must(t, requests["code"])
	h.must(t, requests["refresh"])
	log := h.log.String()
	if !strings.Contains(log, "disk full") || !strings.Contains(log, "disk gone") {
		t.Errorf("got log %q, want the causes", log)
	}
	for _, secret := range []string{code, refresh, h.secret} {
		if strings.Contains(log, secret) {
			t.Error("the log holds a secret")
		}
	}
}

func TestWrongSecretsAreThrottledAndRightOnesAreNot(t *testing.T) {
	h := newFixture(t, nil)
	now := time.Now()
	r := &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant}
	r.Secret, r.Caller = "guess", netip.MustParseAddr("192.0.2.1")
	for i := range 30 {
		_, fault := h.Token(t.Context(), r, now)
		switch {
		case i < 20 && (fault.Code != oauth.InvalidClient || fault.Status() != 401):
			t.Fatalf("guess %d: got %v, want invalid_client", i+1, fault)
		case i >= 20 && (!fault.Throttled || fault.Status() != 429 || fault.RetryAfter <= 0 || fault.RetryAfter > 10*time.Second):
			t.Fatalf("guess %d: got %+v, want 429", i+1, fault)
		}
	}
	if fault := h.Revoke(t.Context(), r.Credentials, "x", now); fault == nil || !fault.Throttled {
		t.Errorf("revoke: got %v, want 429", fault)
	}
	if _, fault := h.Introspect(r.Credentials, "x", now); fault == nil || !fault.Throttled {
		t.Errorf("introspect: got %v, want 429", fault)
	}
	other := *r
	other.Caller = netip.MustParseAddr("192.0.2.2")
	if _, fault := h.Token(t.Context(), &other, now); fault.Throttled {
		t.Error("another address: got 429, want invalid_client")
	}
	r.Secret = h.secret
	if _, fault := h.Token(t.Context(), r, now); fault != nil {
		t.Errorf("right secret: got %v, want a token", fault)
	}
}

func TestStopRefusesAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, nil)
		h.store.hold()
		r := &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant}
		var fault, late *oauth.Error
		var callers sync.WaitGroup
		callers.Go(func() { _, fault = h.Token(context.Background(), r, time.Now()) })
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- h.Stop(context.Background()) }()
		synctest.Wait()
		if _, late = h.Token(context.Background(), r, time.Now()); late == nil || late.Status() != 503 {
			t.Errorf("after the stop: got %v, want 503", late)
		}
		if _, _, err := h.CreateClient(context.Background(), *h.client, time.Now()); err == nil {
			t.Error("create after the stop: got nil, want an error")
		}
		h.store.flush()
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		callers.Wait()
		if fault != nil {
			t.Errorf("under way: got %v, want a token", fault)
		}
		h.stopped = true
	})
}

func BenchmarkExchangeClientCredentials(b *testing.B) {
	h := newFixture(b, nil)
	r := &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.ClientCredentialsGrant}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	now := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, fault := h.Token(ctx, r, now); fault != nil {
				b.Error(fault)
			}
		}
	})
}
