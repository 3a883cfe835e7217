package httpedge_test

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// credentials is the body that makes a token for c alone.
func credentials(c stacktest.Client, more ...string) []string {
	return append([]string{"grant_type", "client_credentials", "client_id", c.ID, "client_secret",
		c.Secret}, more...)
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// newCode issues a code without a browser.
func newCode(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client, userID int64,
	scopes oauth.Scopes) string {
	t.Helper()
	user, err := st.Store.User(t.Context(), userID)
	if err != nil {
		t.Fatal(err)
	}
	code, fault := st.Tokens.IssueCode(t.Context(),
		oauth.AuthorizationCode{ClientID: c.ID, UserID: userID, Epochs: oauth.Epochs{User: user.Epoch},
			RedirectURI: stacktest.RedirectURI, Scopes: scopes, CodeChallenge: challenge()}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

// newToken returns an access and a refresh token of the user.
func newToken(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client, userID int64,
	scopes oauth.Scopes) (access, refresh string) {
	t.Helper()
	a := redeem(t, st, c, newCode(t, st, c, userID, scopes))
	o := a.object(t)
	access, _ = o["access_token"].(string)
	refresh, _ = o["refresh_token"].(string)
	if a.status != 200 || access == "" || refresh == "" {
		t.Fatalf("got %d %s, want two tokens", a.status, a.body)
	}
	return access, refresh
}

func TestTokenResponse(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	a := postToken(t, st, query(credentials(c)...))
	o := a.object(t)
	if a.status != 200 || !strings.HasPrefix(o["access_token"].(string), "gtat_") ||
		o["token_type"] != "Bearer" || o["expires_in"] != 3600.0 || len(o) != 3 {
		t.Errorf("got %d %s, want an access token of an hour and nothing else", a.status, a.body)
	}
	a.has(t, "Content-Type", "application/json")
	a.has(t, "Cache-Control", "no-store")
	a.has(t, "Pragma", "no-cache")
}

func TestTokenEndpointRequiresFormPosts(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	body := query(credentials(c)...).Encode()
	for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/introspect"} {
		for _, method := range []string{"GET", "PUT", "DELETE", "PATCH"} {
			a := send(t, st.Stack, method, st.URL+path+"?"+body, body, "Content-Type",
				"application/x-www-form-urlencoded")
			a.failsAs(t, 405, "method_not_allowed")
			a.has(t, "Allow", "POST, OPTIONS")
		}
		for _, kind := range []string{"", "application/json", "multipart/form-data; boundary=x",
			"text/plain", "application/x-www-form-urlencodedx"} {
			a := send(t, st.Stack, "POST", st.URL+path, body, "Content-Type", kind)
			a.failsAs(t, 400, "invalid_request")
			if !strings.Contains(a.body, "application/x-www-form-urlencoded") {
				t.Errorf("got %s, want a hint that names the right type", a.body)
			}
		}
		a := send(t, st.Stack, "POST", st.URL+path, "a="+strings.Repeat("x", 70_000),
			"Content-Type", "application/x-www-form-urlencoded",
			"Origin", "https://elsewhere.example")
		a.failsAs(t, 413, "payload_too_large")
		a.has(t, "Pragma", "no-cache")
		origin := map[bool]string{true: "https://elsewhere.example"}[path != "/oauth/introspect"]
		a.has(t, "Access-Control-Allow-Origin", origin)
	}
	for _, kind := range []string{"application/x-www-form-urlencoded; charset=utf-8",
		"Application/X-WWW-Form-urlencoded ;charset=x"} {
		if a := send(t, st.Stack, "POST", st.URL+"/oauth/token", body, "Content-Type",
			kind); a.status != 200 {
			t.Errorf("%s: got %d %s, want 200", kind, a.status, a.body)
		}
	}
}

func TestInvalidTokenRequests(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	public := st.NewClient(t, func(c *oauth.Client) { c.Public = true })
	disabled := st.NewClient(t, func(c *oauth.Client) { c.Disabled = true })
	good := query(credentials(c)...).Encode()
	for name, test := range map[string]struct {
		body, authorization string
		status              int
		code                string
		challenge           bool
	}{
		"empty": {"", "", 400, "invalid_request", false},
		"no grant_type": {query("client_id", c.ID, "client_secret", c.Secret).Encode(), "",
			400, "invalid_request", false},
		"unknown grant_type": {query("grant_type", "password", "client_id", c.ID, "client_secret",
			c.Secret).Encode(), "", 400, "unsupported_grant_type", false},
		"repeated":          {good + "&scope=&scope=", "", 400, "invalid_request", false},
		"broken escape":     {good + "&scope=%zz", "", 400, "invalid_request", false},
		"control character": {good + "&scope=%00", "", 400, "invalid_request", false},
		"not UTF-8":         {good + "&scope=%ff", "", 400, "invalid_request", false},
		"too many": {good + strings.Repeat("&x=1", 64), "", 400, "invalid_request",
			false},
		"no client": {"grant_type=client_credentials", "", 400, "invalid_request", false},
		"no secret": {query("grant_type", "client_credentials", "client_id",
			c.ID).Encode(), "", 401, "invalid_client", false},
		"wrong secret": {query("grant_type", "client_credentials", "client_id", c.ID,
			"client_secret", oauth.NewClientSecret()).Encode(), "", 401, "invalid_client", false},
		"unknown client": {query("grant_type", "client_credentials", "client_id", "nobody",
			"client_secret", c.Secret).Encode(), "", 401, "invalid_client", false},
		"disabled client": {query(credentials(disabled)...).Encode(), "", 401, "invalid_client",
			false},
		"wrong Basic": {"grant_type=client_credentials", basic(c.ID, "wrong"), 401,
			"invalid_client", true},
		"unreadable Basic": {"grant_type=client_credentials", "Basic %%%", 401, "invalid_client",
			true},
		"Basic and body": {good, basic(c.ID, c.Secret), 400, "invalid_request", false},
		"Basic, other client": {"grant_type=client_credentials&client_id=" + public.ID,
			basic(c.ID, c.Secret), 400, "invalid_request", false},
		"public client": {query("grant_type", "client_credentials", "client_id",
			public.ID).Encode(), "", 400, "unauthorized_client", false},
		"user scope": {query(credentials(c, "scope", "view-user")...).Encode(), "", 400,
			"invalid_scope", false},
		"no code": {query("grant_type", "authorization_code", "client_id", c.ID,
			"client_secret", c.Secret).Encode(), "", 400, "invalid_request", false},
		"garbage code": {query("grant_type", "authorization_code", "client_id", c.ID,
			"client_secret", c.Secret, "code", "x", "redirect_uri", stacktest.RedirectURI).Encode(),
			"", 400, "invalid_grant", false},
		"no refresh_token": {query("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret).Encode(), "", 400, "invalid_request", false},
		"garbage refresh": {query("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret, "refresh_token", "x").Encode(), "", 400, "invalid_grant",
			false},
	} {
		headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
		if test.authorization != "" {
			headers = append(headers, "Authorization", test.authorization)
		}
		a := send(t, st.Stack, "POST", st.URL+"/oauth/token", test.body, headers...)
		a.failsAs(t, test.status, test.code)
		a.has(t, "Cache-Control", "no-store")
		a.has(t, "Pragma", "no-cache")
		if got := strings.HasPrefix(a.header.Get("WWW-Authenticate"),
			"Basic "); got != test.challenge {
			t.Errorf("%s: got a challenge %v, want %v", name, got, test.challenge)
		}
		for _, secret := range []string{c.Secret, "nobody"} {
			if strings.Contains(a.body, secret) {
				t.Errorf("%s: got %s, want nothing of the request in it", name, a.body)
			}
		}
		if t.Failed() {
			t.Fatalf("%s failed", name)
		}
	}
	if a := postToken(t, st, query("grant_type", "client_credentials"), "Authorization",
		basic(c.ID, c.Secret)); a.status != 200 {
		t.Errorf("got %d %s with HTTP Basic, want 200", a.status, a.body)
	}
}

func TestTwoAuthorizationHeadersAreRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	postToken(t, st, query("grant_type", "client_credentials"), "Authorization",
		basic(c.ID, c.Secret),
		"Authorization", basic(c.ID, c.Secret)).failsAs(t, 400, "invalid_request")
}

func TestCredentialsInTheURLAreIgnored(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	send(t, st.Stack, "POST", st.URL+"/oauth/token?"+query(credentials(c)...).Encode(),
		"grant_type=client_credentials",
		"Content-Type", "application/x-www-form-urlencoded").failsAs(t, 400, "invalid_request")
}

func TestRevocationAndIntrospection(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, other := st.NewClient(t, nil), st.NewClient(t, nil)
	user := st.NewUser(t, "Rosa", rosa)
	access, refresh := newToken(t, st, c, user.ID, oauth.ViewUser)
	about := func(who stacktest.Client, token string) map[string]any {
		t.Helper()
		a := send(t, st.Stack, "POST", st.URL+"/oauth/introspect",
			query("token", token, "client_id", who.ID, "client_secret", who.Secret).Encode(),
			"Content-Type", "application/x-www-form-urlencoded")
		a.has(t, "Cache-Control", "no-store")
		if a.status != 200 {
			t.Fatalf("got %d %s, want 200", a.status, a.body)
		}
		return a.object(t)
	}
	revoke := func(who stacktest.Client, token string) {
		t.Helper()
		a := send(t, st.Stack, "POST", st.URL+"/oauth/revoke",
			query("token", token, "client_id", who.ID, "client_secret", who.Secret).Encode(),
			"Content-Type", "application/x-www-form-urlencoded")
		if a.status != 200 {
			t.Fatalf("got %d %s, want 200", a.status, a.body)
		}
	}
	if o := about(c, access); o["active"] != true || o["client_id"] != c.ID ||
		o["scope"] != "view-user" {
		t.Errorf("got %v, want an active token", o)
	}
	for _, token := range []string{"x", "gtat_x", access + "x"} {
		if o := about(c, token); o["active"] != false || len(o) != 1 {
			t.Errorf("got %v, want only that it is not active", o)
		}
		revoke(c, token)
	}
	if o := about(other, access); o["active"] != false || len(o) != 1 {
		t.Errorf("got %v, want nothing told to another client", o)
	}
	revoke(other, access)
	if a := get(t, st.Stack, "/api/user", "Authorization", "Bearer "+access); a.status != 200 {
		t.Errorf("got %d %s after another client revoked it, want 200", a.status, a.body)
	}
	revoke(c, refresh)
	if a := get(t, st.Stack, "/api/user", "Authorization", "Bearer "+access); a.status != 401 {
		t.Errorf("got %d %s after its family was revoked, want 401", a.status, a.body)
	}
	for _, path := range []string{"/oauth/revoke", "/oauth/introspect"} {
		send(t, st.Stack, "POST", st.URL+path,
			query("token", access, "client_id", c.ID, "client_secret", "x").Encode(),
			"Content-Type", "application/x-www-form-urlencoded").failsAs(t, 401, "invalid_client")
		send(t, st.Stack, "POST", st.URL+path,
			query("client_id", c.ID, "client_secret", c.Secret).Encode(),
			"Content-Type", "application/x-www-form-urlencoded").failsAs(t, 400, "invalid_request")
	}
}

func TestMetadata(t *testing.T) {
	st := stacktest.NewIdentity(t)
	a := get(t, st.Stack, "/.well-known/oauth-authorization-server", "Origin",
		"https://anywhere.example")
	o := a.object(t)
	if a.status != 200 || o["issuer"] != st.URL || o["token_endpoint"] != st.URL+"/oauth/token" ||
		o["authorization_response_iss_parameter_supported"] != true {
		t.Errorf("got %d %s, want the metadata of %s", a.status, a.body, st.URL)
	}
	a.has(t, "Content-Type", "application/json")
	a.has(t, "Access-Control-Allow-Origin", "*")
}

func TestWrongSecretsAreThrottled(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	wrong := query("grant_type", "client_credentials", "token", "x", "client_id", c.ID,
		"client_secret", oauth.NewClientSecret())
	for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/introspect"} {
		throttled := false
		for range 60 {
			a := send(t, st.Stack, "POST", st.URL+path, wrong.Encode(), "Content-Type",
				"application/x-www-form-urlencoded")
			if a.status == 401 {
				continue
			}
			a.failsAs(t, 429, "temporarily_unavailable")
			if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil ||
				seconds < 1 {
				t.Errorf("got Retry-After %q, want whole seconds", a.header.Get("Retry-After"))
			}
			throttled = true
			break
		}
		if !throttled {
			t.Errorf("%s: got 60 answers of 401, want a 429 among them", path)
		}
	}
	if a := postToken(t, st, query(credentials(c)...)); a.status != 200 {
		t.Errorf("got %d %s for the right secret, want 200", a.status, a.body)
	}
}
