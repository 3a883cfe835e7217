package signin_test

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
	headers ...string) stacktest.Response {
	t.Helper()
	return st.Send(t, "POST", st.URL+"/oauth/device_authorization", form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// beginDevice requests a device code and returns it with its user code.
func beginDevice(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client,
	scope string) (code, userCode string) {
	t.Helper()
	a := asDevice(t, st, stacktest.Values("client_id", c.ID, "client_secret", c.Secret, "scope",
		scope))
	if a.Status != 200 {
		t.Fatalf("got %d %s, want a device code", a.Status, a.Body)
	}
	o := a.Object(t)
	return o["device_code"].(string), o["user_code"].(string)
}

// poll asks for the tokens of a device.
func poll(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client,
	code string) stacktest.Response {
	t.Helper()
	return st.PostToken(t, stacktest.Values("grant_type", deviceGrant, "device_code", code,
		"client_id", c.ID, "client_secret", c.Secret))
}

// atDevice opens the page for devices and signs in.
func atDevice(b *stacktest.Browser, path, email string) stacktest.Page {
	b.T.Helper()
	login := b.Get(path)
	login.Shows(b.T, 200, "/login")
	return b.Send(login, "email", email, "password", stacktest.Password)
}

func TestDeviceAuthorization(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	a := asDevice(t, st, stacktest.Values("client_id", c.ID, "scope", "view-user"))
	a.Has(t, "Cache-Control", "no-store")
	o := a.Object(t)
	userCode, _ := o["user_code"].(string)
	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(userCode) {
		t.Errorf("got user code %q, want 8 letters without vowels and a dash", userCode)
	}
	if a.Status != 200 || o["verification_uri"] != st.URL+"/device" ||
		o["verification_uri_complete"] != st.URL+"/device?user_code="+userCode ||
		o["expires_in"] != 600.0 || o["interval"] != 5.0 {
		t.Errorf("got %d %s, want a device code for 600 s", a.Status, a.Body)
	}
	confidential := newDeviceClient(t, st, func(c *oauth.Client) { c.Public = false })
	if a := asDevice(t, st, stacktest.Values("scope", "view-user"), "Authorization",
		stacktest.Basic(confidential.ID, confidential.Secret)); a.Status != 200 {
		t.Errorf("got %d %s with HTTP Basic, want 200", a.Status, a.Body)
	}
	plain := st.NewClient(t, nil)
	for _, row := range []struct {
		form   url.Values
		status int
		code   string
	}{
		{stacktest.Values("client_id", c.ID, "scope", "detail-user server-operations"), 400,
			"invalid_scope"},
		{stacktest.Values("client_id", c.ID, "scope", "nonsense"), 400, "invalid_scope"},
		{stacktest.Values("client_id", "nobody"), 401, "invalid_client"},
		{stacktest.Values("client_id", c.ID, "client_secret", "x"), 401, "invalid_client"},
		{stacktest.Values("client_id", confidential.ID), 401, "invalid_client"},
		{stacktest.Values("client_id", confidential.ID, "client_secret", "x"), 401,
			"invalid_client"},
		{stacktest.Values("client_id", plain.ID, "client_secret", plain.Secret), 400,
			"unauthorized_client"}, {stacktest.Values("scope", "view-user"), 400, "invalid_request"},
		{url.Values{"client_id": {c.ID}, "scope": {"view-user", "view-user"}}, 400, "invalid_request"},
	} {
		asDevice(t, st, row.form).FailsAs(t, row.status, row.code)
	}
	if a := st.Get(t, "/oauth/device_authorization"); a.Status != 405 {
		t.Errorf("got %d for GET, want 405", a.Status)
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
	stacktest.Must(t, err)
	got := make(chan *oauth2.Token, 1)
	go func() {
		token, err := config.DeviceAccessToken(ctx, device)
		if err != nil {
			t.Error(err)
		}
		got <- token
	}()
	b := st.NewBrowser(t)
	complete, err := url.Parse(device.VerificationURIComplete)
	stacktest.Must(t, err)
	enter := atDevice(b, complete.RequestURI(), rosa)
	enter.Shows(t, 200, "/device")
	if _, fields := enter.Form(t); fields.Get("user_code") != device.UserCode {
		t.Errorf("got user code %q in the form, want %q", fields.Get("user_code"), device.UserCode)
	}
	ask := b.Send(enter)
	for _, text := range []string{"Screen", "Compare the code", device.UserCode, "see your name"} {
		if !strings.Contains(ask.Body, text) {
			t.Errorf("got %s, want %q in it", ask.Body, text)
		}
	}
	done := b.Send(ask, "decision", "allow")
	if !strings.Contains(done.Body, "Return to your device") {
		t.Errorf("got %d %s, want it done", done.Status, done.Body)
	}
	token := <-got
	if token == nil || token.RefreshToken == "" {
		t.Fatal("got no tokens, want an access token and a refresh token")
	}
	a := st.Get(t, "/api/user", "Authorization", "Bearer "+token.AccessToken)
	if a.Status != 200 || a.Object(t)["email"] != rosa {
		t.Errorf("got %d %s, want Rosa's profile", a.Status, a.Body)
	}
	token.Expiry = time.Now().Add(-time.Minute)
	refreshed, err := config.TokenSource(ctx, token).Token()
	if err != nil || refreshed.AccessToken == token.AccessToken {
		t.Fatalf("got %v, want a refreshed token", err)
	}
	// A used code ends what it got.
	poll(t, st, c, device.DeviceCode).FailsAs(t, 400, "invalid_grant")
	if a := st.Get(t, "/api/user", "Authorization",
		"Bearer "+refreshed.AccessToken); a.Status != 401 {
		t.Errorf("got %d after a replay of the code, want 401", a.Status)
	}
}

func TestDeviceConsentIsAskedEachTimeAndCanBeWithdrawn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	var token string
	for i := range 2 {
		code, userCode := beginDevice(t, st, c, "view-user")
		var enter stacktest.Page
		if i == 0 {
			enter = atDevice(b, "/device", rosa)
		} else {
			enter = b.Get("/device")
		}
		entered := strings.ToLower(strings.ReplaceAll(userCode, "-", ""))
		ask := b.Send(enter, "user_code", entered)
		if !strings.Contains(ask.Body, "Compare the code") {
			t.Fatalf("got %s, want a page that asks", ask.Body)
		}
		b.Send(ask, "decision", "allow")
		a := poll(t, st, c, code)
		if a.Status != 200 || a.Object(t)["scope"] != nil {
			t.Fatalf("got %d %s, want tokens", a.Status, a.Body)
		}
		token = a.Object(t)["access_token"].(string)
	}
	apps := b.Get("/me/apps")
	if !strings.Contains(apps.Body, "Screen") || !strings.Contains(apps.Body, "see your name") {
		t.Errorf("got %s, want the app with its permissions", apps.Body)
	}
	b.Send(apps, "client_id", c.ID)
	if a := st.Get(t, "/api/user", "Authorization", "Bearer "+token); a.Status != 401 {
		t.Errorf("got %d after the app was removed, want 401", a.Status)
	}
}

func TestDevicePolls(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	other := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	code, userCode := beginDevice(t, st, c, "view-user")
	poll(t, st, c, code).FailsAs(t, 400, "authorization_pending")
	poll(t, st, c, code).FailsAs(t, 400, "slow_down")
	poll(t, st, c, "x").FailsAs(t, 400, "invalid_grant")
	poll(t, st, c, oauth.NewDeviceCode()).FailsAs(t, 400, "invalid_grant")
	poll(t, st, c, "").FailsAs(t, 400, "invalid_request")
	poll(t, st, other, code).FailsAs(t, 400, "invalid_grant")
	ask := b.Send(atDevice(b, "/device", rosa), "user_code", userCode)
	denied := b.Send(ask, "decision", "deny")
	if !strings.Contains(denied.Body, "cannot use your account") {
		t.Errorf("got %s, want it denied", denied.Body)
	}
	poll(t, st, c, code).FailsAs(t, 400, "access_denied")
	if again := b.Send(ask, "decision", "allow"); again.Status != 422 {
		t.Errorf("got %d for a second decision, want 422", again.Status)
	}
	poll(t, st, c, code).FailsAs(t, 400, "access_denied")

	code, userCode = beginDevice(t, st, c, "view-user")
	st.Alter(t, "UPDATE device_codes SET expires = 1000 WHERE decision = 0")
	poll(t, st, c, code).FailsAs(t, 400, "expired_token")
	if a := b.Send(b.Get("/device"), "user_code", userCode); a.Status != 422 {
		t.Errorf("got %d for an expired code, want 422", a.Status)
	}

	// What was allowed can be revoked before the device has got it.
	code, userCode = beginDevice(t, st, c, "view-user")
	b.Send(b.Send(b.Get("/device"), "user_code", userCode), "decision", "allow")
	b.Send(b.Get("/me/apps"), "client_id", c.ID)
	poll(t, st, c, code).FailsAs(t, 400, "invalid_grant")
	if a, b := poll(t, st, other, code), poll(t, st, other, oauth.NewDeviceCode()); a.Body != b.Body {
		t.Errorf("got %s for another client, want what an unknown code gets: %s", a.Body, b.Body)
	}
}

// TestDeviceGrantOfOthers checks that a client without the grant sees what it saw before.
func TestDeviceGrantOfOthers(t *testing.T) {
	st := stacktest.NewIdentity(t)
	plain := st.NewClient(t, nil)
	for _, pair := range [][2]string{{plain.ID, plain.Secret}, {plain.ID, "wrong"}, {"nobody", "x"}} {
		a := st.PostToken(t, stacktest.Values("grant_type", deviceGrant, "device_code", "x",
			"client_id", pair[0], "client_secret", pair[1]))
		b := st.PostToken(t, stacktest.Values("grant_type", "nonsense"))
		if a.Status != 400 || a.Body != b.Body {
			t.Errorf("got %d %s, want 400 %s", a.Status, a.Body, b.Body)
		}
	}
}

// TestGuessedUserCodes guesses until a limit is reached. It is that of the account, and nobody else
// meets it.
func TestGuessedUserCodes(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", "kofi@example.com")
	attacker, owner := st.NewBrowser(t), st.NewBrowser(t)
	enter := atDevice(attacker, "/device", rosa)
	wrong := 0
	for range 20 {
		p := attacker.Send(enter, "user_code", "bcdf ghjk")
		if p.Status == 429 {
			if p.Header.Get("Retry-After") == "" {
				t.Error("got no Retry-After, want one")
			}
			break
		}
		if p.Status != 422 || !strings.Contains(p.Body, "This code is not valid") {
			t.Fatalf("got %d %s, want 422", p.Status, p.Body)
		}
		wrong++
	}
	if wrong < 10 || wrong > 11 {
		t.Errorf("got %d guesses, want 10", wrong)
	}
	_, userCode := beginDevice(t, st, c, "view-user")
	if p := attacker.Send(enter, "user_code", userCode); p.Status != 429 {
		t.Errorf("got %d for a right code after the limit, want 429", p.Status)
	}
	fresh := st.NewBrowser(t) // of the same account
	if p := fresh.Send(atDevice(fresh, "/device", rosa), "user_code", userCode); p.Status != 429 {
		t.Errorf("got %d in another browser of the account, want 429", p.Status)
	}
	if p := owner.Send(atDevice(owner, "/device", "kofi@example.com"), "user_code",
		userCode); !strings.Contains(p.Body, "Compare the code") {
		t.Errorf("got %d %s for another person, want the page that asks", p.Status, p.Body)
	}
}

// TestDeviceCodesAreBounded requests device codes until the caller's limit.
func TestDeviceCodesAreBounded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	issued := 0
	for range 60 {
		a := asDevice(t, st, stacktest.Values("client_id", c.ID, "scope", "view-user"))
		if a.Status == 429 {
			a.FailsAs(t, 429, "temporarily_unavailable")
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
	b, other := st.NewBrowser(t), st.NewBrowser(t)
	code, userCode := beginDevice(t, st, c, "view-user")
	_, userCode2 := beginDevice(t, st, c, "view-user")
	ask := b.Send(atDevice(b, "/device", rosa), "user_code", userCode)
	_, fields := ask.Form(t)
	if p := b.Send(ask, "user_code", userCode2, "decision", "allow"); p.Status != 403 {
		t.Errorf("got %d for another code, want 403", p.Status)
	}
	atDevice(other, "/device", "kofi@example.com")
	fields.Set("decision", "allow")
	if p := other.Open("POST", "/device", fields); p.Status != 403 {
		t.Errorf("got %d in another browser, want 403", p.Status)
	}
	if p := b.Open("POST", "/device", fields, "Sec-Fetch-Site", "cross-site"); p.Status != 403 {
		t.Errorf("got %d for a form of another site, want 403", p.Status)
	}
	if p := b.Send(ask, "decision", "maybe"); p.Status != 422 {
		t.Errorf("got %d without a decision, want 422", p.Status)
	}
	poll(t, st, c, code).FailsAs(t, 400, "authorization_pending")
	if p := b.Send(ask, "decision", "allow"); p.Status != 200 {
		t.Errorf("got %d, want it allowed", p.Status)
	}
	if a := poll(t, st, c, code); a.Status != 200 {
		t.Errorf("got %d %s, want tokens", a.Status, a.Body)
	}
}

func TestDeviceDecisionsAreRecorded(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st)
	u := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	enter := atDevice(b, "/device", rosa)
	for decision, action := range map[string]audit.Action{
		"allow": audit.DeviceAllowed, "deny": audit.DeviceDenied,
	} {
		_, userCode := beginDevice(t, st, c, "view-user")
		b.Send(b.Send(enter, "user_code", userCode), "decision", decision)
		events, err := st.Store.Events(t.Context(), audit.Filter{Action: action, Limit: 9})
		if err != nil || len(events) != 1 || events[0].Subject != audit.OfUser(u.ID) ||
			events[0].Target != c.ID || events[0].Actor.ID != strconv.FormatInt(u.ID, 10) {
			t.Errorf("%s: got %+v and error %v, want one event of Rosa", decision, events, err)
		}
	}
}
