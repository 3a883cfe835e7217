package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
)

// jwks returns a set of keys as JSON.
func jwks(t *testing.T, keys ...jose.JSONWebKey) string {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newEC(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSA(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestOptionsThatCanBeRegistered(t *testing.T) {
	confidential, public, _ := valid()
	ec, rs := newEC(t, elliptic.P256()), newRSA(t, 2048)
	for i, row := range []struct {
		base    oauth.Client
		options oauth.ClientOptions
	}{
		{confidential, oauth.ClientOptions{IDTokenAlg: "RS256", ClaimsInIDToken: true}},
		{confidential, oauth.ClientOptions{IDTokenAlg: "ES256", RequirePKCE: true,
			JWTAccessTokens: true}},
		{confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://app.example/out?x=1"}},
		{confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://10.1.2.3/out"}},
		{confidential, oauth.ClientOptions{BackchannelLogoutURI: "http://127.0.0.1:8085/out"}},
		{confidential, oauth.ClientOptions{PostLogoutRedirectURIs: []string{"https://a.example/",
			"http://localhost:3000/"}}},
		{public, oauth.ClientOptions{PostLogoutRedirectURIs: []string{"com.example.app:/out"}}},
		{confidential, oauth.ClientOptions{JWKSURI: "https://app.example/jwks"}},
		{confidential, oauth.ClientOptions{JWKS: jwks(t, jose.JSONWebKey{Key: ec.Public(), KeyID: "a"},
			jose.JSONWebKey{Key: rs.Public(), KeyID: "b", Algorithm: "RS256", Use: "sig"})}},
		{confidential, oauth.ClientOptions{Resources: []string{"https://api.example/v1",
			"http://localhost:9000/"}}},
	} {
		c := row.base
		c.Options = row.options
		if err := c.CheckRegistration(); err != nil {
			t.Errorf("%d: got %v, want nil", i, err)
		}
	}
	c := confidential
	c.Secrets, c.Options.JWKSURI = nil, "https://app.example/jwks"
	if err := c.CheckRegistration(); err != nil {
		t.Errorf("got %v for a client with keys and no secret, want nil", err)
	}
}

func TestOptionsThatCannotBeRegistered(t *testing.T) {
	confidential, public, _ := valid()
	ec := newEC(t, elliptic.P256())
	set := jwks(t, jose.JSONWebKey{Key: ec.Public()})
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one := func(key any, use, alg string) oauth.ClientOptions {
		return oauth.ClientOptions{JWKS: jwks(t, jose.JSONWebKey{Key: key, Use: use, Algorithm: alg})}
	}
	even := newRSA(t, 2048).N
	even.SetBit(even, 0, 0)
	var uris []string
	for i := range 21 {
		uris = append(uris, fmt.Sprintf("https://app.example/%d", i))
	}
	for _, row := range []struct {
		field   string
		base    oauth.Client
		options oauth.ClientOptions
	}{
		{"id_token_alg", confidential, oauth.ClientOptions{IDTokenAlg: "none"}},
		{"id_token_alg", confidential, oauth.ClientOptions{IDTokenAlg: "HS256"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "http://app.example/"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://app.example/#a"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://u:p@app.example/"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "com.example.app:/out"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "/out"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://0xa9fea9fe/"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://2852039166/"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://169.254.43518./"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://0251.0376.0251.0376/"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://[fd00:ec2::254]/"}},
		{"backchannel_logout_uri", confidential, oauth.ClientOptions{BackchannelLogoutURI: "https://[::ffff:a9fe:a9fe]/"}},
		{"post_logout_redirect_uris", confidential, oauth.ClientOptions{PostLogoutRedirectURIs: []string{"http://app.example/"}}},
		{"post_logout_redirect_uris", confidential, oauth.ClientOptions{PostLogoutRedirectURIs: []string{"https://app.example/#a"}}},
		{"post_logout_redirect_uris", confidential, oauth.ClientOptions{PostLogoutRedirectURIs: []string{"com.example.app:/out"}}},
		{"post_logout_redirect_uris", confidential, oauth.ClientOptions{PostLogoutRedirectURIs: uris[:11]}},
		{"post_logout_redirect_uris", confidential, oauth.ClientOptions{PostLogoutRedirectURIs: []string{uris[0], uris[0]}}},
		{"resources", confidential, oauth.ClientOptions{Resources: uris}},
		{"resources", confidential, oauth.ClientOptions{Resources: []string{uris[0], uris[0]}}},
		{"resources", confidential, oauth.ClientOptions{Resources: []string{"urn:api"}}},
		{"resources", confidential, oauth.ClientOptions{Resources: []string{uris[0] + strings.Repeat("a", 250)}}},
		{"first_party", confidential, oauth.ClientOptions{FirstParty: true, SelfRegistered: true}},
		{"first_party", public, oauth.ClientOptions{FirstParty: true}},
		{"jwks_uri", confidential, oauth.ClientOptions{JWKSURI: "http://127.0.0.1/jwks"}},
		{"jwks_uri", confidential, oauth.ClientOptions{JWKSURI: "https://app.example/jwks", JWKS: set}},
		{"jwks_uri", public, oauth.ClientOptions{JWKSURI: "https://app.example/jwks"}},
		{"jwks", public, oauth.ClientOptions{JWKS: set}},
		{"jwks", confidential, oauth.ClientOptions{JWKS: "{}"}},
		{"jwks", confidential, oauth.ClientOptions{JWKS: `{"keys":[]}`}},
		{"jwks", confidential, oauth.ClientOptions{JWKS: `{"keys":[{"kty":"RSA"}]}`}},
		{"jwks", confidential, oauth.ClientOptions{JWKS: `{"keys":[{"kty":"new"}]}`}},
		{"jwks", confidential, oauth.ClientOptions{JWKS: set + strings.Repeat(" ", 8192)}},
		{"jwks", confidential, oauth.ClientOptions{JWKS: jwks(t, slices.Repeat([]jose.JSONWebKey{{Key: ec.Public()}}, 6)...)}},
		{"jwks", confidential, one(ec, "", "")},
		{"jwks", confidential, one([]byte("secret"), "", "HS256")},
		{"jwks", confidential, one(ec.Public(), "enc", "")},
		{"jwks", confidential, one(ec.Public(), "sig", "RS256")},
		{"jwks", confidential, one(newEC(t, elliptic.P384()).Public(), "", "")},
		{"jwks", confidential, one(newRSA(t, 1024).Public(), "", "")},
		{"jwks", confidential, one(&rsa.PublicKey{N: even, E: 65537}, "", "")},
		{"jwks", confidential, one(crypto.PublicKey(ed.Public()), "", "")},
	} {
		c := row.base
		c.Options = row.options
		err := c.CheckRegistration()
		var wrong *oauth.RegistrationError
		if !errors.As(err, &wrong) || wrong.Field != row.field {
			t.Errorf("got %v, want an error about %s of %.200v", err, row.field, row.options)
		}
	}
}
