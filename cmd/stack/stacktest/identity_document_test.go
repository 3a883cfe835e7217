package stacktest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/cmd/stack/stacktest"
)

// TestDocumentTokenEndpoint follows section 4.1 of the interface document: POST /oauth/token.
func TestDocumentTokenEndpoint(t *testing.T) {
	rows(t, []rowTest{
		{"method must be POST", func(r *row) {
			if a := r.send("GET", r.URL+"/oauth/token?"+values(ownToken(r.client())...).Encode(),
				""); a.status != 405 {
				r.t.Errorf("got %d %s, want 405", a.status, a.body)
			}
		}},
		{"body must be a form", func(r *row) {
			c := r.client()
			for _, kind := range []string{"application/json", "text/plain",
				"multipart/form-data; boundary=x", ""} {
				r.send("POST", r.URL+"/oauth/token", values(ownToken(c)...).Encode(), "Content-Type",
					kind).fails(r.t, 400, "invalid_request")
			}
		}},
		{"grant_type", func(r *row) {
			c := r.client()
			tokens := r.token(redemption(c, r.code(c, r.user(), time.Now(), nil))...).tokens(r.t)
			r.token(renewal(c, tokens.refresh)...).tokens(r.t)
			r.token(ownToken(c)...).object(r.t, 200)
			r.token(ownToken(c, "grant_type", "")...).fails(r.t, 400, "invalid_request")
			for _, other := range []string{"password", "implicit", "Client_Credentials",
				"urn:ietf:params:oauth:grant-type:device_code"} {
				r.token(ownToken(c, "grant_type", other)...).fails(r.t, 400, "unsupported_grant_type")
			}
		}},
		{"client_id", func(r *row) {
			c := r.client()
			r.token(ownToken(c, "client_id", "")...).fails(r.t, 400, "invalid_request")
			r.token(ownToken(c, "client_id", r.client().ID)...).fails(r.t, 401, "invalid_client")
			r.token(ownToken(c, "client_id", strings.ToUpper(c.ID))...).fails(r.t, 401, "invalid_client")
		}},
		{"client_secret", func(r *row) {
			c := r.client()
			r.token(ownToken(c, "client_secret", "")...).fails(r.t, 401, "invalid_client")
			r.token(ownToken(c, "client_secret", r.client().Secret)...).fails(r.t, 401, "invalid_client")
		}},
		{"code", func(r *row) {
			c := r.client()
			r.token(redemption(c, "")...).fails(r.t, 400, "invalid_request")
			r.token(redemption(c, oauth.NewAuthorizationCode())...).fails(r.t, 400, "invalid_grant")
			r.token(redemption(c, r.browser().consented(c, r.person()))...).tokens(r.t)
		}},
		{"redirect_uri", func(r *row) {
			const second = "https://app.example/second"
			c := r.client(redirecting(stacktest.RedirectURI, second))
			code := r.code(c, r.user(), time.Now(), nil)
			r.token(redemption(c, code, "redirect_uri", "")...).fails(r.t, 400, "invalid_request")
			r.token(redemption(c, code, "redirect_uri", second)...).fails(r.t, 400, "invalid_grant")
			r.token(redemption(c, code)...).tokens(r.t)
		}},
		{"refresh_token", func(r *row) {
			c := r.client()
			tokens := r.issue(c, r.user(), oauth.ViewUser)
			r.token(renewal(c, "")...).fails(r.t, 400, "invalid_request")
			r.token(renewal(c, tokens.access)...).fails(r.t, 400, "invalid_grant")
			r.token(renewal(r.client(), tokens.refresh)...).fails(r.t, 400, "invalid_grant")
			r.token(renewal(c, tokens.refresh)...).tokens(r.t)
		}},
		{"scope", func(r *row) {
			c := r.client()
			r.token(ownToken(c, "scope", "")...).object(r.t, 200)
			r.token(ownToken(c, "scope", "view-user")...).fails(r.t, 400, "invalid_scope")
			r.token(ownToken(r.client(operator), "scope", "server-operations")...).object(r.t, 200)
			tokens := r.issue(c, r.user(), oauth.UserScopes)
			r.token(renewal(c, tokens.refresh, "scope", "view-user")...).tokens(r.t)
		}},
		{"code_verifier", func(r *row) {
			c := r.client()
			code := r.code(c, r.user(), time.Now(), nil)
			r.token(redemption(c, code, "code_verifier", "")...).fails(r.t, 400, "invalid_grant")
			r.token(redemption(c, code, "code_verifier", strings.Repeat("a", 43))...).fails(r.t, 400,
				"invalid_grant")
			r.token(redemption(c, code)...).tokens(r.t)
			plain := r.code(c, r.user(), time.Now(), func(code *oauth.AuthorizationCode) {
				code.CodeChallenge = ""
			})
			r.token(redemption(c, plain, "code_verifier", "")...).tokens(r.t)
		}},
		{"rule 1: authorization_code", func(r *row) {
			c := r.client()
			code := r.code(c, r.user(), time.Now(), nil)
			r.token("grant_type", "authorization_code", "code", code, "redirect_uri", stacktest.RedirectURI,
				"client_id", c.ID,
				"client_secret", c.Secret, "code_verifier", verifier).tokens(r.t)
		}},
		{"rule 2: refresh_token, the rest empty", func(r *row) {
			c := r.client()
			tokens := r.issue(c, r.user(), oauth.ViewUser)
			body := values(renewal(c, tokens.refresh)...).Encode() + "&code=&redirect_uri=&code_verifier="
			r.send("POST", r.URL+"/oauth/token", body, "Content-Type", formType).tokens(r.t)
		}},
		{"rule 3: client_credentials, no user", func(r *row) {
			access := r.token(ownToken(r.client())...).object(r.t, 200)["access_token"].(string)
			r.profile(access).denied(r.t, 403, "insufficient_scope")
		}},
		{"success: the token response", func(r *row) {
			c := r.client()
			o := r.token(redemption(c, r.code(c, r.user(), time.Now(), nil))...).members(r.t, 200,
				"access_token", "token_type", "expires_in", "refresh_token")
			if o["token_type"] != "Bearer" || o["expires_in"] != 3600.0 {
				r.t.Errorf("got %v, want a Bearer token for an hour", o)
			}
			r.profile(o["access_token"].(string)).object(r.t, 200)
			r.token(ownToken(c)...).members(r.t, 200, "access_token", "token_type", "expires_in")
			tokens := r.issue(c, r.user(), oauth.ViewUser)
			if o := r.token(renewal(c, tokens.refresh)...).object(r.t, 200); o["scope"] != "view-user" {
				r.t.Errorf("got scope %v, want the granted ones", o["scope"])
			}
		}},
		{"failure: the token error body", func(r *row) {
			r.token().fails(r.t, 400, "invalid_request")
			r.token(ownToken(r.client(), "client_secret", "x")...).fails(r.t, 401, "invalid_client")
		}},
	})
}

