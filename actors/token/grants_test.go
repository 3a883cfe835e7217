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

func TestOperatorTokenLifetime(t *testing.T) {
	f := newFixture(t, nil)
	operator, secret := f.register(t, oauth.Client{
		Name: "operator", Operator: true, Scopes: oauth.ServerOperations,
		Grants: oauth.ClientCredentialsGrant,
	})
	response := f.mustToken(t, &oauth.TokenRequest{
		Credentials: oauth.Credentials{ClientID: operator.ID, Secret: secret},
		Grant:       oauth.ClientCredentialsGrant, Scope: "server-operations",
	})
	if response.ExpiresIn != 5*time.Minute {
		t.Errorf("got %v, want 5m", response.ExpiresIn)
	}
}

// TestCodeGrantsOnlyRegisteredScopes removes a scope from the client after its code was issued.
func TestCodeGrantsOnlyRegisteredScopes(t *testing.T) {
	f := newFixture(t, nil)
	code := f.newCode(t)
	f.updateClient(t, func(c *oauth.Client) { c.Scopes = oauth.DetailUser })
	if got := f.mustToken(t, f.codeRequest(code)); got.Scopes != 0 || !got.ShowScope {
		t.Errorf("got %+v, want no scope, shown", got)
	}
}

// TestConcurrentRedemptionsRevokeTokens redeems a code twice in one batch. One request gets tokens,
// and the other revokes them.
func TestConcurrentRedemptionsRevokeTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		code := f.newCode(t)
		f.store.pause()
		var responses [2]*oauth.TokenResponse
		var faults [2]*oauth.Error
		var callers sync.WaitGroup
		for i := range responses {
			callers.Go(func() {
				responses[i], faults[i] = f.Token(context.Background(), f.codeRequest(code),
					time.Now())
			})
			synctest.Wait()
		}
		if got := len(f.store.queue); got != 2 {
			t.Fatalf("got %d operations waiting, want 2", got)
		}
		f.store.flush()
		callers.Wait()
		if faults[0] != nil || faults[1] == nil || faults[1].Code != oauth.InvalidGrant {
			t.Fatalf("got %v and %v, want tokens and invalid_grant", faults[0], faults[1])
		}
		f.wantVerdict(t, "its access token", responses[0].AccessToken, token.TokenInvalid)
		f.wantFault(t, "its refresh token", f.refreshRequest(responses[0].RefreshToken),
			oauth.InvalidGrant)
	})
}

// TestOldRefreshTokenRevokesFamilyForAnyScope presents an old token with a scope that is refused.
func TestOldRefreshTokenRevokesFamilyForAnyScope(t *testing.T) {
	for _, scope := range []string{"bogus", "server-operations", "view-user detail-user"} {
		f := newFixture(t, nil)
		first := f.newTokens(t)
		second := f.mustToken(t, f.refreshRequest(first.RefreshToken))
		withinGrace := f.refreshRequest(first.RefreshToken)
		withinGrace.Scope = scope
		f.wantFault(t, scope+" in the grace period", withinGrace, oauth.InvalidScope)
		third := f.mustToken(t, f.refreshRequest(second.RefreshToken))
		f.wantVerdict(t, scope+" before", third.AccessToken, token.Admitted)
		f.wantFault(t, scope+" two generations back", withinGrace, oauth.InvalidGrant)
		f.wantVerdict(t, scope+" after", third.AccessToken, token.TokenInvalid)
		f.wantFault(t, scope+" and the family", f.refreshRequest(third.RefreshToken),
			oauth.InvalidGrant)
	}
}

func TestRefusedRequestsWriteNothing(t *testing.T) {
	f := newFixture(t, nil)
	other, otherSecret := f.register(t, oauth.Client{
		Name: "Other", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
		Grants:  oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant,
		Options: oauth.ClientOptions{RequireGroups: []string{"staff"}}, // the user is in none
	})
	code, refresh := f.newCode(t), f.newTokens(t).RefreshToken
	writes := f.store.writes
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
		r := f.codeRequest(code)
		row.change(r)
		f.wantFault(t, "code: "+row.name, r, row.want)
		if strings.Contains(row.name, "redirect_uri") || strings.Contains(row.name, "verifier") {
			continue
		}
		r = f.refreshRequest(refresh)
		row.change(r)
		f.wantFault(t, "refresh: "+row.name, r, row.want)
	}
	for _, r := range []*oauth.TokenRequest{f.codeRequest(code), f.refreshRequest(refresh)} {
		r.ClientID, r.Secret = other.ID, otherSecret
		_, fault := f.Token(t.Context(), r, time.Now())
		if !strings.Contains(fault.Description, "unknown, or was issued to another client") {
			t.Errorf("another client: got %v, want nothing about the user", fault)
		}
	}
	if f.store.writes != writes {
		t.Errorf("got %d writes, want none", f.store.writes-writes)
	}
	f.mustToken(t, f.codeRequest(code))
	f.mustToken(t, f.refreshRequest(refresh))
}

