package console

import (
	"strings"

	"gatehouse/actors/oauth"
)

// recipe fills the form of a new app for a program that docs/apps.md has a recipe for, below the
// heading of that name.
type recipe struct {
	name   string
	client oauth.Client
}

// base is the address of the app in the recipes.
const base = "http://127.0.0.1:3000"

// codeAndRefresh are the grants of a client whose registration names none.
const codeAndRefresh = oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant

// recipes are those whose app the console can register: APIs that may introspect every token are
// registered by command alone.
var recipes = []recipe{
	{"Apache", web("Wiki", "openid email", true, "/callback", "/bye")},
	{"oauth2-proxy", web("Dashboard", "openid profile email", true, "/oauth2/callback")},
	{"kubelogin", oauth.Client{Name: "kubectl", Public: true, Grants: codeAndRefresh,
		Scopes: scopes("openid email offline_access"), RedirectURIs: []string{"http://localhost:8000"}}},
	{"oidc-agent", oauth.Client{Name: "My terminal", Public: true,
		Grants: oauth.RefreshTokenGrant | oauth.DeviceCodeGrant,
		Scopes: scopes("openid email offline_access")}},
	{"express-openid-connect", func() oauth.Client {
		c := withClaims(web("Shop", "openid profile email offline_access", true, "/callback", ""))
		c.Options.BackchannelLogoutURI = base + "/backchannel-logout"
		return c
	}()},
	{"express-openid-connect and an API",
		withClaims(web("Shop", "openid profile email offline_access", true, "/callback", ""))},
	{"Auth.js", withClaims(web("Shop", "openid profile email", true, "/auth/callback/gatehouse"))},
	{"Auth.js and an API",
		withClaims(web("Shop", "openid profile email", true, "/auth/callback/gatehouse"))},
	{"passport-openidconnect", web("Shop", "openid profile email", false, "/callback")},
	{"oidc-client-ts", public(web("Shop", "openid profile email offline_access", false, "/callback", "/"))},
	{"oidc-client-ts and an API",
		public(web("Shop", "openid profile email offline_access", false, "/callback", "/"))},
	{"openid-client", web("Shop", "openid profile email offline_access", true, "/callback", "/")},
	{"openid-client and an API", web("Shop", "openid email offline_access", true, "/callback")},
	{"openid-client on a device", oauth.Client{Name: "My TV", Public: true,
		Grants: oauth.DeviceCodeGrant, Scopes: scopes("openid email")}},
	{"openid-client with a key", oauth.Client{Name: "Reports", Grants: oauth.ClientCredentialsGrant}},
	{"oauth4webapi", web("Shop", "openid email", true, "/callback")},
	{"jose", func() oauth.Client {
		c := web("Notes", "openid", false, "/callback")
		c.Options.JWTAccessTokens = true
		return c
	}()},
	{"go-oidc and x/oauth2", web("Shop", "openid profile email offline_access", true, "/callback", "")},
	{"hashicorp cap", web("Shop", "openid profile email", true, "/callback")},
	{"Authlib", web("Shop", "openid email offline_access", true, "/callback")},
}

// recipeOf returns the recipe with that name, or nil.
func recipeOf(name string) *recipe {
	for i := range recipes {
		if recipes[i].name == name {
			return &recipes[i]
		}
	}
	return nil
}

// web returns a confidential client with a path for redirects, and perhaps one for after a logout.
func web(name, granted string, pkce bool, callback string, bye ...string) oauth.Client {
	c := oauth.Client{Name: name, Scopes: scopes(granted), Grants: codeAndRefresh,
		RedirectURIs: []string{base + callback}}
	c.Options.RequirePKCE = pkce
	for _, path := range bye {
		c.Options.PostLogoutRedirectURIs = []string{base + path}
	}
	return c
}

func public(c oauth.Client) oauth.Client {
	c.Public = true
	return c
}

func withClaims(c oauth.Client) oauth.Client {
	c.Options.ClaimsInIDToken = true
	return c
}

// scopes returns the scopes with these names, which are known.
func scopes(names string) (all oauth.Scopes) {
	for name := range strings.FieldsSeq(names) {
		scope, err := oauth.ParseScopes(name)
		if err != nil {
			panic(err)
		}
		all |= scope
	}
	return all
}
