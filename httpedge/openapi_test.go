package httpedge_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// described checks every response that passes through it against the OpenAPI document that the
// service serves.
type described struct {
	t    *testing.T
	doc  *openapi3.T
	next *http.Transport

	mu   sync.Mutex
	seen map[string]bool // "GET /path 200"
}

func init() {
	for _, kind := range []string{"text/html", "application/x-ndjson"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.PlainBodyDecoder)
	}
}

// describe makes st.Client check every response.
func describe(t *testing.T, st *stacktest.Stack) *described {
	t.Helper()
	a := get(t, st, "/openapi.yaml")
	a.has(t, "Content-Type", "application/yaml")
	doc, err := openapi3.NewLoader().LoadFromData([]byte(a.body))
	if err != nil {
		t.Fatal(err)
	}
	d := &described{t: t, doc: doc, next: st.Client.Transport.(*http.Transport),
		seen: map[string]bool{}}
	st.Client.Transport = d
	return d
}

func (d *described) CloseIdleConnections() { d.next.CloseIdleConnections() }

func (d *described) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	d.check(r, response, body)
	return response, nil
}

func (d *described) check(r *http.Request, response *http.Response, body []byte) {
	path, item := d.find(r.URL.Path)
	operation := item.GetOperation(r.Method)
	if operation == nil {
		d.t.Errorf("got %s %s asked for, want an operation that is described", r.Method, r.URL.Path)
		return
	}
	err := openapi3filter.ValidateResponse(d.t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r, Route: &routers.Route{Spec: d.doc, Path: path, PathItem: item,
				Method: r.Method, Operation: operation},
		},
		Status: response.StatusCode, Header: response.Header,
		Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true,
			ExcludeResponseBody: r.URL.Query().Has("fields")}, // it lacks required members
	})
	if err != nil {
		d.t.Errorf("%s %s: got %d %.300s: %v", r.Method, path, response.StatusCode, body, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[r.Method+" "+path+" "+response.Status[:3]] = true
}

// find returns the path of the document that is meant; one without parameters wins.
func (d *described) find(path string) (string, *openapi3.PathItem) {
	if item := d.doc.Paths.Value(path); item != nil {
		return path, item
	}
	parts := strings.Split(path, "/")
	for pattern, item := range d.doc.Paths.Map() {
		matches := strings.Split(pattern, "/")
		if len(matches) != len(parts) {
			continue
		}
		fits := true
		for i, m := range matches {
			fits = fits && (m == parts[i] || strings.HasPrefix(m, "{"))
		}
		if fits {
			return pattern, item
		}
	}
	return "", &openapi3.PathItem{}
}

// covers checks that these answers came, so that the document was held against them.
func (d *described) covers(answers ...string) {
	d.t.Helper()
	for _, a := range answers {
		if !d.seen[a] {
			d.t.Errorf("got no response %s, want one to hold against the document", a)
		}
	}
}

func TestLookupsMatchOpenAPI(t *testing.T) {
	st := stacktest.New(t)
	d := describe(t, st)
	for _, path := range []string{"/api/lookup?q=8.8.8.8", "/api/lookup?q=example.com",
		"/api/lookup", "/api/lookup?q=10.0.0.1", "/api/my-ip", "/openapi.yaml",
		"/api/lookup?q=8.8.8.8&details=1", "/api/lookup?q=8.8.8.8&fields=city,as",
		"/api/lookup?q=8.8.8.8&fields=x"} {
		get(t, st, path)
	}
	postBulk(t, st, `{"queries":["8.8.8.8","10.0.0.1",""]}`)
	postBulk(t, st, `{"queries":[]}`)
	send(t, st, "POST", st.URL+"/api/bulk", "x", "Content-Type", "text/plain")
	postBulk(t, st, strings.Repeat(" ", 1<<17))
	send(t, st, "POST", st.URL+"/api/bulk?fields=ip", bulkOf(t, "8.8.8.8", "x"), "Content-Type",
		"application/json")
	for _, body := range []string{"8.8.8.8\nx\n", "", strings.Repeat(" ", 1<<20+1)} {
		postStream(t, st, "text/plain", body)
	}
	postStream(t, st, "text/csv", "8.8.8.8")
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		send(t, st, "GET", st.AdminURL+path, "")
	}
	d.covers("GET /api/lookup 200", "GET /api/lookup 400", "GET /api/my-ip 400",
		"POST /api/bulk 200", "POST /api/bulk 400", "POST /api/bulk 413",
		"POST /api/bulk 415", "POST /api/stream 200", "POST /api/stream 400",
		"POST /api/stream 413", "POST /api/stream 415", "GET /healthz 200", "GET /readyz 200", "GET /metrics 200",
		"GET /openapi.yaml 200")
}

