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

	"golang.org/x/crypto/bcrypt"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab"
)

// upstream is a program whose accounts sign in here. Its people are ada, rosa and eve; their password is
// verysecure.
type upstream struct {
	origin, issuer string // with %d for the port
	start          func(t *testing.T, port int, issuer, callback string)
	login          string // field of its page
	at             string // what follows a person's name in that field
	named          string // what follows ada in her claim name
	unverified     bool   // eve's address is not verified
}

// TestContinueWithPrograms signs in with the server of the library zitadel/oidc, whose issuer ends in a
// slash, and with dex, whose issuer has a path.
func TestContinueWithPrograms(t *testing.T) {
	for name, row := range map[string]upstream{
		"zitadel": {origin: "http://localhost:%d", issuer: "http://localhost:%d/", start: startZitadel,
			login: "username", named: " Upstream", unverified: true},
		"dex": {origin: "http://127.0.0.1:%d", issuer: "http://127.0.0.1:%d/dex", start: startDex,
			login: "login", at: "@example.com"},
	} {
		t.Run(name, func(t *testing.T) { row.test(t) })
	}
}

func (row *upstream) test(t *testing.T) {
	st := stacktest.NewReachable(t)
	port := freePort(t)
	origin, issuer := fmt.Sprintf(row.origin, port), fmt.Sprintf(row.issuer, port)
	row.start(t, port, issuer, st.URL+"/login/with/up/callback")
	awaitPort(t, port)
	p := &oauth.Provider{ID: "up", Kind: oauth.OpenIDProvider, Issuer: issuer, ClientID: "web",
		Secret: "secret", CreateAccounts: true, TrustEmail: true}
	if _, _, err := st.Tokens.PutProvider(t.Context(), p, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	button := regexp.MustCompile(`href="([^"]*start=[^"]*)"`)
	signIn := func(name string) stacktest.Page {
		t.Helper()
		b, there := st.NewBrowser(t), lab.NewBrowser(origin, &http.Transport{DisableKeepAlives: true})
		link := button.FindStringSubmatch(b.Get("/login").Body)
		if link == nil {
			t.Fatal("got no button of the provider")
		}
		to := b.Get(html.UnescapeString(link[1]))
		path, ok := strings.CutPrefix(to.Location, origin)
		if !ok {
			t.Fatalf("got %d to %q: %s, want a redirect to the provider", to.Status, to.Location, to.Body)
		}
		page, err := there.Open(t.Context(), "GET", path, nil)
		if err == nil {
			page, err = there.Submit(t.Context(), page, row.login, name+row.at, "password", "verysecure")
		}
		back, ok := strings.CutPrefix(page.To, st.URL)
		if err != nil || !ok {
			t.Fatalf("got %d to %q: %s and error %v, want the browser back", page.Status, page.To, page.Body, err)
		}
		return b.Get(back)
	}
	ada := func() int64 {
		t.Helper()
		signIn("ada").Shows(t, 200, "/me")
		u, err := st.Store.UserByEmail(t.Context(), "ada@example.com")
		if err != nil || u.Name != "ada"+row.named || len(u.Credentials.Connections) != 1 {
			t.Fatalf("got %+v and error %v, want the account with a connection", u, err)
		}
		return u.ID
	}
	if first, again := ada(), ada(); first != again {
		t.Errorf("got accounts %d and %d, want one", first, again)
	}
	if row.unverified {
		signIn("eve").Shows(t, 200, "/register/connect") // nobody has verified the address
	}
	st.NewUser(t, "Rosa", "rosa@example.com")
	signIn("rosa").Shows(t, 200, "/login") // to the account first
	if rosa, err := st.Store.UserByEmail(t.Context(), "rosa@example.com"); err != nil ||
		rosa.Credentials.Connections != nil {
		t.Errorf("got %+v and error %v, want no connection", rosa, err)
	}
}

func startZitadel(t *testing.T, port int, _, callback string) {
	type person struct {
		ID, Username, Password, FirstName, LastName, Email string
		EmailVerified                                      bool
	}
	people := map[string]person{}
	for i, name := range []string{"ada", "rosa", "eve"} {
		id := "id" + strconv.Itoa(i+1)
		people[id] = person{id, name, "verysecure", name, "Upstream", name + "@example.com", name != "eve"}
	}
	start(t, "server listening", withEnvironment(exec.Command(tool(t, "zitadel-op-v3.45.0")), map[string]string{
		"PORT": strconv.Itoa(port), "USERS_FILE": writeJSON(t, people), "REDIRECT_URI": callback}))
}

func startDex(t *testing.T, port int, issuer, callback string) {
	hash, err := bcrypt.GenerateFromPassword([]byte("verysecure"), 10)
	stacktest.Must(t, err)
	var people []map[string]string
	for _, name := range []string{"ada", "rosa", "eve"} {
		people = append(people, map[string]string{"email": name + "@example.com", "hash": string(hash),
			"username": name, "userID": "id of " + name})
	}
	start(t, "listening on", exec.Command(tool(t, "dex-43956db7fd75"), "serve", writeJSON(t, map[string]any{
		"issuer": issuer, "storage": map[string]string{"type": "memory"},
		"web":    map[string]string{"http": fmt.Sprintf("127.0.0.1:%d", port)},
		"oauth2": map[string]bool{"skipApprovalScreen": true},
		"staticClients": []map[string]any{
			{"id": "web", "name": "gatehouse", "secret": "secret", "redirectURIs": []string{callback}}},
		"enablePasswordDB": true, "staticPasswords": people,
	})))
}

// writeJSON returns the path of a file, which YAML may be as well.
func writeJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	stacktest.Must(t, err)
	path := filepath.Join(t.TempDir(), "settings.json")
	stacktest.Must(t, os.WriteFile(path, text, 0o600))
	return path
}
