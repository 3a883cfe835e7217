package adminapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/cmd/stack/stacktest"
)

// optionMembers are the members of a client that are shown only when they are set.
var optionMembers = []string{"id_token_alg", "claims_in_id_token", "post_logout_redirect_uris",
	"backchannel_logout_uri", "first_party", "require_pkce", "access_token_format", "jwks", "jwks_uri",
	"federated", "id_jag", "resources", "serves", "exchange",
	"self_registered", "metadata_url"}

func publicKeys(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stacktest.Must(t, err)
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public()}}})
	stacktest.Must(t, err)
	return string(text)
}

func TestAdminAPIClientOptions(t *testing.T) {
	o := stacktest.NewIdentity(t).NewOperator(t)
	plain := o.Do(201, http.MethodPost, "/clients",
		`{"name":"Plain","redirect_uris":["https://a.example/"]}`).Object(t)
	for _, name := range optionMembers {
		if _, shown := plain[name]; shown {
			t.Errorf("got the member %s of a client without it", name)
		}
	}
	private := o.Do(400, http.MethodPost, "/clients", `{"name":"Keys","grants":["client_credentials"],"redirect_uris":[],
"jwks_uri":"https://10.0.0.5/jwks"}`)
	if !strings.Contains(private.Body, "jwks_uri") || !strings.Contains(private.Body, "no public address") {
		t.Errorf("got %s for keys at a private address, want the reason", private.Body)
	}
	path := "/clients/" + plain["client_id"].(string)
	all := `{"id_token_alg":"ES256","claims_in_id_token":true,
"post_logout_redirect_uris":["https://a.example/out"],"backchannel_logout_uri":"https://a.example/bc",
"first_party":true,"require_pkce":true,"access_token_format":"jwt","jwks_uri":"https://a.example/jwks",
"resources":["https://api.example/"],"scopes":["openid","profile","email","phone","address","offline_access"]}`
	changed := o.Do(200, http.MethodPatch, path, all).Object(t)
	for name, want := range map[string]string{
		"id_token_alg": `"ES256"`, "claims_in_id_token": "true",
		"post_logout_redirect_uris": `["https://a.example/out"]`,
		"backchannel_logout_uri":    `"https://a.example/bc"`, "require_pkce": "true", "first_party": "true",
		"access_token_format": `"jwt"`, "jwks_uri": `"https://a.example/jwks"`,
		"resources": `["https://api.example/"]`,
		"scopes":    `["openid","profile","email","phone","address","offline_access"]`,
	} {
		if got, err := json.Marshal(changed[name]); err != nil || string(got) != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	keys := publicKeys(t)
	o.Do(400, http.MethodPatch, path, `{"jwks":`+keys+`}`).Refused(t, "invalid_request", "jwks_uri")
	changed = o.Do(200, http.MethodPatch, path, `{"jwks_uri":null,"jwks":`+keys+`}`).Object(t)
	if got, err := json.Marshal(changed["jwks"]); err != nil || len(got) < 100 {
		t.Errorf("got keys %s, %v, want them", got, err)
	}
	o.Do(400, http.MethodPatch, path, `{"federated":{"issuer":"https://ci.example","subject":"x"}}`).
		Refused(t, "invalid_request", "federated")
	changed = o.Do(200, http.MethodPatch, path, `{"jwks":null,"federated":{"issuer":"https://ci.example",
"subject":"repo:a/b","audience":null,"jwks":`+keys+`}}`).Object(t)
	if got := changed["federated"].(map[string]any); got["issuer"] != "https://ci.example" ||
		got["subject"] != "repo:a/b" || got["audience"] != nil || got["jwks"] == nil {
		t.Errorf("got %v, want what was sent", got)
	}
	changed = o.Do(200, http.MethodPatch, path, `{"grants":["authorization_code",
		"urn:ietf:params:oauth:grant-type:jwt-bearer","urn:ietf:params:oauth:grant-type:token-exchange"],
		"id_jag":{"issuers":["https://idp.example"],"audiences":["https://tasks.example"],"groups":["staff"]}}`).Object(t)
	if got := changed["id_jag"].(map[string]any)["issuers"].([]any); len(got) != 1 || got[0] != "https://idp.example" {
		t.Errorf("got %v, want what was sent", got)
	}
	if bare := o.Do(200, http.MethodPatch, path, `{"grants":["authorization_code"],"id_jag":{}}`).Object(t); bare["id_jag"] != nil {
		t.Errorf("got %v, want no issuer", bare["id_jag"])
	}
	changed = o.Do(200, http.MethodPatch, path, `{"grants":["authorization_code","urn:ietf:params:oauth:grant-type:token-exchange"],
"serves":["https://a.example/"],"exchange":[{"from":"https://a.example","to":"https://b.example","scopes":["read"]},
{"from":"https://b.example","to":"https://a.example"}]}`).Object(t)
	if got, err := json.Marshal(changed["exchange"]); err != nil || string(got) != `[{"from":"https://a.example","scopes":["read"],`+
		`"to":"https://b.example"},{"from":"https://b.example","scopes":[],"to":"https://a.example"}]` {
		t.Errorf("got the rules %s, %v, want what was sent", got, err)
	}
	for _, rules := range []string{`{}`, `[1]`, `[{"from":1}]`, `[{"from":"https://a.example","to":"https://b.example","by":"x"}]`,
		`[{"from":"https://a.example"}]`, `[{"from":"https://a.example","to":"https://b.example","scopes":[1]}]`} {
		o.Do(400, http.MethodPatch, path, `{"exchange":`+rules+`}`).Refused(t, "invalid_request", "exchange")
	}
	none := `{"federated":null,"id_jag":null,"id_token_alg":null,"claims_in_id_token":false,"post_logout_redirect_uris":[],
"backchannel_logout_uri":null,"first_party":false,"require_pkce":false,"access_token_format":"opaque","jwks":null,"resources":[],
"serves":[],"exchange":[],"grants":["authorization_code"]}`
	bare := o.Do(200, http.MethodPatch, path, none).Object(t)
	for _, name := range optionMembers {
		if _, shown := bare[name]; shown {
			t.Errorf("got the member %s after it was removed", name)
		}
	}
	for field, value := range map[string]string{
		"id_token_alg": `"none"`, "access_token_format": `"saml"`, "jwks": `[]`,
		"backchannel_logout_uri": `"http://a.example/"`, "post_logout_redirect_uris": `["x"]`,
		"federated": `{"issuer":"https://ci.example","subject":"x","pattern":"y"}`,
		"id_jag":    `{"issuers":["https://idp.example"],"audience":"x"}`,
		"jwks_uri":  `"http://a.example/"`, "resources": `["urn:x"]`, "serves": `["urn:x"]`, "exchange": `null`, "scopes": `["calendar"]`,
		"require_pkce": `"yes"`, "first_party": `null`, "self_registered": `true`, "metadata_url": `"https://a.example/"`,
	} {
		o.Do(400, http.MethodPatch, path, `{"`+field+`":`+value+`}`).Refused(t, "invalid_request",
			field)
	}
}

// TestClientWithKeysHasNoSecret registers a client that signs assertions.
func TestClientWithKeysHasNoSecret(t *testing.T) {
	o := stacktest.NewIdentity(t).NewOperator(t)
	a := o.Do(201, http.MethodPost, "/clients",
		`{"name":"Signer","redirect_uris":["https://a.example/"],"jwks":`+publicKeys(t)+`}`)
	if c := a.Object(t); c["client_secret"] != nil || strings.Contains(a.Body, "gtcs_") ||
		len(c["secrets"].([]any)) != 0 {
		t.Errorf("got %s, want no secret", a.Body)
	}
	private := strings.Replace(publicKeys(t), `"crv"`, `"d":"AAAA","crv"`, 1)
	o.Do(400, http.MethodPost, "/clients",
		`{"name":"Signer","redirect_uris":["https://a.example/"],"jwks":`+private+`}`).
		Refused(t, "invalid_request", "jwks")
}
