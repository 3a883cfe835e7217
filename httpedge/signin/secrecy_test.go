package signin_test

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
	b := st.NewBrowser(t)
	login := b.Get("/oauth/authorize?" + c.Request("scope", "view-user detail-user").Encode())
	_, loginForm := login.Form(t)
	b.Send(login, "email", "wrong-address@example.com", "password", "wrong-password-1")
	consent := b.Send(login, "email", rosa, "password", stacktest.Password)
	_, consentForm := consent.Form(t)
	code := b.Send(consent, "decision", "allow").Code(t, st)
	tokens := st.Redeem(t, c, code).Object(t)
	access, refresh := tokens["access_token"].(string), tokens["refresh_token"].(string)
	st.Get(t, "/api/user/details", "Authorization", "Bearer "+access)
	st.Get(t, "/api/user?access_token="+access)
	st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "refresh_token",
		"gtrt_garbage-token", "client_id", c.ID, "client_secret", "garbage-secret"))
	st.Redeem(t, c, code)
	st.Send(t, "POST", st.URL+"/oauth/introspect",
		stacktest.Values("token", refresh, "client_id", c.ID, "client_secret", c.Secret).Encode(),
		"Content-Type", "application/x-www-form-urlencoded")

	secrets := []string{rosa, "Rosamunde", "wrong-address", "wrong-password-1", stacktest.Password,
		url.QueryEscape(stacktest.Password), code, access, refresh, c.Secret,
		"gtrt_garbage-token", "garbage-secret", stacktest.Verifier, stacktest.Challenge(), "s t&ä",
		url.QueryEscape("s t&ä"), loginForm.Get("form_token"), consentForm.Get("form_token")}
	for _, value := range b.Cookies() {
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
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Rosamunde", rosa)
	c := st.NewClient(t, nil)
	b, _ := st.SignedIn(t, rosa)
	home := b.Get("/me/profile")
	access := b.LetIn(c)
	secrets := []string{"Rosamunde", rosa, stacktest.Password, access,
		home.FormTo(t, "/me/profile").Fields.Get("form_token")}
	secret := func(text string) string {
		secrets = append(secrets, text)
		return text
	}
	b.SendTo(home, "/me/profile", "username", secret("rosamunde-secret"), "bio", secret("secret-biography"),
		"address", secret("4711 Secret Road"),
		"place_of_birth", secret("Secretville"), "date_of_birth", secret("1971-07-11"),
		"profile_picture", "https://secret-picture.example/"+secret("secret-picture"))
	b.SendTo(b.Get("/me/profile"), "/me/profile", "username", secret("bad secret username"), "date_of_birth",
		secret("secret-date"))
	secrets = append(secrets, b.Get("/me/sessions").SessionIDs()...)
	b.SendTo(b.Get("/me/sessions"), "/me/sessions", "session", secret("secret-session-id"))
	b.SendTo(b.Get("/me/apps"), "/me/apps", "client_id", secret("secret-client-id"))
	b.SendTo(b.Get("/me/apps"), "/me/apps", "client_id", c.ID)
	b.Send(b.Get("/me/password"), "current_password", secret("secret-wrong-1"), "new_password",
		secret("secret-new-password"))
	b.Send(b.Get("/me/email"), "email", secret("secret-nowhere"), "current_password",
		stacktest.Password)
	for path, to := range map[string]string{"/me/email": "secret-new@example.com",
		"/me/phone": idaPhone} {
		p := b.Send(b.Get(path), "email", to, "phone_number", to, "current_password",
			stacktest.Password)
		p.Shows(t, 200, path+"/verify")
		b.Send(p, "code", secret("secret-wrong-code"))
		b.Send(p, "code", st.Mail.Next(t, to).Code).Shows(t, 200, "/me")
		secret(to)
	}
	for _, value := range b.Cookies() {
		secret(value)
	}
	b.Send(b.Get("/me/delete"), "confirm", "delete", "current_password", secret("secret-wrong-2"))
	p := b.Send(b.Get("/me/delete"), "confirm", "delete", "current_password", stacktest.Password)
	p.Shows(t, 200, "/me/deleted")
	_, done, _ := strings.Cut(p.Path, "done=")
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
	stacktest.Must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	stacktest.Must(t, err)
	families, err := st.Metrics.Gather()
	stacktest.Must(t, err)
	var text strings.Builder
	text.Write(body)
	for _, family := range families {
		text.WriteString(family.String())
	}
	return text.String()
}
