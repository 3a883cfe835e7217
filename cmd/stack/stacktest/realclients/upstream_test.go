package realclients_test

import (
	"bufio"
	"context"
	"encoding/json"
	"html"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab"
)

var startLink = regexp.MustCompile(`href="([^"]*start=[^"]*)"`)

// offer lets people of st sign in with a provider.
func offer(t *testing.T, st *stacktest.IdentityStack, p *oauth.Provider) {
	t.Helper()
	p.ID, p.Kind = "up", oauth.OpenIDProvider
	if _, _, err := st.Tokens.PutProvider(t.Context(), p, false, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// leave follows the button of the sign-in page to the provider, and returns the path there.
func leave(t *testing.T, b *stacktest.Browser, issuer string) string {
	t.Helper()
	link := startLink.FindStringSubmatch(b.Get("/login").Body)
	if link == nil {
		t.Fatal("got no button of the provider")
	}
	p := b.Get(html.UnescapeString(link[1]))
	path, ok := strings.CutPrefix(p.Location, issuer)
	if !ok {
		t.Fatalf("got %d to %q: %s, want a redirect to %s", p.Status, p.Location, p.Body, issuer)
	}
	return path
}

// TestContinueWithOIDCProvider signs in with npm's oidc-provider. Its claims are at userinfo.
func TestContinueWithOIDCProvider(t *testing.T) {
	st := stacktest.NewReachable(t)
	node := exec.CommandContext(t.Context(), "node", "oidc-provider.mjs")
	input, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); node.Wait() })
	const secret = "a secret + of / the provider: 100%"
	if err := json.NewEncoder(input).Encode(map[string]string{"client_id": "gate",
		"client_secret": secret, "redirect_uri": st.URL + "/login/with/up/callback"}); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatalf("got no issuer, and error %v", lines.Err())
	}
	issuer := lines.Text()
	offer(t, st.IdentityStack, &oauth.Provider{Issuer: issuer, ClientID: "gate", Secret: secret,
		CreateAccounts: true, TrustEmail: true})
	signIn := func(b *stacktest.Browser, as string) stacktest.Page {
		t.Helper()
		there := lab.NewBrowser(issuer, &http.Transport{DisableKeepAlives: true})
		ctx := context.Background()
		p, err := there.Open(ctx, "GET", leave(t, b, issuer), nil)
		for range 2 { // the form to sign in, and the one to consent
			if err != nil || p.To != "" {
				break
			}
			p.Body = strings.ReplaceAll(p.Body, issuer, "") // its forms have whole addresses
			p, err = there.Submit(ctx, p, "login", as, "password", "any")
		}
		if err != nil {
			t.Fatal(err)
		}
		back, ok := strings.CutPrefix(p.To, st.URL)
		if !ok {
			t.Fatalf("got %d to %q: %s, want the browser back", p.Status, p.To, p.Body)
		}
		return b.Get(back)
	}
	signIn(st.NewBrowser(t), "ada@example.com").Shows(t, 200, "/me")
	u, err := st.Store.UserByConnection(t.Context(), issuer, "ada@example.com")
	if err != nil || u.Email != "ada@example.com" || u.Name != "Ada Upstream" {
		t.Fatalf("got %+v and error %v, want the account", u, err)
	}
	signIn(st.NewBrowser(t), "ada@example.com").Shows(t, 200, "/me")
	signIn(st.NewBrowser(t), "unverified@example.com").Shows(t, 200, "/register/connect")
	st.NewUser(t, "Rosa", "rosa@example.com")
	signIn(st.NewBrowser(t), "rosa@example.com").Shows(t, 200, "/login")
}

// TestContinueWithGatehouse signs in with a second gatehouse, and connects the account with the
// same address.
func TestContinueWithGatehouse(t *testing.T) {
	st := stacktest.NewReachable(t)
	up := stacktest.NewReachable(t)
	c := up.NewOpenIDClient(t, func(c *oauth.Client) {
		c.RedirectURIs = []string{st.URL + "/login/with/up/callback"}
	})
	offer(t, st.IdentityStack, &oauth.Provider{Issuer: up.URL, ClientID: c.ID, Secret: c.Secret,
		Label: "The other house", CreateAccounts: true, TrustEmail: true})
	const email = "ada@example.com"
	up.NewUser(t, "Ada", email)
	there, _ := up.SignedIn(t, email)
	signIn := func(b *stacktest.Browser) stacktest.Page {
		t.Helper()
		p := there.Get(leave(t, b, up.URL))
		for p.Location == "" {
			if path, _, _ := strings.Cut(p.Path, "?"); path == "/accounts" {
				value := regexp.MustCompile(`name="account" value="(\d+)"`).FindStringSubmatch(p.Body)
				p = there.Send(p, "account", value[1])
				continue
			}
			p.Shows(t, 200, "/consent")
			p = there.Send(p, "decision", "allow")
		}
		back, ok := strings.CutPrefix(p.Location, st.URL)
		if !ok || !strings.Contains(back, "iss=") {
			t.Fatalf("got %q, want the browser back with iss", p.Location)
		}
		return b.Get(back)
	}
	signIn(st.NewBrowser(t)).Shows(t, 200, "/me")
	u, err := st.Store.UserByEmail(t.Context(), email)
	if err != nil || len(u.Credentials.Connections) != 1 ||
		u.Credentials.Connections[0].Issuer != up.URL {
		t.Fatalf("got %+v and error %v, want the account", u, err)
	}
	signIn(st.NewBrowser(t)).Shows(t, 200, "/me")
}
