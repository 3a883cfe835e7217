package stacktest_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

func TestDecisionsOfTokenEndpoint(t *testing.T) {
	rows(t, []rowTest{
		{"grants of a client", func(r *row) {
			for _, test := range []struct {
				grants oauth.GrantTypes
				form   func(stacktest.Client) []string
			}{
				{oauth.ClientCredentialsGrant,
					func(c stacktest.Client) []string { return redemption(c, "x") }},
				{oauth.AuthorizationCodeGrant,
					func(c stacktest.Client) []string { return ownToken(c) }},
				{oauth.AuthorizationCodeGrant | oauth.ClientCredentialsGrant,
					func(c stacktest.Client) []string { return renewal(c, "x") }},
			} {
				c := r.client(func(c *oauth.Client) { c.Grants = test.grants })
				r.token(test.form(c)...).FailsAs(r.t, 400, "unauthorized_client")
			}
		}},
		{"token error body", func(r *row) {
			c := r.client()
			for _, form := range [][]string{ownToken(c, "client_secret", "marked-4711"),
				redemption(c, "marked-4711"), renewal(c, "marked-4711"),
				ownToken(c, "scope", "marked-4711"), ownToken(c, "client_id", "marked-4711"),
				ownToken(c, "grant_type", "marked-4711"),
				redemption(c, r.code(c, r.user(), time.Now(), nil), "redirect_uri",
					"https://marked-4711.example"),
				redemption(c, r.code(c, r.user(), time.Now(), nil), "code_verifier",
					strings.Repeat("marked-4711", 4))} {
				a := r.token(form...)
				a.FailsAs(r.t, a.Status, a.object(r.t, a.Status)["error"].(string))
				if a.Status < 400 || strings.Contains(a.Body, "marked-4711") ||
					strings.Contains(a.Body, c.Secret) {
					r.t.Errorf("got %d %s, want an error without request values", a.Status, a.Body)
				}
			}
		}},
		{"client authentication", func(r *row) {
			c, p := r.client(), r.client(public)
			r.token(ownToken(c)...).object(r.t, 200)
			r.token(ownToken(c, "client_id", strings.ToUpper(c.ID))...).FailsAs(r.t, 401, "invalid_client")
			r.post("/oauth/token", []string{"grant_type", "client_credentials"}, "Authorization",
				stacktest.Basic(c.ID, c.Secret)).object(r.t, 200)
			r.token(ownToken(p)...).FailsAs(r.t, 400, "unauthorized_client")
			u := r.user()
			tokens := r.token(redemption(p, r.code(p, u, time.Now(), nil))...).tokens(r.t)
			r.token(renewal(p, tokens.refresh)...).tokens(r.t)
			plain := r.code(p, u, time.Now(), func(code *oauth.AuthorizationCode) {
				code.CodeChallenge = ""
			})
			r.token(redemption(p, plain, "code_verifier", "")...).FailsAs(r.t, 400, "invalid_grant")
		}},
		{"public client that sends a secret", func(r *row) {
			p, c := r.client(public), r.client()
			code := r.code(p, r.user(), time.Now(), nil)
			r.token(redemption(p, code, "client_secret", "anything")...).FailsAs(r.t, 401, "invalid_client")
			r.token(redemption(p, code)...).tokens(r.t)
			r.post("/oauth/token", []string{"grant_type", "client_credentials", "client_id", c.ID},
				"Authorization", stacktest.Basic(c.ID, c.Secret)).object(r.t, 200)
			r.post("/oauth/token", []string{"grant_type", "client_credentials", "client_id", p.ID},
				"Authorization", stacktest.Basic(c.ID, c.Secret)).FailsAs(r.t, 400, "invalid_request")
		}},
		{"token request without a needed parameter", func(r *row) {
			c := r.client()
			code := r.code(c, r.user(), time.Now(), nil)
			r.token(redemption(c, code, "redirect_uri", "")...).FailsAs(r.t, 400, "invalid_request")
			r.token(redemption(c, "")...).FailsAs(r.t, 400, "invalid_request")
			r.token(renewal(c, "")...).FailsAs(r.t, 400, "invalid_request")
			r.token(ownToken(c, "grant_type", "")...).FailsAs(r.t, 400, "invalid_request")
			r.token("grant_type", "client_credentials").FailsAs(r.t, 400, "invalid_request")
			r.token("grant_type", "client_credentials", "client_id", c.ID).FailsAs(r.t, 401, "invalid_client")
			r.token(redemption(c, code, "redirect_uri", stacktest.RedirectURI+"&a=b")...).FailsAs(r.t, 400,
				"invalid_grant")
			tokens := r.token(redemption(c, code, "refresh_token", "ignored", "scope",
				"root")...).tokens(r.t)
			r.token(renewal(c, tokens.refresh, "code", "ignored", "redirect_uri", "ignored", "code_verifier",
				"ignored")...).tokens(r.t)
			r.token(ownToken(c, "code", "ignored", "refresh_token", "ignored", "redirect_uri",
				"ignored")...).object(r.t, 200)
		}},
		{"check order at the token endpoint", func(r *row) {
			c, other := r.client(), r.client(func(c *oauth.Client) {
				c.Grants = oauth.ClientCredentialsGrant
			})
			code := r.code(c, r.user(), time.Now(), nil)
			if a := r.send("PUT", r.URL+"/oauth/token", "", "Content-Type",
				"application/json"); a.Status != 405 {
				r.t.Errorf("got %d, want the method to be checked before the content type", a.Status)
			}
			r.send("POST", r.URL+"/oauth/token", "a=1&a=2&grant_type=x&grant_type=y", "Content-Type",
				"text/plain").FailsAs(r.t, 400, "invalid_request")
			r.send("POST", r.URL+"/oauth/token", "grant_type=password&scope=a&scope=b", "Content-Type",
				formType).FailsAs(r.t, 400, "invalid_request")
			r.token("grant_type", "password", "client_id", c.ID, "client_secret", "wrong").FailsAs(r.t, 400,
				"unsupported_grant_type")
			r.token(redemption(other, "", "client_secret", "wrong")...).FailsAs(r.t, 401, "invalid_client")
			r.token(redemption(other, "")...).FailsAs(r.t, 400, "unauthorized_client")
			for range 3 {
				r.token(redemption(c, code, "client_secret", "wrong")...).FailsAs(r.t, 401, "invalid_client")
			}
			first := r.token(redemption(c, code)...).tokens(r.t)
			r.token(redemption(c, code, "client_secret", "wrong")...).FailsAs(r.t, 401, "invalid_client")
			next := r.token(renewal(c, first.refresh)...).tokens(r.t)
			r.token(renewal(c, first.refresh, "client_secret", "wrong")...).FailsAs(r.t, 401, "invalid_client")
			r.profile(next.access).object(r.t, 200)
		}},
		{"client secrets", func(r *row) {
			o := r.NewOperator(r.t)
			c := o.Do(201, "POST", "/clients",
				`{"name":"Atlas","grants":["client_credentials"],"redirect_uris":[],"scopes":[]}`).Object(r.t)
			id, first := c["client_id"].(string), c["client_secret"].(string)
			if !oauth.LooksLikeClientSecret(first) {
				r.t.Errorf("got secret of %d characters, want one of 256 bits", len(first))
			}
			with := func(secret string) reply {
				return r.token("grant_type", "client_credentials", "client_id", id, "client_secret", secret)
			}
			added := o.Do(201, "POST", "/clients/"+id+"/secrets", "").Object(r.t)
			second := added["client_secret"].(string)
			with(first).object(r.t, 200)
			with(second).object(r.t, 200)
			o.Do(409, "POST", "/clients/"+id+"/secrets", "")
			kept, err := r.Store.Client(r.t.Context(), id)
			if err != nil || len(kept.Secrets) != 2 || kept.Secrets[0].Hash != oauth.HashOf(first) {
				r.t.Fatalf("got %v and %v, want the SHA-256 of two secrets", kept, err)
			}
			o.Do(200, "DELETE", "/clients/"+id+"/secrets/"+kept.Secrets[0].ID, "")
			with(first).FailsAs(r.t, 401, "invalid_client")
			with(second).object(r.t, 200)
			with(second[:len(second)-1]).FailsAs(r.t, 401, "invalid_client")
		}},
		{"token format", func(r *row) {
			c, u := r.client(), r.user()
			code := r.code(c, u, time.Now(), nil)
			tokens := r.token(redemption(c, code)...).tokens(r.t)
			for prefix, token := range map[string]string{"gtac_": code, "gtrt_": tokens.refresh,
				"gtcs_": c.Secret} {
				rest, ok := strings.CutPrefix(token, prefix)
				if !ok || strings.Trim(rest,
					"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || len(rest) < 43 {
					r.t.Errorf("got %s…, want %s and at least 43 letters and digits", token[:8], prefix)
				}
			}
			last := tokens.access[len(tokens.access)-1]
			r.profile(tokens.access[:len(tokens.access)-1] + string('a'+(last+1-'a')%2)).invalid(r.t)
			if !regexp.MustCompile(`^gtat_[-_0-9A-Za-z]{60,250}$`).MatchString(tokens.access) {
				r.t.Errorf("got %s…, want gtat_ and at most 250 characters of base64url", tokens.access[:8])
			}
			r.profile(r.Seal(r.t, oauth.AccessToken{
				ClientID: c.ID, Expires: time.Now().Add(-400 * 24 * time.Hour).Unix(),
			})).denied(r.t, 401, "token_expired")
			foreign := oauth.AccessToken{ClientID: c.ID, Expires: time.Now().Add(time.Hour).Unix()}
			r.profile(oauth.NewTokenKey(&oauth.Key{Number: 1}).Seal(&foreign)).invalid(r.t)
		}},
		{"lifetimes", func(r *row) {
			c, u := r.client(), r.user()
			now := time.Now()
			if o := r.token(ownToken(c)...).object(r.t, 200); o["expires_in"] != 3600.0 {
				r.t.Errorf("got a lifetime of %v, want 3600 seconds", o["expires_in"])
			}
			r.token(redemption(c, r.code(c, u, now.Add(-50*time.Second), nil))...).tokens(r.t)
			r.token(redemption(c, r.code(c, u, now.Add(-time.Minute), nil))...).FailsAs(r.t, 400,
				"invalid_grant")
			old := func(age time.Duration) *oauth.TokenResponse {
				return r.issueAt(now.Add(-age), redemption(c, r.code(c, u, now.Add(-age), nil)))
			}
			r.profile(old(59*time.Minute).AccessToken).object(r.t, 200)
			r.profile(old(61*time.Minute).AccessToken).denied(r.t, 401, "token_expired")
			// It expires in this second.
			r.profile(old(time.Hour).AccessToken).denied(r.t, 401, "token_expired")
			r.profile(old(time.Hour-10*time.Second).AccessToken).object(r.t, 200)
			fresh := r.issue(c, u, oauth.ViewUser)
			about := r.post("/oauth/introspect", []string{"token", fresh.access, "client_id", c.ID,
				"client_secret", c.Secret}).object(r.t, 200)
			if exp, iat := about["exp"].(float64), about["iat"].(float64); exp-iat != 3600 {
				r.t.Errorf("got exp %v and iat %v, want 3600 seconds between them", exp, iat)
			}
			const day = 24 * time.Hour
			r.token(renewal(c, old(30*day-time.Minute).RefreshToken)...).tokens(r.t)
			r.token(renewal(c, old(30*day+time.Minute).RefreshToken)...).FailsAs(r.t, 400, "invalid_grant")
			for _, total := range []time.Duration{180*day - time.Minute, 180*day + time.Minute} {
				token := old(total).RefreshToken
				for age := total - 29*day; age > 0; age -= 29 * day {
					token = r.issueAt(now.Add(-age), renewal(c, token)).RefreshToken
				}
				a := r.token(renewal(c, token)...)
				if want := map[bool]int{true: 200, false: 400}[total < 180*day]; a.Status != want {
					r.t.Errorf("got %d %s for a family of %v, want %d", a.Status, a.Body, total, want)
				}
			}
		}},
		{"who gets a refresh token", func(r *row) {
			c := r.client()
			tokens := r.token(redemption(c, r.code(c, r.user(), time.Now(), nil))...).tokens(r.t)
			r.token(renewal(c, tokens.refresh)...).tokens(r.t)
			if o := r.token(ownToken(c)...).object(r.t, 200); o["refresh_token"] != nil {
				r.t.Error("got a refresh token for client_credentials, want none")
			}
			without := r.client(func(c *oauth.Client) { c.Grants = oauth.AuthorizationCodeGrant })
			o := r.token(redemption(without, r.code(without, r.user(), time.Now(), nil))...).object(r.t, 200)
			if o["refresh_token"] != nil {
				r.t.Error("got a refresh token for a client without that grant, want none")
			}
		}},
		{"code replay", codeReplay},
		{"code replay, concurrent", concurrentReplay},
		{"refresh rotation", refreshRotation},
		{"refresh scope", func(r *row) {
			c, u := r.client(), r.user()
			tokens := r.issue(c, u, oauth.UserScopes)
			narrow := r.token(renewal(c, tokens.refresh, "scope", "view-user")...)
			next := narrow.tokens(r.t)
			r.profile(next.access, "/api/user/details").denied(r.t, 403, "insufficient_scope")
			r.profile(r.token(renewal(c, next.refresh)...).tokens(r.t).access,
				"/api/user/details").object(r.t, 200)
			small := r.issue(c, u, oauth.ViewUser)
			r.token(renewal(c, small.refresh, "scope", "view-user detail-user")...).FailsAs(r.t, 400,
				"invalid_scope")
			r.token(renewal(c, small.refresh, "scope", "view-user")...).tokens(r.t)
		}},
		{"`scope` in the response", func(r *row) {
			c, u := r.client(), r.user()
			shown := func(a reply, want any) {
				r.t.Helper()
				if o := a.object(r.t, 200); o["scope"] != want {
					r.t.Errorf("got scope %v, want %v", o["scope"], want)
				}
			}
			shown(r.token(redemption(c, r.code(c, u, time.Now(), nil))...), nil)
			assumed := r.code(c, u, time.Now(), func(code *oauth.AuthorizationCode) {
				code.Scopes, code.DefaultScopes = oauth.ViewUser, true
			})
			shown(r.token(redemption(c, assumed)...), "view-user")
			tokens := r.issue(c, u, oauth.UserScopes)
			again := r.token(renewal(c, tokens.refresh)...)
			shown(again, "view-user detail-user")
			shown(r.token(renewal(c, again.tokens(r.t).refresh, "scope", "detail-user")...), nil)
			shown(r.token(ownToken(c)...), nil)
			shown(r.token(ownToken(r.client(operator), "scope", "server-operations")...), nil)
		}},
		{"PKCE", func(r *row) {
			c, u := r.client(), r.user()
			with := func(challenge, verifier string) reply {
				code := r.code(c, u, time.Now(), func(code *oauth.AuthorizationCode) {
					code.CodeChallenge = challenge
				})
				return r.token(redemption(c, code, "code_verifier", verifier)...)
			}
			for _, good := range []string{strings.Repeat("a", 43), strings.Repeat("Z9", 64),
				strings.Repeat("-._~", 11)} {
				with(stacktest.ChallengeOf(good), good).tokens(r.t)
			}
			for _, bad := range []string{strings.Repeat("a", 42), strings.Repeat("a", 129),
				strings.Repeat("a", 43) + "+", strings.Repeat("a", 43) + "é"} {
				with(stacktest.ChallengeOf(bad), bad).FailsAs(r.t, 400, "invalid_grant")
			}
			with(stacktest.Challenge(), strings.Repeat("a", 43)).FailsAs(r.t, 400, "invalid_grant")
			with(stacktest.Challenge(), stacktest.Challenge()).FailsAs(r.t, 400, "invalid_grant")
			with("", stacktest.Verifier).FailsAs(r.t, 400, "invalid_grant")
			with(stacktest.Challenge(), "").FailsAs(r.t, 400, "invalid_grant")
			with("", "").tokens(r.t)
		}},
		{"client_credentials scopes", func(r *row) {
			c, o := r.client(), r.client(operator)
			for _, scope := range []string{"view-user", "detail-user", "view-user detail-user",
				"server-operations", "root", " "} {
				r.token(ownToken(c, "scope", scope)...).FailsAs(r.t, 400, "invalid_scope")
			}
			access := r.token(ownToken(o, "scope", "server-operations")...).object(r.t,
				200)["access_token"].(string)
			r.send("GET", r.AdminURL+"/admin/v1/clients", "", "Authorization", "Bearer "+access).object(r.t,
				200)
			bare := r.token(ownToken(o)...).object(r.t, 200)["access_token"].(string)
			if a := r.send("GET", r.AdminURL+"/admin/v1/clients", "", "Authorization",
				"Bearer "+bare); a.Status != 403 {
				r.t.Errorf("got %d %s for a token without scope, want 403", a.Status, a.Body)
			}
		}},
	})
}