// TestMetadataClientsAreTurnedOff has a client of a document that is kept, but no longer served.
func TestMetadataClientsAreTurnedOff(t *testing.T) {
	f := newFixture(t, nil)
	const url = "https://client.example/app.json"
	c := oauth.Client{ID: oauth.StoredClientID(url), Name: "Doc", Public: true,
		RedirectURIs: []string{"https://client.example/cb"}, Scopes: oauth.GrantableScopes,
		Grants:  oauth.AuthorizationCodeGrant,
		Options: oauth.ClientOptions{SelfRegistered: true, MetadataURL: url}}
	if err := f.KeepMetadataClient(t.Context(), &c, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, grant := range []oauth.GrantTypes{oauth.AuthorizationCodeGrant, oauth.ClientCredentialsGrant} {
		f.wantFault(t, grant.String(), &oauth.TokenRequest{Grant: grant,
			Credentials: oauth.Credentials{ClientID: c.ID}}, oauth.InvalidClient)
	}
}

// TestTimeoutInQueueKeepsCodeValid ends a request before the store has begun its operation.
func TestTimeoutInQueueKeepsCodeValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		code := f.newCode(t)
		f.store.pause()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, fault := f.Token(ctx, f.codeRequest(code), start)
		if fault == nil || fault.Status() != 503 || fault.RetryAfter == 0 ||
			time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want 503 after 1s", fault, time.Since(start))
		}
		f.store.flush()
		f.mustToken(t, f.codeRequest(code))
	})
}

// TestBegunWriteOutlivesCallerDeadline checks that a write that has begun is awaited for 5 s after
// the caller's deadline. The tokens that it revokes are refused even when it ends later.
func TestBegunWriteOutlivesCallerDeadline(t *testing.T) {
	for _, takes := range []time.Duration{4 * time.Second, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			code := f.newCode(t)
			first := f.mustToken(t, f.codeRequest(code))
			f.wantVerdict(t, "before", first.AccessToken, token.Admitted)
			f.store.pause()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			start := time.Now()
			var fault *oauth.Error
			var caller sync.WaitGroup
			caller.Go(func() { _, fault = f.Token(ctx, f.codeRequest(code), start) })
			synctest.Wait()
			begun := f.store.begin()
			if len(begun) != 1 {
				t.Fatalf("got %d operations, want 1", len(begun))
			}
			time.AfterFunc(takes, func() { f.store.finish(begun) })
			caller.Wait()
			want, status := takes, 400
			if takes > 6*time.Second {
				want, status = 6*time.Second, 503
			}
			if fault == nil || fault.Status() != status || time.Since(start) != want {
				t.Errorf("got %v after %v, want %d after %v", fault, time.Since(start), status,
					want)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			f.wantVerdict(t, "after", first.AccessToken, token.TokenInvalid)
		})
	}
}

func TestStoreErrors(t *testing.T) {
	f := newFixture(t, nil)
	code, refresh := f.newCode(t), f.newTokens(t).RefreshToken
	requests := map[string]*oauth.TokenRequest{
		"code":    f.codeRequest(code),
		"refresh": f.refreshRequest(refresh),
	}
	for err, want := range map[error]oauth.Code{
		oauth.ErrBusy:           oauth.TemporarilyUnavailable,
		oauth.ErrUnknownOutcome: oauth.TemporarilyUnavailable,
		errors.New("disk full"): oauth.ServerError,
	} {
		f.store.writeError = err
		for name, r := range requests {
			fault := f.wantFault(t, name, r, oauth.TemporarilyUnavailable)
			if fault.Status() != 503 || fault.RetryAfter == 0 {
				t.Errorf("%s: got %+v", name, fault)
			}
		}
		_, fault := f.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: f.client.ID},
			time.Now())
		if fault == nil || fault.Code != want {
			t.Errorf("code while %v: got %v, want %s", err, fault, want)
		}
	}
	f.store.writeError, f.store.readError = nil, errors.New("disk gone")
	f.wantFault(t, "read code", requests["code"], oauth.TemporarilyUnavailable)
	f.wantFault(t, "read refresh token", requests["refresh"], oauth.TemporarilyUnavailable)
	f.store.readError = nil
	f.mustToken(t, requests["code"])
	f.mustToken(t, requests["refresh"])
	log := f.log.String()
	if !strings.Contains(log, "disk full") || !strings.Contains(log, "disk gone") {
		t.Errorf("got log %q, want the causes", log)
	}
	for _, secret := range []string{code, refresh, f.secret} {
		if strings.Contains(log, secret) {
			t.Error("the log holds a secret")
		}
	}
}

