package oauthapi_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// relyingParty is a client of OpenID Connect that uses go-oidc as it comes.
type relyingParty struct {
	stacktest.Client
	st       *stacktest.IdentityStack
	provider *oidc.Provider
	config   oauth2.Config
	ctx      context.Context
}

func newRelyingParty(
	t *testing.T, st *stacktest.IdentityStack, change func(*oauth.Client),
) *relyingParty {
	t.Helper()
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Scopes |= oauth.OpenIDScopes
		if change != nil {
			change(c)
		}
	})
	ctx := oidc.ClientContext(t.Context(), st.Client)
	provider, err := oidc.NewProvider(ctx, st.URL)
	stacktest.Must(t, err)
	return &relyingParty{c, st, provider, oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, RedirectURL: stacktest.RedirectURI,
		Endpoint: provider.Endpoint(),
	}, ctx}
}

// code returns a new authorization code of a user who has signed in at signedIn.
func (r *relyingParty) code(
	t *testing.T, u *account.User, scopes oauth.Scopes, signedIn time.Time,
) string {
	t.Helper()
	code, fault := r.st.Tokens.IssueCode(t.Context(), oauth.AuthorizationCode{
		ClientID: r.ID, UserID: u.ID, RedirectURI: stacktest.RedirectURI, Scopes: scopes,
		Epochs: oauth.Epochs{User: u.Epoch},
		Details: oauth.GrantDetails{AuthTime: signedIn.Unix(), AMR: []string{"pwd"}, SID: "s",
			Nonce: "n-0S6_WzA2Mj"},
	}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

// verify returns the id_token of a response, checked as go-oidc does it.
func (r *relyingParty) verify(t *testing.T, tokens *oauth2.Token) *oidc.IDToken {
	t.Helper()
	text, _ := tokens.Extra("id_token").(string)
	idToken, err := r.provider.Verifier(&oidc.Config{ClientID: r.ID}).Verify(r.ctx, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := idToken.VerifyAccessToken(tokens.AccessToken); err != nil {
		t.Error(err)
	}
	return idToken
}

// TestRelyingParty signs a person in at go-oidc, with each algorithm.
func TestRelyingParty(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ann", "ann@example.com")
	for _, alg := range []string{"", "RS256", "ES256"} {
		r := newRelyingParty(t, st, func(c *oauth.Client) { c.Options.IDTokenAlg = alg })
		signedIn := time.Now().Add(-time.Hour)
		code := r.code(t, u, oauth.OpenID|oauth.Email|oauth.Profile, signedIn)
		tokens, err := r.config.Exchange(r.ctx, code)
		stacktest.Must(t, err)
		idToken := r.verify(t, tokens)
		var claims struct {
			AuthTime int64  `json:"auth_time"`
			AZP      string `json:"azp"`
		}
		stacktest.Must(t, idToken.Claims(&claims))
		if idToken.Issuer != st.URL || idToken.Nonce != "n-0S6_WzA2Mj" ||
			claims.AuthTime != signedIn.Unix() || claims.AZP != r.ID {
			t.Errorf("%s: got %+v, %+v", alg, idToken, claims)
		}
		info, err := r.provider.UserInfo(r.ctx, oauth2.StaticTokenSource(tokens))
		stacktest.Must(t, err)
		if info.Subject != idToken.Subject || info.Email != "ann@example.com" || !info.EmailVerified {
			t.Errorf("%s: got %+v, want the claims of %s", alg, info, idToken.Subject)
		}
		refreshed, err := r.config.TokenSource(r.ctx,
			&oauth2.Token{RefreshToken: tokens.RefreshToken}).Token()
		stacktest.Must(t, err)
		if again := r.verify(t, refreshed); again.Nonce != "" || again.Subject != idToken.Subject {
			t.Errorf("%s: got %+v after a refresh, want no nonce and the same user", alg, again)
		}
	}
}

// TestRotationReachesRelyingParty rotates the key in an emergency while go-oidc keeps the key set.
func TestRotationReachesRelyingParty(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ann", "ann@example.com")
	r := newRelyingParty(t, st, func(c *oauth.Client) { c.Options.IDTokenAlg = "ES256" })
	var texts []string
	for range 2 {
		tokens, err := r.config.Exchange(r.ctx, r.code(t, u, oauth.OpenID, time.Now()))
		stacktest.Must(t, err)
		r.verify(t, tokens)
		texts = append(texts, tokens.Extra("id_token").(string))
		if _, err := st.Tokens.RotateKeys(t.Context(), oauth.ES256Keys, true, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := oidc.NewProvider(r.ctx, st.URL)
	stacktest.Must(t, err)
	for _, text := range texts {
		if _, err := fresh.Verifier(&oidc.Config{ClientID: r.ID}).Verify(r.ctx, text); err != nil {
			t.Errorf("an id_token of a former key is refused: %v", err)
		}
	}
	if texts[0] == texts[1] || keyOf(texts[0]) == keyOf(texts[1]) {
		t.Error("got one key before and after its rotation, want two")
	}
}

// keyOf returns the encoded header of a JWT, which names its key.
func keyOf(jwt string) string {
	header, _, _ := strings.Cut(jwt, ".")
	return header
}

// TestNoOpenIDNoDifference compares the members of a response without openid with those of before.
func TestNoOpenIDNoDifference(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ann", "ann@example.com")
	r := newRelyingParty(t, st, nil)
	for scopes, want := range map[oauth.Scopes]string{
		oauth.ViewUser:                "access_token expires_in refresh_token token_type",
		oauth.ViewUser | oauth.OpenID: "access_token expires_in id_token refresh_token token_type",
	} {
		a := st.PostToken(t, stacktest.Values("grant_type", "authorization_code",
			"code", r.code(t, u, scopes, time.Now()), "redirect_uri", stacktest.RedirectURI,
			"client_id", r.ID, "client_secret", r.Secret))
		got := strings.Join(slices.Sorted(maps.Keys(a.Object(t))), " ")
		if a.Status != 200 || got != want {
			t.Errorf("%s: got %d, members %s, want %s", scopes, a.Status, got, want)
		}
	}
}

// TestDiscovery reads both documents of a service without clients, and of one with all settings on.
func TestDiscovery(t *testing.T) {
	for _, path := range []string{
		"/.well-known/openid-configuration", "/.well-known/oauth-authorization-server",
	} {
		st := stacktest.NewIdentity(t)
		a := st.Get(t, path, "Origin", "https://anywhere.example")
		a.Has(t, "Content-Type", "application/json", "Access-Control-Allow-Origin", "*",
			"Access-Control-Allow-Credentials", "", "Cache-Control", "public, max-age=3600")
		got, want := a.Object(t), discovered(st.URL)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
		on := stacktest.NewIdentity(t, func(c *stack.Config) {
			c.Identity.Registration, c.Identity.ClientMetadata = oauth.RegistrationOpen, true
		})
		got, want = on.Get(t, path).Object(t), discovered(on.URL)
		want["registration_endpoint"] = on.URL + "/oauth/register"
		want["client_id_metadata_document_supported"] = true
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// discovered returns the metadata of a service that takes no registrations and no documents.
func discovered(issuer string) map[string]any {
	secret, algs := []any{"client_secret_basic", "client_secret_post"}, []any{"RS256", "ES256"}
	methods := append(slices.Clone(secret), "none", "private_key_jwt")
	return map[string]any{
		"issuer":                        issuer,
		"authorization_endpoint":        issuer + "/oauth/authorize",
		"token_endpoint":                issuer + "/oauth/token",
		"device_authorization_endpoint": issuer + "/oauth/device_authorization",
		"userinfo_endpoint":             issuer + "/oauth/userinfo",
		"jwks_uri":                      issuer + "/oauth/jwks",
		"end_session_endpoint":          issuer + "/oauth/logout",
		"revocation_endpoint":           issuer + "/oauth/revoke",
		"introspection_endpoint":        issuer + "/oauth/introspect",
		"response_types_supported":      []any{"code"},
		"response_modes_supported":      []any{"query", "form_post"},
		"grant_types_supported": []any{"authorization_code", "refresh_token", "client_credentials",
			"urn:ietf:params:oauth:grant-type:device_code", "urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_types_supported":               []any{"public"},
		"id_token_signing_alg_values_supported": algs,
		"acr_values_supported":                  []any{"1", "2"},
		"ui_locales_supported":                  []any{"en", "de", "fr", "es", "pt-BR", "id"},
		"prompt_values_supported":               []any{"none", "login", "consent", "select_account"},
		"code_challenge_methods_supported":      []any{"S256"},
		"scopes_supported": []any{"view-user", "detail-user", "openid", "profile", "email", "phone",
			"address", "offline_access", "groups"},
		"claims_supported": []any{"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "acr",
			"amr", "azp", "sid", "at_hash", "name", "preferred_username", "picture", "gender",
			"birthdate", "updated_at", "email", "email_verified", "phone_number",
			"phone_number_verified", "address", "groups"},
		"claim_types_supported":                                    []any{"normal"},
		"claims_parameter_supported":                               false,
		"request_parameter_supported":                              false,
		"request_uri_parameter_supported":                          false,
		"backchannel_logout_supported":                             true,
		"backchannel_logout_session_supported":                     true,
		"authorization_response_iss_parameter_supported":           true,
		"token_endpoint_auth_methods_supported":                    methods,
		"revocation_endpoint_auth_methods_supported":               methods,
		"introspection_endpoint_auth_methods_supported":            append(slices.Clone(secret), "private_key_jwt"),
		"token_endpoint_auth_signing_alg_values_supported":         algs,
		"revocation_endpoint_auth_signing_alg_values_supported":    algs,
		"introspection_endpoint_auth_signing_alg_values_supported": algs,
	}
}

// TestKeySet reads the key set of a service that has signed nothing yet.
func TestKeySet(t *testing.T) {
	st := stacktest.NewIdentity(t)
	a := st.Get(t, "/oauth/jwks", "Origin", "https://anywhere.example")
	a.Has(t, "Content-Type", "application/json", "Access-Control-Allow-Origin", "*",
		"Cache-Control", "public, max-age=3600")
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	if err := json.Unmarshal([]byte(a.Body), &set); err != nil || len(set.Keys) != 2 {
		t.Fatalf("got %s, error %v, want two keys", a.Body, err)
	}
	if elliptic := set.Keys[1]; elliptic["alg"] != "ES256" || elliptic["crv"] != "P-256" {
		t.Errorf("got %v, want a key for ES256", elliptic)
	}
	key := set.Keys[0]
	if key["kid"] == "" || key["alg"] != "RS256" || key["use"] != "sig" || key["kty"] != "RSA" ||
		key["n"] == "" || key["e"] == "" || len(key) != 6 {
		t.Errorf("got %s, want the public half of an RSA key", a.Body)
	}
	if again := st.Get(t, "/oauth/jwks"); again.Body != a.Body {
		t.Errorf("got %s, want the same keys", again.Body)
	}
}

// userInfoHeader is the challenge of RFC 6750 with the member of RFC 9728.
func userInfoHeader(st *stacktest.IdentityStack, attributes string) string {
	return `Bearer realm="gatehouse"` + attributes + `, resource_metadata="` + st.URL +
		`/.well-known/oauth-protected-resource"`
}

func TestUserInfo(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ann", "ann@example.com")
	c := st.NewClient(t, func(c *oauth.Client) { c.Scopes |= oauth.OpenIDScopes })
	seal := func(scopes oauth.Scopes) string {
		return st.Seal(t, oauth.AccessToken{ClientID: c.ID, UserID: u.ID, Scopes: scopes})
	}
	good, poor := seal(oauth.OpenID|oauth.Email), seal(oauth.UserScopes)
	form := func(pairs ...string) string {
		values := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			values.Add(pairs[i], pairs[i+1])
		}
		return values.Encode()
	}
	const isForm = "application/x-www-form-urlencoded"
	const sub, email = `{"sub":"1"`, `,"email":"ann@example.com","email_verified":true}`
	bare := userInfoHeader(st, "")
	invalid := userInfoHeader(st, `, error="invalid_token", error_description="The access token is malformed, unknown or revoked"`)
	twice := userInfoHeader(st, `, error="invalid_request", error_description="The access token is sent more than once, or the form is malformed"`)
	missing := userInfoHeader(st, `, error="insufficient_scope", scope="openid"`)
	for _, row := range []struct {
		name, method, bearer, kind, body string
		status                           int
		challenge                        string
	}{
		{"GET", "GET", good, "", "", 200, ""},
		{"POST with the header", "POST", good, "", "", 200, ""},
		{"POST with header and empty form", "POST", good, isForm, "", 200, ""},
		{"POST with a form", "POST", "", isForm, form("access_token", good), 200, ""},
		{"both", "POST", good, isForm, form("access_token", good), 400, twice},
		{"repeated", "POST", "", isForm, form("access_token", good, "access_token", good), 400, twice},
		{"broken form", "POST", "", isForm, "access_token=%zz", 400, twice},
		{"no form", "POST", "", "text/plain", form("access_token", good), 401, bare},
		{"form of a GET", "GET", "", isForm, form("access_token", good), 401, bare},
		{"nothing", "GET", "", "", "", 401, bare},
		{"empty form", "POST", "", isForm, "", 401, bare},
		{"empty token", "POST", "", isForm, "access_token=", 401, invalid},
		{"garbage", "GET", "x", "", "", 401, invalid},
		{"garbage in the form", "POST", "", isForm, "access_token=x", 401, invalid},
		{"without openid", "GET", poor, "", "", 403, missing},
	} {
		headers := []string{"Origin", "https://anywhere.example"}
		if row.bearer != "" {
			headers = append(headers, "Authorization", "Bearer "+row.bearer)
		}
		if row.kind != "" {
			headers = append(headers, "Content-Type", row.kind)
		}
		a := st.Send(t, row.method, st.URL+"/oauth/userinfo", row.body, headers...)
		if a.Status != row.status || a.Status == 200 && a.Body != sub+email {
			t.Errorf("%s: got %d %s, want %d", row.name, a.Status, a.Body, row.status)
		}
		a.Has(t, "WWW-Authenticate", row.challenge, "Content-Type", "application/json",
			"Cache-Control", "no-store", "Access-Control-Allow-Origin", "*",
			"Access-Control-Allow-Credentials", "")
	}
	if a := st.Get(t, "/oauth/userinfo?access_token="+good); a.Status != 401 {
		t.Errorf("got %d for a token in the URL, want 401", a.Status)
	}
	if a := st.Get(t, "/api/user"); strings.Contains(a.Header.Get("WWW-Authenticate"),
		"resource_metadata") {
		t.Errorf("got %v, want the challenge of before", a.Header)
	}
}

// TestUserInfoHasOwnLimit uses up the limit of userinfo, which counts no other endpoint.
func TestUserInfoHasOwnLimit(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ann", "ann@example.com")
	c := st.NewClient(t, func(c *oauth.Client) { c.Scopes |= oauth.OpenIDScopes })
	bearer := "Bearer " + st.Seal(t, oauth.AccessToken{ClientID: c.ID, UserID: u.ID,
		Scopes: oauth.OpenID | oauth.ViewUser})
	for i := range 100 {
		if a := st.Get(t, "/oauth/userinfo", "Authorization", bearer); a.Status != 200 {
			t.Fatalf("request %d: got %d %s, want 200", i+1, a.Status, a.Body)
		}
	}
	a := st.Get(t, "/oauth/userinfo", "Authorization", bearer)
	if a.Status != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 429", a.Status, a.Body)
	}
	a.Has(t, "X-RateLimit-Limit", "100", "WWW-Authenticate", "")
	b := st.Get(t, "/api/user", "Authorization", bearer)
	b.Has(t, "X-RateLimit-Remaining", "99")
}

// TestUserInfoOfEndedToken revokes, disables and lets expire.
func TestUserInfoOfEndedToken(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ann", "ann@example.com")
	c := st.NewClient(t, func(c *oauth.Client) { c.Scopes |= oauth.OpenIDScopes })
	expired := st.Seal(t, oauth.AccessToken{ClientID: c.ID, UserID: u.ID, Scopes: oauth.OpenID,
		Issued: time.Now().Unix() - 10, Expires: time.Now().Unix() - 1})
	a := st.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+expired)
	if o := a.Object(t); a.Status != 401 || o["error"] != "token_expired" {
		t.Errorf("got %d %s, want token_expired", a.Status, a.Body)
	}
	a.Has(t, "WWW-Authenticate", userInfoHeader(st,
		`, error="invalid_token", error_description="The access token expired"`))
	ended := st.Seal(t, oauth.AccessToken{ClientID: c.ID, UserID: u.ID, Scopes: oauth.OpenID})
	stacktest.Must(t, st.People.DisableUser(t.Context(), u.ID, time.Now()))
	if a := st.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+ended); a.Status != 401 {
		t.Errorf("got %d %s for a disabled user, want 401", a.Status, a.Body)
	}
}
