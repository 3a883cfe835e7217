package httpedge_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestClientAuthenticatesWithKeys sends assertions to each endpoint that authenticates clients.
func TestClientAuthenticatesWithKeys(t *testing.T) {
	st := stacktest.NewIdentity(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Secrets, c.Options.JWKS = nil, string(set)
		c.Grants |= oauth.DeviceCodeGrant
	})
	form := func(pairs ...string) url.Values {
		return query(append(pairs, "client_assertion",
			assertionOf(t, key, c.ID, st.URL+"/oauth/token"), "client_assertion_type",
			"urn:ietf:params:oauth:client-assertion-type:jwt-bearer")...)
	}
	post := func(path string, form url.Values) response {
		return send(t, st.Stack, "POST", st.URL+path, form.Encode(), "Content-Type",
			"application/x-www-form-urlencoded")
	}
	used := form("grant_type", "client_credentials")
	a := postToken(t, st, used)
	if a.status != 200 {
		t.Fatalf("got %d %s, want a token", a.status, a.body)
	}
	token := a.object(t)["access_token"].(string)
	postToken(t, st, used).failsAs(t, 401, "invalid_client")
	if a := post("/oauth/introspect", form("token", token)); a.object(t)["active"] != true {
		t.Errorf("got %d %s from introspection, want an active token", a.status, a.body)
	}
	if a := post("/oauth/revoke", form("token", token)); a.status != 200 {
		t.Errorf("got %d %s from revocation, want 200", a.status, a.body)
	}
	if a := post("/oauth/introspect", form("token", token)); a.object(t)["active"] != false {
		t.Errorf("got %d %s from introspection, want no active token", a.status, a.body)
	}
	a = post("/oauth/device_authorization", form("scope", "view-user"))
	if a.status != 200 {
		t.Fatalf("got %d %s, want a device code", a.status, a.body)
	}
	postToken(t, st, form("grant_type", deviceGrant, "device_code",
		a.object(t)["device_code"].(string))).failsAs(t, 400, "authorization_pending")
	postToken(t, st, query("grant_type", "client_credentials", "client_id", c.ID, "client_secret",
		oauth.NewClientSecret())).failsAs(t, 401, "invalid_client")
	post("/oauth/introspect", query("token", token, "client_id", c.ID)).failsAs(t, 401,
		"invalid_client")
	o := get(t, st.Stack, "/.well-known/oauth-authorization-server").object(t)
	if methods, _ := o["token_endpoint_auth_methods_supported"].([]any); len(methods) != 4 ||
		methods[3] != "private_key_jwt" {
		t.Errorf("got methods %v, want private_key_jwt as the last", methods)
	}
}

func TestClientMustUsePKCE(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.RequirePKCE = true })
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	b.get("/oauth/authorize?"+asked(c, "code_challenge", "", "code_challenge_method", "").Encode()).
		failsWith(t, st, "invalid_request")
	p := b.send(b.signIn(asked(c), rosa), "decision", "allow")
	if a := redeem(t, st, c, p.gets(t, st)); a.status != 200 {
		t.Errorf("got %d %s with a challenge, want tokens", a.status, a.body)
	}
}
