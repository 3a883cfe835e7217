package oauthapi_test

import (
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

func TestTokenResponse(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	a := st.PostToken(t, stacktest.Values(c.Credentials()...))
	o := a.Object(t)
	if a.Status != 200 || !strings.HasPrefix(o["access_token"].(string), "gtat_") ||
		o["token_type"] != "Bearer" || o["expires_in"] != 3600.0 || len(o) != 3 {
		t.Errorf("got %d %s, want an access token of an hour and nothing else", a.Status, a.Body)
	}
	a.Has(t, "Content-Type", "application/json", "Cache-Control", "no-store", "Pragma", "no-cache")
}

func TestTokenEndpointRequiresFormPosts(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	body := stacktest.Values(c.Credentials()...).Encode()
	for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/introspect"} {
		for _, method := range []string{"GET", "PUT", "DELETE", "PATCH"} {
			a := st.Send(t, method, st.URL+path+"?"+body, body, "Content-Type",
				"application/x-www-form-urlencoded")
			a.FailsAs(t, 405, "method_not_allowed")
			a.Has(t, "Allow", "POST, OPTIONS")
		}
		for _, kind := range []string{"", "application/json", "multipart/form-data; boundary=x",
			"text/plain", "application/x-www-form-urlencodedx"} {
			a := st.Send(t, "POST", st.URL+path, body, "Content-Type", kind)
			a.FailsAs(t, 400, "invalid_request")
			if !strings.Contains(a.Body, "application/x-www-form-urlencoded") {
				t.Errorf("got %s, want a hint that names the right type", a.Body)
			}
		}
		a := st.Send(t, "POST", st.URL+path, "a="+strings.Repeat("x", 70_000),
			"Content-Type", "application/x-www-form-urlencoded",
			"Origin", "https://elsewhere.example")
		a.FailsAs(t, 413, "payload_too_large")
		a.Has(t, "Pragma", "no-cache")
		origin := map[bool]string{true: "https://elsewhere.example"}[path != "/oauth/introspect"]
		a.Has(t, "Access-Control-Allow-Origin", origin)
	}
	for _, kind := range []string{"application/x-www-form-urlencoded; charset=utf-8",
		"Application/X-WWW-Form-urlencoded ;charset=x"} {
		if a := st.Send(t, "POST", st.URL+"/oauth/token", body, "Content-Type",
			kind); a.Status != 200 {
			t.Errorf("%s: got %d %s, want 200", kind, a.Status, a.Body)
		}
	}
}

