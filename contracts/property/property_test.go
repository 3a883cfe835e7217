package property_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
	"gatehouse/contracts/coverage"
)

var random = flag.Duration("random", 0, "try sequences from random seeds for this long")

// sequences is the number of sequences from fixed seeds.
const sequences = 500

// fixedSeed is one that shows each planted defect. Another operation may need another one.
const fixedSeed = 1

// asked is the seed on the command line, which a failure names; "0" = none.
var asked string

func TestMain(m *testing.M) {
	flag.Parse()
	asked = flag.Lookup("rapid.seed").Value.String()
	// A failure is printed, with the seed that repeats it; it needs no file in the repository.
	if err := errors.Join(flag.Set("rapid.nofailfile", "true"),
		flag.Set("rapid.shrinktime", "20s")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// given holds states that a sequence can begin with.
var given = [][]state{
	nil,
	{{"a confidential client", map[string]any{"scope": everyScope, "grants": everyGrant,
		"post_logout_redirect_uri": "https://app.example/bye"}},
		{"an access token", map[string]any{"access_token": contracts.ExampleAccessToken,
			"scope": everyScope}},
		{"an authorization code", map[string]any{"code": contracts.ExampleCode, "nonce": "n1",
			"scope": everyScope}},
		{"a refresh token", map[string]any{"refresh_token": contracts.ExampleRefreshToken,
			"scope": everyScope}},
		{"a person has allowed the client", map[string]any{"scope": everyScope}}},
	{{"a public client", map[string]any{"scope": everyScope}},
		{"an authorization code", map[string]any{"code": contracts.ExampleCode, "scope": "openid"}},
		{"a person is signed in", nil}},
	{{"a resource server", nil},
		{"a confidential client", map[string]any{"grants": everyGrant, "access_token_format": "jwt",
			"scope": everyScope}},
		{"a device code", map[string]any{"kind": "pending"}},
		{"an access token", map[string]any{"user": false, "scope": ""}}},
	{{"a resource server", nil}, {"another resource server", nil},
		{"a confidential client", map[string]any{"grants": everyGrant + " urn:ietf:params:oauth:grant-type:token-exchange",
			"exchange": contracts.DefaultResource + " https://mail.example read"}},
		{"an access token", map[string]any{"access_token": contracts.ExampleAccessToken, "resource": contracts.DefaultResource}}},
	{{"a confidential client", nil}, {"an access token", nil},
		{"the limit of /api/user is used up", map[string]any{"remaining": 1, "elapsed": 10}}},
	{{"clients may register themselves", nil}},
	{{"the cache holds a query", nil}, {"the upstream is down", nil}},
	{{"the upstream's budget is empty", nil}},
	{{"the cache holds a query", nil}, {"the geolocation service is overloaded", nil}},
	{{"a confidential client", map[string]any{"grants": everyGrant}},
		{"an access token", nil}, {"the identity service is busy", nil}},
	{{"this address has failed to authenticate too often", nil}},
	{{"a user with no optional profile field", nil}, {"a confidential client", nil},
		{"an access token", nil}, {"the user is disabled", nil}},
	{{"the upstream has been down for a while", nil}},
	{{"the caller asks from an address", map[string]any{"address": "2001:4860:4860::8888"}}},
}

// state is a provider state.
type state struct {
	name       string
	parameters map[string]any
}

const (
	everyScope = "view-user detail-user openid profile email phone address offline_access"
	everyGrant = "authorization_code refresh_token client_credentials urn:ietf:params:oauth:grant-type:device_code"
)

// service is gatehouse in one process, whose responses are checked.
type service struct {
	*contracts.Provider
	mu     sync.Mutex
	broken []string
	hidden []planted // that no response has shown yet
}

// start starts a service.
func start(t *testing.T) *service {
	t.Helper()
	s := &service{hidden: slices.Clone(allPlanted)}
	p, err := contracts.Start(contracts.Config{Wrap: func(real http.Handler) http.Handler {
		return coverage.Checked(real, func() map[string]any { return s.Values() },
			func(err error) { s.add("%v", err) })
	}})
	stacktest.Must(t, err)
	s.Provider = p
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *service) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

// sequence draws states and requests, and fails when a response is wrong.
func (s *service) sequence(all []operation) func(*rapid.T) {
	return func(t *rapid.T) {
		ctx := context.Background()
		s.broken = nil
		if err := s.TearDown(ctx); err != nil {
			t.Fatal(err)
		}
		k := newKnown()
		n := rapid.IntRange(0, len(given)-1).Draw(t, "states")
		for _, one := range given[n] {
			values, err := s.SetUp(ctx, one.name, one.parameters)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range values {
				k.learn(name, fmt.Sprint(value))
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			r := k.draw(t, all)
			if strings.HasPrefix(r.target, "/oauth/register") && !registers(given[n]) {
				continue // the document has the path for services that register clients
			}
			response := s.send(t, r)
			if response == nil {
				continue
			}
			if response.Code == http.StatusInternalServerError || response.Code == http.StatusBadGateway &&
				strings.HasPrefix(response.Body.String(), "the service did not respond") {
				s.add("got %d %.200s", response.Code, response.Body)
			}
			if len(s.broken) > 0 {
				t.Fatalf("%s\n%s", r, strings.Join(s.broken, "\n"))
			}
			k.read(response)
		}
	}
}

// registers reports whether clients may register themselves in these states.
func registers(states []state) bool {
	return slices.ContainsFunc(states, func(one state) bool {
		return one.name == "clients may register themselves"
	})
}

// send sends a request; nil = no client could send it.
func (s *service) send(t *rapid.T, r request) *httptest.ResponseRecorder {
	u, err := url.ParseRequestURI(r.target)
	if err != nil {
		return nil
	}
	base, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	sent, err := http.NewRequest(r.method, s.URL()+"/", strings.NewReader(r.body))
	if err != nil {
		return nil
	}
	u.Scheme, u.Host = base.Scheme, base.Host
	sent.URL, sent.Header, sent.RequestURI, sent.RemoteAddr = u, r.header, r.target, "127.0.0.1:1"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, sent.Clone(context.Background()))
	sent.Body = io.NopCloser(strings.NewReader(r.body))
	s.hidden = slices.DeleteFunc(s.hidden, func(p planted) bool { return p.finds(sent, s.Values(), w) })
	return w
}

// read learns what a response issues.
func (k known) read(response *httptest.ResponseRecorder) {
	body := map[string]any{}
	text, err := io.ReadAll(response.Body)
	if err != nil || response.Code >= http.StatusBadRequest {
		return
	}
	for _, name := range []string{"access_token", "refresh_token", "device_code", "id_token",
		"client_id", "client_secret"} {
		if value, ok := member(text, body, name); ok {
			k.learn(name, value)
			switch name {
			case "access_token", "refresh_token":
				k.learn("token", value)
			case "id_token":
				k.learn("id_token_hint", value)
			}
		}
	}
	if u, err := url.Parse(response.Header().Get("Location")); err == nil {
		k.learn("code", u.Query().Get("code"))
	}
}

// TestSequences tries sequences from a fixed seed, or that of -rapid.seed: each run tries the same. Those
// of the fixed seed show each planted defect.
func TestSequences(t *testing.T) {
	all, s := operations(t), start(t)
	if *random == 0 {
		seed, err := strconv.ParseUint(asked, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		check(t, cmp.Or(seed, fixedSeed), sequences, s.sequence(all))
		if seed != 0 {
			return
		}
		for _, p := range s.hidden {
			t.Errorf("got no violation by the defect %q, want it found", p.name)
		}
		return
	}
	for end := time.Now().Add(*random); time.Now().Before(end) && !t.Failed(); {
		check(t, uint64(time.Now().UnixNano()), sequences, s.sequence(all))
	}
}

// check tries a property with a number of cases from a seed.
func check(t rapid.TB, seed uint64, cases int, property func(*rapid.T)) {
	t.Helper()
	for name, value := range map[string]any{"rapid.seed": seed, "rapid.checks": cases} {
		if err := flag.Set(name, fmt.Sprint(value)); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, property)
}
