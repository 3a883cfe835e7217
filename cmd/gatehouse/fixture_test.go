package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore/pgtest"
)

// fixture is a database with a user, a client with all grants and an operator, and one server on it
// at a time.
type fixture struct {
	env      []string
	flags    []string // of serve, in addition to anyPorts
	operator operator
	token    string // the operator's
	client   record
	http     *http.Client
	browser  *browser

	listeners map[string]*listener // by client ID
	visits    []*visit
	postbox   *postbox // messages to people; nil = none are sent

	server      *process
	base, admin string
}

// databaseEnv returns the variables of a server on that database. PostgreSQL needs a key file, that
// of pgtest.Migrated.
func databaseEnv(t *testing.T, url string) []string {
	t.Helper()
	env := []string{"GATEHOUSE_DATABASE_URL=" + url}
	if !strings.HasPrefix(url, "sqlite:") {
		env = append(env, "GATEHOUSE_KEY_FILE="+pgtest.KeyFile(t))
	}
	return env
}

// newKeyFile makes a key file and returns its name.
func newKeyFile(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	rand.Read(key)
	return write(t, "gatehouse.key", base64.StdEncoding.EncodeToString(key)+"\n")
}

// newFixture starts a server on an empty database.
func newFixture(t *testing.T, databaseURL string, flags ...string) *fixture {
	t.Helper()
	s := newBare(t, databaseEnv(t, databaseURL), flags...)
	s.prepare(t)
	return s
}

// newBare is newFixture with no more than the operator.
func newBare(t *testing.T, env []string, flags ...string) *fixture {
	t.Helper()
	s := &fixture{env: env, flags: flags, http: newClient(t, "")}
	s.http.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	s.operator = decode[operator](t, runOnce(t, s.env, "init", "--json"))
	s.serve(t)
	return s
}

// serve starts a server.
func (s *fixture) serve(t *testing.T) {
	t.Helper()
	s.server = start(t, s.env, append(append([]string{"serve", "--roles=identity"}, anyPorts...),
		s.flags...)...)
	listen, admin := s.server.ready(t)
	s.base, s.admin = "http://"+listen, "http://"+admin
}

// prepare creates the user and the client, and signs the user in.
func (s *fixture) prepare(t *testing.T) {
	t.Helper()
	got, err := s.post("/oauth/token", url.Values{"grant_type": {"client_credentials"},
		"scope":     {"server-operations"},
		"client_id": {s.operator.ClientID}, "client_secret": {s.operator.ClientSecret}})
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("got %v and error %v, want a token for the operator", got, err)
	}
	s.token = got.AccessToken
	status, body, err := s.manage(http.MethodPost, "/users",
		map[string]any{"name": "Rosa", "email": person, "password": password})
	if err != nil || status != http.StatusCreated {
		t.Fatalf("got %d %s and error %v, want a user", status, body, err)
	}
	s.prepareClient(t)
}

// prepareClient creates the client, to which the user consents in a new browser.
func (s *fixture) prepareClient(t *testing.T) {
	t.Helper()
	status, body, err := s.manage(http.MethodPost, "/clients",
		map[string]any{"name": "Shop", "redirect_uris": []string{callback}, "introspect_any": true,
			"scopes": strings.Fields(userScopes),
			"grants": []string{"authorization_code", "refresh_token", "client_credentials", deviceGrant}})
	if err := errors.Join(err, json.Unmarshal(body, &s.client)); err != nil ||
		status != http.StatusCreated {
		t.Fatalf("got %d %s and error %v, want a client", status, body, err)
	}
	s.browser = newBrowser(t, s.client.ClientID)
	s.browser.consent(t, s.base, s.browser.signIn(t, s.base))
}

// reply is a response of the token, revocation or introspection endpoint.
type reply struct {
	status       int
	retryAfter   string
	AccessToken  string `json:"access_token"`
	IDToken      string `json:"id_token"`
	DeviceCode   string `json:"device_code"`
	UserCode     string `json:"user_code"`
	RefreshToken string `json:"refresh_token"`
	Error        string `json:"error"`
	Active       bool   `json:"active"`
}

// String leaves out the tokens.
func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.Error) }

// post sends a form and reads the response.
func (s *fixture) post(path string, form url.Values) (reply, error) {
	return s.postAt(s.base, path, form)
}

// postAt is post to another server.
func (s *fixture) postAt(base, path string, form url.Values) (reply, error) {
	response, err := s.http.PostForm(base+path, form)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	r := reply{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After")}
	return r, json.NewDecoder(response.Body).Decode(&r)
}

// asClient adds the client's credentials to name, value, name, value…
func (s *fixture) asClient(pairs ...string) url.Values {
	form := url.Values{"client_id": {s.client.ClientID}, "client_secret": {s.client.ClientSecret}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// redemption returns the token request for an authorization code or a device code.
func (s *fixture) redemption(code string) url.Values {
	if oauth.LooksLikeDeviceCode(code) {
		return s.asClient("grant_type", deviceGrant, "device_code", code)
	}
	return s.asClient("grant_type", "authorization_code", "code", code, "redirect_uri", callback,
		"code_verifier", verifier)
}

func (s *fixture) rotation(token string) url.Values {
	return s.asClient("grant_type", "refresh_token", "refresh_token", token)
}

// tokens issues tokens for another code.
func (s *fixture) tokens(t *testing.T) reply {
	t.Helper()
	code, err := s.browser.code(s.base)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ask("/oauth/token", s.redemption(code))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// manage makes a call to the admin API.
func (s *fixture) manage(method, path string, body any) (status int, answer []byte, err error) {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return 0, nil, err
		}
	}
	request, err := http.NewRequest(method, s.admin+"/admin/v1"+path, &content)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return s.do(request)
}

// profile requests a profile from the server at base: /api/user or /api/user/details.
func (s *fixture) profile(base, path, token string) (status int, answer []byte, err error) {
	request, err := http.NewRequest(http.MethodGet, base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	return s.do(request)
}

func (s *fixture) do(request *http.Request) (status int, answer []byte, err error) {
	response, err := s.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
