package oauthapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

const registrationToken = "a token of thirty-two characters"

func withRegistration(mode oauth.RegistrationMode) stacktest.Option {
	return func(c *stack.Config) {
		c.Identity.Registration, c.Identity.RegistrationToken = mode, registrationToken
		stacktest.BehindProxy(c)
	}
}

// register sends a registration request.
func register(t *testing.T, st *stacktest.IdentityStack, body string,
	headers ...string) stacktest.Response {
	t.Helper()
	return st.Send(t, http.MethodPost, st.URL+"/oauth/register", body,
		append([]string{"Content-Type", "application/json"}, headers...)...)
}

// agentRegistration is what an agent on the person's computer sends.
const agentRegistration = `{"client_name":"Agent","redirect_uris":["http://localhost:4711/cb"],
"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],
"response_types":["code"],"client_uri":"https://strangers.example/","logo_uri":"http://10.0.0.1/x",
"software_id":"x","contacts":["a@b.example"],"backchannel_logout_uri":"https://strangers.example/out"}`

func askedByRegistered(id, redirect string, more ...string) url.Values {
	return stacktest.Values(append([]string{"response_type", "code", "client_id", id,
		"redirect_uri",
		redirect, "scope", "view-user", "state", "s", "code_challenge", stacktest.Challenge(),
		"code_challenge_method", "S256"}, more...)...)
}

func TestRegisteredClientSignsIn(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	st.NewUser(t, "Rosa", rosa)
	r := register(t, st, agentRegistration)
	got := r.Object(t)
	if r.Status != 201 || r.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %v %s, want 201", r.Status, r.Header, r.Body)
	}
	id, _ := got["client_id"].(string)
	want := map[string]any{"client_id": id, "client_id_issued_at": got["client_id_issued_at"],
		"client_name": "Agent", "redirect_uris": []any{"http://localhost:4711/cb"},
		"grant_types":    []any{"authorization_code", "refresh_token"},
		"response_types": []any{"code"}, "token_endpoint_auth_method": "none",
		"scope": oauth.GrantableScopes.String(), "id_token_signed_response_alg": "RS256"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	const other = "http://localhost:9999/cb" // another port
	b := st.NewBrowser(t)
	b.Authorize(askedByRegistered(id, "https://strangers.example/")).Shows(t, 400, "/oauth/authorize")
	b.Authorize(askedByRegistered(id, other, "prompt", "none")).Shows(t, 400, "/oauth/authorize")
	consent := b.Send(b.Authorize(askedByRegistered(id, other)), "email", rosa, "password",
		stacktest.Password)
	consent.Shows(t, 200, "/consent")
	for _, words := range []string{"It calls itself “<bdi>Agent</bdi>”", "A program on this computer wants to use your account</h1>", "http://localhost:9999",
		"your computer"} {
		if !strings.Contains(consent.Body, words) {
			t.Errorf("got a page without %q: %s", words, consent.Body)
		}
	}
	back, err := url.Parse(b.Send(consent, "decision", "allow").Location)
	if err != nil || !strings.HasPrefix(back.String(), other+"?code=") {
		t.Fatalf("got %v, %v, want a code", back, err)
	}
	tokens := st.PostToken(t, stacktest.Values("grant_type", "authorization_code", "client_id", id,
		"code",
		back.Query().Get("code"), "redirect_uri", other, "code_verifier",
		stacktest.Verifier)).Object(t)
	again := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", id,
		"refresh_token", tokens["refresh_token"].(string)))
	if again.Status != 200 {
		t.Fatalf("got %d %s, want tokens for a refresh token", again.Status, again.Body)
	}
	c, err := st.Store.Client(t.Context(), id)
	if err != nil || !c.Awaits.IsZero() || c.DetailApproved || c.URI != "" ||
		c.Options.BackchannelLogoutURI != "" {
		t.Errorf("got %+v, %v, want a client that stays and is not approved", c, err)
	}
	stacktest.Must(t, st.Tokens.EndClients(t.Context(), time.Now().Add(2*oauth.ConsentWithin)))
	access, _ := again.Object(t)["access_token"].(string)
	if r := st.Get(t, "/api/user", "Authorization", "Bearer "+access); r.Status != 200 {
		t.Errorf("got %d %s for a client that a person uses", r.Status, r.Body)
	}
	stacktest.Must(t, st.Tokens.EndClients(t.Context(), time.Now().Add(2*oauth.ClientIdle)))
	if r := st.Get(t, "/api/user", "Authorization", "Bearer "+access); r.Status != 401 {
		t.Errorf("got %d %s for a client that was ended, want 401", r.Status, r.Body)
	}
}

