package contracts_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
)

func start(t *testing.T, config contracts.Config) *contracts.Provider {
	t.Helper()
	p, err := contracts.Start(config)
	stacktest.Must(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("got %v, want the provider to end", err)
		}
	})
	return p
}

// setUp puts the provider into a state.
func setUp(t *testing.T, p *contracts.Provider, state string,
	parameters map[string]any) map[string]any {
	t.Helper()
	values, err := p.SetUp(t.Context(), state, parameters)
	stacktest.Must(t, err)
	return values
}

// response is a response of the service.
type response struct {
	status int
	header http.Header
	body   string
}

func (r response) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(r.body), &o); err != nil {
		t.Fatalf("got %d %s, want a JSON object", r.status, r.body)
	}
	return o
}

// ask sends a request. headers alternates names and values.
func ask(t *testing.T, p *contracts.Provider, method, path, body string,
	headers ...string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.URL()+path,
		strings.NewReader(body))
	stacktest.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
	got, err := client.Do(request)
	stacktest.Must(t, err)
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	stacktest.Must(t, err)
	return response{got.StatusCode, got.Header, string(content)}
}

func token(t *testing.T, p *contracts.Provider, values map[string]any, pairs ...string) response {
	t.Helper()
	form := url.Values{"client_id": {values["client_id"].(string)}}
	if secret, ok := values["client_secret"].(string); ok {
		form.Set("client_secret", secret)
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return ask(t, p, "POST", "/oauth/token", form.Encode(), "Content-Type",
		"application/x-www-form-urlencoded")
}

func bearer(values map[string]any) []string {
	return []string{"Authorization", "Bearer " + values["access_token"].(string)}
}

// TestEveryStateReturnsItsValues sets up each state by itself, and again.
func TestEveryStateReturnsItsValues(t *testing.T) {
	p := start(t, contracts.Config{})
	for _, s := range contracts.Catalogue() {
		t.Run(s.Name, func(t *testing.T) {
			began := time.Now()
			values := setUp(t, p, s.Name, nil)
			again := setUp(t, p, s.Name, nil)
			for _, v := range s.Values {
				if values[v.Name] == nil || values[v.Name] == "" {
					t.Errorf("got no value %s, want one", v.Name)
				}
				if again[v.Name] != values[v.Name] {
					t.Errorf("got %v at the second time, want %v", again[v.Name], values[v.Name])
				}
			}
			if len(values) != len(s.Values) {
				t.Errorf("got %v, want the values of the catalogue alone", values)
			}
			if err := p.TearDown(t.Context()); err != nil {
				t.Error(err)
			}
			t.Log(time.Since(began))
		})
	}
}

// TestInteractionsAreIsolated uses a client of one interaction in the next one.
func TestInteractionsAreIsolated(t *testing.T) {
	p := start(t, contracts.Config{})
	values := setUp(t, p, "a confidential client", nil)
	if got := token(t, p, values, "grant_type", "client_credentials"); got.status != 200 {
		t.Errorf("got %d %s, want a token", got.status, got.body)
	}
	setUp(t, p, "", nil)
	if got := token(t, p, values, "grant_type", "client_credentials"); got.status != 401 {
		t.Errorf("got %d %s in the next interaction, want the client to be gone", got.status,
			got.body)
	}
}

func TestTearDown(t *testing.T) {
	p := start(t, contracts.Config{})
	values := setUp(t, p, "an access token", nil)
	stacktest.Must(t, p.TearDown(t.Context()))
	if got := ask(t, p, "GET", "/api/user", "", bearer(values)...); got.status != 401 {
		t.Errorf("got %d %s, want the token to be gone", got.status, got.body)
	}
}

// TestStatesOfOneInteraction requires that they share the client and the user.
func TestStatesOfOneInteraction(t *testing.T) {
	p := start(t, contracts.Config{})
	ask(t, p, "GET", "/api/user", "") // the previous interaction
	setUp(t, p, "a confidential client", map[string]any{"detail_user_approved": false})
	user := setUp(t, p, "a user registered by phone", nil)
	values := setUp(t, p, "an access token", nil)
	if values["user_id"] != user["user_id"] {
		t.Errorf("got a token of user %v, want %v", values["user_id"], user["user_id"])
	}
	if got := ask(t, p, "GET", "/api/user", "", bearer(values)...); got.status != 200 ||
		got.object(t)["email"] != nil {
		t.Errorf("got %d %s, want a profile without an address", got.status, got.body)
	}
	if got := ask(t, p, "GET", "/api/user/details", "", bearer(values)...); got.status != 403 ||
		got.object(t)["error"] != "unapproved_scope" {
		t.Errorf("got %d %s, want the client not to be approved", got.status, got.body)
	}
}

// TestStateSetUpAgain sets up a client, another client, and the first client again.
func TestStateSetUpAgain(t *testing.T) {
	p := start(t, contracts.Config{})
	first := setUp(t, p, "a confidential client", nil)
	setUp(t, p, "a public client",
		map[string]any{"client_id": "5d0f3f4e-1111-4222-8333-944455556666"})
	setUp(t, p, "a confidential client", nil)
	if values := setUp(t, p, "an authorization code",
		nil); values["client_id"] != first["client_id"] || values["client_secret"] == nil {
		t.Errorf("got a code of %v, want %v", values["client_id"], first["client_id"])
	}
}

// TestSecretsOfPacts uses the secrets of a pact: verifiers put no state values into forms.
func TestSecretsOfPacts(t *testing.T) {
	p := start(t, contracts.Config{})
	code := contracts.ExampleCode
	values := setUp(t, p, "an authorization code", map[string]any{"code": code})
	got := token(t, p, values, "grant_type", "authorization_code", "code", code, "redirect_uri",
		contracts.DefaultRedirectURI)
	if values["code"] != code || got.status != 200 {
		t.Errorf("got %d %s for the code, want 200", got.status, got.body)
	}
	refresh := contracts.ExampleRefreshToken
	values = setUp(t, p, "a refresh token", map[string]any{"refresh_token": refresh})
	if got := token(t, p, values, "grant_type", "refresh_token", "refresh_token",
		refresh); got.status != 200 {
		t.Errorf("got %d %s for the refresh token, want 200", got.status, got.body)
	}
}

// accessTokens have the forms of all releases. The second is from a release that signed tokens.
var accessTokens = []string{contracts.ExampleAccessToken,
	"gtat_MZIOziCt8neUblJ9femjWNa7y3Y35jlvfbMMTZc99Kh4TdRIW5QeFNGmmhH4",
	"gtat_" + strings.Repeat("-", 250), "gtat_x"}

// TestGivenAccessTokens uses given access tokens wherever a request can have one.
func TestGivenAccessTokens(t *testing.T) {
	p := start(t, contracts.Config{})
	for _, access := range accessTokens {
		for _, row := range []struct {
			kind   string
			user   bool
			status int
			body   string // that a profile contains
			about  string // that an introspection contains
		}{
			{"live", true, 200, `"name":"Ada Lovelace"`, `"scope":"view-user detail-user"`},
			{"live", false, 403, `"insufficient_scope"`, `"scope":""`},
			{"expired", true, 401, `"token_expired"`, `{"active":false}`},
			{"expired", false, 401, `"token_expired"`, `{"active":false}`},
			{"revoked", true, 401, `{"message":`, `{"active":false}`},
			{"revoked", false, 401, `{"message":`, `{"active":false}`},
		} {
			prepare := func() map[string]any {
				values := setUp(t, p, "an access token", map[string]any{"access_token": access,
					"kind": row.kind, "user": row.user})
				if values["access_token"] != access {
					t.Errorf("got the value %v, want %s", values["access_token"], access)
				}
				return values
			}
			about := func(path string, values map[string]any, token string) string {
				form := url.Values{"client_id": {contracts.DefaultClientID},
					"client_secret": {values["client_secret"].(string)}}
				return ask(t, p, "POST", path, form.Encode()+"&token="+token, "Content-Type",
					"application/x-www-form-urlencoded; charset=utf-8").body
			}
			prepare()
			for range 2 {
				if got := ask(t, p, "GET", "/api/user", "", "Authorization",
					"Bearer "+access); got.status != row.status ||
					!strings.Contains(got.body, row.body) {
					t.Errorf("%s %+v: got %d %s, want %d %s", access, row, got.status, got.body,
						row.status, row.body)
				}
			}
			values := prepare()
			for _, spelling := range []string{access, strings.Replace(access, "_", "%5F", 1)} {
				if got := about("/oauth/introspect", values, spelling); !strings.Contains(got,
					row.about) {
					t.Errorf("%s %+v: got %s, want %s", spelling, row, got, row.about)
				}
			}
			if got := about("/oauth/revoke", values, access); got != "{}" {
				t.Errorf("%s %+v: got %s for its revocation, want {}", access, row, got)
			}
			if got := about("/oauth/introspect", values, access); got != `{"active":false}` {
				t.Errorf("%s %+v: got %s after its revocation, want it inactive", access, row, got)
			}
		}
	}
}

// TestGivenAccessTokenElsewhere uses a given access token where it is none.
func TestGivenAccessTokenElsewhere(t *testing.T) {
	p := start(t, contracts.Config{})
	access := contracts.ExampleAccessToken
	given := map[string]any{"access_token": access}
	setUp(t, p, "an access token", given)
	if got := ask(t, p, "GET", "/api/user?access_token="+access, ""); got.status != 401 {
		t.Errorf("got %d %s for a token in the query, want 401", got.status, got.body)
	}
	setUp(t, p, "an access token", given)
	if got := ask(t, p, "GET", "/api/user", "", "Authorization",
		"Bearer "+access+"x"); got.status != 401 {
		t.Errorf("got %d %s for a longer token, want 401", got.status, got.body)
	}
	setUp(t, p, "", nil) // the next interaction
	if got := ask(t, p, "GET", "/api/user", "", "Authorization",
		"Bearer "+access); got.status != 401 {
		t.Errorf("got %d %s in the next interaction, want 401", got.status, got.body)
	}
}

// TestLimitOfGivenAccessToken uses up the limit of a given access token.
func TestLimitOfGivenAccessToken(t *testing.T) {
	p := start(t, contracts.Config{})
	access := contracts.ExampleAccessToken
	setUp(t, p, "an access token", map[string]any{"access_token": access})
	if values := setUp(t, p, "the limit of /api/user is used up",
		nil); values["access_token"] != access {
		t.Errorf("got the value %v, want %s", values["access_token"], access)
	}
	if got := ask(t, p, "GET", "/api/user", "", "Authorization",
		"Bearer "+access); got.status != 429 {
		t.Errorf("got %d %s, want 429", got.status, got.body)
	}
}

// TestLargeForm requires that the provider passes on forms that are too large for the service.
func TestLargeForm(t *testing.T) {
	p := start(t, contracts.Config{})
	setUp(t, p, "an access token", map[string]any{"access_token": contracts.ExampleAccessToken})
	form := "token=" + contracts.ExampleAccessToken + "&x=" + strings.Repeat("x", 3<<16)
	if got := ask(t, p, "POST", "/oauth/revoke", form, "Content-Type",
		"application/x-www-form-urlencoded"); got.status != 413 {
		t.Errorf("got %d %s, want 413", got.status, got.body)
	}
}

// TestBusy sends every kind of request with a client or a token to a busy service.
func TestBusy(t *testing.T) {
	p := start(t, contracts.Config{})
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	credentials := "client_id=" + contracts.DefaultClientID + "&client_secret=" +
		contracts.DefaultClientSecret
	bearer := []string{"Authorization", "Bearer " + contracts.ExampleAccessToken}
	for _, row := range []struct {
		method, path, body string
		header             []string
	}{
		{"GET", "/api/user", "", bearer},
		{"GET", "/api/user/details", "", bearer},
		{"POST", "/oauth/token", credentials + "&grant_type=client_credentials", form},
		{"POST", "/oauth/token", credentials + "&grant_type=authorization_code&code=" +
			contracts.ExampleCode + "&redirect_uri=" + contracts.DefaultRedirectURI, form},
		{"POST", "/oauth/token", credentials + "&grant_type=refresh_token&refresh_token=" +
			contracts.ExampleRefreshToken, form},
		{"POST", "/oauth/revoke", credentials + "&token=" + contracts.ExampleAccessToken, form},
		{"POST", "/oauth/revoke", credentials + "&token=" + contracts.ExampleRefreshToken, form},
		{"POST", "/oauth/introspect", credentials + "&token=" + contracts.ExampleAccessToken, form},
		{"POST", "/oauth/introspect", credentials + "&token=" + contracts.ExampleRefreshToken, form},
	} {
		setUp(t, p, "an authorization code", map[string]any{"code": contracts.ExampleCode})
		setUp(t, p, "a refresh token",
			map[string]any{"refresh_token": contracts.ExampleRefreshToken})
		setUp(t, p, "the identity service is busy", nil)
		setUp(t, p, "an access token", map[string]any{"access_token": contracts.ExampleAccessToken})
		if got := ask(t, p, row.method, row.path, row.body, row.header...); got.status != 503 ||
			got.object(t)["error"] != "temporarily_unavailable" {
			t.Errorf("%s %s %s: got %d %s, want 503", row.method, row.path, row.body, got.status,
				got.body)
		}
	}
}

func TestInvalidArguments(t *testing.T) {
	p := start(t, contracts.Config{})
	for _, row := range []struct {
		state      string
		parameters map[string]any
		want       string
	}{
		{"a confidential client", map[string]any{"scope": "everything"}, "scope"},
		{"a confidential client", map[string]any{"grants": "password"}, "password"},
		{"a user", map[string]any{"date_of_birth": "1990-02-31"}, "date_of_birth"},
		{"an authorization code", map[string]any{"code": "gtac_x"}, "code: "},
		{"a refresh token", map[string]any{"refresh_token": "gtrt_x"}, "refresh_token: "},
		{"an access token", map[string]any{"access_token": "gtat_"}, "access_token"},
		{"an access token", map[string]any{"access_token": "gtat_a+b"}, "access_token"},
		{"an access token", map[string]any{"access_token": "gtat_" + strings.Repeat("a", 251)},
			"access_token"},
		{"an access token", map[string]any{"access_token": contracts.ExampleCode}, "access_token"},
		{"the limit of /api/user is used up", map[string]any{"remaining": 100},
			"remaining: got 100, want 0 to 99"},
		{"the limit of /api/user is used up", map[string]any{"remaining": -1}, "remaining"},
		{"the upstream knows a query", map[string]any{"query": "10.0.0.1"}, "10.0.0.1"},
		{"the upstream does not know a query", nil, ""},
		{"the upstream does not know a query", map[string]any{"query": "8.8.8.8"}, "8.8.8.8"},
		{"the caller asks from an address", map[string]any{"address": "home"}, "address"},
		{"the upstream's budget is empty", map[string]any{"seconds": 61},
			"seconds: got 61, want 1 to 60"},
		{"the upstream's budget is empty", map[string]any{"seconds": 0}, "seconds"},
		{"a user", map[string]any{"email": "nope"}, "email"},
		{"a confidential client", map[string]any{"client_id": "a b"},
			"client_id: it must have 3 to 40 letters"},
		{"a public client", map[string]any{"client_id": "12345"},
			"not digits alone"},
		{"a confidential client", map[string]any{"client_secret": "hi"}, "client_secret"},
		{"a confidential client", map[string]any{"client_secret": ""}, "client_secret"},
		{"another client", map[string]any{"client_secret": contracts.OtherClientSecret + "x"},
			"client_secret"},
		{"a confidential client", map[string]any{"client_secret": contracts.OtherClientSecret}, ""},
		{"an authorization code", map[string]any{"code_challenge": "x"},
			"code_challenge: got x, want"},
		{"an authorization code", map[string]any{"code_challenge": contracts.CodeChallenge}, ""},
		{"a person has allowed the client", map[string]any{"scope": "everything"}, "scope"},
		{"the cache holds a query", map[string]any{"query": "a b"}, "a b"},
		{"the cache holds a query", map[string]any{"query": "5.255.255.1"}, ""},
	} {
		_, err := p.SetUp(t.Context(), row.state, row.parameters)
		if row.want == "" && err == nil {
			continue
		}
		var wrong *contracts.StateError
		if !errors.As(err, &wrong) || wrong.State != row.state ||
			!strings.Contains(wrong.Problem, row.want) {
			t.Errorf("%s %v: got %v, want a StateError about %q", row.state, row.parameters, err,
				row.want)
		}
	}
}

// TestCheckState finds wrong values without a provider.
func TestCheckState(t *testing.T) {
	for state, parameters := range map[string]map[string]any{
		"a user": {"email": "nope"}, "a confidential client": {"grants": "password"},
		"an authorization code": {"code": "gtac_x"}, "another client": {"client_secret": "hi"},
		"a public client":                           {"client_id": "a b"},
		"a refresh token":                           {"refresh_token": "gtrt_x"},
		"an access token":                           {"access_token": "gtat_"},
		"the cache holds a query":                   {"query": "a b"},
		"the limit of /api/user/details is used up": {"remaining": 50},
		"the upstream's budget is empty":            {"seconds": 600},
		"the caller asks from an address":           {"address": "home"},
		"a person has allowed the client":           {"scope": "everything"},
	} {
		var wrong *contracts.StateError
		if err := contracts.CheckState(state, parameters); !errors.As(err, &wrong) {
			t.Errorf("%s %v: got %v, want a StateError", state, parameters, err)
		}
	}
	for _, s := range contracts.Catalogue() {
		if err := contracts.CheckState(s.Name, nil); err != nil {
			t.Errorf("got %v, want the defaults of %q taken", err, s.Name)
		}
	}
}

// TestCodeForAnUnregisteredURI requests a code that the client can never get.
func TestCodeForAnUnregisteredURI(t *testing.T) {
	p := start(t, contracts.Config{})
	setUp(t, p, "a public client",
		map[string]any{"redirect_uri": "https://a.example/ http://127.0.0.1/",
			"loopback_any_port": true})
	setUp(t, p, "an authorization code", map[string]any{"redirect_uri": "http://127.0.0.1:8085/"})
	_, err := p.SetUp(t.Context(), "an authorization code",
		map[string]any{"redirect_uri": "https://b.example/"})
	const want = "redirect_uri: https://b.example/ is not registered for the client, which has https://a.example/ http://127.0.0.1/"
	var wrong *contracts.StateError
	if !errors.As(err, &wrong) || wrong.Problem != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestTokenOfTwoStates passes one code or token to two different states.
func TestTokenOfTwoStates(t *testing.T) {
	p := start(t, contracts.Config{})
	for state, name := range map[string]string{"an authorization code": "code",
		"a refresh token": "refresh_token", "an access token": "access_token"} {
		example := map[string]string{"code": contracts.ExampleCode,
			"refresh_token": contracts.ExampleRefreshToken,
			"access_token":  contracts.ExampleAccessToken}[name]
		for range 2 { // the same is no second one
			setUp(t, p, state, map[string]any{name: example})
		}
		_, err := p.SetUp(t.Context(), state, map[string]any{name: example, "scope": "view-user"})
		var wrong *contracts.StateError
		if !errors.As(err, &wrong) ||
			wrong.Problem != name+": another state of this interaction has the same" {
			t.Errorf("%s: got %v, want a StateError about %s", state, err, name)
		}
	}
}

// TestEmailOfTwoUsers sets up two users with the same email address.
func TestEmailOfTwoUsers(t *testing.T) {
	p := start(t, contracts.Config{})
	setUp(t, p, "a user", nil)
	_, err := p.SetUp(t.Context(), "a user with every profile field set", nil)
	var wrong *contracts.StateError
	if !errors.As(err, &wrong) || wrong.State != "a user with every profile field set" ||
		!strings.Contains(wrong.Problem, "the same email") {
		t.Errorf("got %v, want a StateError about the address", err)
	}
}

// TestBrokenProvider changes responses, as a mutant does.
func TestBrokenProvider(t *testing.T) {
	p := start(t, contracts.Config{Wrap: func(service http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Broken", r.URL.Path)
			service.ServeHTTP(w, r)
		})
	}})
	setUp(t, p, "", nil)
	if got := ask(t, p, "GET", "/api/lookup?q=8.8.8.8", ""); got.status != 200 ||
		got.header.Get("X-Broken") != "/api/lookup" {
		t.Errorf("got %d %v, want the changed response", got.status, got.header)
	}
	if got := ask(t, p, "POST", "/_pact/state", `{"state":""}`); got.header.Get("X-Broken") != "" {
		t.Errorf("got %v, want state changes to be left alone", got.header)
	}
}

