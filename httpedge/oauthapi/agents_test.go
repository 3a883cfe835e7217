package oauthapi_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// agent is what a client of the Model Context Protocol sends, in testdata/agents.json.
type agent struct {
	Client        string
	Registrations []map[string]any // bodies
	Documents     []map[string]any // metadata documents
	Scope         string           // "*" stands for the whole scopes_supported
	State, Prompt string
	// Authorize, Token and Refresh are the names of what it sends, in its order. What is not there is
	// not sent, but for what authenticates the client.
	Authorize, Token, Refresh string
}

// ordered writes a form as the agent does: the names in its order, and then what is left of them.
func ordered(names string, form url.Values) string {
	var parts []string
	for _, name := range append(strings.Fields(names), slices.Sorted(maps.Keys(form))...) {
		for _, value := range form[name] {
			parts = append(parts, name+"="+url.QueryEscape(value))
		}
		delete(form, name)
	}
	return strings.Join(parts, "&")
}

func readAgents(t *testing.T) (all []agent) {
	t.Helper()
	text, err := os.ReadFile("testdata/agents.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	stacktest.Must(t, err)
	return all
}

// served are the documents that clients serve, by URL.
type served map[string]any

func (s served) Fetch(_ context.Context, address string, _ time.Duration, _ oauth.Payer) ([]byte, error) {
	document, ok := s[address]
	if !ok {
		return nil, errors.New("the server responded with status 403")
	}
	return json.Marshal(document)
}

const (
	agentsAPI  = "https://mcp.example/mcp"
	agentsRoot = "https://root.example"
)

// replay is a client of a service that agents may use.
type replay struct {
	st        *stacktest.IdentityStack
	b         *stacktest.Browser
	api       stacktest.Client
	key       *rsa.PrivateKey // of documents with a jwks_uri
	supported string          // scopes_supported
	callers   int
	agent     agent
}

func newReplay(t *testing.T) *replay {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	stacktest.Must(t, err)
	documents := served{"https://chatgpt.com/oauth/jwks.json": jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: &key.PublicKey, KeyID: "k", Algorithm: "RS256", Use: "sig"}}}}
	for _, a := range readAgents(t) {
		for _, d := range a.Documents {
			documents[d["client_id"].(string)] = d
		}
	}
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen), func(c *stack.Config) {
		c.Identity.ClientMetadata, c.Identity.Fetcher = true, documents
	})
	o := st.NewOperator(t)
	o.Do(201, http.MethodPost, "/resources", `{"uri":"`+agentsAPI+`","scopes":["mcp-access"]}`)
	o.Do(201, http.MethodPost, "/resources", `{"uri":"`+agentsRoot+`"}`)
	st.NewUser(t, "Rosa", rosa)
	var scopes []string
	for _, name := range st.Get(t, "/.well-known/oauth-authorization-server").Object(t)["scopes_supported"].([]any) {
		scopes = append(scopes, name.(string))
	}
	return &replay{st: st, b: st.NewBrowser(t), key: key, supported: strings.Join(scopes, " "),
		api: st.NewClient(t, func(c *oauth.Client) { c.IntrospectAny = true })}
}

// registered registers a body as it is, and checks the response. No request has a User-Agent.
func (r *replay) registered(t *testing.T, sent map[string]any) (id, secret, method string) {
	t.Helper()
	body, err := json.Marshal(sent)
	stacktest.Must(t, err)
	r.callers++
	a := register(t, r.st, string(body), "User-Agent", "",
		"X-Forwarded-For", fmt.Sprintf("203.0.%d.1", r.callers))
	if a.Status != 201 {
		t.Fatalf("got %d %s for %s, want 201", a.Status, a.Body, body)
	}
	got := a.Object(t)
	for name, value := range got {
		if value == nil {
			t.Errorf("got %s null", name)
		}
	}
	want, _ := sent["token_endpoint_auth_method"].(string)
	if want == "" {
		want = "none"
	}
	method, _ = got["token_endpoint_auth_method"].(string)
	secret, _ = got["client_secret"].(string)
	if fmt.Sprint(got["redirect_uris"]) != fmt.Sprint(sent["redirect_uris"]) || method != want ||
		(secret != "") != strings.HasPrefix(method, "client_secret_") {
		t.Errorf("got %s for %s, want its URIs and its method", a.Body, body)
	}
	return got["client_id"].(string), secret, method
}

