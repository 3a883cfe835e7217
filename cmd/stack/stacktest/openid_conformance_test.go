package stacktest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// relyingParty is a client for OpenID Connect, approved for the detailed profile.
func (r *row) relyingParty(change ...func(*oauth.Client)) stacktest.Client {
	r.t.Helper()
	return r.client(append([]func(*oauth.Client){func(c *oauth.Client) {
		c.Scopes = oauth.GrantableScopes
		c.Grants = oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant
		c.Options.PostLogoutRedirectURIs = []string{afterLogout}
	}}, change...)...)
}

const afterLogout = "https://app.example/bye?a=b"

// fullPerson is a person who has each claim.
func (r *row) fullPerson() *account.User {
	r.t.Helper()
	u := r.person()
	u.Username, u.Gender, u.ProfilePicture = "rosa."+strconv.FormatInt(u.ID, 10), "female", "https://app.example/rosa.png"
	u.Phone, u.Address, u.DateOfBirth = "+4930"+fmt.Sprintf("%07d", u.ID), "1 Main St", "1990-02-28"
	stacktest.Must(r.t, r.Store.UpdateUser(r.t.Context(), u))
	return u
}

// finish answers the pages up to the redirect to the client: it signs in, continues with the
// account and allows the request.
func (b *browser) finish(p page, u *account.User) page {
	b.t.Helper()
	for range 6 {
		switch {
		case p.Location != "":
			return p
		case p.path == "/login":
			p = b.signIn(p, u)
		case p.path == "/accounts":
			p = b.send(p, "account", strconv.FormatInt(u.ID, 10))
		case p.path == "/consent":
			p = b.send(p, "decision", "allow")
		default:
			b.t.Fatalf("got %d at %s: %s, want a page of the flow", p.Status, p.path, p.Body)
		}
	}
	b.t.Fatalf("got no redirect to the client, the last page is %s", p.path)
	return p
}

// openID opens an authorization request with the scope openid; more overrides it.
func (b *browser) openID(c stacktest.Client, more ...string) page {
	b.t.Helper()
	return b.authorize(c, overridden([]string{"scope", "openid", "nonce", "n-0S6_WzA2Mj"}, more)...)
}

// login is a token response with the claims of its id_token.
type login struct {
	access, refresh, raw string
	claims               map[string]any
}

// login runs the whole flow in a browser and redeems the code.
func (b *browser) login(c stacktest.Client, u *account.User, more ...string) login {
	b.t.Helper()
	return b.redeem(c, b.finish(b.openID(c, more...), u).code())
}

func (r *row) redeem(c stacktest.Client, code string) login {
	r.t.Helper()
	return r.loginOf(c, r.token(redemption(c, code)...))
}

func (r *row) loginOf(c stacktest.Client, response reply) (l login) {
	r.t.Helper()
	o := response.object(r.t, 200)
	l.access, _ = o["access_token"].(string)
	l.refresh, _ = o["refresh_token"].(string)
	l.raw, _ = o["id_token"].(string)
	l.claims = r.verified(l.raw)
	if l.claims["iss"] != r.URL || l.claims["aud"] != c.ID {
		r.t.Errorf("got the claims %v, want iss %s and aud %s", l.claims, r.URL, c.ID)
	}
	return l
}

// verified returns the claims of a JWT that a key of the published set has signed.
func (r *row) verified(raw string) (claims map[string]any) {
	r.t.Helper()
	parsed, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		r.t.Fatalf("parse %q: %v", raw, err)
	}
	var set jose.JSONWebKeySet
	keys := r.send("GET", r.discovery()["jwks_uri"].(string), "")
	if err := json.Unmarshal([]byte(keys.Body), &set); err != nil || keys.Status != 200 {
		r.t.Fatalf("got %d %s and %v, want a key set", keys.Status, keys.Body, err)
	}
	found := set.Key(parsed.Signatures[0].Header.KeyID)
	if len(found) != 1 || !found[0].IsPublic() ||
		found[0].Algorithm != parsed.Signatures[0].Header.Algorithm {
		r.t.Fatalf("got %d keys for %+v, want one", len(found), parsed.Signatures[0].Header)
	}
	payload, err := parsed.Verify(found[0])
	stacktest.Must(r.t, err)
	stacktest.Must(r.t, json.Unmarshal(payload, &claims))
	return claims
}