// TestRegisteredClientIsStrange checks what a client that anybody may have registered can do to a
// person who has not consented to it: no page shows its words, and the browser is not sent to it.
func TestRegisteredClientIsStrange(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	st.NewUser(t, "Rosa", rosa)
	const back, out = "https://strangers.example/cb", "https://strangers.example/out"
	c := register(t, st, `{"client_name":"Your account is locked: call 555","redirect_uris":["`+back+
		`"],"post_logout_redirect_uris":["`+out+`"]}`).Object(t)
	id, _ := c["client_id"].(string)
	leave := []string{"client_id", id, "post_logout_redirect_uri", out}
	b := st.NewBrowser(t)
	r := st.Get(t, "/api/user", "Origin", "https://strangers.example")
	if got := r.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("got %s allowed, want no origin of a client that nobody has consented to", got)
	}
	signIn := b.Authorize(askedByRegistered(id, back))
	if strings.Contains(signIn.Body, "locked") || !strings.Contains(signIn.Body, "strangers.example") {
		t.Errorf("got %s, want the origin in the place of the name", signIn.Body)
	}
	if p := b.LogOut(leave...); p.Status != 200 || p.Location != "" {
		t.Errorf("got %d to %q with nobody signed in, want a page", p.Status, p.Location)
	}
	consent := b.Send(signIn, "email", rosa, "password", stacktest.Password)
	consent.Shows(t, 200, "/consent")
	ask := b.LogOut(leave...)
	if strings.Contains(ask.Body, "locked") {
		t.Errorf("got %s, want the origin in the place of the name", ask.Body)
	}
	user, err := st.Store.UserByEmail(t.Context(), rosa)
	stacktest.Must(t, err)
	account := strconv.FormatInt(user.ID, 10)
	if p := b.Send(ask, "account", account); p.Status != 200 || p.Location != "" {
		t.Errorf("got %d to %q before a consent, want a page", p.Status, p.Location)
	}
	b.Allow(askedByRegistered(id, back), rosa)
	if p := b.Send(b.LogOut(leave...), "account", account); p.Location != out {
		t.Errorf("got %d to %q after a consent, want a redirect", p.Status, p.Location)
	}
}

