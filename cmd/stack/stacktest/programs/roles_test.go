//go:build programs

package programs_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestRolesInGo has an API that knows people's groups. It challenges for a second factor (RFC 9470), and
// the app comes back with a token of a sign-in with two.
func TestRolesInGo(t *testing.T) {
	a := newApp(t, "Roles in a Go API", "rolesapi", "/callback")
	at := gatehouse(t, a)
	a.run(t, at)
	st := at.service
	u, err := st.Store.UserByEmail(t.Context(), at.email)
	stacktest.Must(t, err)
	c := stacktest.Client{Client: &oauth.Client{ID: at.id}, Secret: at.secret}
	b := st.NewBrowser(t)
	request := func(more ...string) url.Values {
		return c.Request(append([]string{"redirect_uri", a.callback, "scope", "openid groups notes:edit",
			"resource", a.base + "/notes", "skip_account_chooser", "true"}, more...)...)
	}
	tokens := func(p stacktest.Page) (access string, idToken map[string]any) {
		t.Helper()
		back, err := url.Parse(p.Location)
		if err != nil || back.Query().Get("code") == "" {
			t.Fatalf("got %d at %s to %q: %s, want a code", p.Status, p.Path, p.Location, p.Body)
		}
		got := st.PostToken(t, stacktest.Values("grant_type", "authorization_code", "code",
			back.Query().Get("code"), "redirect_uri", a.callback, "client_id", c.ID, "client_secret", c.Secret,
			"code_verifier", stacktest.Verifier)).Object(t)
		raw, _ := got["id_token"].(string)
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(raw+"..", ".")[1])
		if err == nil {
			err = json.Unmarshal(text, &idToken)
		}
		if err != nil {
			t.Fatalf("got %v and error %v, want an id_token", got, err)
		}
		return got["access_token"].(string), idToken
	}
	ask := func(method, token string) (status int, challenge string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, a.base+"/notes", nil)
		stacktest.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		stacktest.Must(t, err)
		response.Body.Close()
		return response.StatusCode, response.Header.Get("WWW-Authenticate")
	}
	want := func(step, token string, statuses ...int) {
		t.Helper()
		for i, method := range []string{"GET", "PUT", "DELETE"} {
			if got, challenge := ask(method, token); got != statuses[i] {
				t.Errorf("%s, %s: got %d %s, want %d", step, method, got, challenge, statuses[i])
			}
		}
	}
	join := func(group string) {
		t.Helper()
		stacktest.Must(t, st.People.AddMember(t.Context(), group, u.ID))
	}
	want("no token", "", 401, 401, 401)
	token, _ := tokens(b.Allow(request(), at.email))
	want("in no group", token, 403, 403, 403)
	join("readers")
	want("a token of before", token, 403, 403, 403)
	token, _ = tokens(b.Authorize(request()))
	want("a reader", token, 200, 403, 403)
	join("editors")
	token, said := tokens(b.Authorize(request()))
	want("an editor", token, 200, 200, 401)
	if said["acr"] != "1" || fmt.Sprint(said["amr"]) != "[pwd]" {
		t.Errorf("got acr %v and amr %v, want 1 and pwd", said["acr"], said["amr"])
	}
	_, challenge := ask("DELETE", token)
	found := regexp.MustCompile(`acr_values="([^"]*)", max_age=(\d+)`).FindStringSubmatch(challenge)
	if found == nil || !strings.Contains(challenge, `error="insufficient_user_authentication"`) {
		t.Fatalf("got %q, want the challenge of RFC 9470", challenge)
	}

	recovery := b.AddApp(b.Get("/me/factors/app")).RecoveryCodes(t)[0]
	before := time.Now().Unix()
	p := b.Authorize(request("acr_values", found[1], "max_age", found[2]))
	if p.Location == "" {
		p = b.Send(p, "code", recovery)
	}
	token, said = tokens(p)
	amr, _ := said["amr"].([]any)
	signedIn, _ := said["auth_time"].(float64)
	if said["acr"] != "2" || !slices.Contains(amr, any("mfa")) || before-int64(signedIn) > 600 {
		t.Errorf("got acr %v, amr %v and auth_time %v, want two factors", said["acr"], amr, said["auth_time"])
	}
	want("after the step-up", token, 200, 200, 200)
}
