package httpedge_test

import (
	"encoding/json"
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
func newResources(t *testing.T, st *stacktest.IdentityStack) (*operator, stacktest.Client) {
	t.Helper()
	o := newOperator(t, st)
	o.does(201, http.MethodPost, "/resources", `{"uri":"`+notesAPI+`","scopes":["read","write"]}`)
	o.does(201, http.MethodPost, "/resources", `{"uri":"`+mailAPI+`","scopes":["read"]}`)
	return o, st.NewClient(t, func(c *oauth.Client) { c.IntrospectAny = true })
}

// at adds resources to a request.
func at(form url.Values, resources ...string) url.Values {
	form["resource"] = resources
	return form
}

// introspected introspects a token.
func introspected(t *testing.T, st *stacktest.IdentityStack, api stacktest.Client, token any) map[string]any {
	t.Helper()
	text, _ := token.(string)
	form := query("client_id", api.ID, "client_secret", api.Secret, "token", text)
	return send(t, st.Stack, "POST", st.URL+"/oauth/introspect", form.Encode(), "Content-Type",
		"application/x-www-form-urlencoded").object(t)
}

func audience(about map[string]any) string {
	text, _ := json.Marshal(about["aud"])
	return string(text)
}

func TestTokensForResources(t *testing.T) {
	st := stacktest.NewIdentity(t)
	_, api := newResources(t, st)
	c := newOpenIDClient(t, st, nil)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	ask := at(asked(c, "scope", "view-user read"), notesAPI, mailAPI+"/")
	consent := b.signIn(ask, rosa)
	for _, words := range []string{"use notes.example/v1 in your name, with the permission “read”",
		"use mail.example in your name, with the permission “read”"} {
		if !strings.Contains(consent.body, words) {
			t.Errorf("got a page without %q: %s", words, consent.body)
		}
	}
	code := b.send(consent, "decision", "allow").gets(t, st)
	if me := b.get("/me/apps"); !strings.Contains(me.body, "use notes.example/v1 in your name") {
		t.Errorf("got %s, want the resource among the connected apps", me.body)
	}
	first := redeem(t, st, c, code).object(t)
	token, _ := first["access_token"].(string)
	if said := introspected(t, st, api, token); said["scope"] != "view-user read" ||
		audience(said) != `["`+notesAPI+`","`+mailAPI+`"]` || len(token) > oauth.MaxAccessToken {
		t.Errorf("got %v for %d characters, want both audiences", said, len(token))
	}
	for _, path := range []string{"/api/user", "/api/user/details"} {
		a := send(t, st.Stack, http.MethodGet, st.URL+path, "", "Authorization", "Bearer "+token)
		if a.status != 401 || a.header.Get("X-RateLimit-Limit") != "" {
			t.Errorf("%s: got %d %s, want 401", path, a.status, a.body)
		}
	}
	refresh := func(changes ...string) url.Values {
		return query(append([]string{"grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", c.Secret, "refresh_token", first["refresh_token"].(string)},
			changes...)...)
	}
	postToken(t, st, at(refresh(), "https://other.example")).failsAs(t, 400, "invalid_target")
	postToken(t, st, at(refresh(), st.Tokens.Issuer())).failsAs(t, 400, "invalid_target")
	postToken(t, st, refresh("scope", "write")).failsAs(t, 400, "invalid_scope")
	first = postToken(t, st, at(refresh("scope", "read"), mailAPI)).object(t)
	if said := introspected(t, st, api, first["access_token"]); audience(said) != `["`+mailAPI+`"]` ||
		said["scope"] != "read" {
		t.Errorf("got %v, want one audience and one scope", said)
	}
	if said := introspected(t, st, api, first["refresh_token"]); audience(said) !=
		`["`+notesAPI+`","`+mailAPI+`"]` {
		t.Errorf("got %v of the refresh token, want all audiences", said)
	}
	first = postToken(t, st, refresh()).object(t)
	if said := introspected(t, st, api, first["access_token"]); len(said["aud"].([]any)) != 2 ||
		first["scope"] != "view-user read" {
		t.Errorf("got %v, %v, want all audiences again", said, first)
	}
	b.authorize(at(asked(c, "scope", "read", "prompt", "none"), notesAPI)).gets(t, st)
	b.authorize(at(asked(c, "scope", "write", "prompt", "none"), notesAPI)).
		failsWith(t, st, "consent_required")
}

func TestResourcesAreRefused(t *testing.T) {
	st := stacktest.NewIdentity(t)
	newResources(t, st)
	c := newOpenIDClient(t, st, func(c *oauth.Client) { c.Options.Resources = []string{mailAPI} })
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.authorize(at(asked(c), "https://other.example/")).failsWith(t, st, "invalid_target")
	b.authorize(at(asked(c), notesAPI)).failsWith(t, st, "invalid_target")
	b.authorize(at(asked(c), notesAPI+"#x")).failsWith(t, st, "invalid_target")
	b.authorize(at(asked(c, "scope", "write"), mailAPI)).failsWith(t, st, "invalid_scope")
	b.authorize(asked(c, "scope", "read")).failsWith(t, st, "invalid_scope")
	code := b.allow(at(asked(c, "scope", "view-user"), st.Tokens.Issuer()), rosa).gets(t, st)
	form := query("grant_type", "authorization_code", "client_id", c.ID, "client_secret", c.Secret,
		"code", code, "redirect_uri", c.RedirectURIs[0], "code_verifier", verifier)
	postToken(t, st, at(form, mailAPI)).failsAs(t, 400, "invalid_target")
	token := postToken(t, st, at(form, st.Tokens.Issuer())).object(t)["access_token"].(string)
	if a := send(t, st.Stack, http.MethodGet, st.URL+"/api/user", "", "Authorization",
		"Bearer "+token); a.status != 200 {
		t.Errorf("got %d %s for the audience of this service, want 200", a.status, a.body)
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
	ask := func(c stacktest.Client, scope string, resources ...string) response {
		return postToken(t, st, at(query("grant_type", "client_credentials", "client_id", c.ID,
			"client_secret", c.Secret, "scope", scope), resources...))
	}
	named := machine(notesAPI)
	got := ask(named, "read", notesAPI).object(t)
	if said := introspected(t, st, api, got["access_token"]); audience(said) != `["`+notesAPI+`"]` ||
		said["scope"] != "read" {
		t.Errorf("got %v, want the audience", said)
	}
	ask(named, "read", mailAPI).failsAs(t, 400, "invalid_target")
	ask(named, "send", notesAPI).failsAs(t, 400, "invalid_scope")
	ask(named, "read").failsAs(t, 400, "invalid_scope")
	ask(machine(), "read", notesAPI).failsAs(t, 400, "invalid_target")
}

func TestResourcesInAdminAPI(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o, api := newResources(t, st)
	list := o.does(200, http.MethodGet, "/resources?limit=1", "").object(t)
	if list["next"] != "1" || len(list["resources"].([]any)) != 1 {
		t.Errorf("got %v, want one of two", list)
	}
	list = o.does(200, http.MethodGet, "/resources?after=1", "").object(t)
	if list["next"] != "" || len(list["resources"].([]any)) != 1 {
		t.Errorf("got %v, want the other", list)
	}
	shown := o.does(200, http.MethodGet, "/resources/1", "").object(t)
	metadata, _ := json.Marshal(shown["metadata"])
	if want := `{"authorization_servers":["` + st.Tokens.Issuer() + `"],"bearer_methods_supported":["header"],` +
		`"resource":"` + notesAPI + `","scopes_supported":["read","write"]}`; string(metadata) != want {
		t.Errorf("got %s, want %s", metadata, want)
	}
	if want := "https://notes.example/.well-known/oauth-protected-resource/v1"; shown["metadata_url"] != want {
		t.Errorf("got %v, want %s", shown["metadata_url"], want)
	}
	o.does(409, http.MethodPost, "/resources", `{"uri":"`+mailAPI+`/"}`)
	o.does(409, http.MethodPost, "/resources", `{"uri":"`+st.Tokens.Issuer()+`/"}`)
	o.does(400, http.MethodPost, "/resources", `{"uri":"http://x.example"}`).
		refused(t, "invalid_request", "uri")
	o.does(400, http.MethodPost, "/resources", `{"uri":"https://x.example","scopes":["openid"]}`).
		refused(t, "invalid_request", "scopes")
	for _, path := range []string{"/resources/9", "/resources/01", "/resources/x"} {
		o.does(404, http.MethodGet, path, "")
		o.does(404, http.MethodDelete, path, "")
	}

	c := st.NewClient(t, func(c *oauth.Client) {
		c.Grants, c.Options.Resources = oauth.ClientCredentialsGrant, []string{notesAPI}
	})
	form := at(query("grant_type", "client_credentials", "client_id", c.ID, "client_secret", c.Secret),
		notesAPI)
	token := postToken(t, st, form).object(t)["access_token"]
	if said := introspected(t, st, api, token); said["active"] != true {
		t.Errorf("got %v, want it active", said)
	}
	o.does(204, http.MethodDelete, "/resources/1", "")
	if said := introspected(t, st, api, token); said["active"] != false || len(said) != 1 {
		t.Errorf("got %v after the resource was deleted, want it inactive", said)
	}
	postToken(t, st, form).failsAs(t, 400, "invalid_target")
	if again := o.does(201, http.MethodPost, "/resources", `{"uri":"`+notesAPI+`"}`).object(t); again["number"] != 3.0 {
		t.Errorf("got %v, want a new number", again)
	}
	if said := introspected(t, st, api, token); said["active"] != false {
		t.Errorf("got %v for another resource with the URI, want the token inactive", said)
	}
}

func TestOwnResourceMetadata(t *testing.T) {
	st := stacktest.NewIdentity(t)
	a := send(t, st.Stack, http.MethodGet, st.URL+"/.well-known/oauth-protected-resource", "",
		"Origin", "https://any.example")
	a.has(t, "Access-Control-Allow-Origin", "*")
	got := a.object(t)
	scopes, _ := got["scopes_supported"].([]any)
	if a.status != 200 || got["resource"] != st.Tokens.Issuer() || !slices.Contains(scopes, any("openid")) ||
		slices.Contains(scopes, any("server-operations")) {
		t.Errorf("got %d %s", a.status, a.body)
	}
}