// TestDocumentAuthorizationEndpoint follows section 4.2: GET /oauth/authorize.
func TestDocumentAuthorizationEndpoint(t *testing.T) {
	rows(t, []rowTest{
		{"response_type", func(r *row) {
			c, b := r.client(), r.browser()
			b.authorize(c).shows(200, "/login")
			b.authorize(c, "response_type", "").refusal("invalid_request")
			b.authorize(c, "response_type", "token").refusal("unsupported_response_type")
			b.authorize(c, "response_type", "code id_token").refusal("unsupported_response_type")
		}},
		{"client_id", func(r *row) {
			r.browser().authorize(r.client(), "client_id", "").showsError()
			r.browser().authorize(r.client(), "client_id", "nobody").showsError()
		}},
		{"redirect_uri", func(r *row) {
			const second = "https://app.example/second"
			c, b := r.client(redirecting(stacktest.RedirectURI, second)), r.browser()
			b.authorize(c, "redirect_uri", "").showsError()
			b.authorize(c, "redirect_uri", second+"/").showsError()
			if p := b.authorize(c, "redirect_uri", second, "prompt", "none"); !strings.HasPrefix(p.to,
				second+"?error=login_required&") {
				r.t.Errorf("got %q, want the second redirect URI", p.to)
			}
		}},
		{"scope", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			code := b.consented(c, u, "scope", "view-user detail-user")
			tokens := r.token(redemption(c, code)...).tokens(r.t)
			r.profile(tokens.access).object(r.t, 200)
			r.profile(tokens.access, "/api/user/details").object(r.t, 200)
			b.authorize(c, "scope", "view-user view-everything").refusal("invalid_scope")
			b.authorize(c, "scope", "", "skip_account_chooser", "true").code()
		}},
		{"state", func(r *row) {
			b := r.browser()
			b.consented(r.client(), r.person()) // checks the state
			b.authorize(r.client(), "scope", "root").refusal("invalid_scope")
		}},
		{"prompt", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			b.consented(c, u)
			b.authorize(c, "skip_account_chooser", "true").code()
			b.authorize(c, "skip_account_chooser", "true", "prompt", "consent").shows(200, "/consent")
			b.signIn(b.authorize(c, "skip_account_chooser", "true", "prompt", "login"), u).code()
		}},
		{"account-chooser bypass", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			b.consented(c, u)
			b.authorize(c).shows(200, "/accounts")
			b.authorize(c, "skip_account_chooser", "true").code()
			b.authorize(r.client(), "skip_account_chooser", "true").shows(200, "/accounts")
		}},
		{"code_challenge", func(r *row) {
			b := r.browser()
			p := r.client(public)
			b.authorize(p, "code_challenge", "", "code_challenge_method", "").refusal("invalid_request")
			b.authorize(p, "code_challenge", "short").refusal("invalid_request")
			b.authorize(p, "code_challenge", challenge+"=").refusal("invalid_request")
			b.authorize(r.client(), "code_challenge", "", "code_challenge_method", "").shows(200, "/login")
			r.token(redemption(p, b.consented(p, r.person()))...).tokens(r.t)
		}},
		{"code_challenge_method", func(r *row) {
			for _, method := range []string{"", "plain", "s256", "S512"} {
				r.browser().authorize(r.client(), "code_challenge_method", method).refusal("invalid_request")
			}
		}},
		{"success: code and state", func(r *row) {
			c := r.client()
			r.token(redemption(c, r.browser().consented(c, r.person()))...).tokens(r.t)
		}},
		{"denial: error, error_description and state", func(r *row) {
			b := r.browser()
			b.send(b.signIn(b.authorize(r.client()), r.person()), "decision",
				"deny").refusal("access_denied")
		}},
	})
}