func (r *row) discovery() map[string]any {
	r.t.Helper()
	return r.send("GET", r.URL+"/.well-known/openid-configuration", "").object(r.t, 200)
}

// userInfo requests userinfo with the token in the Authorization header.
func (r *row) userInfo(access string) reply {
	r.t.Helper()
	return r.profile(access, "/oauth/userinfo")
}

// knows checks that a person's userinfo has exactly these claims beside sub.
func (r *row) knows(access string, u *account.User, claims ...string) {
	r.t.Helper()
	got := r.userInfo(access).object(r.t, 200)
	if got["sub"] != strconv.FormatInt(u.ID, 10) {
		r.t.Errorf("got sub %v, want %d as a string", got["sub"], u.ID)
	}
	delete(got, "sub")
	for _, name := range claims {
		if _, ok := got[name]; !ok {
			r.t.Errorf("got %v, want the claim %s", got, name)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		r.t.Errorf("got also %v, want %q", got, claims)
	}
}

var (
	profileClaims = []string{"name", "preferred_username", "picture", "gender", "updated_at", "birthdate"}
	emailClaims   = []string{"email", "email_verified"}
	phoneClaims   = []string{"phone_number", "phone_number_verified"}
	addressClaims = []string{"address"}
)

// scoped returns a row that requests scopes and checks the claims of userinfo.
func scoped(name, scope string, claims ...[]string) rowTest {
	return rowTest{name, func(r *row) {
		u := r.fullPerson()
		l := r.browser().login(r.relyingParty(), u, "scope", scope)
		r.knows(l.access, u, slices.Concat(claims...)...)
		if _, ok := l.claims["email"]; ok {
			r.t.Errorf("got the claims %v in the id_token, want them in userinfo alone", l.claims)
		}
	}}
}

// accepted returns a row whose parameters change nothing about a sign-in.
func accepted(name string, parameters ...string) rowTest {
	return rowTest{name, func(r *row) {
		u := r.person()
		l := r.browser().login(r.relyingParty(), u, parameters...)
		r.knows(l.access, u)
	}}
}

// TestBasicOpenIDProvider does what the modules of the OpenID Foundation's conformance suite do in
// its plan oidcc-basic-certification-test-plan. The rows have the modules' names.
func TestBasicOpenIDProvider(t *testing.T) {
	rows(t, []rowTest{
		{"oidcc-server", func(r *row) {
			u, before := r.person(), time.Now().Unix()
			l := r.browser().login(r.relyingParty(), u)
			claim := func(name string) int64 { n, _ := l.claims[name].(float64); return int64(n) }
			now := time.Now().Unix()
			if l.claims["sub"] != strconv.FormatInt(u.ID, 10) || l.claims["nonce"] != "n-0S6_WzA2Mj" ||
				claim("iat") < before || claim("iat") > now || claim("exp") <= now ||
				claim("auth_time") < before || claim("auth_time") > now {
				r.t.Errorf("got %v, want the claims of a sign-in at %d", l.claims, now)
			}
			r.knows(l.access, u)
		}},
		{"oidcc-response-type-missing", func(r *row) {
			r.browser().openID(r.relyingParty(), "response_type", "").refusal("invalid_request")
		}},
		{"oidcc-idtoken-signature", func(r *row) {
			for _, alg := range []string{"RS256", "ES256"} {
				c := r.relyingParty(func(c *oauth.Client) { c.Options.IDTokenAlg = alg })
				l := r.browser().login(c, r.person())
				parsed, err := jose.ParseSignedCompact(l.raw, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
				if err != nil || parsed.Signatures[0].Header.KeyID == "" {
					r.t.Errorf("got %v, want a signature by %s with kid", err, alg)
				}
			}
		}},
		{"oidcc-idtoken-unsigned", func(r *row) {
			algs, _ := r.discovery()["id_token_signing_alg_values_supported"].([]any)
			if len(algs) == 0 || slices.Contains(algs, any("none")) {
				r.t.Errorf("got %v, want no unsigned tokens", algs)
			}
		}},
		{"oidcc-userinfo-get", func(r *row) {
			u := r.person()
			r.knows(r.browser().login(r.relyingParty(), u).access, u)
		}},
		{"oidcc-userinfo-post-header", func(r *row) {
			u := r.person()
			l := r.browser().login(r.relyingParty(), u)
			o := r.send("POST", r.URL+"/oauth/userinfo", "", "Authorization", "Bearer "+l.access).object(r.t, 200)
			if o["sub"] != l.claims["sub"] {
				r.t.Errorf("got %v, want sub %v", o, l.claims["sub"])
			}
		}},
		{"oidcc-userinfo-post-body", func(r *row) {
			l := r.browser().login(r.relyingParty(), r.person())
			o := r.post("/oauth/userinfo", []string{"access_token", l.access}).object(r.t, 200)
			if o["sub"] != l.claims["sub"] {
				r.t.Errorf("got %v, want sub %v", o, l.claims["sub"])
			}
		}},
		{"oidcc-ensure-request-without-nonce-succeeds-for-code-flow", func(r *row) {
			l := r.browser().login(r.relyingParty(), r.person(), "nonce", "")
			if _, ok := l.claims["nonce"]; ok {
				r.t.Errorf("got %v, want no nonce", l.claims)
			}
		}},
		scoped("oidcc-scope-profile", "openid profile", profileClaims),
		scoped("oidcc-scope-email", "openid email", emailClaims),
		scoped("oidcc-scope-address", "openid address", addressClaims),
		scoped("oidcc-scope-phone", "openid phone", phoneClaims),
		scoped("oidcc-scope-all", "openid profile email address phone",
			profileClaims, emailClaims, addressClaims, phoneClaims),
		scoped("oidcc-ensure-other-scope-order-succeeds", "email openid", emailClaims),
		accepted("oidcc-display-page", "display", "page"),
		accepted("oidcc-display-popup", "display", "popup"),
		{"oidcc-prompt-login", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			first := b.login(c, u)
			p := b.openID(c, "prompt", "login")
			p.shows(200, "/login")
			second := r.redeem(c, b.finish(p, u).code())
			if second.claims["sub"] != first.claims["sub"] ||
				second.claims["auth_time"].(float64) < first.claims["auth_time"].(float64) {
				r.t.Errorf("got %v after %v, want a later sign-in", second.claims, first.claims)
			}
		}},
		{"oidcc-prompt-none-not-logged-in", func(r *row) {
			r.browser().openID(r.relyingParty(), "prompt", "none").refusal("login_required")
		}},
		{"oidcc-prompt-none-logged-in", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			first := b.login(c, u)
			second := r.redeem(c, b.openID(c, "prompt", "none").code())
			r.sameSignIn(first, second)
		}},
		{"oidcc-max-age-1", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			first := b.login(c, u)
			r.Alter(r.t, fmt.Sprintf("UPDATE sessions SET signed_in = signed_in - 5000 WHERE user_id = %d", u.ID))
			p := b.openID(c, "max_age", "1")
			p.shows(200, "/login")
			second := r.redeem(c, b.finish(p, u).code())
			if second.claims["auth_time"].(float64) < first.claims["auth_time"].(float64) {
				r.t.Errorf("got %v after %v, want a new sign-in", second.claims, first.claims)
			}
		}},
		{"oidcc-max-age-10000", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			first := b.login(c, u)
			second := r.redeem(c, b.openID(c, "max_age", "10000").code())
			r.sameSignIn(first, second)
		}},
		accepted("oidcc-ensure-request-with-unknown-parameter-succeeds", "extra", "foobar"),
		{"oidcc-id-token-hint", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			first := b.login(c, u)
			second := r.redeem(c, b.openID(c, "prompt", "none", "id_token_hint", first.raw).code())
			r.sameSignIn(first, second)
			other := r.browser()
			other.login(c, r.person())
			other.openID(c, "prompt", "none", "id_token_hint", first.raw).refusal("login_required")
		}},
		{"oidcc-login-hint", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			p := b.openID(c, "login_hint", u.Email)
			p.shows(200, "/login")
			if _, fields := p.Form(r.t); fields.Get("email") != u.Email {
				r.t.Errorf("got the form %v, want the address filled in", fields)
			}
			b.finish(p, u).code()
		}},
		accepted("oidcc-ui-locales", "ui_locales", "se de"),
		accepted("oidcc-claims-locales", "claims_locales", "se"),
		accepted("oidcc-ensure-request-with-acr-values-succeeds", "acr_values", "1 2"),
		{"oidcc-codereuse", func(r *row) {
			c, u := r.relyingParty(), r.person()
			b := r.browser()
			code := b.finish(b.openID(c), u).code()
			r.redeem(c, code)
			r.token(redemption(c, code)...).FailsAs(r.t, 400, "invalid_grant")
		}},
		{"oidcc-codereuse-30seconds", func(r *row) {
			c, u := r.relyingParty(), r.person()
			b := r.browser()
			code := b.finish(b.openID(c), u).code()
			l := r.redeem(c, code)
			r.Alter(r.t, "UPDATE authorization_codes SET expires = expires - 30000 WHERE client_id = '"+c.ID+"'")
			r.token(redemption(c, code)...).FailsAs(r.t, 400, "invalid_grant")
			if got := r.userInfo(l.access); got.Status != 401 {
				r.t.Errorf("got %d %s, want the access token ended", got.Status, got.Body)
			}
		}},
		{"oidcc-ensure-registered-redirect-uri", func(r *row) {
			r.browser().openID(r.relyingParty(), "redirect_uri", "https://app.example/other").showsError()
		}},
		{"oidcc-ensure-post-request-succeeds", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			p := b.open("POST", "/oauth/authorize", c.Request("scope", "openid", "nonce", "n"), "Origin", "https://app.example",
				"Sec-Fetch-Site", "cross-site")
			if l := r.redeem(c, b.finish(p, u).code()); l.claims["nonce"] != "n" {
				r.t.Errorf("got %v, want the nonce of the form", l.claims)
			}
		}},
		{"oidcc-server-client-secret-post", func(r *row) {
			c, u, b := r.relyingParty(), r.person(), r.browser()
			l := r.redeem(c, b.finish(b.openID(c), u).code()) // redemption sends the secret in the body
			r.knows(l.access, u)
			code := b.openID(c, "prompt", "none").code()
			form := overridden(redemption(c, code), []string{"client_id", "", "client_secret", ""})
			r.loginOf(c, r.post("/oauth/token", form, "Authorization", stacktest.Basic(c.ID, c.Secret)))
		}},
		{"oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported", func(r *row) {
			r.browser().openID(r.relyingParty(), "request_uri", "https://app.example/request").
				refusal("request_uri_not_supported")
		}},
		{"oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported", func(r *row) {
			r.browser().openID(r.relyingParty(), "request", "eyJhbGciOiJub25lIn0.e30.").
				refusal("request_not_supported")
		}},
		accepted("oidcc-claims-essential", "claims", `{"userinfo":{"name":{"essential":true}}}`),
		{"oidcc-ensure-request-object-with-redirect-uri", func(r *row) {
			r.browser().openID(r.relyingParty(), "request", "eyJhbGciOiJub25lIn0.eyJyZWRpcmVjdF91cmkiOiJ4In0.").
				refusal("request_not_supported")
		}},
		{"oidcc-refresh-token", func(r *row) {
			c, u := r.relyingParty(), r.person()
			first := r.browser().login(c, u, "scope", "openid offline_access")
			second := r.loginOf(c, r.token(renewal(c, first.refresh)...))
			r.sameSignIn(first, second)
			if _, ok := second.claims["nonce"]; ok {
				r.t.Errorf("got %v, want no nonce in a refreshed id_token", second.claims)
			}
			r.knows(second.access, u)
			other := r.relyingParty()
			r.token(renewal(other, second.refresh)...).FailsAs(r.t, 400, "invalid_grant")
		}},
		accepted("oidcc-ensure-request-with-valid-pkce-succeeds"),
	})
}

