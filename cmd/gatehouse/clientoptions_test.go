package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// optionsRecord has the members of a client that few need.
type optionsRecord struct {
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret"`
	Scopes       []string `json:"scopes"`
	Alg          string   `json:"id_token_alg"`
	Claims       bool     `json:"claims_in_id_token"`
	AfterLogout  []string `json:"post_logout_redirect_uris"`
	Backchannel  string   `json:"backchannel_logout_uri"`
	PKCE         bool     `json:"require_pkce"`
	Own          bool     `json:"first_party"`
	Format       string   `json:"access_token_format"`
	JWKS         struct{ Keys []any }
	JWKSURI      string   `json:"jwks_uri"`
	Resources    []string `json:"resources"`
}

func TestClientOptionsAtTheCommandLine(t *testing.T) {
	t.Parallel()
	above, _ := startDemo(t)
	demo := "--demo=" + filepath.Join(above, "gatehouse-demo")
	remote := func(args ...string) outcome { return runOnce(t, nil, append(args, demo, "--json")...) }
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "first"}}})
	if err != nil {
		t.Fatal(err)
	}
	keys := write(t, "jwks.json", string(text))
	c := decode[optionsRecord](t, remote("client", "create", "--name=Wiki",
		"--redirect-uri=https://wiki.example/cb", "--scope=openid profile offline_access",
		"--id-token-alg=ES256", "--claims-in-id-token", "--require-pkce", "--first-party",
		"--post-logout-redirect-uri=https://wiki.example/a",
		"--post-logout-redirect-uri=https://wiki.example/b",
		"--backchannel-logout-uri=https://wiki.example/out", "--access-token-format=jwt",
		"--jwks="+keys, "--resource=https://api.example/"))
	if c.ClientSecret != "" || len(c.JWKS.Keys) != 1 || c.Alg != "ES256" || !c.Claims || !c.PKCE || !c.Own ||
		len(c.AfterLogout) != 2 || c.Backchannel != "https://wiki.example/out" || c.Format != "jwt" ||
		len(c.Resources) != 1 ||
		!reflect.DeepEqual(c.Scopes, []string{"openid", "profile", "offline_access"}) {
		t.Errorf("got %+v, want what the flags say", c)
	}
	shown := runOnce(t, nil, "client", "show", demo, c.ClientID).stdout
	if !regexp.MustCompile(`(?m)^jwks +EC first$`).MatchString(shown) {
		t.Errorf("got\n%s\nwant the key by its name", shown)
	}
	same := decode[optionsRecord](t, remote("client", "update", c.ClientID, "--name=Wiki 2"))
	if !reflect.DeepEqual(same, c) {
		t.Errorf("got %+v after another change, want %+v", same, c)
	}
	bare := decode[optionsRecord](t, remote("client", "update", c.ClientID, "--id-token-alg=",
		"--no-claims-in-id-token", "--no-require-pkce", "--no-first-party", "--post-logout-redirect-uri=",
		"--backchannel-logout-uri=", "--access-token-format=opaque", "--jwks=",
		"--jwks-uri=https://wiki.example/jwks", "--resource="))
	want := optionsRecord{ClientID: c.ClientID, Scopes: c.Scopes,
		JWKSURI: "https://wiki.example/jwks"}
	if !reflect.DeepEqual(bare, want) {
		t.Errorf("got %+v, want %+v", bare, want)
	}
	logo := write(t, "logo.svg", `<svg xmlns="http://www.w3.org/2000/svg"/>`)
	for _, row := range []struct {
		flags []string
		has   bool
	}{
		{[]string{"--logo=" + logo, "--name=Wiki 3"}, true}, {[]string{"--name=Wiki 4"}, true},
		{[]string{"--logo="}, false},
	} {
		got := remote(append([]string{"client", "update", c.ClientID}, row.flags...)...)
		if got.code != 0 || strings.Contains(got.stdout, `"logo": "`) != row.has {
			t.Errorf("%v: got %+v, want a picture %t", row.flags, got, row.has)
		}
	}
	if got := remote("client", "update", c.ClientID, "--logo="+keys); got.code != 2 ||
		!strings.Contains(got.stderr, "is neither an SVG nor a PNG") {
		t.Errorf("got %d %s for a file that is no picture, want what to do", got.code, got.stderr)
	}
	exchanger := runOnce(t, nil, "client", "create", demo, "--name=Tasks", "--scope=",
		"--grant=urn:ietf:params:oauth:grant-type:token-exchange", "--serves=https://a.example",
		"--exchange=https://a.example https://b.example read write", "--exchange=https://a.example https://c.example").stdout
	if !regexp.MustCompile(`(?m)^exchange +https://a.example https://b.example read write, https://a.example https://c.example$`).
		MatchString(exchanger) || !regexp.MustCompile(`(?m)^serves +https://a.example$`).MatchString(exchanger) {
		t.Errorf("got\n%s\nwant the rules", exchanger)
	}
	federated := runOnce(t, nil, "client", "create", demo, "--name=Deploy", "--grant=client_credentials",
		"--scope=", "--federated-issuer=https://ci.example", "--federated-subject=repo:a/b",
		"--federated-jwks="+keys).stdout
	if !strings.Contains(federated, "repo:a/b") || strings.Contains(federated, "client_secret ") {
		t.Errorf("got\n%s\nwant the subject and no secret", federated)
	}
	const jwtBearer = "--grant=urn:ietf:params:oauth:grant-type:jwt-bearer"
	agent := runOnce(t, nil, "client", "create", demo, "--name=Agent", jwtBearer, "--scope=openid",
		"--grant=urn:ietf:params:oauth:grant-type:token-exchange",
		"--id-jag-issuer=https://idp.example", "--id-jag-issuer=https://login.example",
		"--id-jag-audience=https://tasks.example agent-7", "--id-jag-audience=https://wiki.example").stdout
	if !regexp.MustCompile(`(?m)^id_jag +issuers: https://idp.example, https://login.example ` +
		`audiences: https://tasks.example agent-7, https://wiki.example$`).MatchString(agent) {
		t.Errorf("got\n%s\nwant both issuers and both audiences, one with the id there", agent)
	}
	for _, row := range []struct {
		flag string
		code int
		want string
	}{
		{jwtBearer, exitFailed, "id_jag"},
		{"--id-jag-issuer=https://idp.example", exitFailed, "jwt-bearer"},
		{"--id-jag-audience=https://tasks.example", exitFailed, "token-exchange"},
		{"--id-jag-group=staff", exitFailed, "audiences"},
		{"--grant=device", exitFailed, "urn:ietf:params:oauth:grant-type:device_code"},
		{"--grant=", exitFailed, "grants"},
		{"--id-token-alg=none", exitFailed, "id_token_alg"},
		{"--access-token-format=xml", exitFailed, "access_token_format"},
		{"--backchannel-logout-uri=http://wiki.example/", exitFailed, "backchannel_logout_uri"},
		{"--federated-subject=x", exitUsage, "--federated-issuer"},
		{"--exchange=https://a.example", exitUsage, "--exchange"},
		{"--exchange=https://a.example https://b.example", exitFailed, "token-exchange"},
		{"--federated-issuer=http://ci.example", exitFailed, "federated"},
		{"--jwks=/no/such/file", exitFailed, "/no/such/file"},
		{"--jwks=" + write(t, "broken.json", "{"), exitUsage, "--jwks"},
	} {
		got := remote("client", "update", c.ClientID, row.flag)
		if got.code != row.code || !strings.Contains(got.stderr, row.want) {
			t.Errorf("%s: got code %d, stderr %q, want %d and %s", row.flag, got.code, got.stderr,
				row.code, row.want)
		}
	}
}

func TestDemoPrintsDiscovery(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	p := start(t, nil, append([]string{"demo", "--dir", dir}, anyPorts...)...)
	p.stderr.await(t, "msg=serving")
	file := readDemo(t, dir)
	p.stdout.await(t, file.BaseURL+"/.well-known/openid-configuration")
	p.stdout.await(t, file.Clients.OpenID.ClientSecret)
}