// TestDocumentProfiles follows sections 4.3 and 4.4.
func TestDocumentProfiles(t *testing.T) {
	basicFields := []string{"id", "name", "email", "profile_picture", "username", "gender"}
	detailFields := append(basicFields[:6:6], "bio", "phone_number", "place_of_birth", "date_of_birth",
		"address", "service_id")
	for path, rest := range map[string]struct {
		scope, other oauth.Scopes
		fields       []string
	}{"/api/user": {oauth.ViewUser, oauth.DetailUser, basicFields},
		"/api/user/details": {oauth.DetailUser, oauth.ViewUser, detailFields}} {
		t.Run(path, func(t *testing.T) {
			rows(t, []rowTest{
				{"Authorization", func(r *row) {
					tokens := r.issue(r.client(), r.user(), oauth.UserScopes)
					r.send("GET", r.URL+path, "").invalid(r.t)
					r.send("GET", r.URL+path, "", "Authorization", tokens.access).invalid(r.t)
					r.send("GET", r.URL+path, "", "Authorization", "bearer "+tokens.access).object(r.t, 200)
				}},
				{"Accept", func(r *row) {
					tokens := r.issue(r.client(), r.user(), oauth.UserScopes)
					for _, accept := range []string{"", "application/json", "*/*"} {
						a := r.send("GET", r.URL+path, "", "Authorization", "Bearer "+tokens.access, "Accept", accept)
						a.object(r.t, 200)
						a.has(r.t, "Content-Type", "application/json")
					}
				}},
				{"required scope", func(r *row) {
					c, u := r.client(), r.user()
					r.profile(r.issue(c, u, rest.scope).access, path).object(r.t, 200)
					r.profile(r.issue(c, u, rest.other).access, path).denied(r.t, 403, "insufficient_scope")
				}},
				{"200", func(r *row) {
					u := r.user()
					o := r.profile(r.issue(r.client(), u, rest.scope).access, path).members(r.t, 200,
						rest.fields...)
					if o["id"] != float64(u.ID) || o["name"] != u.Name || o["email"] != u.Email {
						r.t.Errorf("got %v, want the token's user", o)
					}
				}},
			})
		})
	}
	rows(t, []rowTest{{"/api/user/details needs approval", func(r *row) {
		c := r.client(func(c *oauth.Client) { c.DetailApproved = false })
		tokens := r.issue(c, r.user(), oauth.UserScopes)
		r.profile(tokens.access, "/api/user/details").denied(r.t, 403, "unapproved_scope")
		r.profile(tokens.access).object(r.t, 200)
	}}})
}

