package httpedge_test

import (
	"context"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// newDeviceClient registers a public client for device codes.
func newDeviceClient(t *testing.T, st *stacktest.IdentityStack,
	changes ...func(*oauth.Client)) stacktest.Client {
	t.Helper()
	return st.NewClient(t, func(c *oauth.Client) {
		c.Name, c.Public, c.RedirectURIs = "Screen", true, nil
		c.Grants = oauth.DeviceCodeGrant | oauth.RefreshTokenGrant
		for _, change := range changes {
			change(c)
		}
	})
}

// asDevice requests a device code.
func asDevice(t *testing.T, st *stacktest.IdentityStack, form url.Values,
	headers ...string) response {
	t.Helper()
	return send(t, st.Stack, "POST", st.URL+"/oauth/device_authorization", form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// beginDevice requests a device code and returns it with its user code.
func beginDevice(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client,
	scope string) (code, userCode string) {
	t.Helper()
	a := asDevice(t, st, query("client_id", c.ID, "client_secret", c.Secret, "scope", scope))
	if a.status != 200 {
		t.Fatalf("got %d %s, want a device code", a.status, a.body)
	}
	o := a.object(t)
	return o["device_code"].(string), o["user_code"].(string)
}

// poll asks for the tokens of a device.
func poll(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client, code string) response {
	t.Helper()
	return postToken(t, st, query("grant_type", deviceGrant, "device_code", code,
		"client_id", c.ID, "client_secret", c.Secret))
}

// atDevice opens the page for devices and signs in.
func (b *browser) atDevice(path, email string) page {
	b.t.Helper()
	login := b.get(path)
	login.shows(b.t, 200, "/login")
	return b.send(login, "email", email, "password", stacktest.Password)
}

func TestDeviceAuthorization(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	a := asDevice(t, st, query("client_id", c.ID, "scope", "view-user"))
	a.has(t, "Cache-Control", "no-store")
	o := a.object(t)
	userCode, _ := o["user_code"].(string)
	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(userCode) {
		t.Errorf("got user code %q, want 8 letters without vowels and a dash", userCode)
	}
	if a.status != 200 || o["verification_uri"] != st.URL+"/device" ||
		o["verification_uri_complete"] != st.URL+"/device?user_code="+userCode ||
		o["expires_in"] != 600.0 || o["interval"] != 5.0 {
		t.Errorf("got %d %s, want a device code for 600 s", a.status, a.body)
	}
	confidential := newDeviceClient(t, st, func(c *oauth.Client) { c.Public = false })
	if a := asDevice(t, st, query("scope", "view-user"), "Authorization",
		basic(confidential.ID, confidential.Secret)); a.status != 200 {
		t.Errorf("got %d %s with HTTP Basic, want 200", a.status, a.body)
	}
	plain := st.NewClient(t, nil)
	for _, row := range []struct {
		form   url.Values
		status int
		code   string
	}{
		{query("client_id", c.ID, "scope", "detail-user server-operations"), 400, "invalid_scope"},
		{query("client_id", c.ID, "scope", "nonsense"), 400, "invalid_scope"},
		{query("client_id", "nobody"), 401, "invalid_client"},
		{query("client_id", c.ID, "client_secret", "x"), 401, "invalid_client"},
		{query("client_id", confidential.ID), 401, "invalid_client"},
		{query("client_id", confidential.ID, "client_secret", "x"), 401, "invalid_client"},
		{query("client_id", plain.ID, "client_secret", plain.Secret), 400, "unauthorized_client"},
		{query("scope", "view-user"), 400, "invalid_request"},
		{url.Values{"client_id": {c.ID}, "scope": {"view-user", "view-user"}}, 400, "invalid_request"},
	} {
		asDevice(t, st, row.form).failsAs(t, row.status, row.code)
	}
	if a := get(t, st.Stack, "/oauth/device_authorization"); a.status != 405 {
		t.Errorf("got %d for GET, want 405", a.status)
	}
}

// TestDeviceSignsIn runs the device flow of golang.org/x/oauth2 as it is.
func TestDeviceSignsIn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, st.Client)
	config := oauth2.Config{ClientID: c.ID, Scopes: []string{"view-user"},
		Endpoint: oauth2.Endpoint{DeviceAuthURL: st.URL + "/oauth/device_authorization",
			TokenURL: st.URL + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams}}
	device, err := config.DeviceAuth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *oauth2.Token, 1)
	go func() {
		token, err := config.DeviceAccessToken(ctx, device)
		if err != nil {
			t.Error(err)
		}
		got <- token
	}()
	b := newBrowser(t, st)
	complete, err := url.Parse(device.VerificationURIComplete)
	if err != nil {
		t.Fatal(err)
	}
	enter := b.atDevice(complete.RequestURI(), rosa)
	enter.shows(t, 200, "/device")
	if _, fields := enter.form(t); fields.Get("user_code") != device.UserCode {
		t.Errorf("got user code %q in the form, want %q", fields.Get("user_code"), device.UserCode)
	}
	ask := b.send(enter)
	for _, text := range []string{"Screen", "Compare the code", device.UserCode, "see your name"} {
		if !strings.Contains(ask.body, text) {
			t.Errorf("got %s, want %q in it", ask.body, text)
		}
	}
	done := b.send(ask, "decision", "allow")
	if !strings.Contains(done.body, "Return to your device") {
		t.Errorf("got %d %s, want it done", done.status, done.body)
	}
	token := <-got
	if token == nil || token.RefreshToken == "" {
		t.Fatal("got no tokens, want an access token and a refresh token")
	}
	a := get(t, st.Stack, "/api/user", "Authorization", "Bearer "+token.AccessToken)
	if a.status != 200 || a.object(t)["email"] != rosa {
		t.Errorf("got %d %s, want Rosa's profile", a.status, a.body)
	}
	token.Expiry = time.Now().Add(-time.Minute)
	refreshed, err := config.TokenSource(ctx, token).Token()
	if err != nil || refreshed.AccessToken == token.AccessToken {
		t.Fatalf("got %v, want a refreshed token", err)
	}
	// A used code ends what it got.
	poll(t, st, c, device.DeviceCode).failsAs(t, 400, "invalid_grant")
	if a := get(t, st.Stack, "/api/user", "Authorization",
		"Bearer "+refreshed.AccessToken); a.status != 401 {
		t.Errorf("got %d after a replay of the code, want 401", a.status)
	}
}