// TestLapsedClientIsUnknown lets the hour pass before and during a consent.
func TestLapsedClientIsUnknown(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	st.NewUser(t, "Rosa", rosa)
	id := register(t, st, agentRegistration).Object(t)["client_id"].(string)
	const back = "http://localhost:4711/cb"
	b := st.NewBrowser(t)
	consent := b.Send(b.Authorize(askedByRegistered(id, back)), "email", rosa, "password",
		stacktest.Password)
	consent.Shows(t, 200, "/consent")
	if st.Alter(t, "UPDATE clients SET awaits = 1, version = version + 1 WHERE awaits > 0") != 1 {
		t.Fatal("got no client that awaits a consent")
	}
	// Every request reads the client again.
	if _, err := st.Tokens.UpdateClient(t.Context(), id, func(c *oauth.Client) error {
		c.Name = "Late"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.Send(consent, "decision", "allow").Shows(t, 400, "/consent")
	b.Authorize(askedByRegistered(id, back)).Shows(t, 400, "/oauth/authorize")
	if err := st.Tokens.ConfirmClient(t.Context(), id, time.Now()); err == nil {
		t.Error("got no error for the consent to a client that has lapsed")
	}
}

func TestRegistrationsThatAreRefused(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	const uri = `"redirect_uris":["https://a.example/cb"]`
	for body, want := range map[string]string{
		``:                        "invalid_client_metadata",
		`[]`:                      "invalid_client_metadata",
		`null`:                    "invalid_redirect_uri",
		`{}`:                      "invalid_redirect_uri",
		`{"redirect_uris":[]}`:    "invalid_redirect_uri",
		`{"redirect_uris":"a"}`:   "invalid_redirect_uri",
		`{"redirect_uris":[1]}`:   "invalid_redirect_uri",
		`{"redirect_uris":["x"]}`: "invalid_redirect_uri",
		`{"redirect_uris":["http://a.example/"]}`:                                              "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/#x"]}`:                                           "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/","https://a.example/"]}`:                        "invalid_redirect_uri",
		`{"redirect_uris":["javascript:alert(1)"]}`:                                            "invalid_redirect_uri",
		`{"redirect_uris":["com.example.app:/x"],` + keyedBy(`{"keys":[]}`) + `}`:              "invalid_redirect_uri",
		`{` + uri + `,"client_name":7}`:                                                        "invalid_client_metadata",
		`{` + uri + `,"client_name":"a\u202eb"}`:                                               "invalid_client_metadata",
		`{` + uri + `,"client_name":"` + strings.Repeat("x", 101) + `"}`:                       "invalid_client_metadata",
		`{` + uri + `,"token_endpoint_auth_method":"tls_client_auth"}`:                         "invalid_client_metadata",
		`{` + uri + `,"application_type":"desktop"}`:                                           "invalid_client_metadata",
		`{"redirect_uris":["http://127.0.0.1/"],"application_type":"web"}`:                     "invalid_redirect_uri",
		`{"redirect_uris":["cursor://x/cb"],"application_type":"web"}`:                         "invalid_redirect_uri",
		`{"redirect_uris":["cursor:/cb"]}`:                                                     "invalid_redirect_uri",
		`{"redirect_uris":["other://cb"]}`:                                                     "invalid_redirect_uri",
		`{"redirect_uris":["ms-settings://cb"]}`:                                               "invalid_redirect_uri",
		`{"redirect_uris":["zed://file/etc/hosts"]}`:                                           "invalid_redirect_uri",
		`{"redirect_uris":["zed://ssh/evil.example/tmp"]}`:                                     "invalid_redirect_uri",
		`{"redirect_uris":["cursor://VSCODE.git/clone"]}`:                                      "invalid_redirect_uri",
		`{"redirect_uris":["vscode://vscode-remote/ssh-remote+evil.example/"]}`:                "invalid_redirect_uri",
		`{"redirect_uris":["cursor://anysphere.cursor-deeplink/mcp/install"]}`:                 "invalid_redirect_uri",
		`{"redirect_uris":["windsurf://x/cb?y"]}`:                                              "invalid_redirect_uri",
		`{` + uri + `,"post_logout_redirect_uris":["other://x"]}`:                              "invalid_client_metadata",
		`{` + uri + `,"token_endpoint_auth_method":"private_key_jwt"}`:                         "invalid_client_metadata",
		`{` + uri + `,` + keyedBy(`{"keys":[]}`) + `}`:                                         "invalid_client_metadata",
		`{` + uri + `,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"http://a.b"}`: "invalid_client_metadata",
		`{` + uri + `,"grant_types":["implicit"]}`:                                             "invalid_client_metadata",
		`{` + uri + `,"response_types":["token"]}`:                                             "invalid_client_metadata",
		`{` + uri + `,"id_token_signed_response_alg":"none"}`:                                  "invalid_client_metadata",
		`{` + uri + `,"subject_type":"pairwise"}`:                                              "invalid_client_metadata",
		`{` + uri + `,"post_logout_redirect_uris":["javascript:x"]}`:                           "invalid_client_metadata",
		`{` + uri + `,"x":"` + strings.Repeat("x", oauth.LongestRegistration) + `"}`:           "invalid_client_metadata",
	} {
		r := register(t, st, body)
		if got := r.Object(t); r.Status != 400 || got["error"] != want || len(got) != 4 {
			t.Errorf("%.90s: got %d %s, want 400 %s", body, r.Status, r.Body, want)
		}
	}
	r := register(t, st, `{"redirect_uris":["https://a.example/cb",7]}`)
	if hint := r.Object(t)["hint"]; hint != "Correct the member redirect_uris at index 1." {
		t.Errorf("got %v, want the index", hint)
	}
	r = register(t, st, agentRegistration, "Content-Type", "text/plain")
	if r.Status != 400 {
		t.Errorf("text: got %d, want 400", r.Status)
	}
	if clients, err := st.Store.Clients(t.Context(), "", 10); err != nil || len(clients) > 0 {
		t.Errorf("got %d clients, %v, want none", len(clients), err)
	}
	if r := register(t, st, agentRegistration); r.Status != 201 {
		t.Errorf("got %d %s after wrong requests, want 201", r.Status, r.Body)
	}
}