func TestHiddenRedirect(t *testing.T) {
	p := start(t, contracts.Config{})
	values := setUp(t, p, "a person has allowed the client", nil)
	path := "/oauth/authorize?" +
		url.Values{"response_type": {"code"}, "client_id": {contracts.DefaultClientID},
			"redirect_uri": {contracts.DefaultRedirectURI},
			"scope":        {"view-user"}, "state": {"xyz"}, "skip_account_chooser": {"true"}}.Encode()
	cookie := []string{"Cookie", values["cookie"].(string)}
	if got := ask(t, p, "GET", path, "", cookie...); got.status != 302 ||
		!strings.Contains(got.header.Get("Location"), "?code=") {
		t.Errorf("got %d to %q, want a code", got.status, got.header.Get("Location"))
	}
	got := ask(t, p, "GET", path, "", append(cookie, contracts.HideLocation, "true")...)
	if got.status != 302 || got.header.Get("Location") != "" ||
		!strings.Contains(got.header.Get(contracts.HiddenLocation), "?code=") {
		t.Errorf("got %d %v, want the same under another name", got.status, got.header)
	}
}

// TestConsentDecision uses the provider's simulated browser.
func TestConsentDecision(t *testing.T) {
	p := start(t, contracts.Config{})
	for decision, want := range map[string]string{"allow": "code=", "deny": "error=access_denied"} {
		setUp(t, p, "a person answers the question for consent",
			map[string]any{"decision": decision})
		path := "/oauth/authorize?" +
			url.Values{"response_type": {"code"}, "client_id": {contracts.DefaultClientID},
				"redirect_uri": {contracts.DefaultRedirectURI}, "scope": {"view-user"},
				"state": {"a b&c"}}.Encode()
		got := ask(t, p, "GET", path, "")
		if location := got.header.Get("Location"); got.status != 303 ||
			!strings.Contains(location, want) || !strings.Contains(location, "state=a+b%26c") &&
			!strings.Contains(location, "state=a%20b%26c") {
			t.Errorf("%s: got %d to %q, want %s", decision, got.status, location, want)
		}
	}
}