// sameSignIn checks that two id_tokens are about one person and one sign-in.
func (r *row) sameSignIn(first, second login) {
	r.t.Helper()
	for _, name := range []string{"iss", "sub", "aud", "auth_time", "azp"} {
		if first.claims[name] != second.claims[name] {
			r.t.Errorf("got %s %v after %v, want the same", name, second.claims[name], first.claims[name])
		}
	}
	if second.claims["iat"].(float64) < first.claims["iat"].(float64) {
		r.t.Errorf("got iat %v after %v", second.claims["iat"], first.claims["iat"])
	}
}

// TestConfiguredOpenIDProvider does what the plan oidcc-config-certification-test-plan does.
func TestConfiguredOpenIDProvider(t *testing.T) {
	rows(t, []rowTest{
		{"oidcc-discovery-endpoint-verification", func(r *row) {
			r.browser().login(r.relyingParty(), r.person()) // makes the first key
			o := r.discovery()
			if o["issuer"] != r.URL || o["claims_parameter_supported"] == true ||
				o["request_parameter_supported"] != false || o["request_uri_parameter_supported"] != false {
				r.t.Errorf("got %v, want the issuer %s and what is not supported", o, r.URL)
			}
			for name, want := range map[string][]string{
				"response_types_supported":              {"code"},
				"subject_types_supported":               {"public"},
				"id_token_signing_alg_values_supported": {"RS256", "ES256"},
				"response_modes_supported":              {"query", "form_post"},
				"scopes_supported":                      {"openid", "profile", "email", "phone", "address", "offline_access"},
				"claims_supported":                      {"sub", "name", "email", "phone_number", "address", "auth_time"},
				"code_challenge_methods_supported":      {"S256"},
				"token_endpoint_auth_methods_supported": {"client_secret_basic", "client_secret_post", "none"},
				"grant_types_supported":                 {"authorization_code", "refresh_token"},
				"prompt_values_supported":               {"none", "login", "consent", "select_account"},
			} {
				list, _ := o[name].([]any)
				for _, value := range want {
					if !slices.Contains(list, any(value)) {
						r.t.Errorf("got %s %v, want %s in it", name, list, value)
					}
				}
			}
			for _, name := range []string{"authorization_endpoint", "token_endpoint", "userinfo_endpoint",
				"jwks_uri", "end_session_endpoint", "revocation_endpoint", "introspection_endpoint"} {
				at, _ := o[name].(string)
				if !strings.HasPrefix(at, r.URL+"/") {
					r.t.Errorf("got %s %q, want it below the issuer", name, at)
				}
			}
			keys := r.send("GET", o["jwks_uri"].(string), "").object(r.t, 200)["keys"].([]any)
			for _, key := range keys {
				k := key.(map[string]any)
				for _, secret := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
					if _, ok := k[secret]; ok {
						r.t.Errorf("got a private key: member %s", secret)
					}
				}
				if k["kid"] == "" || k["use"] != "sig" || k["alg"] == "" {
					r.t.Errorf("got the key %v, want kid, use and alg", k)
				}
			}
			if len(keys) == 0 {
				r.t.Error("got no keys")
			}
		}},
	})
}

