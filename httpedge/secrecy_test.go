package httpedge_test

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/edgetest"
)

func TestNothingSecretIsLoggedOrCounted(t *testing.T) {
	st := edgetest.NewIdentity(t, nil)
	c := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	st.NewUser(t, "Rosamunde", rosa)
	b := newBrowser(t, st)
	login := b.get("/oauth/authorize?" + asked(c, "scope", "view-user detail-user").Encode())
	_, loginForm := login.form(t)
	b.send(login, "email", "wrong-address@example.com", "password", "wrong-password-1")
	consent := b.send(login, "email", rosa, "password", edgetest.Password)
	_, consentForm := consent.form(t)
	code := b.send(consent, "decision", "allow").gets(t, st)
	tokens := redeem(t, st, c, code).object(t)
	access, refresh := tokens["access_token"].(string), tokens["refresh_token"].(string)
	get(t, st.Stack, "/api/user/details", "Authorization", "Bearer "+access)
	get(t, st.Stack, "/api/user?access_token="+access)
	postToken(t, st, query("grant_type", "refresh_token", "refresh_token", "gtrt_garbage-token", "client_id", c.ID, "client_secret", "garbage-secret"))
	redeem(t, st, c, code)
	send(t, st.Stack, "POST", st.URL+"/oauth/introspect", query("token", refresh, "client_id", c.ID, "client_secret", c.Secret).Encode(),
		"Content-Type", "application/x-www-form-urlencoded")

	secrets := []string{rosa, "Rosamunde", "wrong-address", "wrong-password-1", edgetest.Password, url.QueryEscape(edgetest.Password), code, access, refresh, c.Secret,
		"gtrt_garbage-token", "garbage-secret", verifier, challenge(), "s t&ä", url.QueryEscape("s t&ä"), loginForm.Get("form_token"), consentForm.Get("form_token")}
	for _, value := range b.cookies() {
		secrets = append(secrets, value)
	}
	for name, text := range map[string]string{"the log": st.Log.String(), "the journal": st.Journal.String(), "the metrics": countersOf(t, st)} {
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

func countersOf(t *testing.T, st *edgetest.IdentityStack) string {
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
	families, err := st.Counters.Gather()
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
