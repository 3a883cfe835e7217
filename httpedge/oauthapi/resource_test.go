package oauthapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

const notesAPI, mailAPI = "https://notes.example/v1", "https://mail.example"

// newResources registers two resources and returns the operator, and a client that introspects.
func newResources(t *testing.T, st *stacktest.IdentityStack) (*stacktest.Operator,
	stacktest.Client) {
	t.Helper()
	o := st.NewOperator(t)
	o.Do(201, http.MethodPost, "/resources", `{"uri":"`+notesAPI+`","scopes":["read","write"]}`)
	o.Do(201, http.MethodPost, "/resources", `{"uri":"`+mailAPI+`","scopes":["read"]}`)
	return o, st.NewClient(t, func(c *oauth.Client) { c.IntrospectAny = true })
}

// at adds resources to a request.
func at(form url.Values, resources ...string) url.Values {
	form["resource"] = resources
	return form
}

func audience(about map[string]any) string {
	text, _ := json.Marshal(about["aud"])
	return string(text)
}

func TestTokensForResources(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o, api := newResources(t, st)
	c := st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	ask := at(c.Request("scope", "view-user read"), notesAPI, mailAPI+"/")
	consent := b.SignIn(ask, rosa)
	for _, words := range []string{"use <bdi>notes.example/v1</bdi> in your name, with the permission “<bdi>read</bdi>”",
		"use <bdi>mail.example</bdi> in your name, with the permission “<bdi>read</bdi>”"} {
		if !strings.Contains(consent.Body, words) {
			t.Errorf("got a page without %q: %s", words, consent.Body)
		}
	}
	o.Do(200, http.MethodPut, "/resources", `{"uri":"`+notesAPI+`","scopes":["read","write"],
"name":"Notes","scope_texts":{"read":"Read your notes"}}`)
	o.Do(400, http.MethodPut, "/resources", `{"uri":"`+notesAPI+`","scope_texts":["read"]}`).
		Refused(t, "invalid_request", "scope_texts")
	code := b.Send(consent, "decision", "allow").Code(t, st)
	if me := b.Get("/me/apps"); !strings.Contains(me.Body,
		"use <bdi>Notes</bdi> (<bdi>notes.example/v1</bdi>) in your name: <bdi>Read your notes</bdi>") {
		t.Errorf("got %s, want the resource among the connected apps", me.Body)
	}
	first := st.Redeem(t, c, code).Object(t)
	token, _ := first["access_token"].(string)
	if said := st.Introspect(t, api, token); said["scope"] != "view-user read" ||
		audience(said) != `["`+notesAPI+`","`+mailAPI+`"]` || len(token) > oauth.MaxAccessToken {
		t.Errorf("got %v for %d characters, want both audiences", said, len(token))
	}
	for _, path := range []string{"/api/user", "/api/user/details"} {
		a := st.Send(t, http.MethodGet, st.URL+path, "", "Authorization", "Bearer "+token)
		if a.Status != 401 || a.Header.Get("X-RateLimit-Limit") != "" ||
			!strings.Contains(a.Object(t)["message"].(string), notesAPI) ||
			!strings.Contains(a.Header.Get("WWW-Authenticate"), notesAPI) {
			t.Errorf("%s: got %d %v %s, want 401 with the audience", path, a.Status, a.Header, a.Body)
		}
	}
	refresh := func(changes ...string) url.Values {
		return stacktest.Values(append([]string{"grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret, "refresh_token", first["refresh_token"].(string)},
			changes...)...)
	}
	st.PostToken(t, at(refresh(), "https://other.example")).FailsAs(t, 400, "invalid_target")
	st.PostToken(t, at(refresh(), st.Tokens.Issuer())).FailsAs(t, 400, "invalid_target")
	st.PostToken(t, refresh("scope", "write")).FailsAs(t, 400, "invalid_scope")
	first = st.PostToken(t, at(refresh("scope", "read"), mailAPI)).Object(t)
	if said := st.Introspect(t, api, first["access_token"]); audience(said) != `["`+mailAPI+`"]` ||
		said["scope"] != "read" {
		t.Errorf("got %v, want one audience and one scope", said)
	}
	if said := st.Introspect(t, api, first["refresh_token"]); audience(said) !=
		`["`+notesAPI+`","`+mailAPI+`"]` {
		t.Errorf("got %v of the refresh token, want all audiences", said)
	}
	first = st.PostToken(t, refresh()).Object(t)
	if said := st.Introspect(t, api, first["access_token"]); audience(said) != `["`+notesAPI+`"]` ||
		first["scope"] != "view-user read" {
		t.Errorf("got %v, %v, want the audience that was named first", said, first)
	}
	b.Authorize(at(c.Request("scope", "read", "prompt", "none"), notesAPI)).Code(t, st)
	b.Authorize(at(c.Request("scope", "write", "prompt", "none"), notesAPI)).
		FailsWith(t, st, "consent_required")
}

func TestResourcesAreRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	newResources(t, st)
	c := st.NewOpenIDClient(t, func(c *oauth.Client) { c.Options.Resources = []string{mailAPI} })
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Authorize(at(c.Request(), "https://other.example/")).FailsWith(t, st, "invalid_target")
	b.Authorize(at(c.Request(), notesAPI)).FailsWith(t, st, "invalid_target")
	b.Authorize(at(c.Request(), notesAPI+"#x")).FailsWith(t, st, "invalid_target")
	b.Authorize(at(c.Request("scope", "write"), mailAPI)).FailsWith(t, st, "invalid_scope")
	refused := b.Authorize(c.Request("scope", "read"))
	refused.FailsWith(t, st, "invalid_scope")
	if to, _ := url.QueryUnescape(refused.Location); !strings.Contains(to, "read belongs to the resource "+mailAPI) {
		t.Errorf("got %s, want the scope and the resource that has it", to)
	}
	code := b.Allow(at(c.Request("scope", "view-user"), st.Tokens.Issuer()), rosa).Code(t, st)
	form := stacktest.Values("grant_type", "authorization_code", "client_id", c.ID, "client_secret",
		c.Secret,
		"code", code, "redirect_uri", c.RedirectURIs[0], "code_verifier", stacktest.Verifier)
	st.PostToken(t, at(form, mailAPI)).FailsAs(t, 400, "invalid_target")
	token := st.PostToken(t, at(form, st.Tokens.Issuer())).Object(t)["access_token"].(string)
	if a := st.Send(t, http.MethodGet, st.URL+"/api/user", "", "Authorization",
		"Bearer "+token); a.Status != 200 {
		t.Errorf("got %d %s for the audience of this service, want 200", a.Status, a.Body)
	}
}