func TestDeviceConsentIsAskedEachTimeAndCanBeWithdrawn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	var token string
	for i := range 2 {
		code, userCode := beginDevice(t, st, c, "view-user")
		var enter page
		if i == 0 {
			enter = b.atDevice("/device", rosa)
		} else {
			enter = b.get("/device")
		}
		entered := strings.ToLower(strings.ReplaceAll(userCode, "-", ""))
		ask := b.send(enter, "user_code", entered)
		if !strings.Contains(ask.body, "Compare the code") {
			t.Fatalf("got %s, want a page that asks", ask.body)
		}
		b.send(ask, "decision", "allow")
		a := poll(t, st, c, code)
		if a.status != 200 || a.object(t)["scope"] != nil {
			t.Fatalf("got %d %s, want tokens", a.status, a.body)
		}
		token = a.object(t)["access_token"].(string)
	}
	apps := b.get("/me/apps")
	if !strings.Contains(apps.body, "Screen") || !strings.Contains(apps.body, "see your name") {
		t.Errorf("got %s, want the app with its permissions", apps.body)
	}
	b.send(apps, "client_id", c.ID)
	if a := get(t, st.Stack, "/api/user", "Authorization", "Bearer "+token); a.status != 401 {
		t.Errorf("got %d after the app was removed, want 401", a.status)
	}
}

