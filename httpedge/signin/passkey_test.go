package signin_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/people/passkeytest"
	"gatehouse/cmd/stack/stacktest"
)

var optionsPattern = regexp.MustCompile(`data-options="([^"]*)"`)

// optionsOf returns the options of WebAuthn on a page.
func optionsOf(t *testing.T, p stacktest.Page) []byte {
	t.Helper()
	found := optionsPattern.FindStringSubmatch(p.Body)
	if found == nil {
		t.Fatalf("got %d at %s without a passkey: %s", p.Status, p.Path, p.Body)
	}
	return []byte(html.UnescapeString(found[1]))
}

// usePasskey sends the form of a passkey on a page.
func usePasskey(t *testing.T, b *stacktest.Browser, p stacktest.Page, path string, key *passkeytest.Key) stacktest.Page {
	t.Helper()
	return b.SendTo(p, path, "credential", string(key.Get(t, optionsOf(t, p))))
}

// addPasskey adds a passkey from the page of the signed-in account.
func addPasskey(t *testing.T, b *stacktest.Browser, key *passkeytest.Key) stacktest.Page {
	t.Helper()
	p := b.Get("/me/passkeys/add")
	if strings.HasPrefix(p.Path, "/me/confirm") {
		p = b.SendTo(p, "/me/confirm", "current_password", stacktest.Password)
	}
	p.Shows(t, 200, "/me/passkeys/add")
	return b.SendTo(p, "/me/passkeys/add", "name", "My phone", "credential", string(key.Create(t, optionsOf(t, p))))
}

// TestPasskeyFromAccountToApp adds a passkey, and signs in by it for a client: the id_token says that
// two factors were used.
func TestPasskeyFromAccountToApp(t *testing.T) {
	st := stacktest.NewReachable(t, stacktest.Localhost)
	c := st.NewOpenIDClient(t, nil)
	rosaID := st.NewUser(t, "Rosa", rosa).ID
	b := st.NewBrowser(t)
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	key := passkeytest.New(t, st.URL)
	p := addPasskey(t, b, key)
	p.Shows(t, 200, "/me/passkeys")
	p.Says(t, "The passkey was added.")
	p.Says(t, "My phone")
	if policy := p.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'sha256-") ||
		strings.Contains(policy, "unsafe") {
		t.Errorf("got the policy %s, want one script by its hash", policy)
	}

	other := st.NewBrowser(t)
	p = other.Authorize(c.Request("scope", "openid", "acr_values", "2", "nonce", "n"))
	p.Shows(t, 200, "/login")
	var o struct {
		RPID             string `json:"rpId"`
		UserVerification string `json:"userVerification"`
		Allow            []any  `json:"allowCredentials"`
	}
	if err := json.Unmarshal(optionsOf(t, p), &o); err != nil || o.RPID != "localhost" ||
		o.UserVerification != "required" || o.Allow != nil {
		t.Errorf("got the options %+v, %v, want discoverable ones for localhost", o, err)
	}
	if !strings.Contains(p.Body, `autocomplete="username webauthn"`) {
		t.Error("got no autofill of passkeys")
	}
	login := p
	p = usePasskey(t, other, login, "/login/passkey", key)
	p.Shows(t, 200, "/consent")
	code := other.Send(p, "decision", "allow").Code(t, st.IdentityStack)
	idToken, _ := st.Redeem(t, c, code).Object(t)["id_token"].(string)
	var said struct {
		ACR     string   `json:"acr"`
		AMR     []string `json:"amr"`
		Subject string   `json:"sub"`
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(idToken+"..", ".")[1])
	if err != nil || json.Unmarshal(claims, &said) != nil {
		t.Fatalf("got the id_token %q", idToken)
	}
	if said.ACR != "2" || strings.Join(said.AMR, " ") != "pop user mfa" ||
		said.Subject != strconv.FormatInt(rosaID, 10) {
		t.Errorf("got %+v, want acr 2 by a passkey of Rosa", said)
	}

	// It is too young to prove a change by: the password does, and a code before a second factor.
	other.Get("/me/password").Shows(t, 200, "/me/password")
	p = other.Get("/me/factors/app")
	p.Shows(t, 200, "/me/confirm")
	p.Says(t, "we first send a code")
	p = other.Send(p, "channel", "email")
	other.Send(p, "code", st.Mail.Next(t, rosa).Code).Shows(t, 200, "/me/factors/app")

	// What was sent is of no use again: neither the answer nor the challenge, in no browser.
	credential := string(key.Get(t, optionsOf(t, login)))
	for _, who := range []*stacktest.Browser{other, st.NewBrowser(t)} {
		p = who.SendTo(login, "/login/passkey", "credential", credential)
		p.Shows(t, 422, "/login/passkey")
		p.Says(t, "That took too long, or was sent twice.")
	}
}

// TestPasskeyChallengeIsOfOneForm sends challenges to forms that they were not made for.
func TestPasskeyChallengeIsOfOneForm(t *testing.T) {
	st := stacktest.NewReachable(t, stacktest.Localhost)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	key := passkeytest.New(t, st.URL)
	addPasskey(t, b, key).Shows(t, 200, "/me/passkeys")

	fresh := st.NewBrowser(t)
	c := st.NewClient(t, nil)
	login := fresh.Get("/login")
	form := login.FormTo(t, "/login/passkey").With("credential", string(key.Get(t, optionsOf(t, login))))
	p := fresh.Open("POST", "/login/passkey?"+c.Request().Encode(), form)
	p.Shows(t, 422, "/login/passkey") // of another request
	p = b.Open("POST", "/me/confirm/passkey?for=email", form)
	p.Shows(t, 422, "/me/confirm/passkey") // of another purpose and browser
	p = fresh.Open("POST", "/login/passkey", form, "Sec-Fetch-Site", "cross-site")
	p.Shows(t, 403, "/login/passkey")
	p = fresh.Open("POST", "/login/passkey", form)
	p.Shows(t, 200, "/me")
}

