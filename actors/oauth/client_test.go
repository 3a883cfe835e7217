package oauth_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

func TestWrongSecretLooksLikeUnknownClient(t *testing.T) {
	_, kept := oauth.NewSecret(time.Now())
	for _, c := range []*oauth.Client{{Secrets: []oauth.Secret{kept}},
		{Secrets: []oauth.Secret{kept}, Disabled: true}} {
		wrong := c.Authenticate(oauth.Credentials{Secret: "guess"})
		unknown := (*oauth.Client)(nil).Authenticate(oauth.Credentials{Secret: "guess"})
		if *wrong != *unknown {
			t.Errorf("got %+v and %+v", wrong, unknown)
		}
	}
}

// valid returns a valid client of each kind.
func valid() (confidential, public, operator oauth.Client) {
	_, kept := oauth.NewSecret(time.Now())
	confidential = oauth.Client{
		Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
		Grants:  oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant | oauth.ClientCredentialsGrant,
		Secrets: []oauth.Secret{kept},
	}
	public = oauth.Client{
		Name: "App", Public: true, RedirectURIs: []string{"com.example.app:/cb",
			"http://127.0.0.1/cb"}, Scopes: oauth.ViewUser,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant, LoopbackAnyPort: true,
	}
	operator = oauth.Client{
		Name: "Desk", Operator: true, Scopes: oauth.ServerOperations,
		Grants: oauth.ClientCredentialsGrant, Secrets: []oauth.Secret{kept},
	}
	return confidential, public, operator
}

func TestRegistration(t *testing.T) {
	confidential, public, operator := valid()
	described, local := public, confidential
	described.TokensPerMinute = 1_000_000
	described.URI, local.URI = "https://app.example:8443/about?lang=en", "http://[::1]:8080/"
	for _, c := range []oauth.Client{confidential, public, operator, described, local} {
		if err := c.CheckRegistration(); err != nil {
			t.Errorf("%s: got %v, want nil", c.Name, err)
		}
	}
	for _, row := range []struct {
		field  string
		base   oauth.Client
		change func(*oauth.Client)
	}{
		{"name", confidential, func(c *oauth.Client) { c.Name = " " }},
		{"name", confidential, func(c *oauth.Client) { c.Name = strings.Repeat("é", 101) }},
		{"name", confidential, func(c *oauth.Client) { c.Name = "a\nb" }},
		{"name", confidential, func(c *oauth.Client) { c.Name = "a\xff" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "http://shop.example/" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "HTTPS://shop.example/" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "javascript:alert(1)" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "//shop.example/" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "https:///about" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "https://user@shop.example/" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "https://shop.example/\" onclick=\"x" }},
		{"client_uri", confidential, func(c *oauth.Client) { c.URI = "https://shop.example/" + strings.Repeat("a", 2000) }},
		{"redirect_uris", confidential, func(c *oauth.Client) { c.RedirectURIs = nil }},
		{"redirect_uris", confidential, func(c *oauth.Client) { c.RedirectURIs = []string{"http://shop.example/cb"} }},
		{"redirect_uris", confidential, func(c *oauth.Client) { c.RedirectURIs = []string{"com.example.app:/cb"} }},
		{"redirect_uris", confidential, func(c *oauth.Client) { c.RedirectURIs = []string{"https://a.example/", "https://a.example/"} }},
		{"redirect_uris", confidential, func(c *oauth.Client) { c.RedirectURIs = make([]string, 21) }},
		{"loopback_any_port", confidential, func(c *oauth.Client) { c.LoopbackAnyPort = true }},
		{"grants", confidential, func(c *oauth.Client) { c.Grants = 0 }},
		{"grants", confidential, func(c *oauth.Client) { c.Grants = 1 << 7 }},
		{"grants", confidential, func(c *oauth.Client) { c.Grants = oauth.RefreshTokenGrant }},
		{"grants", public, func(c *oauth.Client) { c.Grants |= oauth.ClientCredentialsGrant }},
		{"grants", operator, func(c *oauth.Client) {
			c.Grants, c.RedirectURIs = oauth.AuthorizationCodeGrant, []string{"https://a.example/"}
		}},
		{"scopes", confidential, func(c *oauth.Client) { c.Scopes |= oauth.ServerOperations }},
		{"scopes", confidential, func(c *oauth.Client) { c.Scopes |= 1 << 15 }},
		{"scopes", operator, func(c *oauth.Client) { c.Scopes = 0 }},
		{"operator", operator, func(c *oauth.Client) { c.Public, c.Secrets = true, nil }},
		{"introspect_any", public, func(c *oauth.Client) { c.IntrospectAny = true }},
		{"tokens_per_minute", confidential, func(c *oauth.Client) { c.TokensPerMinute = -1 }},
		{"tokens_per_minute", public, func(c *oauth.Client) { c.TokensPerMinute = 1_000_001 }},
		{"secrets", public, func(c *oauth.Client) { c.Secrets = confidential.Secrets }},
		{"secrets", confidential, func(c *oauth.Client) { c.Secrets = nil }},
		{"secrets", confidential, func(c *oauth.Client) { c.Secrets = make([]oauth.Secret, 3) }},
	} {
		c := row.base
		row.change(&c)
		err := c.CheckRegistration()
		var wrong *oauth.RegistrationError
		if !errors.As(err, &wrong) || wrong.Field != row.field {
			t.Errorf("got %v, want an error about %s", err, row.field)
		}
	}
}

func TestGrantNames(t *testing.T) {
	all := oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant | oauth.ClientCredentialsGrant
	if got, want := all.String(),
		"authorization_code refresh_token client_credentials"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range all.Names() {
		if g, ok := oauth.ParseGrantType(name); !ok || g.String() != name {
			t.Errorf("%s: got %v, %t", name, g, ok)
		}
	}
	for _, name := range []string{"", "password", "implicit", "Authorization_Code",
		"authorization_code refresh_token"} {
		if g, ok := oauth.ParseGrantType(name); ok || g != 0 {
			t.Errorf("%q: got %v, want none", name, g)
		}
	}
}