// ended checks that the browser is signed out.
func (b *browser) ended(c stacktest.Client) {
	b.t.Helper()
	b.openID(c, "prompt", "none").refusal("login_required")
}

// live checks that the browser is still signed in.
func (b *browser) live(c stacktest.Client) {
	b.t.Helper()
	b.openID(c, "prompt", "none").code()
}

// logout opens the logout endpoint with parameters.
func (b *browser) logout(parameters ...string) page {
	b.t.Helper()
	return b.open("GET", "/oauth/logout?"+stacktest.Values(parameters...).Encode(), nil)
}

// signedIn returns a browser that is signed in at a client.
func (r *row) signedIn() (*browser, stacktest.Client, login) {
	r.t.Helper()
	b, c := r.browser(), r.relyingParty()
	return b, c, b.login(c, r.person())
}

// asks checks that the page asks before anything ends, and confirms.
func (b *browser) asks(c stacktest.Client, l login, p page) page {
	b.t.Helper()
	if p.Status != 200 || p.Location != "" {
		b.t.Fatalf("got %d to %q: %s, want a question", p.Status, p.Location, p.Body)
	}
	b.live(c)
	return b.send(p, "account", l.claims["sub"].(string))
}

// stays checks that nobody is redirected and nobody is signed out.
func (b *browser) stays(c stacktest.Client, p page) {
	b.t.Helper()
	if p.Location != "" || p.Status != 400 {
		b.t.Errorf("got %d to %q: %s, want a page with 400", p.Status, p.Location, p.Body)
	}
	b.live(c)
}

