package httpedge_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

func TestLookupsMatchOpenAPI(t *testing.T) {
	st := stacktest.New(t)
	d := st.Describe(t)
	for _, path := range []string{"/api/lookup?q=8.8.8.8", "/api/lookup?q=example.com",
		"/api/lookup", "/api/lookup?q=10.0.0.1", "/api/my-ip", "/openapi.yaml",
		"/api/lookup?q=8.8.8.8&details=1", "/api/lookup?q=8.8.8.8&fields=city,as",
		"/api/lookup?q=8.8.8.8&fields=x", "/api/lookup?q=8.8.8.8&fields=flags,prefix"} {
		st.Get(t, path)
	}
	st.PostBulk(t, `{"queries":["8.8.8.8","10.0.0.1",""]}`)
	st.PostBulk(t, `{"queries":[]}`)
	st.Send(t, "POST", st.URL+"/api/bulk", "x", "Content-Type", "text/plain")
	st.PostBulk(t, strings.Repeat(" ", 1<<17))
	st.Send(t, "POST", st.URL+"/api/bulk?fields=ip", stacktest.BulkBody(t, "8.8.8.8", "x"),
		"Content-Type", "application/json")
	for _, body := range []string{"8.8.8.8\nx\n", "", strings.Repeat(" ", 1<<20+1)} {
		st.PostStream(t, "text/plain", body)
	}
	st.PostStream(t, "text/csv", "8.8.8.8")
	for _, view := range []string{"fields=city", "details=1"} {
		st.Send(t, "POST", st.URL+"/api/stream?"+view, "8.8.8.8\nx\n", "Content-Type", "text/plain")
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		st.Send(t, "GET", st.AdminURL+path, "")
	}
	d.Covers("GET /api/lookup 200", "GET /api/lookup 400", "GET /api/my-ip 400",
		"POST /api/bulk 200", "POST /api/bulk 400", "POST /api/bulk 413",
		"POST /api/bulk 415", "POST /api/stream 200", "POST /api/stream 400",
		"POST /api/stream 413", "POST /api/stream 415", "GET /healthz 200", "GET /readyz 200", "GET /metrics 200",
		"GET /openapi.yaml 200")
}

func TestIdentityEndpointsMatchOpenAPI(t *testing.T) {
	st := stacktest.NewIdentity(t, func(c *stack.Config) {
		c.Identity.Lifetimes.AccessToken = time.Hour
	})
	d := st.Describe(t)
	c, u := st.NewClient(t, nil), st.NewUser(t, "Ada", "ada@example.com")
	b := st.NewBrowser(t)
	consent := b.SignIn(c.Request("scope", "view-user detail-user"), u.Email)
	code := b.Send(consent, "decision", "allow").Code(t, st)
	token := st.Redeem(t, c, code).Object(t)
	st.Redeem(t, c, "no code")
	access, refresh := token["access_token"].(string), token["refresh_token"].(string)
	st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "refresh_token", refresh,
		"client_id", c.ID, "client_secret", "wrong"))
	st.PostToken(t, stacktest.Values("grant_type", "client_credentials"), "Authorization",
		stacktest.Basic(c.ID, "wrong"))
	st.Send(t, "POST", st.URL+"/oauth/token", "{}", "Content-Type", "application/json")
	for range 101 {
		st.Get(t, "/api/user", "Authorization", "Bearer "+access)
	}
	st.Get(t, "/api/user/details", "Authorization", "Bearer "+access)
	st.Get(t, "/api/user", "Authorization", "Bearer garbage")
	st.Get(t, "/api/user/details")
	approved := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	detailed, _ := st.NewToken(t, approved, u.ID, oauth.UserScopes)
	st.Get(t, "/api/user/details", "Authorization", "Bearer "+detailed)
	st.Get(t, "/.well-known/oauth-authorization-server")
	st.Get(t, "/oauth/authorize?client_id=nobody")
	for _, path := range []string{"/oauth/introspect", "/oauth/revoke"} {
		for _, form := range []string{"token=" + access, "token=unknown", "token="} {
			st.Send(t, "POST", st.URL+path,
				form+"&client_id="+c.ID+"&client_secret="+c.Secret, "Content-Type",
				"application/x-www-form-urlencoded")
		}
	}
	b.Get("/accounts?" + c.Request().Encode())
	b.Send(b.Get("/logout"))
	b.Get("/login")
	d.Covers("POST /oauth/token 200", "POST /oauth/token 400", "POST /oauth/token 401",
		"GET /oauth/authorize 302", "GET /oauth/authorize 400",
		"GET /api/user 200", "GET /api/user 401", "GET /api/user 429", "GET /api/user/details 200",
		"GET /api/user/details 401", "GET /api/user/details 403",
		"GET /.well-known/oauth-authorization-server 200", "POST /oauth/introspect 200",
		"POST /oauth/introspect 400", "POST /oauth/revoke 200",
		"POST /oauth/revoke 400", "GET /login 200", "POST /login 303", "GET /consent 200",
		"POST /consent 303", "GET /accounts 200", "GET /logout 200")
}

func TestOperatorErrorsMatchOpenAPI(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	c, u := st.NewClient(t, nil), st.NewUser(t, "Ada", "ada@example.com")
	users, _ := st.NewToken(t, c, u.ID, oauth.UserScopes)
	for _, authorization := range []string{"", "Bearer garbage", "Bearer " + users} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			st.Send(t, method, st.AdminURL+"/admin/v1/users", "", "Authorization",
				authorization)
		}
	}
	d.Covers("GET /admin/v1/users 401", "GET /admin/v1/users 403", "HEAD /admin/v1/users 401",
		"HEAD /admin/v1/users 403",
		"POST /admin/v1/users 401", "POST /admin/v1/users 403")
}