func keyedBy(keys string) string {
	return `"token_endpoint_auth_method":"private_key_jwt","jwks":` + keys
}

// TestRegistrationSaysWhatItKeeps sends what has to be narrowed, in both modes.
func TestRegistrationSaysWhatItKeeps(t *testing.T) {
	for _, row := range []struct {
		mode     oauth.RegistrationMode
		sent     string
		member   string
		want     string
		isSecret bool
	}{
		{oauth.RegistrationOpen, ``, "token_endpoint_auth_method", "none", false},
		{oauth.RegistrationToken, ``, "token_endpoint_auth_method", "client_secret_basic", true},
		{oauth.RegistrationToken, `,"token_endpoint_auth_method":"client_secret_post"`,
			"token_endpoint_auth_method", "client_secret_post", true},
		{oauth.RegistrationOpen, `,"token_endpoint_auth_method":"client_secret_post"`,
			"token_endpoint_auth_method", "client_secret_post", true},
		{oauth.RegistrationOpen, `,"token_endpoint_auth_method":"client_secret_basic","jwks":null`,
			"token_endpoint_auth_method", "client_secret_basic", true},
		{oauth.RegistrationOpen, `,"application_type":"native"`, "application_type", "native", false},
		{oauth.RegistrationOpen, `,"scope":" "`, "scope", oauth.GrantableScopes.String(), false},
		{oauth.RegistrationOpen, `,"scope":"notes:read"`, "scope", "<nil>", false},
		{oauth.RegistrationOpen, `,"scope":"openid server-operations notes:read"`, "scope", "openid",
			false},
		{oauth.RegistrationOpen, `,"grant_types":["authorization_code","client_credentials","implicit"]`,
			"grant_types", "[authorization_code]", false},
		{oauth.RegistrationOpen, `,"client_uri":"https://a.example/about"`, "client_uri",
			"https://a.example/about", false},
		{oauth.RegistrationOpen, `,"client_uri":"https://b.example/"`, "client_uri", "<nil>", false},
		{oauth.RegistrationOpen, ``, "client_name", "https://a.example", false},
		{oauth.RegistrationOpen, `,"id_token_signed_response_alg":"ES256"`,
			"id_token_signed_response_alg", "ES256", false},
		{oauth.RegistrationOpen, `,"post_logout_redirect_uris":["https://a.example/out"]`,
			"post_logout_redirect_uris", "[https://a.example/out]", false},
		{oauth.RegistrationOpen, `,` + keyedBy(edgeKeys) + ``, "token_endpoint_auth_method",
			"private_key_jwt", false},
	} {
		t.Run(row.member, func(t *testing.T) {
			st := stacktest.NewIdentity(t, withRegistration(row.mode))
			r := register(t, st, `{"redirect_uris":["https://a.example/cb"]`+row.sent+`}`,
				"Authorization", "Bearer "+registrationToken)
			got := r.Object(t)
			if r.Status != 201 || fmt.Sprint(got[row.member]) != row.want {
				t.Errorf("%s: got %d %s, want %s %s", row.sent, r.Status, r.Body, row.member, row.want)
			}
			secret, _ := got["client_secret"].(string)
			if row.isSecret != (secret != "") || row.isSecret != (got["client_secret_expires_at"] == 0.0) {
				t.Errorf("%s: got %s, want a secret: %v", row.sent, r.Body, row.isSecret)
			}
			if row.isSecret {
				form := stacktest.Values("grant_type", "authorization_code", "code", "x",
					"redirect_uri", "https://a.example/cb")
				r := st.PostToken(t, form, "Authorization",
					stacktest.Basic(got["client_id"].(string), secret))
				if !strings.Contains(r.Body, "invalid_grant") {
					t.Errorf("got %d %s, want a client that is authenticated", r.Status, r.Body)
				}
			}
		})
	}
}

