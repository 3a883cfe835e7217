package signin_test

import (
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people/passkeytest"
	"gatehouse/cmd/stack/stacktest"
)

// addKey adds a security key without user verification on a page that asks for it, and returns its
// page of recovery codes.
func addKey(t *testing.T, b *stacktest.Browser, p stacktest.Page, key *passkeytest.Key) stacktest.Page {
	t.Helper()
	p.Shows(t, 200, "/me/factors/key")
	key.Flags = passkeytest.UserPresent
	p = b.SendTo(p, "/me/factors/key", "name", "Key", "current_password", stacktest.Password,
		"credential", string(key.Create(t, optionsOf(t, p))))
	key.Handle = nil // it does not keep whose it is
	return p
}

// withKey returns a stack with Rosa, who has a security key, and her recovery codes.
func withKey(t *testing.T) (*stacktest.IdentityStack, *passkeytest.Key, []string) {
	t.Helper()
	st := stacktest.NewIdentity(t, stacktest.Localhost)
	st.NewUser(t, "Rosa", rosa)
	b, _ := st.SignedIn(t, rosa)
	key := passkeytest.New(t, st.URL)
	p := addKey(t, b, b.Get("/me/factors/key"), key)
	p.Shows(t, 200, "/me/factors/key")
	return st, key, p.RecoveryCodes(t)
}

// TestSecurityKeyFromAccountToApp signs in by password and security key for a client, with what pages
// without scripts have as the other way, and steps up in a browser that is trusted.
func TestSecurityKeyFromAccountToApp(t *testing.T) {
	st, key, codes := withKey(t)
	c := st.NewClient(t, openID)
	b := st.NewBrowser(t)
	p := b.SignIn(c.Request("scope", "openid view-user"), rosa)
	p.Shows(t, 200, "/login/factor")
	p.Says(t, "Use your security key for", "Recovery code")
	if policy := p.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'sha256-") {
		t.Errorf("got the policy %s, want the script by its hash", policy)
	}
	if options := string(optionsOf(t, p)); !strings.Contains(options, `"userVerification":"discouraged"`) ||
		strings.Count(options, `"type":"public-key"`) != 1 {
		t.Errorf("got the options %s, want the key without a PIN", options)
	}
	b.SendTo(p, "/login/factor", "code", "000000").Says(t, "This recovery code is wrong")
	p = b.SendTo(p, "/login/factor/key", "trust", "true", "credential", string(key.Get(t, optionsOf(t, p))))
	p.Shows(t, 200, "/consent")
	claims := claimsOf(t, st.Redeem(t, c, b.Send(p, "decision", "allow").Code(t, st)).Object(t)["id_token"].(string))
	if amr := claims["amr"].([]any); claims["acr"] != "2" || len(amr) != 3 || amr[1] != "pop" {
		t.Errorf("got acr %v and amr %v, want password and key", claims["acr"], claims["amr"])
	}

	b.SendTo(b.Get("/logout"), "/logout")
	b.SignIn(c.Request("scope", "openid view-user"), rosa).Code(t, st) // the browser is trusted
	p = b.Authorize(c.Request("scope", "openid view-user", "acr_values", "2"))
	p.Shows(t, 200, "/login/step-up")
	p = usePasskey(t, b, p, "/login/step-up/key", key)
	claims = claimsOf(t, st.Redeem(t, c, p.Code(t, st)).Object(t)["id_token"].(string))
	if claims["acr"] != "2" {
		t.Errorf("after the step-up: got acr %v, want 2", claims["acr"])
	}

	away := st.NewBrowser(t)
	p = away.Send(away.Get("/login"), "email", rosa, "password", stacktest.Password)
	away.SendTo(p, "/login/factor", "code", codes[0]).Shows(t, 200, "/me")
}

