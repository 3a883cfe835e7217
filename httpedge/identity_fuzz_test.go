package httpedge_test

import (
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/cmd/stack/stacktest"
)

// serveOne answers a request that was never on a wire, so that everything can be in it.
func serveOne(st *stacktest.IdentityStack, method, target, body string,
	headers ...string) *fasthttp.Response {
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(target)
	ctx.Request.Header.SetHost("localhost")
	ctx.Request.SetBodyString(body)
	for i := 0; i < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	st.Server.Handler()(&ctx)
	return &ctx.Response
}

// sane checks what holds for every response.
func sane(t *testing.T, st *stacktest.IdentityStack, r *fasthttp.Response) {
	t.Helper()
	if r.StatusCode() >= 500 {
		t.Errorf("got %d %s, want no failure of the service", r.StatusCode(), r.Body())
	}
	location := string(r.Header.Peek("Location"))
	if strings.ContainsAny(location, "\r\n\x00") {
		t.Errorf("got a redirect to %q", location)
	}
	own := strings.HasPrefix(location, "/") && !strings.HasPrefix(location, "//") &&
		!strings.HasPrefix(location, `/\`)
	if location != "" && !own && !strings.HasPrefix(location, stacktest.RedirectURI+"&") {
		t.Errorf("got a redirect to %q, want one to a page of ours or to the client", location)
	}
}

func FuzzTokenEndpoints(f *testing.F) {
	st := stacktest.NewIdentity(f)
	c := st.NewClient(f, nil)
	good := stacktest.Values(c.Credentials()...).Encode()
	f.Add("/oauth/token", good, "")
	f.Add("/oauth/token", "grant_type=client_credentials", stacktest.Basic(c.ID, c.Secret))
	f.Add("/oauth/token", "grant_type=client_credentials", "Basic "+strings.Repeat("A", 5000))
	f.Add("/oauth/token", stacktest.Values("grant_type", "authorization_code", "client_id", c.ID,
		"client_secret", c.Secret, "code", "gtac_x", "redirect_uri", "x", "code_verifier",
		stacktest.Verifier).Encode(), "")
	f.Add("/oauth/token", stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
		"client_secret", c.Secret, "refresh_token", "gtrt_x").Encode(), "")
	f.Add("/oauth/revoke", good+"&token=gtat_x", "")
	f.Add("/oauth/introspect", good+"&token=%00", "")
	f.Add("/oauth/token", strings.Repeat("&", 1000)+"=%ff", "\x00")
	f.Fuzz(func(t *testing.T, path, body, authorization string) {
		if path != "/oauth/token" && path != "/oauth/revoke" {
			path = "/oauth/introspect"
		}
		headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
		if authorization != "" {
			headers = append(headers, "Authorization", authorization)
		}
		sane(t, st, serveOne(st, "POST", path, body, headers...))
	})
}

func FuzzProfile(f *testing.F) {
	st := stacktest.NewIdentity(f)
	f.Add("Bearer x")
	f.Add("Bearer gtat_" + strings.Repeat("a", 63))
	f.Add("\xff Bearer")
	f.Fuzz(func(t *testing.T, authorization string) {
		for _, path := range []string{"/api/user", "/api/user/details"} {
			r := serveOne(st, "GET", path, "", "Authorization", authorization)
			if sane(t, st, r); r.StatusCode() != 401 {
				t.Errorf("got %d %s for %q, want 401", r.StatusCode(), r.Body(), authorization)
			}
		}
	})
}

func FuzzBrowserFlow(f *testing.F) {
	st := stacktest.NewIdentity(f)
	c := st.NewClient(f, nil)
	good := c.Request().Encode()
	for _, path := range []string{"/oauth/authorize", "/login", "/accounts", "/consent", "/logout",
		"/me", "/me/apps", "/me/sessions", "/me/password", "/me/history", "/me/delete", "/me/deleted"} {
		f.Add("GET", path, good, "", "")
		f.Add("POST", path, good, "form_token=x&decision=allow&account=1&email=a&password=b",
			"gatehouse=a.b; gatehouse-form="+strings.Repeat("A", 43))
	}
	f.Add("GET", "/login", "redirect_uri=//evil.example&client_id="+c.ID, "", "gatehouse=\xff")
	f.Add("GET", "/oauth/authorize", good+"&state=%0d%0aSet-Cookie:x", "", "gatehouse-known=~~~.~")
	f.Add("POST", "/consent", good+"&chosen="+strings.Repeat("A", 66), "decision=%", "")
	f.Fuzz(func(t *testing.T, method, path, query, body, cookie string) {
		if method != "GET" {
			method = "POST"
		}
		switch path {
		case "/oauth/authorize", "/login", "/accounts", "/consent", "/me", "/me/apps",
			"/me/sessions", "/me/password", "/me/history", "/me/delete", "/me/deleted":
		default:
			path = "/logout"
		}
		sane(t, st, serveOne(st, method, path+"?"+query, body, "Content-Type",
			"application/x-www-form-urlencoded", "Cookie", cookie))
	})
}
