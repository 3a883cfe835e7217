package oauthapi_test

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
	stacktest.Must(t, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
	stacktest.Must(t, err)
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Secrets, c.Options.JWKS = nil, string(set)
		c.Grants |= oauth.DeviceCodeGrant
	})
	form := func(pairs ...string) url.Values {
		return stacktest.Values(append(pairs, "client_assertion",
			stacktest.Assertion(t, key, c.ID, st.URL+"/oauth/token"), "client_assertion_type",
			"urn:ietf:params:oauth:client-assertion-type:jwt-bearer")...)
	}
	post := func(path string, form url.Values) stacktest.Response {
		return st.Send(t, "POST", st.URL+path, form.Encode(), "Content-Type",
			"application/x-www-form-urlencoded")
	}
	used := form("grant_type", "client_credentials")
	a := st.PostToken(t, used)
	if a.Status != 200 {
		t.Fatalf("got %d %s, want a token", a.Status, a.Body)
	}
	token := a.Object(t)["access_token"].(string)
	st.PostToken(t, used).FailsAs(t, 401, "invalid_client")
	if a := post("/oauth/introspect", form("token", token)); a.Object(t)["active"] != true {
		t.Errorf("got %d %s from introspection, want an active token", a.Status, a.Body)
	}
	if a := post("/oauth/revoke", form("token", token)); a.Status != 200 {
		t.Errorf("got %d %s from revocation, want 200", a.Status, a.Body)
	}
	if a := post("/oauth/introspect", form("token", token)); a.Object(t)["active"] != false {
		t.Errorf("got %d %s from introspection, want no active token", a.Status, a.Body)
	}
	a = post("/oauth/device_authorization", form("scope", "view-user"))
	if a.Status != 200 {
		t.Fatalf("got %d %s, want a device code", a.Status, a.Body)
	}
	st.PostToken(t, form("grant_type", "urn:ietf:params:oauth:grant-type:device_code", "device_code",
		a.Object(t)["device_code"].(string))).FailsAs(t, 400, "authorization_pending")
	st.PostToken(t, stacktest.Values("grant_type", "client_credentials", "client_id", c.ID,
		"client_secret", oauth.NewClientSecret())).FailsAs(t, 401, "invalid_client")
	post("/oauth/introspect", stacktest.Values("token", token, "client_id", c.ID)).FailsAs(t, 401,
		"invalid_client")
	o := st.Get(t, "/.well-known/oauth-authorization-server").Object(t)
	if methods, _ := o["token_endpoint_auth_methods_supported"].([]any); len(methods) != 4 ||
		methods[3] != "private_key_jwt" {
		t.Errorf("got methods %v, want private_key_jwt as the last", methods)
	}
}

func TestClientMustUsePKCE(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.RequirePKCE = true })
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Get("/oauth/authorize?"+c.Request("code_challenge", "", "code_challenge_method", "").Encode()).
		FailsWith(t, st, "invalid_request")
	p := b.Send(b.SignIn(c.Request(), rosa), "decision", "allow")
	if a := st.Redeem(t, c, p.Code(t, st)); a.Status != 200 {
		t.Errorf("got %d %s with a challenge, want tokens", a.Status, a.Body)
	}
}