func TestDevicePolls(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	other := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	code, userCode := beginDevice(t, st, c, "view-user")
	poll(t, st, c, code).failsAs(t, 400, "authorization_pending")
	poll(t, st, c, code).failsAs(t, 400, "slow_down")
	poll(t, st, c, "x").failsAs(t, 400, "invalid_grant")
	poll(t, st, c, oauth.NewDeviceCode()).failsAs(t, 400, "invalid_grant")
	poll(t, st, c, "").failsAs(t, 400, "invalid_request")
	poll(t, st, other, code).failsAs(t, 400, "invalid_grant")
	ask := b.send(b.atDevice("/device", rosa), "user_code", userCode)
	denied := b.send(ask, "decision", "deny")
	if !strings.Contains(denied.body, "cannot use your account") {
		t.Errorf("got %s, want it denied", denied.body)
	}
	poll(t, st, c, code).failsAs(t, 400, "access_denied")
	if again := b.send(ask, "decision", "allow"); again.status != 422 {
		t.Errorf("got %d for a second decision, want 422", again.status)
	}
	poll(t, st, c, code).failsAs(t, 400, "access_denied")

	code, userCode = beginDevice(t, st, c, "view-user")
	st.Alter(t, "UPDATE device_codes SET expires = 1000 WHERE decision = 0")
	poll(t, st, c, code).failsAs(t, 400, "expired_token")
	if a := b.send(b.get("/device"), "user_code", userCode); a.status != 422 {
		t.Errorf("got %d for an expired code, want 422", a.status)
	}

	// What was allowed can be revoked before the device has got it.
	code, userCode = beginDevice(t, st, c, "view-user")
	b.send(b.send(b.get("/device"), "user_code", userCode), "decision", "allow")
	b.send(b.get("/me/apps"), "client_id", c.ID)
	poll(t, st, c, code).failsAs(t, 400, "invalid_grant")
}

// TestDeviceGrantOfOthers checks that a client without the grant sees what it saw before.
func TestDeviceGrantOfOthers(t *testing.T) {
	st := stacktest.NewIdentity(t)
	plain := st.NewClient(t, nil)
	for _, pair := range [][2]string{{plain.ID, plain.Secret}, {plain.ID, "wrong"}, {"nobody", "x"}} {
		a := postToken(t, st, query("grant_type", deviceGrant, "device_code", "x", "client_id",
			pair[0], "client_secret", pair[1]))
		b := postToken(t, st, query("grant_type", "nonsense"))
		if a.status != 400 || a.body != b.body {
			t.Errorf("got %d %s, want 400 %s", a.status, a.body, b.body)
		}
	}
	document := func() map[string]any {
		return get(t, st.Stack, "/.well-known/oauth-authorization-server").object(t)
	}
	if o := document(); o["device_authorization_endpoint"] != nil {
		t.Errorf("got %v, want no device authorization endpoint", o)
	}
}