func TestClientTokensForResources(t *testing.T) {
	st := stacktest.NewIdentity(t)
	_, api := newResources(t, st)
	machine := func(resources ...string) stacktest.Client {
		return st.NewClient(t, func(c *oauth.Client) {
			c.Grants, c.Options.Resources = oauth.ClientCredentialsGrant, resources
		})
	}
	ask := func(c stacktest.Client, scope string, resources ...string) stacktest.Response {
		return st.PostToken(t, at(stacktest.Values("grant_type", "client_credentials", "client_id",
			c.ID, "client_secret", c.Secret, "scope", scope), resources...))
	}
	named := machine(notesAPI)
	got := ask(named, "read", notesAPI).Object(t)
	if said := st.Introspect(t, api, got["access_token"]); audience(said) != `["`+notesAPI+`"]` ||
		said["scope"] != "read" {
		t.Errorf("got %v, want the audience", said)
	}
	ask(named, "read", mailAPI).FailsAs(t, 400, "invalid_target")
	ask(named, "send", notesAPI).FailsAs(t, 400, "invalid_scope")
	ask(named, "read").FailsAs(t, 400, "invalid_scope")
	ask(machine(), "read", notesAPI).FailsAs(t, 400, "invalid_target")
}

func TestResourcesInAdminAPI(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o, api := newResources(t, st)
	list := o.Do(200, http.MethodGet, "/resources?limit=1", "").Object(t)
	if list["next"] != "1" || len(list["resources"].([]any)) != 1 {
		t.Errorf("got %v, want one of two", list)
	}
	list = o.Do(200, http.MethodGet, "/resources?after=1", "").Object(t)
	if list["next"] != "" || len(list["resources"].([]any)) != 1 {
		t.Errorf("got %v, want the other", list)
	}
	shown := o.Do(200, http.MethodGet, "/resources/1", "").Object(t)
	metadata, _ := json.Marshal(shown["metadata"])
	if want := `{"authorization_servers":["` + st.Tokens.Issuer() + `"],"bearer_methods_supported":["header"],` +
		`"resource":"` + notesAPI + `","scopes_supported":["read","write"]}`; string(metadata) != want {
		t.Errorf("got %s, want %s", metadata, want)
	}
	if want := "https://notes.example/.well-known/oauth-protected-resource/v1"; shown["metadata_url"] != want {
		t.Errorf("got %v, want %s", shown["metadata_url"], want)
	}
	o.Do(409, http.MethodPost, "/resources", `{"uri":"`+mailAPI+`/"}`)
	o.Do(409, http.MethodPost, "/resources", `{"uri":"`+st.Tokens.Issuer()+`/"}`)
	o.Do(400, http.MethodPost, "/resources", `{"uri":"http://x.example"}`).
		Refused(t, "invalid_request", "uri")
	o.Do(400, http.MethodPost, "/resources", `{"uri":"https://x.example","scopes":["openid"]}`).
		Refused(t, "invalid_request", "scopes")
	for _, path := range []string{"/resources/9", "/resources/01", "/resources/x"} {
		o.Do(404, http.MethodGet, path, "")
		o.Do(404, http.MethodDelete, path, "")
	}

	c := st.NewClient(t, func(c *oauth.Client) {
		c.Grants, c.Options.Resources = oauth.ClientCredentialsGrant, []string{notesAPI}
	})
	form := at(stacktest.Values("grant_type", "client_credentials", "client_id", c.ID,
		"client_secret", c.Secret), notesAPI)
	token := st.PostToken(t, form).Object(t)["access_token"]
	if said := st.Introspect(t, api, token); said["active"] != true {
		t.Errorf("got %v, want it active", said)
	}
	o.Do(204, http.MethodDelete, "/resources/1", "")
	if said := st.Introspect(t, api, token); said["active"] != false || len(said) != 1 {
		t.Errorf("got %v after the resource was deleted, want it inactive", said)
	}
	st.PostToken(t, form).FailsAs(t, 400, "invalid_target")
	if again := o.Do(201, http.MethodPost, "/resources", `{"uri":"`+notesAPI+`"}`).Object(t); again["number"] != 3.0 {
		t.Errorf("got %v, want a new number", again)
	}
	if said := st.Introspect(t, api, token); said["active"] != false {
		t.Errorf("got %v for another resource with the URI, want the token inactive", said)
	}
}