var port = regexp.MustCompile(`^(http://(?:127\.0\.0\.1|localhost))(?::\d+)?(/|$)`)

// redirects returns the redirect URIs of a client as it uses them: on loopback, other ports as well.
func redirects(client map[string]any) (all []string) {
	for _, item := range client["redirect_uris"].([]any) {
		uri := item.(string)
		all = append(all, uri)
		if port.MatchString(uri) {
			all = append(all, port.ReplaceAllString(uri, "${1}:43661${2}"))
		}
	}
	return all
}

// asked returns the authorization request of the agent.
func (r *replay) asked(id, redirect string) url.Values {
	q := stacktest.Values("response_type", "code", "client_id", id, "redirect_uri", redirect,
		"state", r.agent.State, "prompt", r.agent.Prompt, "code_challenge", stacktest.Challenge(),
		"code_challenge_method", "S256", "resource", agentsAPI)
	if scope := strings.ReplaceAll(r.agent.Scope, "*", r.supported); scope != "" {
		q.Set("scope", scope)
	}
	return q
}

// answered has the person decide about a request, and returns what the client gets.
func (r *replay) answered(t *testing.T, q url.Values, decision string) url.Values {
	t.Helper()
	p := r.b.Get("/oauth/authorize?" + ordered(r.agent.Authorize, maps.Clone(q)))
	for range 4 {
		to := p.Location
		if _, link, ok := strings.Cut(p.Body, `rel="noreferrer" href="`); ok { // to one it does not know
			link, _, _ = strings.Cut(link, `"`)
			to = html.UnescapeString(link)
		}
		switch at, _, _ := strings.Cut(p.Path, "?"); {
		case to != "":
			query, ok := strings.CutPrefix(to, q.Get("redirect_uri")+"?")
			got, err := url.ParseQuery(query)
			if !ok || err != nil || got.Get("iss") != r.st.URL || got.Get("state") != q.Get("state") {
				t.Fatalf("got %s, %v, want %s with iss and the state %s", to, err,
					q.Get("redirect_uri"), q.Get("state"))
			}
			return got
		case at == "/login":
			p = r.b.Send(p, "email", rosa, "password", stacktest.Password)
		case at == "/accounts":
			p = r.b.Send(p, "account", "1")
		case at == "/consent" && p.Status == 200:
			shown(t, p, q)
			p = r.b.Send(p, "decision", decision)
		default:
			t.Fatalf("got %d %s for %v", p.Status, p.Body, q)
		}
	}
	t.Fatalf("got no end of pages for %v", q)
	return nil
}

// shown checks that the consent page says who asks, who gets the access, and to what.
func shown(t *testing.T, p stacktest.Page, q url.Values) {
	t.Helper()
	document, _ := url.Parse(q.Get("client_id"))
	to, _ := url.Parse(q.Get("redirect_uri"))
	isHere := port.MatchString(to.String())
	host := document.Host
	var want []string
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		want = []string{"opens for " + to.Scheme + ": addresses", "Another program may have taken them",
			"go on to " + to.String()}
	case isHere:
		want = []string{"A program on your computer gets the access", "go on to http://" + to.Host}
	case host == "":
		host = to.Host
		fallthrough
	default:
		want = []string{"Go on only if you know " + host, "go on to https://" + to.Host}
	}
	heading := "An unverified app at " + host + " wants to use your account"
	if host == "" {
		heading = "A program on this computer wants to use your account"
	}
	want = append(want, "<h1>"+heading+"</h1>")
	if resource, ok := strings.CutPrefix(q.Get("resource"), "https://mcp.example"); ok {
		want = append(want, "use mcp.example"+resource+" in your name")
	}
	said := strings.NewReplacer("<bdi>", "", "</bdi>", "").Replace(p.Body)
	for _, text := range want {
		if !strings.Contains(said, text) {
			t.Errorf("got %s for %v, want %q", said, q, text)
		}
	}
}