func TestWrongSecretsAreThrottled(t *testing.T) {
	f := newFixture(t, nil)
	now := time.Now()
	r := f.ownRequest()
	r.Secret, r.Caller = "guess", netip.MustParseAddr("192.0.2.1")
	for i := range 30 {
		_, fault := f.Token(t.Context(), r, now)
		switch {
		case i < 20 && (fault.Code != oauth.InvalidClient || fault.Status() != 401):
			t.Fatalf("guess %d: got %v, want invalid_client", i+1, fault)
		case i >= 20 &&
			(!fault.Throttled || fault.Status() != 429 || fault.RetryAfter <= 0 ||
				fault.RetryAfter > 10*time.Second):
			t.Fatalf("guess %d: got %+v, want 429", i+1, fault)
		}
	}
	if fault := f.Revoke(t.Context(), r.Credentials, "x", now); fault == nil || !fault.Throttled {
		t.Errorf("revoke: got %v, want 429", fault)
	}
	if _, fault := f.Introspect(r.Credentials, "x", now); fault == nil || !fault.Throttled {
		t.Errorf("introspect: got %v, want 429", fault)
	}
	other := *r
	other.Caller = netip.MustParseAddr("192.0.2.2")
	if _, fault := f.Token(t.Context(), &other, now); fault.Throttled {
		t.Error("another address: got 429, want invalid_client")
	}
	r.Secret = f.secret
	if _, fault := f.Token(t.Context(), r, now); fault != nil {
		t.Errorf("right secret: got %v, want a token", fault)
	}
}

func TestStopWaitsForRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		code := f.newCode(t)
		f.store.pause()
		r := f.codeRequest(code)
		var fault, late *oauth.Error
		var callers sync.WaitGroup
		callers.Go(func() { _, fault = f.Token(context.Background(), r, time.Now()) })
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- f.Stop(context.Background()) }()
		synctest.Wait()
		_, late = f.Token(context.Background(), r, time.Now())
		if late == nil || late.Status() != 503 {
			t.Errorf("after the stop: got %v, want 503", late)
		}
		if _, _, err := f.CreateClient(context.Background(), *f.client, time.Now()); err == nil {
			t.Error("create after the stop: got nil, want an error")
		}
		f.store.flush()
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		callers.Wait()
		if fault != nil {
			t.Errorf("under way: got %v, want a token", fault)
		}
		f.stopped = true
	})
}

// TestIDJAGIsIssuedOnRecord gets no ID-JAG when the audit trail cannot have it.
func TestIDJAGIsIssuedOnRecord(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.Issuer, c.IDJAG = testIssuer, true })
	c, secret := f.register(t, oauth.Client{Name: "Agent", Scopes: oauth.OpenID,
		RedirectURIs: []string{"https://agent.example/cb"},
		Grants:       oauth.AuthorizationCodeGrant | oauth.TokenExchangeGrant,
		Options: oauth.ClientOptions{FirstParty: true,
			IDJAG: oauth.IDJAG{Audiences: []string{"https://tasks.example"}}}})
	signedIn, err := f.Sign("ES256", token.IDTokenTyp, map[string]any{"iss": testIssuer,
		"aud": c.WireID(), "sub": "7", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	r := &oauth.TokenRequest{Grant: oauth.TokenExchangeGrant,
		Credentials: oauth.Credentials{ClientID: c.ID, Secret: secret},
		TokenExchange: oauth.TokenExchange{SubjectToken: signedIn, SubjectTokenType: oauth.IDTokenType,
			RequestedTokenType: oauth.IDJAGTokenType, Audiences: []string{"https://tasks.example"}}}
	f.mustToken(t, r)
	f.store.writeError = errors.New("disk full")
	defer func() { f.store.writeError = nil }()
	f.wantFault(t, "full disk", r, oauth.TemporarilyUnavailable)
}