// TestRPInitiatedLogout does what the plan oidcc-rp-initiated-logout-certification-test-plan does.
func TestRPInitiatedLogout(t *testing.T) {
	rows(t, []rowTest{
		{"oidcc-rp-initiated-logout-discovery-endpoint-verification", func(r *row) {
			if got := r.discovery()["end_session_endpoint"]; got != r.URL+"/oauth/logout" {
				r.t.Errorf("got %v, want the logout endpoint", got)
			}
		}},
		{"oidcc-rp-initiated-logout", func(r *row) {
			b, c, l := r.signedIn()
			p := b.logout("id_token_hint", l.raw, "post_logout_redirect_uri", afterLogout, "state", "x y")
			if p.Location != afterLogout+"&state=x+y" && p.Location != afterLogout+"&state=x%20y" {
				r.t.Errorf("got %d to %q, want the app with the state", p.Status, p.Location)
			}
			b.ended(c)
		}},
		{"oidcc-rp-initiated-logout-bad-post-logout-redirect-uri", func(r *row) {
			b, c, l := r.signedIn()
			b.stays(c, b.logout("id_token_hint", l.raw, "post_logout_redirect_uri", "https://evil.example/"))
		}},
		{"oidcc-rp-initiated-logout-modified-id-token-hint", func(r *row) {
			b, c, l := r.signedIn()
			parts := strings.Split(l.raw, ".")
			parts[2] = strings.Repeat("A", len(parts[2]))
			p := b.logout("id_token_hint", strings.Join(parts, "."), "post_logout_redirect_uri", afterLogout)
			if p.Location != "" {
				r.t.Errorf("got a redirect to %q, want a page", p.Location)
			}
			b.live(c)
		}},
		{"oidcc-rp-initiated-logout-no-id-token-hint", func(r *row) {
			b, c, l := r.signedIn()
			b.stays(c, b.logout("post_logout_redirect_uri", afterLogout))
			p := b.asks(c, l, b.logout("client_id", c.ID, "post_logout_redirect_uri", afterLogout))
			if p.Location != afterLogout {
				r.t.Errorf("got %d to %q: %s, want the app", p.Status, p.Location, p.Body)
			}
			b.ended(c)
		}},
		{"oidcc-rp-initiated-logout-no-params", func(r *row) {
			b, c, l := r.signedIn()
			b.asks(c, l, b.logout())
			b.ended(c)
		}},
		{"oidcc-rp-initiated-logout-no-post-logout-redirect-uri", func(r *row) {
			b, c, l := r.signedIn()
			if p := b.logout("id_token_hint", l.raw, "state", "x"); p.Location != "" || p.Status != 200 {
				r.t.Errorf("got %d to %q, want a page", p.Status, p.Location)
			}
			b.ended(c)
		}},
		{"oidcc-rp-initiated-logout-no-state", func(r *row) {
			b, c, l := r.signedIn()
			if p := b.logout("id_token_hint", l.raw, "post_logout_redirect_uri", afterLogout); p.Location != afterLogout {
				r.t.Errorf("got %d to %q, want the app without a state", p.Status, p.Location)
			}
			b.ended(c)
		}},
		{"oidcc-rp-initiated-logout-only-state", func(r *row) {
			b, c, l := r.signedIn()
			b.asks(c, l, b.logout("state", "x"))
			b.ended(c)
		}},
		{"oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri", func(r *row) {
			b, c, l := r.signedIn()
			b.stays(c, b.logout("id_token_hint", l.raw, "post_logout_redirect_uri", afterLogout+"&extra=1"))
		}},
		{"oidcc-rp-initiated-logout-bad-id-token-hint", func(r *row) {
			b, c, _ := r.signedIn()
			p := b.logout("id_token_hint", "abc.def.ghi", "post_logout_redirect_uri", afterLogout)
			if p.Location != "" {
				r.t.Errorf("got a redirect to %q, want a page", p.Location)
			}
			b.live(c)
		}},
	})
}