// TestRedirectURIsOfRegisteredClients: one that is refused fails the request, which says which one.
func TestRedirectURIsOfRegisteredClients(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen), func(c *stack.Config) {
		c.Identity.RedirectSchemes = []string{"myapp"}
	})
	st.NewUser(t, "Rosa", rosa)
	a := register(t, st, `{"redirect_uris":["https://a.example/cb","other://cb"]}`)
	if a.FailsAs(t, 400, "invalid_redirect_uri"); !strings.Contains(
		a.Object(t)["error_description"].(string), "index 1") {
		t.Errorf("got %s, want the index of the URI", a.Body)
	}
	a = register(t, st, `{"client_name":"A","redirect_uris":["myapp://cb","vscode://x/y","zed://cb",
"com.example.app:/cb","http://127.0.0.1/"],"application_type":"native"}`)
	id, _ := a.Object(t)["client_id"].(string)
	if a.Status != 201 {
		t.Fatalf("got %d %s, want 201", a.Status, a.Body)
	}
	b := st.NewBrowser(t)
	b.Authorize(askedByRegistered(id, "myapp://cb/")).Shows(t, 400, "/oauth/authorize")
	consent := b.SignIn(askedByRegistered(id, "myapp://cb"), rosa)
	consent.Says(t, "<bdi>myapp:</bdi>", "Another program may have taken")
	if strings.Contains(consent.Body, "a program on your computer gets the access") {
		t.Errorf("got %s, want one warning", consent.Body)
	}
	if p := b.Send(consent, "decision", "allow"); !strings.HasPrefix(p.Location, "myapp://cb?code=") {
		t.Errorf("got %d to %q, want a code", p.Status, p.Location)
	}
}

// edgeKeys is a set with one public key.
const edgeKeys = `{"keys":[{"kty":"EC","crv":"P-256","kid":"1",
"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`

func TestRegistrationNeedsToken(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationToken))
	for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"},
		{"Authorization", "Basic " + registrationToken}} {
		r := register(t, st, agentRegistration, headers...)
		if r.Status != 401 || r.Object(t)["error"] != "invalid_token" ||
			!strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%q: got %d %v %s, want 401", headers, r.Status, r.Header, r.Body)
		}
	}
	for range 15 { // more than the rate of strangers
		r := register(t, st, agentRegistration, "Authorization", "Bearer "+registrationToken)
		if r.Status != 201 {
			t.Fatalf("got %d %s, want 201", r.Status, r.Body)
		}
	}
	last := 0
	for range 30 {
		last = register(t, st, agentRegistration, "Authorization", "Bearer wrong").Status
	}
	if last != 429 {
		t.Errorf("got %d after many wrong tokens, want 429", last)
	}
}

func TestRegistrationIsOff(t *testing.T) {
	st := stacktest.NewIdentity(t)
	if r := register(t, st, agentRegistration); r.Status != 404 {
		t.Errorf("got %d %s, want 404", r.Status, r.Body)
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server",
		"/.well-known/openid-configuration"} {
		if r := st.Get(t, path); strings.Contains(r.Body, "regist") {
			t.Errorf("%s: got %s", path, r.Body)
		}
	}
	open := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	for _, path := range []string{"/.well-known/oauth-authorization-server",
		"/.well-known/openid-configuration"} {
		said := open.Get(t, path).Object(t)
		methods, _ := said["token_endpoint_auth_methods_supported"].([]any)
		if said["registration_endpoint"] != open.URL+"/oauth/register" ||
			!slices.Contains(methods, "private_key_jwt") {
			t.Errorf("%s: got %v", path, said)
		}
	}
}