// TestSecurityKeyChallengeIsOfOneForm sends answers to forms that their challenges were not made for,
// and an answer again. None signs in.
func TestSecurityKeyChallengeIsOfOneForm(t *testing.T) {
	st, key, _ := withKey(t)
	b, away := st.NewBrowser(t), st.NewBrowser(t)
	waits := func(b *stacktest.Browser) stacktest.Page {
		t.Helper()
		p := b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
		p.Shows(t, 200, "/login/factor")
		return p
	}
	p, q := waits(b), waits(away)
	// The cookie of the second step alone is of no use, nor is a form of another browser.
	stolen := away.SendTo(p, "/login/factor/key", "credential", string(key.Get(t, optionsOf(t, p))))
	stolen.Shows(t, 422, "/login/factor/key")
	stolen.Says(t, "That took too long, or was sent twice.")
	answer := string(key.Get(t, optionsOf(t, q)))
	fields := q.FormTo(t, "/login/factor/key").Fields
	fields.Set("credential", answer)
	away.Open(http.MethodPost, "/login/passkey", fields).Shows(t, 422, "/login/passkey")
	away.SendTo(q, "/login/factor/key", "credential", answer).Shows(t, 200, "/me")
	r := waits(st.NewBrowser(t))
	b.SendTo(r, "/login/factor/key", "credential", answer).Shows(t, 422, "/login/factor/key")
	p = b.SendTo(p, "/login/factor/key", "credential", "{")
	p.Shows(t, 422, "/login/factor/key")
	p.Says(t, "This security key could not be checked.")
	if b.Cookies()["gatehouse"] != "" {
		t.Error("got a session, want none")
	}
	evil := *key
	evil.Origin = "http://localhost:1"
	usePasskey(t, b, p, "/login/factor/key", &evil).Shows(t, 422, "/login/factor/key")
	b.Get("/login/factor/key").Shows(t, 200, "/login/factor")
	renewed := b.Once(http.MethodGet, "/login/factor/key", nil, "Accept", "application/json")
	if renewed.Status != 200 || !strings.Contains(renewed.Body, `"allowCredentials"`) {
		t.Errorf("got %d %s, want a new challenge", renewed.Status, renewed.Body)
	}
}

// TestSecurityKeyIsEnrolledForApp has a client that requires a second factor, and a person who chooses a
// security key.
func TestSecurityKeyIsEnrolledForApp(t *testing.T) {
	st := stacktest.NewIdentity(t, stacktest.Localhost)
	st.NewUser(t, "Rosa", rosa)
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.RequireSecondFactor = true })
	b := st.NewBrowser(t)
	p := b.SignIn(c.Request(), rosa)
	p.Shows(t, 200, "/me/factors/app")
	link := regexp.MustCompile(`<a href="(/me/factors/key[^"]*)">`).FindStringSubmatch(p.Body)
	if link == nil {
		t.Fatalf("got %s, want a link to a security key", p.Body)
	}
	key := passkeytest.New(t, st.URL)
	p = b.Get(html.UnescapeString(link[1]))
	p.Says(t, "To continue, you need two-step sign-in.", "Use an authenticator app instead")
	wrong := b.SendTo(p, "/me/factors/key", "current_password", "not-the-password",
		"credential", string(key.Create(t, optionsOf(t, p))))
	wrong.Shows(t, 422, "/me/factors/key")
	wrong.Says(t, "This is not your password.")
	p = addKey(t, b, b.Get(html.UnescapeString(link[1])), key)
	next := regexp.MustCompile(`class="button" href="(/oauth/authorize[^"]+)"`).FindStringSubmatch(p.Body)
	if next == nil {
		t.Fatalf("got %s, want a link that goes on", p.Body)
	}
	b.Get(html.UnescapeString(next[1])).Shows(t, 200, "/consent")

	// A change of how the person signs in asks for the key once ten minutes are over.
	past := strconv.FormatInt(time.Now().Add(-account.ProofLifetime).UnixMilli(), 10)
	if n := st.Alter(t, "UPDATE sessions SET factored = "+past); n != 1 {
		t.Fatalf("got %d sessions, want one", n)
	}
	b.Get("/me/passkeys").Says(t, "second factor only")
	p = b.Get("/me/passkeys/add")
	p.Shows(t, 200, "/me/confirm/factor")
	p = usePasskey(t, b, p, "/me/confirm/factor/key", key)
	p.Shows(t, 200, "/me/confirm")
	p = b.SendTo(p, "/me/confirm", "current_password", stacktest.Password)
	p.Shows(t, 200, "/me/passkeys/add")
	p = b.Get("/me/passkeys")
	p = b.SendTo(p, "/me/passkeys", "do", "remove")
	p.Says(t, "All other sessions have ended.")
	fresh := st.NewBrowser(t)
	fresh.Send(fresh.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
}

// TestNothingToAskTheBrowserFor has scripts ask for challenges of accounts without keys.
func TestNothingToAskTheBrowserFor(t *testing.T) {
	st := stacktest.NewIdentity(t, stacktest.Localhost)
	st.NewUser(t, "Rosa", rosa)
	b, _ := st.SignedIn(t, rosa)
	for _, path := range []string{"/me/confirm/passkey?for=email", "/me/confirm/factor/key?for=email",
		"/login/step-up/key", "/login/factor/key"} {
		p := b.Once(http.MethodGet, path, nil, "Accept", "application/json")
		if p.Status != 404 && p.Status != 302 {
			t.Errorf("%s: got %d %s, want 404 or a redirect", path, p.Status, p.Body)
		}
	}
}