func TestIdentityEndpointsMatchOpenAPI(t *testing.T) {
	st := stacktest.NewIdentity(t, func(c *stack.Config) {
		c.Identity.Lifetimes.AccessToken = time.Hour
	})
	d := describe(t, st.Stack)
	c, u := st.NewClient(t, nil), st.NewUser(t, "Ada", "ada@example.com")
	b := newBrowser(t, st)
	consent := b.signIn(asked(c, "scope", "view-user detail-user"), u.Email)
	code := b.send(consent, "decision", "allow").gets(t, st)
	token := redeem(t, st, c, code).object(t)
	redeem(t, st, c, "no code")
	access, refresh := token["access_token"].(string), token["refresh_token"].(string)
	postToken(t, st, query("grant_type", "refresh_token", "refresh_token", refresh, "client_id",
		c.ID, "client_secret", "wrong"))
	postToken(t, st, query("grant_type", "client_credentials"), "Authorization",
		basic(c.ID, "wrong"))
	send(t, st.Stack, "POST", st.URL+"/oauth/token", "{}", "Content-Type", "application/json")
	for range 101 {
		get(t, st.Stack, "/api/user", "Authorization", "Bearer "+access)
	}
	get(t, st.Stack, "/api/user/details", "Authorization", "Bearer "+access)
	get(t, st.Stack, "/api/user", "Authorization", "Bearer garbage")
	get(t, st.Stack, "/api/user/details")
	approved := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	detailed, _ := newToken(t, st, approved, u.ID, oauth.UserScopes)
	get(t, st.Stack, "/api/user/details", "Authorization", "Bearer "+detailed)
	get(t, st.Stack, "/.well-known/oauth-authorization-server")
	get(t, st.Stack, "/oauth/authorize?client_id=nobody")
	for _, path := range []string{"/oauth/introspect", "/oauth/revoke"} {
		for _, form := range []string{"token=" + access, "token=unknown", "token="} {
			send(t, st.Stack, "POST", st.URL+path,
				form+"&client_id="+c.ID+"&client_secret="+c.Secret, "Content-Type",
				"application/x-www-form-urlencoded")
		}
	}
	b.get("/accounts?" + asked(c).Encode())
	b.send(b.get("/logout"))
	b.get("/login")
	d.covers("POST /oauth/token 200", "POST /oauth/token 400", "POST /oauth/token 401",
		"GET /oauth/authorize 302", "GET /oauth/authorize 400",
		"GET /api/user 200", "GET /api/user 401", "GET /api/user 429", "GET /api/user/details 200",
		"GET /api/user/details 401", "GET /api/user/details 403",
		"GET /.well-known/oauth-authorization-server 200", "POST /oauth/introspect 200",
		"POST /oauth/introspect 400", "POST /oauth/revoke 200",
		"POST /oauth/revoke 400", "GET /login 200", "POST /login 303", "GET /consent 200",
		"POST /consent 303", "GET /accounts 200", "GET /logout 200")
}

func TestRegistrationMatchesOpenAPI(t *testing.T) {
	open := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	d := describe(t, open.Stack)
	for range 11 {
		register(t, open, agentRegistration)
	}
	register(t, open, "{}")
	get(t, open.Stack, "/.well-known/openid-configuration")
	d.covers("POST /oauth/register 201", "POST /oauth/register 400", "POST /oauth/register 429")
	guarded := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationToken))
	d = describe(t, guarded.Stack)
	register(t, guarded, agentRegistration)
	register(t, guarded, `{"redirect_uris":["https://a.example/"]}`, "Authorization",
		"Bearer "+registrationToken)
	d.covers("POST /oauth/register 201", "POST /oauth/register 401")
}

func TestOperatorErrorsMatchOpenAPI(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := describe(t, st.Stack)
	c, u := st.NewClient(t, nil), st.NewUser(t, "Ada", "ada@example.com")
	users, _ := newToken(t, st, c, u.ID, oauth.UserScopes)
	for _, authorization := range []string{"", "Bearer garbage", "Bearer " + users} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			send(t, st.Stack, method, st.AdminURL+"/admin/v1/users", "", "Authorization",
				authorization)
		}
	}
	d.covers("GET /admin/v1/users 401", "GET /admin/v1/users 403", "HEAD /admin/v1/users 401",
		"HEAD /admin/v1/users 403",
		"POST /admin/v1/users 401", "POST /admin/v1/users 403")
}