// codeReplay redeems a code twice (RFC 6749 section 4.1.2).
func codeReplay(r *row) {
	c, other, u := r.client(), r.client(), r.user()
	code := r.code(c, u, time.Now(), nil)
	r.token(redemption(other, code)...).FailsAs(r.t, 400, "invalid_grant")
	r.token(redemption(c, code, "redirect_uri", "https://app.example/")...).FailsAs(r.t, 400,
		"invalid_grant")
	r.token(redemption(c, code, "code_verifier", strings.Repeat("x", 43))...).FailsAs(r.t, 400,
		"invalid_grant")
	tokens := r.token(redemption(c, code)...).tokens(r.t)
	r.token(redemption(other, code)...).FailsAs(r.t, 400, "invalid_grant")
	r.profile(tokens.access).object(r.t, 200)
	next := r.token(renewal(c, tokens.refresh)...).tokens(r.t)
	r.token(redemption(c, code)...).FailsAs(r.t, 400, "invalid_grant")
	r.profile(tokens.access).invalid(r.t)
	r.profile(next.access).invalid(r.t)
	r.token(renewal(c, next.refresh)...).FailsAs(r.t, 400, "invalid_grant")
	aged := r.code(c, u, time.Now().Add(-20*24*time.Hour), nil)
	remembered := r.issueAt(time.Now().Add(-20*24*time.Hour), redemption(c, aged))
	live := r.token(renewal(c, remembered.RefreshToken)...).tokens(r.t)
	r.token(redemption(c, aged)...).FailsAs(r.t, 400, "invalid_grant")
	r.profile(live.access).invalid(r.t)
}

