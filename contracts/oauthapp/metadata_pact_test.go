//go:build pact

package oauthapp_test

import (
	"slices"
	"testing"

	"gatehouse/contracts/pacttest"
)

func metadata(t *testing.T, p *pacttest.Pact) {
	endpoint := func(path string) any {
		return pacttest.Pattern("https://id.example"+path, "^https?://[^/?#]+"+path+"$")
	}
	request := pacttest.Request{Method: "GET", Path: "/.well-known/oauth-authorization-server",
		Header: map[string]any{"Accept": "application/json"}}
	p.Test(t, pacttest.Interaction{
		Name: "a request for the metadata", Request: request,
		Response: pacttest.Response{Status: 200,
			Header: header("Cache-Control", "public, max-age=3600"), JSON: object{
				"issuer":                 endpoint(""),
				"authorization_endpoint": endpoint("/oauth/authorize"),
				"token_endpoint":         endpoint("/oauth/token"),
				"revocation_endpoint":    endpoint("/oauth/revoke"),
				"introspection_endpoint": endpoint("/oauth/introspect"),
				"scopes_supported": pacttest.Having("view-user",
					"detail-user"),
				"response_types_supported": pacttest.Having("code"),
				"response_modes_supported": pacttest.Having("query"),
				"grant_types_supported": pacttest.Having("authorization_code",
					"refresh_token", "client_credentials"),
				"code_challenge_methods_supported": []string{"S256"},
				"prompt_values_supported": pacttest.Having("none", "login",
					"consent"),
				"token_endpoint_auth_methods_supported": pacttest.Having("client_secret_basic",
					"client_secret_post", "none"),
				"revocation_endpoint_auth_methods_supported": pacttest.Having("client_secret_basic",
					"client_secret_post", "none"),
				"introspection_endpoint_auth_methods_supported": pacttest.Having("client_secret_basic",
					"client_secret_post"),
				"authorization_response_iss_parameter_supported": true,
			}},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		got, err := a.Metadata(t.Context())
		pacttest.Must(t, err)
		if got.Issuer != a.Issuer || got.TokenEndpoint != a.Issuer+"/oauth/token" ||
			!slices.Equal(got.ChallengeMethods, []string{"S256"}) || !got.SendsIssuer {
			t.Errorf("got %+v, want that of %s", got, a.Issuer)
		}
		for _, list := range [][]string{got.Scopes, got.ResponseTypes, got.ResponseModes,
			got.GrantTypes, got.TokenAuthentication,
			got.RevokeAuthentication, got.AskAuthentication, got.Prompts} {
			if len(list) == 0 {
				t.Errorf("got %+v, want no empty list", got)
			}
		}
	})
}