// TestRegistrationFlood registers from many addresses of a /48, and then from 256 /48s until there is
// no more room. The clients of others stay, and further ones are registered.
func TestRegistrationFlood(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen),
		func(c *stack.Config) { c.Identity.RegistrationPerHour = 10 })
	honest := register(t, st, agentRegistration, "X-Forwarded-For", "192.0.2.1").Object(t)
	statuses := map[int]int{}
	for i := range 100 {
		r := register(t, st, agentRegistration, "X-Forwarded-For",
			fmt.Sprintf("2001:db8:1:%x00::1", i))
		statuses[r.Status]++
		if r.Status == 429 && r.Header.Get("Retry-After") == "" {
			t.Errorf("got %v without Retry-After", r.Header)
		}
	}
	if statuses[201] != 40 || statuses[429] != 60 {
		t.Errorf("got %v from one /48, want 40 clients", statuses)
	}
	for i, want := range []int{201, 201, 201, 201, 201, 201, 201, 201, 201, 201, 429} {
		if r := register(t, st, agentRegistration, "X-Forwarded-For", "2001:db8:2::1"); r.Status != want {
			t.Errorf("registration %d of an address: got %d %s, want %d", i, r.Status, r.Body, want)
		}
	}
	st.Alter(t, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO clients (id, name, uri, public, operator, introspect_any, loopback_any_port, disabled, detail_approved,
scopes, grants, created, version, epoch, awaits, review, network)
SELECT 'c' || i, 'x', '', TRUE, FALSE, FALSE, FALSE, FALSE, FALSE, 1, 1, 1, 0, 1, 9999999999999, 9999999999999,
'2001:db8:' || (i %% 256) || '::/48' FROM n`,
		oauth.MostAwaiting-51))
	for i := range 150 {
		r := register(t, st, agentRegistration, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))
		if r.Status != 201 {
			t.Errorf("registration %d: got %d %s, want 201", i, r.Status, r.Body)
		}
	}
	if n := st.Alter(t, "UPDATE clients SET name = name WHERE awaits > 0"); n > oauth.MostAwaiting {
		t.Errorf("got %d clients without a consent, want at most %d", n, oauth.MostAwaiting)
	}
	if _, err := st.Tokens.Client(t.Context(), honest["client_id"].(string)); err != nil {
		t.Errorf("got %v, want the client of another network", err)
	}
	stacktest.Must(t, st.Tokens.EndClients(t.Context(), time.Now().Add(oauth.ConsentWithin)))
	if r := register(t, st, agentRegistration, "X-Forwarded-For", "2001:db8:2::1"); r.Status != 201 {
		t.Errorf("got %d %s after the others have ended", r.Status, r.Body)
	}
}

func TestRegistrationIsRecorded(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	id := register(t, st, agentRegistration).Object(t)["client_id"].(string)
	register(t, st, "{}")
	stacktest.Must(t, st.Tokens.EndClients(t.Context(), time.Now().Add(oauth.ConsentWithin)))
	events, err := st.Store.Events(t.Context(), audit.Filter{Limit: 10})
	if err != nil || len(events) != 2 {
		t.Fatalf("got %v, %v, want two events", events, err)
	}
	for i, want := range []audit.Event{
		{Action: audit.ClientRegistered, Target: id,
			Source: audit.Source{Actor: audit.Actor{Kind: audit.Client}}},
		{Action: audit.ClientEnded, Target: id, Details: []string{"unconsented"}},
	} {
		got := events[i]
		if got.Action != want.Action || got.Target != id || got.Actor != want.Actor ||
			got.Subject != want.Subject || !slices.Equal(got.Details, want.Details) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestOperatorSeesHowClientCame(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	operator := st.NewOperator(t)
	id := register(t, st, agentRegistration).Object(t)["client_id"].(string)
	var got struct {
		By    string    `json:"registered_by"`
		Until time.Time `json:"awaits_consent_until"`
	}
	text := operator.Do(200, http.MethodGet, "/clients/"+id, "").Body
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.By != "itself" || got.Until.IsZero() {
		t.Errorf("got %s, %v, want a client that registered itself", text, err)
	}
	text = operator.Do(200, http.MethodGet, "/clients", "").Body
	if !strings.Contains(text, `"registered_by":"operator"`) {
		t.Errorf("got %s, want the operator's client as such", text)
	}
}

func TestRegistrationMatchesOpenAPI(t *testing.T) {
	open := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen),
		func(c *stack.Config) { c.Identity.RegistrationPerHour = 2 })
	d := open.Describe(t)
	for range 3 {
		register(t, open, agentRegistration)
	}
	register(t, open, "{}")
	open.Get(t, "/.well-known/openid-configuration")
	d.Covers("POST /oauth/register 201", "POST /oauth/register 400", "POST /oauth/register 429")
	guarded := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationToken))
	d = guarded.Describe(t)
	register(t, guarded, agentRegistration)
	register(t, guarded, `{"redirect_uris":["https://a.example/"]}`, "Authorization",
		"Bearer "+registrationToken)
	d.Covers("POST /oauth/register 201", "POST /oauth/register 401")
}
