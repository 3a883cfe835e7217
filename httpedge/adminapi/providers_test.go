package adminapi_test

import (
	"strings"
	"testing"

	"gatehouse/actors/audit"
	"gatehouse/cmd/stack/stacktest"
)

// TestOperatorManagesProviders makes, changes and deletes a provider. Nobody is shown its secret.
func TestOperatorManagesProviders(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	const secret = "s3cret-of-acme"
	body := `{"kind":"oidc","issuer":"https://acme.example","client_id":"gate","client_secret":"` + secret +
		`","label":"Acme","allowed_domains":["Acme.example"],"groups":{"A":"a"}}`
	path := "/providers/acme"
	o.Do(200, "PUT", path+"?dry_run=true", body)
	o.Do(404, "GET", path, "")
	if made := o.Do(201, "PUT", path, body); made.Header.Get("Location") != "/admin/v1"+path {
		t.Errorf("got Location %q", made.Header.Get("Location"))
	}
	shown := o.Do(200, "GET", path, "").Object(t)
	if shown["redirect_uri"] != st.URL+"/login/with/acme/callback" || shown["trust_email"] != false ||
		shown["client_secret_set_at"] == nil || shown["allowed_domains"].([]any)[0] != "acme.example" {
		t.Errorf("got %v, want it as described", shown)
	}
	again := o.Do(200, "PUT", path, body).Object(t)
	if again["client_secret_set_at"] != shown["client_secret_set_at"] {
		t.Errorf("got %v, want nothing changed", again)
	}
	without := strings.Replace(body, `"client_secret":"`+secret+`",`, "", 1)
	o.Do(200, "PUT", path, strings.Replace(without, "Acme", "Other", 1))
	kept, err := st.Store.Providers(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Secret != secret || kept[0].Label != "Other" {
		t.Errorf("got %+v and error %v, want the secret kept", kept, err)
	}
	for wrong, field := range map[string]string{
		`{"kind":"saml","issuer":"https://a.example","client_id":"g"}`:                                         "kind",
		`{"kind":"oidc","issuer":"http://a.example","client_id":"g"}`:                                          "issuer",
		`{"kind":"oidc","client_id":"g"}`:                                                                      "issuer",
		`{"kind":"oidc","issuer":"https://169.254.169.254/","client_id":"g"}`:                                  "issuer",
		`{"kind":"oidc","issuer":"https://login.microsoftonline.com/common/v2.0","client_id":"g"}`:             "issuer",
		`{"kind":"github","client_id":"g"}`:                                                                    "client_secret",
		`{"kind":"oidc","issuer":"https://a.example"}`:                                                         "client_id",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","icon":"x"}`:                              "icon",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","scopes":["email"]}`:                      "scopes",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","groups":{"A":"gatehouse-operators"}}`:    "groups",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","groups":{"A":"Not So"}}`:                 "groups",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","allowed_domains":["https://a.example"]}`: "allowed_domains",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","label":"\u202egoogle"}`:                  "label",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","disabled":1}`:                            "disabled",
		`{"kind":"oidc","issuer":"https://a.example","client_id":"g","secret":"x"}`:                            "secret",
	} {
		o.Do(400, "PUT", "/providers/new", wrong).Refused(t, "invalid_request", field)
	}
	o.Do(400, "PUT", "/providers/Acme", body).Refused(t, "invalid_request", "id")
	list := o.Do(200, "GET", "/providers", "")
	if strings.Contains(list.Body, secret) || !strings.Contains(list.Body, `"id":"acme"`) {
		t.Errorf("got %s, want the provider without its secret", list.Body)
	}
	o.Do(204, "DELETE", path, "")
	o.Do(404, "DELETE", path, "")
	var actions []audit.Action
	events, err := st.Store.Events(t.Context(), audit.Filter{Limit: 50})
	for _, e := range events {
		if e.Target == "acme" {
			actions = append(actions, e.Action)
		}
	}
	if err != nil || len(actions) != 3 {
		t.Errorf("got %v and error %v, want created, changed and deleted", actions, err)
	}
	if trail := o.Do(200, "GET", "/audit?limit=200", ""); strings.Contains(trail.Body, secret) {
		t.Errorf("got %s, want no secret on record", trail.Body)
	}
}