func TestCallersAddress(t *testing.T) {
	p := start(t, contracts.Config{})
	setUp(t, p, "the caller asks from an address", map[string]any{"address": "2600::1"})
	if got := ask(t, p, "GET", "/api/my-ip", ""); got.status != 200 ||
		got.object(t)["ip"] != "2600::1" {
		t.Errorf("got %d %s, want the address", got.status, got.body)
	}
}

// TestStateChanges uses HTTP, as verifiers in other languages do.
func TestStateChanges(t *testing.T) {
	p := start(t, contracts.Config{})
	for _, row := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"POST", `{"action":"setup","state":"a confidential client","params":{"client_id":"5d0f3f4e-1111-4222-8333-944455556666"}}`, 200, `"client_id":"5d0f3f4e-1111-4222-8333-944455556666"`},
		{"POST", `{"state":"a confidential client","client_id":"5d0f3f4e-1111-4222-8333-944455556666"}`, 200, `"client_id":"5d0f3f4e-1111-4222-8333-944455556666"`},
		{"POST", `{"action":"setup","state":"","params":{}}`, 200, "{}"},
		{"POST", `{"action":"teardown","state":"a confidential client","params":{}}`, 200, "{}"},
		{"POST", `{"action":"setup","state":"a confidental client"}`, 400,
			`did you mean "a confidential client"?`},
		{"POST", `{"action":"setup","state":"a confidential client","params":{"id":1}}`, 400,
			`no parameter "id"`},
		{"POST", `{"action":"setup","state":"a confidential client","params":{"disabled":"yes"}}`,
			400, "want a value of type boolean"},
		{"POST", `{"action":"setup","state":"an access token","params":{"kind":"stale"}}`, 400,
			"want one of live, expired, revoked"},
		{"POST", `{"action":"setup","state":"a user","params":{"email":"nope"}}`, 400,
			"state \"a user\": email is not"},
		{"POST", `{"action":"setup","state":"the limit of /api/user is used up","params":{"remaining":100}}`, 400, "want 0 to 99"},
		{"POST", `{"action":"setup","state":"the upstream knows a query","params":{"query":"10.0.0.1"}}`, 400, "private_range"},
		{"POST", `{"action":"setup","state":"the upstream knows a query","params":{"query":"5.255.255.1"}}`, 400, "the upstream says fail"},
		{"POST", `{"action":"prepare","state":""}`, 400, "want setup or teardown"},
		{"POST", `[]`, 400, "JSON object"},
		{"GET", "", 405, "POST"},
	} {
		if got := ask(t, p, row.method, "/_pact/state", row.body); got.status != row.status ||
			!strings.Contains(got.body, row.want) {
			t.Errorf("%s: got %d %s, want %d %s", row.body, got.status, got.body, row.status,
				row.want)
		}
	}
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