func TestOwnResourceMetadata(t *testing.T) {
	st := stacktest.NewIdentity(t)
	a := st.Send(t, http.MethodGet, st.URL+"/.well-known/oauth-protected-resource", "",
		"Origin", "https://any.example")
	a.Has(t, "Access-Control-Allow-Origin", "*")
	got := a.Object(t)
	scopes, _ := got["scopes_supported"].([]any)
	if a.Status != 200 || got["resource"] != st.Tokens.Issuer() || !slices.Contains(scopes, any("openid")) ||
		slices.Contains(scopes, any("server-operations")) ||
		fmt.Sprint(got["bearer_methods_supported"]) != "[header]" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

// TestOpenIDWithResource signs in for an API: userinfo takes the token of the API, and nothing else
// of this service does.
func TestOpenIDWithResource(t *testing.T) {
	st := stacktest.NewIdentity(t)
	_, api := newResources(t, st)
	st.NewUser(t, "Rosa", rosa)
	for _, isJWT := range []bool{false, true} {
		c := st.NewOpenIDClient(t, func(c *oauth.Client) { c.Options.JWTAccessTokens = isJWT })
		b := st.NewBrowser(t)
		code := b.Allow(at(c.Request("scope", "openid email view-user read"), mailAPI, notesAPI), rosa).
			Code(t, st)
		tokens := st.Redeem(t, c, code).Object(t)
		again := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret, "refresh_token", tokens["refresh_token"].(string))).Object(t)
		userInfo := `"` + st.URL + `/oauth/userinfo"]`
		for token, want := range map[any]string{
			tokens["access_token"]: `["` + notesAPI + `","` + mailAPI + `",` + userInfo,
			again["access_token"]:  `["` + mailAPI + `",` + userInfo, // named first
		} {
			said := st.Introspect(t, api, token)
			if audience(said) != want {
				t.Errorf("got %v, want the audience %s", said, want)
			}
			bearer := []string{"Authorization", "Bearer " + token.(string)}
			if a := st.Get(t, "/oauth/userinfo", bearer...); a.Status != 200 ||
				a.Object(t)["email"] != rosa {
				t.Errorf("got %d %s from userinfo", a.Status, a.Body)
			}
			if a := st.Get(t, "/api/user", bearer...); a.Status != 401 ||
				!strings.Contains(a.Body, mailAPI+" and "+st.URL+"/oauth/userinfo") {
				t.Errorf("got %d %s, want 401 with the audience", a.Status, a.Body)
			}
		}
		plain := b.Authorize(at(c.Request("scope", "view-user", "prompt", "none"), mailAPI)).Code(t, st)
		token := st.Redeem(t, c, plain).Object(t)["access_token"].(string)
		if a := st.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+token); a.Status != 401 ||
			!strings.Contains(a.Body, "is for "+mailAPI+",") {
			t.Errorf("got %d %s without openid, want 401 with the audience", a.Status, a.Body)
		}
	}
}