// TestDocumentAuthentication follows section 5.
func TestDocumentAuthentication(t *testing.T) {
	rows(t, []rowTest{
		{"1: bearer tokens at protected endpoints", func(r *row) {
			tokens := r.issue(r.client(), r.user(), oauth.UserScopes)
			r.profile(tokens.access).object(r.t, 200)
			r.profile(tokens.access, "/api/user/details").object(r.t, 200)
		}},
		{"2: client_id and client_secret in the body", func(r *row) {
			c := r.client()
			r.token(ownToken(c)...).object(r.t, 200)
			r.send("POST", r.URL+"/oauth/token?client_secret="+c.Secret,
				values(ownToken(c, "client_secret", "")...).Encode(),
				"Content-Type", formType).fails(r.t, 401, "invalid_client")
		}},
		{"3: public clients use PKCE", func(r *row) {
			p, b := r.client(public), r.browser()
			b.authorize(p, "code_challenge", "", "code_challenge_method", "").refusal("invalid_request")
			tokens := r.token(redemption(p, b.consented(p, r.person()))...).tokens(r.t)
			r.token(renewal(p, tokens.refresh)...).tokens(r.t)
		}},
		{"4: scopes and approval gate the profiles", func(r *row) {
			c, u := r.client(func(c *oauth.Client) { c.DetailApproved = false }), r.user()
			r.profile(r.issue(c, u, oauth.ViewUser).access, "/api/user/details").denied(r.t, 403,
				"insufficient_scope")
			detailed := r.issue(c, u, oauth.DetailUser)
			r.profile(detailed.access).denied(r.t, 403, "insufficient_scope")
			r.profile(detailed.access, "/api/user/details").denied(r.t, 403, "unapproved_scope")
			r.operator().does(200, "POST", "/clients/"+c.ID+"/approve", "")
			r.profile(detailed.access, "/api/user/details").object(r.t, 200)
		}},
		{"5: state comes back to be validated", func(r *row) {
			r.browser().consented(r.client(), r.person())
		}},
		{"6: scopes and approval", func(r *row) {
			o := r.send("GET", r.URL+"/.well-known/oauth-authorization-server", "").object(r.t, 200)
			if all, _ := o["scopes_supported"].([]any); len(all) != 3 {
				r.t.Errorf("got %v, want three scopes", all)
			}
			r.browser().authorize(r.client(), "scope", "openid").refusal("invalid_scope")
		}},
		{"7: expires_in", func(r *row) {
			c := r.client()
			o := r.token(ownToken(c)...).object(r.t, 200)
			if o["expires_in"] != 3600.0 {
				r.t.Errorf("got %v, want 3600", o["expires_in"])
			}
			r.profile(r.issueAt(time.Now().Add(-3601*time.Second), ownToken(c)).AccessToken).denied(r.t, 401,
				"token_expired")
			r.profile(r.issueAt(time.Now().Add(-3590*time.Second), ownToken(c)).AccessToken).denied(r.t, 403,
				"insufficient_scope")
		}},
	})
}

