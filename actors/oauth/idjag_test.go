package oauth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
)

func TestClientWithIDJAG(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*oauth.Client)
		ok     bool
	}{
		"as it is":          {func(*oauth.Client) {}, true},
		"loopback":          {func(c *oauth.Client) { c.Options.IDJAG.Issuers[0] = "http://127.0.0.1:8080" }, true},
		"issuers alone":     {func(c *oauth.Client) { c.Grants = oauth.ClientCredentialsGrant }, false},
		"grant alone":       {func(c *oauth.Client) { c.Options.IDJAG = oauth.IDJAG{} }, false},
		"public":            {func(c *oauth.Client) { c.Public, c.Secrets = true, nil }, false},
		"registered itself": {func(c *oauth.Client) { c.Options.SelfRegistered = true }, false},
		"second factor":     {func(c *oauth.Client) { c.Options.RequireSecondFactor = true }, false},
		"http":              {func(c *oauth.Client) { c.Options.IDJAG.Issuers[0] = "http://idp.example" }, false},
		"query":             {func(c *oauth.Client) { c.Options.IDJAG.Issuers[0] += "?a=b" }, false},
		"the same issuer":   {func(c *oauth.Client) { c.Options.IDJAG.Issuers = []string{"https://a.example", "https://a.example"} }, false},
		"audience": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.IDJAG.Audiences, c.Options.IDJAG.Groups = []string{"https://a.example"}, []string{"staff"}
		}, true},
		"audience without its grant": {func(c *oauth.Client) { c.Options.IDJAG.Audiences = []string{"https://a.example"} }, false},
		"http audience": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.IDJAG.Audiences = []string{"http://a.example"}
		}, false},
		"audience with an id there": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.IDJAG.Audiences = []string{"https://a.example agent:7", "https://b.example"}
		}, true},
		"audience with two ids": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.IDJAG.Audiences = []string{"https://a.example agent 7"}
		}, false},
		"audience without the id after the space": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.IDJAG.Audiences = []string{"https://a.example "}
		}, false},
		"the same audience": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.IDJAG.Audiences = []string{"https://a.example", "https://a.example agent"}
		}, false},
		"groups alone": {func(c *oauth.Client) { c.Options.IDJAG.Groups = []string{"staff"} }, false},
		"wrong group": {func(c *oauth.Client) {
			c.Grants |= oauth.TokenExchangeGrant
			c.Options.IDJAG.Audiences, c.Options.IDJAG.Groups = []string{"https://a.example"}, []string{"The staff"}
		}, false},
		"21 issuers":          {func(c *oauth.Client) { c.Options.IDJAG.Issuers = make([]string, 21) }, false},
		"refresh tokens only": {func(c *oauth.Client) { c.Grants |= oauth.RefreshTokenGrant }, false},
	} {
		c := &oauth.Client{Name: "Agent", Grants: oauth.JWTBearerGrant, Secrets: make([]oauth.Secret, 1),
			Options: oauth.ClientOptions{IDJAG: oauth.IDJAG{Issuers: []string{"https://idp.example"}}}}
		row.change(c)
		err := c.CheckRegistration()
		if ok := err == nil; ok != row.ok || err != nil && !errors.As(err, new(*oauth.RegistrationError)) {
			t.Errorf("%s: got %v, want %v", name, err, row.ok)
		}
	}
}

// TestKeysOfIDJAGs takes no key that is cheap to guess or slow to check.
func TestKeysOfIDJAGs(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := &key.PublicKey
	now := time.Now()
	jwt := typed(t, "oauth-id-jag+jwt", jose.PS256, key, "k", map[string]any{"iss": "https://idp.example",
		"sub": "1", "aud": "https://id.example", "client_id": "c", "jti": "1", "iat": now.Unix(), "exp": now.Unix() + 60})
	c := &oauth.Client{ID: "c", Options: oauth.ClientOptions{IDJAG: oauth.IDJAG{Issuers: []string{"https://idp.example"}}}}
	a, fault := c.ParseIDJAG(jwt, "https://id.example", now)
	if fault != nil {
		t.Fatal(fault)
	}
	even := new(big.Int).Lsh(big.NewInt(1), 2047)
	for name, row := range map[string]struct {
		keys []jose.JSONWebKey
		ok   bool
	}{
		"the key":           {[]jose.JSONWebKey{{Key: public, KeyID: "k"}, {Key: public, KeyID: "l"}}, true},
		"with its alg":      {[]jose.JSONWebKey{{Key: public, KeyID: "k", Algorithm: "PS256"}}, true},
		"of another alg":    {[]jose.JSONWebKey{{Key: public, KeyID: "k", Algorithm: "RS256"}}, false},
		"another key ID":    {[]jose.JSONWebKey{{Key: public, KeyID: "l"}}, false},
		"no key":            {nil, false},
		"small modulus":     {[]jose.JSONWebKey{{Key: &rsa.PublicKey{N: new(big.Int).Rsh(public.N, 1024), E: 65537}, KeyID: "k"}}, false},
		"large modulus":     {[]jose.JSONWebKey{{Key: &rsa.PublicKey{N: new(big.Int).Lsh(public.N, 2049), E: 65537}, KeyID: "k"}}, false},
		"even modulus":      {[]jose.JSONWebKey{{Key: &rsa.PublicKey{N: even, E: 65537}, KeyID: "k"}}, false},
		"small exponent":    {[]jose.JSONWebKey{{Key: &rsa.PublicKey{N: public.N, E: 3}, KeyID: "k"}}, false},
		"slow exponent":     {[]jose.JSONWebKey{{Key: &rsa.PublicKey{N: public.N, E: 1<<31 - 1}, KeyID: "k"}}, false},
		"secret as the key": {[]jose.JSONWebKey{{Key: []byte("secret"), KeyID: "k"}}, false},
	} {
		key := a.Key(row.keys)
		if ok := key != nil && a.IsSignedBy(key); ok != row.ok {
			t.Errorf("%s: got %v, want %v", name, ok, row.ok)
		}
	}
}