func TestInvalidTokenRequests(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	public := st.NewClient(t, func(c *oauth.Client) { c.Public = true })
	disabled := st.NewClient(t, func(c *oauth.Client) { c.Disabled = true })
	good := stacktest.Values(c.Credentials()...).Encode()
	for name, test := range map[string]struct {
		body, authorization string
		status              int
		code                string
		challenge           bool
	}{
		"empty": {"", "", 400, "invalid_request", false},
		"no grant_type": {stacktest.Values("client_id", c.ID, "client_secret", c.Secret).Encode(),
			"",
			400, "invalid_request", false},
		"unknown grant_type": {stacktest.Values("grant_type", "password", "client_id", c.ID,
			"client_secret", c.Secret).Encode(), "", 400, "unsupported_grant_type", false},
		"repeated": {good + "&scope=&scope=", "", 400, "invalid_request", false},
		"repeated, unknown": {good + "&nobody_knows=1&nobody_knows=2", "", 400, "invalid_request",
			false},
		"broken escape":     {good + "&scope=%zz", "", 400, "invalid_request", false},
		"control character": {good + "&scope=%00", "", 400, "invalid_request", false},
		"one in a name":     {good + "&a%00=1", "", 400, "invalid_request", false},
		"not UTF-8":         {good + "&scope=%ff", "", 400, "invalid_request", false},
		"too many": {good + strings.Repeat("&x=1", 64), "", 400, "invalid_request",
			false},
		"no client": {"grant_type=client_credentials", "", 400, "invalid_request", false},
		"no secret": {stacktest.Values("grant_type", "client_credentials", "client_id",
			c.ID).Encode(), "", 401, "invalid_client", false},
		"wrong secret": {stacktest.Values("grant_type", "client_credentials", "client_id", c.ID,
			"client_secret", oauth.NewClientSecret()).Encode(), "", 401, "invalid_client", false},
		"unknown client": {stacktest.Values("grant_type", "client_credentials", "client_id",
			"nobody", "client_secret", c.Secret).Encode(), "", 401, "invalid_client", false},
		"disabled client": {stacktest.Values(disabled.Credentials()...).Encode(), "", 401,
			"invalid_client", false},
		"wrong Basic": {"grant_type=client_credentials", stacktest.Basic(c.ID, "wrong"), 401,
			"invalid_client", true},
		"unreadable Basic": {"grant_type=client_credentials", "Basic %%%", 401, "invalid_client",
			true},
		"Basic and body": {good, stacktest.Basic(c.ID, c.Secret), 400, "invalid_request", false},
		"Basic, other client": {"grant_type=client_credentials&client_id=" + public.ID,
			stacktest.Basic(c.ID, c.Secret), 400, "invalid_request", false},
		"public client": {stacktest.Values("grant_type", "client_credentials", "client_id",
			public.ID).Encode(), "", 400, "unauthorized_client", false},
		"user scope": {stacktest.Values(c.Credentials("scope", "view-user")...).Encode(), "", 400,
			"invalid_scope", false},
		"no code": {stacktest.Values("grant_type", "authorization_code", "client_id", c.ID,
			"client_secret", c.Secret).Encode(), "", 400, "invalid_request", false},
		"garbage code": {stacktest.Values("grant_type", "authorization_code", "client_id", c.ID,
			"client_secret", c.Secret, "code", "x", "redirect_uri", stacktest.RedirectURI).Encode(),
			"", 400, "invalid_grant", false},
		"no refresh_token": {stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret).Encode(), "", 400, "invalid_request", false},
		"garbage refresh": {stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret, "refresh_token", "x").Encode(), "", 400, "invalid_grant",
			false},
	} {
		headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
		if test.authorization != "" {
			headers = append(headers, "Authorization", test.authorization)
		}
		a := st.Send(t, "POST", st.URL+"/oauth/token", test.body, headers...)
		a.FailsAs(t, test.status, test.code)
		a.Has(t, "Cache-Control", "no-store", "Pragma", "no-cache")
		if got := strings.HasPrefix(a.Header.Get("WWW-Authenticate"),
			"Basic "); got != test.challenge {
			t.Errorf("%s: got a challenge %v, want %v", name, got, test.challenge)
		}
		for _, secret := range []string{c.Secret, "nobody"} {
			if strings.Contains(a.Body, secret) {
				t.Errorf("%s: got %s, want nothing of the request in it", name, a.Body)
			}
		}
		if t.Failed() {
			t.Fatalf("%s failed", name)
		}
	}
	if a := st.Send(t, "POST", st.URL+"/oauth/token", good+"&scope=&code=&nobody_knows=1&audience=2",
		"Content-Type", "application/x-www-form-urlencoded"); a.Status != 200 {
		t.Errorf("got %d %s with unknown and empty parameters, want 200", a.Status, a.Body)
	}
	if a := st.PostToken(t, stacktest.Values("grant_type", "client_credentials"), "Authorization",
		stacktest.Basic(c.ID, c.Secret)); a.Status != 200 {
		t.Errorf("got %d %s with HTTP Basic, want 200", a.Status, a.Body)
	}
}

func TestTwoAuthorizationHeadersAreRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.PostToken(t, stacktest.Values("grant_type", "client_credentials"), "Authorization",
		stacktest.Basic(c.ID, c.Secret),
		"Authorization", stacktest.Basic(c.ID, c.Secret)).FailsAs(t, 400, "invalid_request")
}

