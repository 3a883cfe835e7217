package httpedge_test

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

func TestSecretsAreNotLoggedOrCounted(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	st.NewUser(t, "Rosamunde", rosa)
	b := newBrowser(t, st)
	login := b.get("/oauth/authorize?" + asked(c, "scope", "view-user detail-user").Encode())
	_, loginForm := login.form(t)
	b.send(login, "email", "wrong-address@example.com", "password", "wrong-password-1")
	consent := b.send(login, "email", rosa, "password", stacktest.Password)
	_, consentForm := consent.form(t)
	code := b.send(consent, "decision", "allow").gets(t, st)
	tokens := redeem(t, st, c, code).object(t)
	access, refresh := tokens["access_token"].(string), tokens["refresh_token"].(string)
	get(t, st.Stack, "/api/user/details", "Authorization", "Bearer "+access)
	get(t, st.Stack, "/api/user?access_token="+access)
	postToken(t, st, query("grant_type", "refresh_token", "refresh_token", "gtrt_garbage-token",
		"client_id", c.ID, "client_secret", "garbage-secret"))
	redeem(t, st, c, code)
	send(t, st.Stack, "POST", st.URL+"/oauth/introspect",
		query("token", refresh, "client_id", c.ID, "client_secret", c.Secret).Encode(),
		"Content-Type", "application/x-www-form-urlencoded")

	secrets := []string{rosa, "Rosamunde", "wrong-address", "wrong-password-1", stacktest.Password,
		url.QueryEscape(stacktest.Password), code, access, refresh, c.Secret,
		"gtrt_garbage-token", "garbage-secret", verifier, challenge(), "s t&ä",
		url.QueryEscape("s t&ä"), loginForm.Get("form_token"), consentForm.Get("form_token")}
	for _, value := range b.cookies() {
		secrets = append(secrets, value)
	}
	for name, text := range map[string]string{"the log": st.Log.String(),
		"the metrics": countersOf(t, st)} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("got %q in %s", secret, name)
			}
		}
	}
	if !strings.Contains(st.Log.String(), "/oauth/token") {
		t.Error("got a log without the requests: nothing was tried")
	}
}

// TestAccountsAreNotLoggedOrCounted neither what is kept of a person nor what was entered, right or
// wrong.
func TestAccountsAreNotLoggedOrCounted(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Rosamunde", rosa)
	c := st.NewClient(t, nil)
	b, home := atHome(t, st.IdentityStack, rosa)
	access := b.letIn(c)
	secrets := []string{"Rosamunde", rosa, stacktest.Password, access,
		home.formTo(t, "/me").fields.Get("form_token")}
	secret := func(text string) string {
		secrets = append(secrets, text)
		return text
	}
	b.sendTo(home, "/me", "username", secret("rosamunde-secret"), "bio", secret("secret-biography"),
		"address", secret("4711 Secret Road"),
		"place_of_birth", secret("Secretville"), "date_of_birth", secret("1971-07-11"),
		"profile_picture", "https://secret-picture.example/"+secret("secret-picture"))
	b.sendTo(b.get("/me"), "/me", "username", secret("bad secret username"), "date_of_birth",
		secret("secret-date"))
	secrets = append(secrets, sessionIDs(b.get("/me"))...)
	b.sendTo(b.get("/me"), "/me/sessions", "session", secret("secret-session-id"))
	b.sendTo(b.get("/me"), "/me/apps", "client_id", secret("secret-client-id"))
	b.sendTo(b.get("/me"), "/me/apps", "client_id", c.ID)
	b.send(b.get("/me/password"), "current_password", secret("secret-wrong-1"), "new_password",
		secret("secret-new-password"))
	b.send(b.get("/me/email"), "email", secret("secret-nowhere"), "current_password",
		stacktest.Password)
	for path, to := range map[string]string{"/me/email": "secret-new@example.com",
		"/me/phone": idaPhone} {
		p := b.send(b.get(path), "email", to, "phone_number", to, "current_password",
			stacktest.Password)
		p.shows(t, 200, path+"/verify")
		b.send(p, "code", secret("secret-wrong-code"))
		b.send(p, "code", st.mail.Next(t, to).Code).shows(t, 200, "/me")
		secret(to)
	}
	for _, value := range b.cookies() {
		secret(value)
	}
	b.send(b.get("/me/delete"), "confirm", "delete", "current_password", secret("secret-wrong-2"))
	p := b.send(b.get("/me/delete"), "confirm", "delete", "current_password", stacktest.Password)
	p.shows(t, 200, "/me/deleted")
	_, done, _ := strings.Cut(p.path, "done=")
	secret(done)
	for name, text := range map[string]string{"the log": st.Log.String(),
		"the metrics": countersOf(t, st.IdentityStack)} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
				t.Errorf("got %q in %s", secret, name)
			}
		}
	}
	if !strings.Contains(st.Log.String(), "/me/phone/verify") {
		t.Error("got a log without the requests: nothing was tried")
	}
}

func countersOf(t *testing.T, st *stacktest.IdentityStack) string {
	t.Helper()
	res, err := st.Client.Get(st.AdminURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	families, err := st.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.Write(body)
	for _, family := range families {
		text.WriteString(family.String())
	}
	return text.String()
}