// TestBackchannelLogoutOfProvider does what the plan
// oidcc-backchannel-rp-initiated-logout-certification-test-plan does.
func TestBackchannelLogoutOfProvider(t *testing.T) {
	rows(t, []rowTest{
		{"oidcc-backchannel-logout-discovery-endpoint-verification", func(r *row) {
			o := r.discovery()
			if o["backchannel_logout_supported"] != true || o["backchannel_logout_session_supported"] != true {
				r.t.Errorf("got %v, want back-channel logout with sessions", o)
			}
		}},
		{"oidcc-backchannel-rp-initiated-logout", func(r *row) {
			got := make(chan string, 10)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				got <- q.PostFormValue("logout_token")
			}))
			defer server.Close()
			c := r.relyingParty(func(c *oauth.Client) { c.Options.BackchannelLogoutURI = server.URL + "/out" })
			b := r.browser()
			l := b.login(c, r.person())
			p := b.logout("id_token_hint", l.raw, "post_logout_redirect_uri", afterLogout, "state", "x")
			if !strings.HasPrefix(p.Location, afterLogout) {
				r.t.Errorf("got %d to %q, want the app", p.Status, p.Location)
			}
			var token string
			select {
			case token = <-got:
			case <-time.After(timeout):
				r.t.Fatal("got no logout token")
			}
			claims := r.verified(token)
			events, _ := claims["events"].(map[string]any)
			event, _ := events["http://schemas.openid.net/event/backchannel-logout"].(map[string]any)
			_, nonce := claims["nonce"]
			if event == nil || len(event) != 0 || nonce || claims["iss"] != r.URL || claims["aud"] != c.ID || claims["jti"] == "" ||
				claims["sub"] != l.claims["sub"] || claims["sid"] != l.claims["sid"] ||
				l.claims["sid"] == nil || claims["exp"].(float64)-claims["iat"].(float64) != 120 {
				r.t.Errorf("got %v for the session %v, want a logout token", claims, l.claims["sid"])
			}
			b.ended(c)
		}},
	})
}
