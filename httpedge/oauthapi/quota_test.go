package oauthapi_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestQuotaOfClient uses up a client's quota. A code and a refresh token that are refused then stay
// good, and another client has its own quota.
func TestQuotaOfClient(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o, u := st.NewOperator(t), st.NewUser(t, "Ada", "ada@example.com")
	made := o.Do(201, "POST", "/clients", fmt.Sprintf(
		`{"name":"Shop","redirect_uris":[%q],"grants":["authorization_code","refresh_token","client_credentials"],"tokens_per_minute":2}`,
		stacktest.RedirectURI)).Object(t)
	id, secret := made["client_id"].(string), made["client_secret"].(string)
	c := stacktest.Client{Client: &oauth.Client{ID: id}, Secret: secret}
	usage := func(issued, quota float64, recent bool) {
		t.Helper()
		got := o.Do(200, "GET", "/clients/"+id, "").Object(t)
		last, _ := got["last_used_at"].(string)
		at, _ := time.Parse(time.RFC3339, last)
		if got["tokens_issued"] != issued || got["tokens_per_minute"] != quota ||
			(time.Since(at) < time.Minute) != recent || (last != "") != recent {
			t.Errorf("got %v, want %v issued of %v a minute, recently %v", got, issued, quota, recent)
		}
	}
	usage(0, 2, false)
	_, refresh := st.NewToken(t, c, u.ID, oauth.ViewUser)
	code := st.NewCode(t, c, u.ID, oauth.ViewUser)
	if a := st.PostToken(t, stacktest.Values(c.Credentials()...)); a.Status != 200 {
		t.Fatalf("got %d %s, want the second token of the quota", a.Status, a.Body)
	}
	refreshed := func() stacktest.Response {
		return st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", id,
			"client_secret", secret, "refresh_token", refresh))
	}
	for range 2 {
		for _, a := range []stacktest.Response{
			st.PostToken(t, stacktest.Values(c.Credentials()...)), st.Redeem(t, c, code),
			refreshed(),
		} {
			a.FailsAs(t, 429, "temporarily_unavailable")
			seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 60 {
				t.Errorf("got Retry-After %q, want 1 to 60 seconds", a.Header.Get("Retry-After"))
			}
		}
	}
	st.PostToken(t, stacktest.Values("grant_type", "client_credentials", "client_id", id,
		"client_secret", oauth.NewClientSecret())).FailsAs(t, 401, "invalid_client")
	other := st.NewClient(t, func(c *oauth.Client) { c.TokensPerMinute = 1 })
	if a := st.PostToken(t, stacktest.Values(other.Credentials()...)); a.Status != 200 {
		t.Errorf("got %d %s for another client, want a token", a.Status, a.Body)
	}
	usage(2, 2, true)
	o.Do(200, "PATCH", "/clients/"+id, `{"tokens_per_minute":4}`)
	for what, a := range map[string]stacktest.Response{"code": st.Redeem(t, c, code), "refresh": refreshed()} {
		if a.Status != 200 {
			t.Errorf("%s: got %d %s, want tokens with a larger quota", what, a.Status, a.Body)
		}
	}
	st.PostToken(t, stacktest.Values(c.Credentials()...)).FailsAs(t, 429, "temporarily_unavailable")
	usage(4, 4, true)
	d.Covers("POST /oauth/token 429", "GET /admin/v1/clients/{id} 200")
}