// posted posts a token request with the names in an order, which authenticates in a way.
func (r *replay) posted(t *testing.T, names, way, id, secret string, form url.Values) stacktest.Response {
	t.Helper()
	form = maps.Clone(form)
	var headers []string
	switch way {
	case "none", "client_secret_post":
		form.Set("client_id", id)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	case "client_secret_basic": // not form-encoded, and with client_id in the body
		form.Set("client_id", id)
		headers = []string{"Authorization", stacktest.Basic(id, secret)}
	case "basic_empty":
		headers = []string{"Authorization", stacktest.Basic(url.QueryEscape(id), "")}
	case "basic_empty_raw":
		headers = []string{"Authorization", stacktest.Basic(id, "")}
	case "private_key_jwt":
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", stacktest.Assertion(t, r.key, id, r.st.URL))
	}
	r.callers++
	return r.st.Send(t, http.MethodPost, r.st.URL+"/oauth/token", ordered(names, form), append(headers,
		"Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-For",
		fmt.Sprintf("198.%d.%d.1", 51+r.callers/250, r.callers%250))...)
}

// granted redeems a code and refreshes twice, and checks whom the tokens are for. A request whose
// client authentication fails comes first.
func (r *replay) granted(t *testing.T, way, id, secret string, q url.Values, code string,
	refreshes bool) map[string]any {
	t.Helper()
	form := stacktest.Values("grant_type", "authorization_code", "code", code,
		"redirect_uri", q.Get("redirect_uri"), "code_verifier", stacktest.Verifier,
		"resource", q.Get("resource"))
	r.posted(t, r.agent.Token, "client_secret_basic", id, "wrong", form).FailsAs(t, 401, "invalid_client")
	a := r.posted(t, r.agent.Token, way, id, secret, form)
	tokens := a.Object(t)
	if a.Status != 200 {
		t.Fatalf("%s: got %d %s, want tokens", way, a.Status, a.Body)
	}
	if !refreshes {
		return tokens
	}
	last := tokens
	for range 3 {
		said := r.st.Introspect(t, r.api, last["access_token"])
		if aud, _ := said["aud"].([]any); said["active"] != true || len(aud) == 0 || aud[0] != agentsAPI {
			t.Errorf("%s: got %v, want a token for %s", way, said, agentsAPI)
		}
		again := stacktest.Values("grant_type", "refresh_token", "refresh_token",
			last["refresh_token"].(string))
		if slices.Contains(strings.Fields(r.agent.Refresh), "resource") {
			again.Set("resource", q.Get("resource"))
		}
		a := r.posted(t, r.agent.Refresh, way, id, secret, again)
		fresh := a.Object(t)
		if a.Status != 200 || fresh["refresh_token"] == last["refresh_token"] {
			t.Fatalf("%s: got %d %s, want another refresh token", way, a.Status, a.Body)
		}
		last = fresh
	}
	return tokens
}