// TestMetadataNamesDeviceEndpoint registers the first client of a device soon after a program has
// read the metadata.
func TestMetadataNamesDeviceEndpoint(t *testing.T) {
	st := stacktest.NewIdentity(t)
	document := func() map[string]any {
		return get(t, st.Stack, "/.well-known/oauth-authorization-server").object(t)
	}
	document()
	newDeviceClient(t, st)
	o := document()
	for begin := time.Now(); o["device_authorization_endpoint"] == nil; o = document() {
		if time.Since(begin) > 30*time.Second { // metadata that is complete is kept for a minute
			t.Fatal("got no device authorization endpoint, want one soon")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if o["device_authorization_endpoint"] != st.URL+"/oauth/device_authorization" {
		t.Errorf("got %v, want the device authorization endpoint", o)
	}
	if grants, _ := o["grant_types_supported"].([]any); len(grants) != 4 || grants[3] != deviceGrant {
		t.Errorf("got grants %v, want that of devices too", grants)
	}
}

// TestGuessedUserCodes guesses until a limit is reached. It is that of the account, and nobody else
// meets it.
func TestGuessedUserCodes(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", "kofi@example.com")
	attacker, owner := newBrowser(t, st), newBrowser(t, st)
	enter := attacker.atDevice("/device", rosa)
	wrong := 0
	for range 20 {
		p := attacker.send(enter, "user_code", "bcdf ghjk")
		if p.status == 429 {
			if p.header.Get("Retry-After") == "" {
				t.Error("got no Retry-After, want one")
			}
			break
		}
		if p.status != 422 || !strings.Contains(p.body, "This code is not valid") {
			t.Fatalf("got %d %s, want 422", p.status, p.body)
		}
		wrong++
	}
	if wrong < 10 || wrong > 11 {
		t.Errorf("got %d guesses, want 10", wrong)
	}
	_, userCode := beginDevice(t, st, c, "view-user")
	if p := attacker.send(enter, "user_code", userCode); p.status != 429 {
		t.Errorf("got %d for a right code after the limit, want 429", p.status)
	}
	fresh := newBrowser(t, st) // of the same account
	if p := fresh.send(fresh.atDevice("/device", rosa), "user_code", userCode); p.status != 429 {
		t.Errorf("got %d in another browser of the account, want 429", p.status)
	}
	if p := owner.send(owner.atDevice("/device", "kofi@example.com"), "user_code",
		userCode); !strings.Contains(p.body, "Compare the code") {
		t.Errorf("got %d %s for another person, want the page that asks", p.status, p.body)
	}
}

// TestDeviceCodesAreBounded requests device codes until the caller's limit.
func TestDeviceCodesAreBounded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	issued := 0
	for range 60 {
		a := asDevice(t, st, query("client_id", c.ID, "scope", "view-user"))
		if a.status == 429 {
			a.failsAs(t, 429, "temporarily_unavailable")
			break
		}
		issued++
	}
	if issued < 20 || issued > 25 {
		t.Errorf("got %d device codes, want 20", issued)
	}
	// A confidential client asks for many devices from one address.
	backend := newDeviceClient(t, st, func(c *oauth.Client) { c.Public = false })
	for range 30 {
		beginDevice(t, st, backend, "view-user")
	}
}

// TestDevicePageKeepsForeignFormsOut sends forms of another account, page or browser.
func TestDevicePageKeepsForeignFormsOut(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", "kofi@example.com")
	b, other := newBrowser(t, st), newBrowser(t, st)
	code, userCode := beginDevice(t, st, c, "view-user")
	_, userCode2 := beginDevice(t, st, c, "view-user")
	ask := b.send(b.atDevice("/device", rosa), "user_code", userCode)
	_, fields := ask.form(t)
	if p := b.send(ask, "user_code", userCode2, "decision", "allow"); p.status != 403 {
		t.Errorf("got %d for another code, want 403", p.status)
	}
	other.atDevice("/device", "kofi@example.com")
	fields.Set("decision", "allow")
	if p := other.open("POST", "/device", fields); p.status != 403 {
		t.Errorf("got %d in another browser, want 403", p.status)
	}
	if p := b.open("POST", "/device", fields, "Sec-Fetch-Site", "cross-site"); p.status != 403 {
		t.Errorf("got %d for a form of another site, want 403", p.status)
	}
	if p := b.send(ask, "decision", "maybe"); p.status != 422 {
		t.Errorf("got %d without a decision, want 422", p.status)
	}
	poll(t, st, c, code).failsAs(t, 400, "authorization_pending")
	if p := b.send(ask, "decision", "allow"); p.status != 200 {
		t.Errorf("got %d, want it allowed", p.status)
	}
	if a := poll(t, st, c, code); a.status != 200 {
		t.Errorf("got %d %s, want tokens", a.status, a.body)
	}
}

func TestDeviceDecisionsAreRecorded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	u := st.NewUser(t, "Rosa", rosa)
	b := newBrowser(t, st)
	enter := b.atDevice("/device", rosa)
	for decision, action := range map[string]audit.Action{
		"allow": audit.DeviceAllowed, "deny": audit.DeviceDenied,
	} {
		_, userCode := beginDevice(t, st, c, "view-user")
		b.send(b.send(enter, "user_code", userCode), "decision", decision)
		events, err := st.Store.Events(t.Context(), audit.Filter{Action: action, Limit: 9})
		if err != nil || len(events) != 1 || events[0].Subject != audit.OfUser(u.ID) ||
			events[0].Target != c.ID || events[0].Actor.ID != strconv.FormatInt(u.ID, 10) {
			t.Errorf("%s: got %+v and error %v, want one event of Rosa", decision, events, err)
		}
	}
}