func TestCredentialsInTheURLAreIgnored(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.Send(t, "POST", st.URL+"/oauth/token?"+stacktest.Values(c.Credentials()...).Encode(),
		"grant_type=client_credentials",
		"Content-Type", "application/x-www-form-urlencoded").FailsAs(t, 400, "invalid_request")
}

func TestRevocationAndIntrospection(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c, other := st.NewClient(t, nil), st.NewClient(t, nil)
	api := st.NewClient(t, func(c *oauth.Client) { c.IntrospectAny = true })
	public := st.NewClient(t, func(c *oauth.Client) { c.Public = true })
	user := st.NewUser(t, "Rosa", rosa)
	access, refresh := st.NewToken(t, c, user.ID, oauth.ViewUser)
	post := func(path string, who stacktest.Client, token string) stacktest.Response {
		t.Helper()
		form := stacktest.Values("token", token, "client_id", who.ID, "client_secret", who.Secret)
		a := st.Send(t, "POST", st.URL+path, form.Encode(), "Content-Type",
			"application/x-www-form-urlencoded")
		a.Has(t, "Cache-Control", "no-store")
		return a
	}
	inactive := func(who stacktest.Client, token string) {
		t.Helper()
		if a := post("/oauth/introspect", who, token); a.Status != 200 ||
			a.Body != `{"active":false}` {
			t.Errorf("got %d %s, want only that it is not active", a.Status, a.Body)
		}
	}
	revoke := func(who stacktest.Client, token string) {
		t.Helper()
		if a := post("/oauth/revoke", who, token); a.Status != 200 {
			t.Fatalf("got %d %s, want 200", a.Status, a.Body)
		}
	}
	admits := func(token string, want int) {
		t.Helper()
		if a := st.Get(t, "/api/user", "Authorization", "Bearer "+token); a.Status != want {
			t.Errorf("got %d %s, want %d", a.Status, a.Body, want)
		}
	}
	for _, who := range []stacktest.Client{c, api} {
		if o := post("/oauth/introspect", who, access).Object(t); o["active"] != true ||
			o["client_id"] != c.ID || o["scope"] != "view-user" || o["exp"] == nil ||
			o["sub"] != strconv.FormatInt(user.ID, 10) {
			t.Errorf("got %v, want what is known of the token", o)
		}
		if o := post("/oauth/introspect", who, refresh).Object(t); o["active"] != true {
			t.Errorf("got %v, want an active refresh token", o)
		}
	}
	for _, token := range []string{"x", "gtat_x", access + "x", refresh + "x",
		oauth.NewRefreshToken()} {
		inactive(c, token)
		revoke(c, token)
	}
	for _, token := range []string{access, refresh} {
		inactive(other, token)
		revoke(other, token)
	}
	admits(access, 200)
	revoke(c, access)
	admits(access, 401)
	next := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "refresh_token", refresh,
		"client_id", c.ID, "client_secret", c.Secret)).Object(t)
	access, refresh = next["access_token"].(string), next["refresh_token"].(string)
	admits(access, 200)
	revoke(c, refresh) // and its family
	admits(access, 401)
	inactive(c, access)
	inactive(api, refresh)
	st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "refresh_token", refresh,
		"client_id", c.ID, "client_secret", c.Secret)).FailsAs(t, 400, "invalid_grant")
	mine, family := st.NewToken(t, public, user.ID, oauth.ViewUser)
	revoke(public, family)
	admits(mine, 401)
	post("/oauth/introspect", public, "x").FailsAs(t, 401, "invalid_client")
	for _, path := range []string{"/oauth/revoke", "/oauth/introspect"} {
		post(path, stacktest.Client{Client: c.Client, Secret: "x"}, access).FailsAs(t, 401,
			"invalid_client")
		post(path, c, "").FailsAs(t, 400, "invalid_request")
	}
}