// TestAgents replays what agents send: each registration and each metadata document, with each
// redirect URI and each way to authenticate.
func TestAgents(t *testing.T) {
	r := newReplay(t)
	for _, path := range []string{"/oauth/register", "/oauth/token",
		"/.well-known/oauth-authorization-server"} { // for agents that are web pages
		a := r.st.Send(t, "OPTIONS", r.st.URL+path, "", "Origin", "http://localhost:6274")
		if !strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version") {
			t.Errorf("%s: got %v, want the protocol's header allowed", path, a.Header)
		}
	}
	for _, a := range readAgents(t) {
		t.Run(a.Client, func(t *testing.T) {
			r.agent, r.b.T = a, t
			for _, sent := range a.Registrations {
				id, secret, method := r.registered(t, sent)
				grants, _ := sent["grant_types"].([]any)
				denied := r.answered(t, r.asked(id, redirects(sent)[0]), "deny")
				if denied.Get("error") != "access_denied" {
					t.Errorf("got %v, want access_denied", denied)
				}
				for _, redirect := range redirects(sent) {
					q := r.asked(id, redirect)
					ways := []string{method}
					if method == "none" {
						ways = append(ways, "basic_empty")
					} else {
						ways = append(ways, "client_secret_basic")
					}
					for _, way := range ways {
						code := r.answered(t, q, "allow").Get("code")
						r.granted(t, way, id, secret, q, code, slices.Contains(grants, any("refresh_token")))
					}
				}
			}
			for _, document := range a.Documents {
				id := document["client_id"].(string)
				grants, _ := document["grant_types"].([]any)
				ways := []string{"none", "basic_empty", "basic_empty_raw"}
				if _, ok := document["jwks_uri"]; ok {
					ways = []string{"private_key_jwt"}
					if _, ok := document["token_endpoint_auth_methods_supported"]; ok {
						ways = append(ways, "none")
					}
				}
				for _, redirect := range redirects(document) {
					q := r.asked(id, redirect)
					for _, way := range ways {
						code := r.answered(t, q, "allow").Get("code")
						r.granted(t, way, id, "", q, code, slices.Contains(grants, any("refresh_token")))
					}
				}
			}
		})
	}
}

// TestScopesOfAgents asks for scopes in the ways that agents do, with a registration without scope
// and with a narrow one. The response says what was granted, if that is not what was asked for.
func TestScopesOfAgents(t *testing.T) {
	r := newReplay(t)
	for _, row := range []struct {
		registered, scope, resource, want string
		aud                               string
	}{
		{"", "", "", "view-user", ""},
		{"", " ", "", "view-user", ""},
		{"", " offline_access", "", "", ""},
		{"", "*", "", "", ""},
		{"", "* server-operations nonsense", "", "*", ""},
		{"", "openid mcp-access", "", "openid", ""},
		{"", "openid  mcp-access", agentsAPI, "", agentsAPI},
		{"openid email", "*", "", "openid email", ""},
		{"openid email", "", "", "openid email", ""},
		{"mcp-access", "", agentsAPI + "/../mcp", "invalid_target", ""},
		{"mcp-access", "mcp-access", agentsAPI, "", agentsAPI},
		{"", "", agentsRoot + "/", "", agentsRoot},
		{"", "mcp-access", "HTTPS://MCP.example/mcp", "", agentsAPI},
		{"", "server-operations", "", "invalid_scope", ""},
		{"", "mcp-access", "", "invalid_scope", ""},
	} {
		t.Run(row.scope+" "+row.resource, func(t *testing.T) {
			r.b.T = t
			sent := map[string]any{"redirect_uris": []any{"https://a.example/cb"}, "scope": row.registered}
			id, _, _ := r.registered(t, sent)
			q := r.asked(id, "https://a.example/cb")
			q.Set("scope", strings.ReplaceAll(row.scope, "*", r.supported))
			q.Set("resource", row.resource)
			want := strings.ReplaceAll(row.want, "*", r.supported)
			if strings.HasPrefix(want, "invalid_") { // on a page, since nobody knows the client
				if p := r.b.Authorize(q); p.Status != 400 {
					t.Errorf("got %d to %s, want a page", p.Status, p.Location)
				}
				return
			}
			tokens := r.granted(t, "none", id, "", q, r.answered(t, q, "allow").Get("code"), false)
			if got, _ := tokens["scope"].(string); got != want {
				t.Errorf("got the scope %q, want %q", got, want)
			}
			said := r.st.Introspect(t, r.api, tokens["access_token"])
			if aud, _ := said["aud"].([]any); row.aud != "" && (len(aud) == 0 || aud[0] != row.aud) {
				t.Errorf("got %v, want the audience %s", said, row.aud)
			}
		})
	}
}