// TestPasskeyProvesAndRenews changes a password after a sign-in by passkey, which proves who it is, and
// reads a new challenge as the script does.
func TestPasskeyProvesAndRenews(t *testing.T) {
	st := stacktest.NewReachable(t, stacktest.Localhost)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	key := passkeytest.New(t, st.URL)
	addPasskey(t, b, key).Shows(t, 200, "/me/passkeys")
	u, err := st.Store.UserByEmail(t.Context(), rosa)
	stacktest.Must(t, err)
	u.Credentials.Passkeys[0].Created = time.Now().Add(-25 * time.Hour)
	stacktest.Must(t, st.Store.UpdateUser(t.Context(), u))

	b = st.NewBrowser(t)
	login := b.Get("/login")
	var next struct {
		Challenge string          `json:"challenge"`
		Options   json.RawMessage `json:"options"`
	}
	p := b.Open("GET", "/login/passkey", nil, "Accept", "application/json")
	if err := json.Unmarshal([]byte(p.Body), &next); err != nil || p.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %s, %v, want a challenge that nobody keeps", p.Status, p.Body, err)
	}
	b.SendTo(login, "/login/passkey", "challenge", next.Challenge,
		"credential", string(key.Get(t, next.Options))).Shows(t, 200, "/me")
	p = b.Get("/me/email")
	p.Shows(t, 200, "/me/confirm")
	p = usePasskey(t, b, p, "/me/confirm/passkey", key)
	p.Shows(t, 200, "/me/email")
	if strings.Contains(p.Body, "current_password") {
		t.Error("got a field for the password after a passkey, want none")
	}
	p = b.Get("/me/passkeys")
	p = b.SendTo(p, "/me/passkeys", "do", "rename", "name", "Tablet")
	p.Says(t, "The passkey was renamed.")
	p.Says(t, "Tablet")
	p = b.SendTo(p, "/me/passkeys", "do", "remove")
	p.Says(t, "You have no passkey yet.")
	if !strings.Contains(html.UnescapeString(p.Body), "signalUnknownCredential") {
		t.Error("got no signal to the browser about the removed passkey")
	}
	fresh := st.NewBrowser(t)
	p = usePasskey(t, fresh, fresh.Get("/login"), "/login/passkey", key)
	p.Shows(t, 422, "/login/passkey")
	p.Says(t, "No account here has this passkey.")
	if !strings.Contains(html.UnescapeString(p.Body), "signalUnknownCredential") {
		t.Error("got no signal to the browser about the unknown passkey")
	}
}

// TestPasskeyOfferAfterPassword offers a passkey to a browser that has them, on the way to a client.
func TestPasskeyOfferAfterPassword(t *testing.T) {
	st := stacktest.NewReachable(t, stacktest.Localhost)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", kofi)
	b := st.NewBrowser(t)
	b.Send(b.Authorize(c.Request()), "email", kofi, "password", stacktest.Password).Shows(t, 200, "/consent")
	b = st.NewBrowser(t)
	p := b.Send(b.Authorize(c.Request()), "email", rosa, "password", stacktest.Password, "passkeys", "1")
	p.Shows(t, 200, "/login/passkey/offer")
	p.Says(t, "Next time without a password")
	key := passkeytest.New(t, st.URL)
	wrong := passkeytest.New(t, "https://evil.example")
	again := b.SendTo(p, "/login/passkey/offer", "credential", string(wrong.Create(t, optionsOf(t, p))))
	again.Shows(t, 422, "/login/passkey/offer")
	p = b.SendTo(again, "/login/passkey/offer", "credential", string(key.Create(t, optionsOf(t, again))))
	p.Shows(t, 200, "/consent")
	b.Send(p, "decision", "allow").Code(t, st.IdentityStack)
	other := st.NewBrowser(t)
	usePasskey(t, other, other.Get("/login"), "/login/passkey", key).Shows(t, 200, "/me")
	last := st.NewBrowser(t)
	last.Send(last.Get("/login"), "email", rosa, "password", stacktest.Password, "passkeys", "1").Shows(t, 200, "/me")
}

// TestNoPasskeysForAddresses has an issuer whose host is an IP address.
func TestNoPasskeysForAddresses(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	if p := b.Get("/login"); strings.Contains(p.Body, "passkey") {
		t.Errorf("got %s, want no passkeys", p.Body)
	}
	for _, path := range []string{"/login/passkey", "/login/passkey/offer", "/me/passkeys", "/me/passkeys/add"} {
		b.Get(path).Shows(t, 404, path)
	}
}

func TestPasskeysOfDisabledAccount(t *testing.T) {
	st := stacktest.NewReachable(t, stacktest.Localhost)
	u := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	key := passkeytest.New(t, st.URL)
	addPasskey(t, b, key).Shows(t, 200, "/me/passkeys")
	stacktest.Must(t, st.People.DisableUser(t.Context(), u.ID, time.Now()))
	fresh := st.NewBrowser(t)
	p := usePasskey(t, fresh, fresh.Get("/login"), "/login/passkey", key)
	p.Shows(t, 403, "/login/passkey")
	p.Says(t, "Nobody can sign in to it at the moment.")
}