// TestJWTForResourcesIsIntrospected issues a JWT for other APIs: they see whom it is for, and the
// endpoints of this service refuse it.
func TestJWTForResourcesIsIntrospected(t *testing.T) {
	st := stacktest.NewIdentity(t)
	_, api := newResources(t, st)
	c := st.NewOpenIDClient(t, func(c *oauth.Client) { c.Options.JWTAccessTokens = true })
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	code := b.Allow(at(c.Request("scope", "view-user read"), notesAPI, mailAPI), rosa).Code(t, st)
	jwt, _ := st.Redeem(t, c, code).Object(t)["access_token"].(string)
	said := st.Introspect(t, api, jwt)
	if said["active"] != true || said["scope"] != "view-user read" ||
		audience(said) != `["`+notesAPI+`","`+mailAPI+`"]` {
		t.Errorf("got %v, want an active token for both", said)
	}
	var claims map[string]any
	if _, err := st.Tokens.Verify(jwt, "at+jwt", &claims); err != nil {
		t.Fatalf("got %v of %s, want a JWT for resources", err, jwt)
	}
	if audience(claims) != audience(said) || claims["scope"] != said["scope"] {
		t.Errorf("got claims %v, want what introspection says: %v", claims, said)
	}
	for _, path := range []string{"/api/user", "/oauth/userinfo"} {
		if a := st.Get(t, path, "Authorization", "Bearer "+jwt); a.Status != 401 {
			t.Errorf("%s: got %d %s, want 401", path, a.Status, a.Body)
		}
	}
}

// TestLongestJWT issues JWTs for the most and longest resources: one that would be too long for this
// service to read is refused, before its code is used.
func TestLongestJWT(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	_, api := newResources(t, st)
	st.NewUser(t, "Rosa", rosa)
	for i, scope := range []string{"s", strings.Repeat("s", 64)} {
		var uris []string
		for n := range 8 {
			uri := fmt.Sprintf("https://long-%d-%d.example/", i, n)
			uris = append(uris, uri+strings.Repeat("x", 250-len(uri)))
			o.Do(201, "POST", "/resources", fmt.Sprintf(`{"uri":%q,"scopes":["%s%d"]}`, uris[n], scope[1:], n))
		}
		c := st.NewOpenIDClient(t, func(c *oauth.Client) {
			c.ID, c.Options.JWTAccessTokens = strings.Repeat("App.", 10)[:39]+fmt.Sprint(i), true
		})
		names := ""
		for n := range 8 {
			names += fmt.Sprintf(" %s%d", scope[1:], n)
		}
		code := st.NewBrowser(t).Allow(at(c.Request("scope", "openid view-user"+names), uris...), rosa).Code(t, st)
		form := []string{"grant_type", "authorization_code", "client_id", c.ID, "client_secret", c.Secret,
			"code", code, "redirect_uri", stacktest.RedirectURI, "code_verifier", stacktest.Verifier}
		got := st.PostToken(t, stacktest.Values(form...))
		if i == 1 {
			if got.Status != 400 || got.Object(t)["error"] != "invalid_target" {
				t.Errorf("got %d %s, want invalid_target", got.Status, got.Body)
			}
			got = st.PostToken(t, stacktest.Values(append(form, "resource", uris[7])...))
		}
		jwt, _ := got.Object(t)["access_token"].(string)
		if said := st.Introspect(t, api, jwt); got.Status != 200 || said["active"] != true {
			t.Errorf("got %d, %d bytes, %v, want an active token", got.Status, len(jwt), said)
		}
		t.Logf("%d bytes", len(jwt))
	}
}