// TestDocumentErrors follows section 7.
func TestDocumentErrors(t *testing.T) {
	rows(t, []rowTest{
		{"7.1 invalid_request", func(r *row) {
			c := r.client()
			r.token(ownToken(c, "grant_type", "")...).fails(r.t, 400, "invalid_request")
			r.send("POST", r.URL+"/oauth/token", "grant_type=%zz", "Content-Type", formType).fails(r.t, 400,
				"invalid_request")
		}},
		{"7.1 invalid_client", func(r *row) {
			r.token(ownToken(r.client(), "client_secret", "x")...).fails(r.t, 401, "invalid_client")
		}},
		{"7.1 invalid_grant", func(r *row) {
			c, u := r.client(), r.user()
			code := r.code(c, u, time.Now(), nil)
			r.token(redemption(c, "gtac_invalid")...).fails(r.t, 400, "invalid_grant")
			r.token(redemption(c, r.code(c, u, time.Now().Add(-time.Hour), nil))...).fails(r.t, 400,
				"invalid_grant")
			r.token(redemption(c, code, "redirect_uri", "https://app.example/other")...).fails(r.t, 400,
				"invalid_grant")
			r.token(redemption(r.client(), code)...).fails(r.t, 400, "invalid_grant")
			tokens := r.token(redemption(c, code)...).tokens(r.t)
			r.post("/oauth/revoke", []string{"token", tokens.refresh, "client_id", c.ID, "client_secret",
				c.Secret}).object(r.t, 200)
			r.token(renewal(c, tokens.refresh)...).fails(r.t, 400, "invalid_grant")
			r.token(redemption(c, code)...).fails(r.t, 400, "invalid_grant")
		}},
		{"7.1 unauthorized_client", func(r *row) {
			for grant, form := range map[oauth.GrantTypes]func(stacktest.Client) []string{
				oauth.ClientCredentialsGrant: func(c stacktest.Client) []string {
					return redemption(c, "x")
				},
				oauth.AuthorizationCodeGrant: func(c stacktest.Client) []string {
					return ownToken(c)
				},
				oauth.AuthorizationCodeGrant | oauth.ClientCredentialsGrant: func(c stacktest.Client) []string {
					return renewal(c, "x")
				},
			} {
				r.token(form(r.client(func(c *oauth.Client) { c.Grants = grant }))...).fails(r.t, 400,
					"unauthorized_client")
			}
		}},
		{"7.1 unsupported_grant_type", func(r *row) {
			r.token(ownToken(r.client(), "grant_type", "password")...).fails(r.t, 400,
				"unsupported_grant_type")
		}},
		{"7.1 invalid_scope", func(r *row) {
			r.token(ownToken(r.client(), "scope", "nothing-known")...).fails(r.t, 400, "invalid_scope")
		}},
		{"7.2 401 missing, invalid or expired", func(r *row) {
			c := r.client()
			for _, path := range []string{"/api/user", "/api/user/details"} {
				r.send("GET", r.URL+path, "").invalid(r.t)
				r.profile("invalid", path).invalid(r.t)
				r.profile(r.issueAt(time.Now().Add(-2*time.Hour), ownToken(c)).AccessToken, path).denied(r.t,
					401, "token_expired")
			}
		}},
		{"7.2 403 insufficient_scope", func(r *row) {
			c, u := r.client(), r.user()
			r.profile(r.issue(c, u, oauth.DetailUser).access).denied(r.t, 403, "insufficient_scope")
			r.profile(r.issue(c, u, oauth.ViewUser).access, "/api/user/details").denied(r.t, 403,
				"insufficient_scope")
		}},
		{"7.2 403 unapproved_scope", func(r *row) {
			c := r.client(func(c *oauth.Client) { c.DetailApproved = false })
			r.profile(r.issue(c, r.user(), oauth.DetailUser).access, "/api/user/details").denied(r.t, 403,
				"unapproved_scope")
		}},
		{"7.2 429 rate_limit_exceeded", func(r *row) {
			tokens := r.issue(r.client(), r.user(), oauth.ViewUser)
			for range 100 {
				r.profile(tokens.access)
			}
			if o := r.profile(tokens.access).members(r.t, 429, "error", "message",
				"retry_after"); o["error"] != "rate_limit_exceeded" {
				r.t.Errorf("got %v, want rate_limit_exceeded", o)
			}
		}},
	})
}

// TestDocumentLimits follows section 8.
func TestDocumentLimits(t *testing.T) {
	limited := func(path string, endpoint token.Endpoint, limit int) func(*row) {
		return func(r *row) {
			c, u := r.client(), r.user()
			tokens := r.issue(c, u, oauth.UserScopes)
			for i := range limit {
				a := r.profile(tokens.access, path)
				a.object(r.t, 200)
				a.has(r.t, "X-RateLimit-Remaining", strconv.Itoa(limit-1-i))
			}
			r.profile(tokens.access, path).object(r.t, 429)
			r.profile(r.issue(c, u, oauth.UserScopes).access, path).object(r.t, 200)
			tokens = r.issue(c, u, oauth.UserScopes)
			counter := r.CounterOf(r.t, tokens.access).Tokens
			for range limit + 1 {
				counter.Admit(tokens.access, endpoint, time.Now().Add(-time.Minute-time.Second))
			}
			r.profile(tokens.access, path).object(r.t, 200) // the window lasts a minute
		}
	}
	rows(t, []rowTest{
		{"GET /api/user", limited("/api/user", token.BasicProfile, 100)},
		{"GET /api/user/details", limited("/api/user/details", token.DetailedProfile, 50)},
		{"X-RateLimit-Remaining and X-RateLimit-Reset", func(r *row) {
			a := r.profile(r.issue(r.client(), r.user(), oauth.ViewUser).access)
			a.has(r.t, "X-RateLimit-Remaining", "99")
			if reset, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64); err != nil ||
				reset <= time.Now().Unix() || reset > time.Now().Unix()+61 {
				r.t.Errorf("got a reset at %q, want a time within the minute",
					a.header.Get("X-RateLimit-Reset"))
			}
		}},
		{"retry_after", func(r *row) {
			tokens := r.issue(r.client(), r.user(), oauth.DetailUser)
			for range 50 {
				r.profile(tokens.access, "/api/user/details")
			}
			o := r.profile(tokens.access, "/api/user/details").object(r.t, 429)
			if wait := o["retry_after"].(float64); wait < 50 || wait > 60 || wait != float64(int(wait)) {
				r.t.Errorf("got %v, want whole seconds to the reset", wait)
			}
		}},
	})
}
