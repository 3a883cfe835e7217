package adminapi_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestClientIDIsUsedAgain deletes a client with a chosen id and declares it again: nothing of the
// former one works.
func TestClientIDIsUsedAgain(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	u := st.NewUser(t, "Ada", "ada@example.com")
	c := st.NewClient(t, func(c *oauth.Client) { c.ID = strings.Repeat("Shop.a_b-", 5)[:40] })
	access, refresh := st.NewToken(t, c, u.ID, oauth.UserScopes)
	profile := func() int { return st.Get(t, "/api/user", "Authorization", "Bearer "+access).Status }
	if got := profile(); got != 200 {
		t.Errorf("before: got %d, want 200", got)
	}
	path, body := "/clients/"+c.ID, `{"name":"Again","redirect_uris":["https://app.example/callback"],"secrets":[{"secret":"`
	o.Do(204, "DELETE", path, "")
	other := oauth.NewClientSecret()
	o.Do(200, "PUT", path+"?dry_run=true", body+other+`"}]}`)
	o.Do(404, "GET", path, "")
	o.Do(201, "PUT", path, body+other+`"}]}`)
	o.Do(200, "PUT", path, body+other+`"}]}`)
	if got := profile(); got != 401 {
		t.Errorf("access token: got %d, want 401", got)
	}
	for secret, want := range map[string]string{c.Secret: "invalid_client", other: "invalid_grant"} {
		got := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
			"client_secret", secret, "refresh_token", refresh)).Object(t)["error"]
		if got != want {
			t.Errorf("refresh token: got %v, want %s", got, want)
		}
	}
	for body, field := range map[string]string{
		`{"name":"A","secrets":[{"secret":"gtcs_hunter2"}]}`: "secrets", `{"name":"A","secrets":[{"hash":"x"}]}`: "secrets",
		`{"name":"A","public":true,"redirect_uris":["https://a.example/"]}`: "public",
		`{"name":"A","secrets":["x"]}`:                                      "secrets", `{"name":"A","client_id":"x"}`: "client_id",
	} {
		o.Do(400, "PUT", path, body).Refused(t, "invalid_request", field)
	}
	o.Do(400, "PUT", "/clients/a", `{}`).Refused(t, "invalid_request", "client_id")
	o.Do(409, "PUT", "/clients/new", `{"name":"A","redirect_uris":["https://a.example/"]}`).Refused(t, "conflict")
	o.Do(409, "POST", "/clients", `{"name":"A","client_id":"`+c.ID+`","redirect_uris":["https://a.example/"]}`)
}
