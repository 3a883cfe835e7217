//go:build programs

package programs_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab"
)

// TestContinueWithZitadelOIDC signs in with the server of the library zitadel/oidc. Its issuer ends in a
// slash.
func TestContinueWithZitadelOIDC(t *testing.T) {
	st := stacktest.NewReachable(t)
	port := freePort(t)
	type person struct {
		ID, Username, Password, FirstName, LastName, Email string
		EmailVerified                                      bool
	}
	people := map[string]person{}
	for i, name := range []string{"ada", "rosa", "eve"} {
		id := "id" + strconv.Itoa(i+1)
		people[id] = person{id, name, "verysecure", name, "Upstream", name + "@example.com", name != "eve"}
	}
	text, err := json.Marshal(people)
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(users, text, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, "server listening", withEnvironment(exec.Command(tool(t, "zitadel-op-v3.45.0")), map[string]string{
		"PORT": strconv.Itoa(port), "USERS_FILE": users, "REDIRECT_URI": st.URL + "/login/with/up/callback"}))
	awaitPort(t, port)
	issuer := fmt.Sprintf("http://localhost:%d/", port)
	p := &oauth.Provider{ID: "up", Kind: oauth.OpenIDProvider, Issuer: issuer, ClientID: "web",
		Secret: "secret", CreateAccounts: true, TrustEmail: true}
	if _, _, err := st.Tokens.PutProvider(t.Context(), p, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	button := regexp.MustCompile(`href="([^"]*start=[^"]*)"`)
	signIn := func(name string) stacktest.Page {
		t.Helper()
		b, there := st.NewBrowser(t), lab.NewBrowser(strings.TrimSuffix(issuer, "/"),
			&http.Transport{DisableKeepAlives: true})
		link := button.FindStringSubmatch(b.Get("/login").Body)
		if link == nil {
			t.Fatal("got no button of the provider")
		}
		to := b.Get(html.UnescapeString(link[1]))
		path, ok := strings.CutPrefix(to.Location, strings.TrimSuffix(issuer, "/"))
		if !ok {
			t.Fatalf("got %d to %q: %s, want a redirect to the provider", to.Status, to.Location, to.Body)
		}
		page, err := there.Open(t.Context(), "GET", path, nil)
		if err == nil {
			page, err = there.Submit(t.Context(), page, "username", name, "password", "verysecure")
		}
		back, ok := strings.CutPrefix(page.To, st.URL)
		if err != nil || !ok {
			t.Fatalf("got %d to %q: %s and error %v, want the browser back", page.Status, page.To, page.Body, err)
		}
		return b.Get(back)
	}
	signIn("ada").Shows(t, 200, "/me")
	u, err := st.Store.UserByConnection(t.Context(), issuer, "id1")
	if err != nil || u.Email != "ada@example.com" || u.Name != "ada Upstream" {
		t.Fatalf("got %+v and error %v, want the account", u, err)
	}
	signIn("ada").Shows(t, 200, "/me")
	signIn("eve").Shows(t, 200, "/register/connect") // nobody has verified the address
	st.NewUser(t, "Rosa", "rosa@example.com")
	signIn("rosa").Shows(t, 200, "/login") // to the account first
	if rosa, err := st.Store.UserByEmail(t.Context(), "rosa@example.com"); err != nil ||
		rosa.Credentials.Connections != nil {
		t.Errorf("got %+v and error %v, want no connection", rosa, err)
	}
}
