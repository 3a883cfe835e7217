// Package realclients_test runs unmodified published OAuth clients against the real service over
// HTTP.
package realclients_test

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/recipe"
)

// callback is the redirect URI of all clients. No server listens there: the programs read the
// redirect and do not follow it.
const callback = "https://app.example/callback"

type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
}

// setup is the input of a program.
type setup struct {
	URL          string            `json:"url"`
	RedirectURI  string            `json:"redirect_uri"`
	Confidential client            `json:"confidential"`
	Public       client            `json:"public"`
	User         map[string]string `json:"user"`
}

// newSetup registers the clients and the user of one program.
func newSetup(t *testing.T, st *stacktest.IdentityStack, email string) setup {
	t.Helper()
	register := func(public bool) client {
		c := st.NewClient(t, func(c *oauth.Client) {
			c.RedirectURIs, c.Public, c.DetailApproved = []string{callback}, public, true
		})
		return client{c.ID, c.Secret}
	}
	st.NewUser(t, "Rosa", email)
	return setup{st.URL, callback, register(false), register(true),
		map[string]string{"email": email, "password": stacktest.Password}}
}

// TestPublishedClients runs each client through the authorization code grant with PKCE, refresh,
// client credentials and revocation. `make setup` installs the clients.
func TestPublishedClients(t *testing.T) {
	if _, err := os.Stat("node_modules/oauth4webapi"); err != nil {
		t.Fatalf("got %v, want the clients installed: make setup", err)
	}
	st := stacktest.NewIdentity(t)
	for _, name := range []string{"oauth4webapi", "openid-client", "simple-oauth2"} {
		t.Run(name, func(t *testing.T) {
			run(t, name+".mjs", newSetup(t, st, name+"@example.com"))
		})
	}
}

// TestRecipes runs clients of OpenID Connect and a verifier of JWTs. Their registration and their
// code are those of docs/apps.md.
func TestRecipes(t *testing.T) {
	st := stacktest.NewIdentity(t)
	const email = "rosa@example.com"
	st.NewUser(t, "Rosa", email)
	for _, row := range []struct {
		heading, script string
		port            int // of the app, which does not listen
	}{
		{"openid-client", "openid-client-discovery.mjs", 3000},
		{"openid-client and an API", "openid-client-api.mjs", 3001},
		{"openid-client on a device", "openid-client-device.mjs", 3000},
		{"openid-client with a key", "openid-client-key.mjs", 3000},
		{"oauth4webapi", "oauth4webapi-openid.mjs", 3000},
		{"jose", "jose.mjs", 3000},
	} {
		t.Run(row.heading, func(t *testing.T) {
			r := recipe.Read(t, row.heading)
			r.CheckCode(t, row.script)
			made := r.Create(t, st, recipe.Addresses(st.URL, row.port))
			c := made[len(made)-1]
			t.Parallel()
			run(t, row.script, map[string]any{
				"url": st.URL, "ISSUER": st.URL, "base": fmt.Sprintf("http://127.0.0.1:%d", row.port),
				"CLIENT_ID": c.ID, "CLIENT_SECRET": c.Secret, "KEY": c.Key,
				"user": map[string]string{"email": email, "password": stacktest.Password},
			})
		})
	}
}

// TestStepUp has openid-client ask for a second factor, as docs/apps.md shows, for a person who has one
// and for one who has none.
func TestStepUp(t *testing.T) {
	st := stacktest.NewIdentity(t)
	const ada, rosa = "ada@example.com", "rosa@example.com"
	input := newSetup(t, st, ada)
	c := st.NewOpenIDClient(t, func(c *oauth.Client) { c.RedirectURIs = []string{callback} })
	input.Confidential = client{c.ID, c.Secret}
	st.NewUser(t, "Rosa", rosa)
	b, _ := st.SignedIn(t, ada)
	input.User["code"] = b.AddApp(b.Get("/me/factors/app")).RecoveryCodes(t)[0]
	input.User["other"] = rosa
	run(t, "openid-client-step-up.mjs", input)
}

// run runs a program with its input and fails the test if the program fails.
func run(t *testing.T, script string, input any) {
	t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", script)
	node.Stdin = bytes.NewReader(text)
	if output, err := node.CombinedOutput(); err != nil {
		t.Errorf("got %v, want no error:\n%s", err, output)
	}
}

// TestAuthenticatorApps has two npm libraries of authenticator apps read our URL and make codes, at the
// first and the last second of steps, also after 2038 and when the counter has more than 32 bits.
func TestAuthenticatorApps(t *testing.T) {
	secret := []byte("20 bytes of a secret")
	times := []int64{0, 29, 30, 59, 1111111109, 1234567890, 2147483647, 2147483648, 20000000000,
		30 << 33}
	text, err := json.Marshal(map[string]any{"times": times, "url": account.TOTPURL("Atlas & Söhne",
		"ada+1@example.com", base32.StdEncoding.EncodeToString(secret))})
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "totp.mjs")
	node.Stdin = bytes.NewReader(text)
	output, err := node.CombinedOutput()
	var got struct {
		Issuer, Label string
		Codes         [][]string
	}
	if err := errors.Join(err, json.Unmarshal(output, &got)); err != nil {
		t.Fatalf("got %v and %s, want codes", err, output)
	}
	if got.Issuer != "Atlas & Söhne" || got.Label != "ada+1@example.com" || len(got.Codes) != len(times) {
		t.Errorf("got %+v, want the names as they are", got)
	}
	for i, codes := range got.Codes {
		for _, code := range codes {
			step, ok := account.MatchTOTP(secret, code, time.Unix(times[i], 0))
			if !ok || step != times[i]/30 || len(codes) != 2 {
				t.Errorf("%s at %d: got step %d, %v, want it accepted", code, times[i], step, ok)
			}
		}
	}
}

// TestClientsOfIPInfo runs the npm clients of ipinfo.io, with another base URL and an API key as
// their token.
func TestClientsOfIPInfo(t *testing.T) {
	key, line, err := stack.NewLookupKey("shop")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st := stacktest.New(t, func(c *stack.Config) {
		c.Lookups.KeyFile, c.CompatListen, c.Compat = file, "127.0.0.1:0", []string{"ipinfo"}
	})
	run(t, "ipinfo.mjs", map[string]string{"url": st.CompatURL, "token": key})
}