// concurrentReplay redeems one code concurrently.
func concurrentReplay(r *row) {
	c := r.client()
	code := r.code(c, r.user(), time.Now(), nil)
	replies := make([]reply, 64)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = r.token(redemption(c, code)...) })
	}
	all.Wait()
	var granted []pair
	for _, a := range replies {
		if a.Status == 200 {
			granted = append(granted, a.tokens(r.t))
			continue
		}
		a.FailsAs(r.t, 400, "invalid_grant")
	}
	if len(granted) != 1 {
		r.t.Fatalf("got %d responses with 200, want 1", len(granted))
	}
	r.profile(granted[0].access).invalid(r.t)
	r.token(renewal(c, granted[0].refresh)...).FailsAs(r.t, 400, "invalid_grant")
}

// refreshRotation replays refresh tokens (RFC 9700 section 4.14).
func refreshRotation(r *row) {
	c, other, u := r.client(), r.client(), r.user()
	first := r.issue(c, u, oauth.ViewUser)
	r.token(renewal(other, first.refresh)...).FailsAs(r.t, 400, "invalid_grant")
	second := r.token(renewal(c, first.refresh)...).tokens(r.t)
	var sibling pair
	for range 3 { // within the grace period
		sibling = r.token(renewal(c, first.refresh)...).tokens(r.t)
	}
	often := r.token(renewal(c, first.refresh)...) // ends nothing
	often.FailsAs(r.t, 429, "temporarily_unavailable")
	if wait := often.Header.Get("Retry-After"); wait != "1" {
		r.t.Errorf("got Retry-After %q, want 1", wait)
	}
	third := r.token(renewal(c, sibling.refresh)...).tokens(r.t)
	// The siblings of second are now the previous generation.
	r.token(renewal(c, second.refresh)...).tokens(r.t)
	r.token(renewal(c, first.refresh)...).FailsAs(r.t, 400, "invalid_grant")
	for _, ended := range []pair{first, second, third, sibling} {
		r.profile(ended.access).invalid(r.t)
		r.token(renewal(c, ended.refresh)...).FailsAs(r.t, 400, "invalid_grant")
	}
	then := time.Now().Add(-time.Minute)
	late := r.issueAt(then, redemption(c, r.code(c, u, then, nil)))
	// The grace period is over.
	current := r.issueAt(time.Now().Add(-11*time.Second), renewal(c, late.RefreshToken))
	r.profile(current.AccessToken).object(r.t, 200)
	r.token(renewal(c, late.RefreshToken)...).FailsAs(r.t, 400, "invalid_grant")
	r.profile(current.AccessToken).invalid(r.t)
	r.token(renewal(c, current.RefreshToken)...).FailsAs(r.t, 400, "invalid_grant")
}
