package httpedge_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/actors/brand"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge/pages"
)

const likesPages = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// isErrorPage checks that a is a page that tells of an error, with all headers that pages have.
func isErrorPage(a stacktest.Response, t *testing.T, what string, status int, title string) {
	t.Helper()
	if a.Status != status || !strings.Contains(a.Body, "<h1>"+title+"</h1>") ||
		!strings.Contains(a.Body, "<code>"+a.Header.Get("X-Request-Id")+"</code>") {
		t.Errorf("%s: got %d %q, want %d and a page with %q and its reference", what, a.Status,
			a.Body, status, title)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
		"Access-Control-Allow-Origin": "",
	} {
		a.Has(t, name, want)
	}
	if csp := a.Header.Get("Content-Security-Policy"); !strings.Contains(csp,
		"default-src 'none'; style-src "+pages.NewView(brand.Brand{}, texts.Default()).StyleSource()) ||
		!strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("%s: got policy %q, want that of pages", what, csp)
	}
}

func TestFormTooLargeIsRefusedByAPage(t *testing.T) {
	st := stacktest.NewIdentity(t)
	// whose own pages may read what clients are told, but no page
	st.NewClient(t, func(c *oauth.Client) { c.Public = true })
	post := func(path string, size int, accept string) stacktest.Response {
		conn := st.Dial(t)
		conn.Say(fmt.Sprintf(
			"POST %s HTTP/1.1\r\nHost: x\r\nOrigin: https://app.example\r\nAccept: %s\r\n"+
				"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\nemail=%s",
			path, accept, size, strings.Repeat("x", size-6)))
		a := conn.Hear()
		if size > 64<<10 {
			if !a.Closes {
				t.Errorf("%s: got a connection that goes on, want it closed", path)
			}
			conn.Ends()
		}
		return a
	}
	for _, path := range []string{"/login", "/login?state=x", "/register", "/register/phone/verify",
		"/reset", "/accounts", "/consent", "/logout", "/me", "/me/email", "/me/nothing"} {
		isErrorPage(post(path, 64<<10+1, "*/*"), t, path, 413, "This form is too large")
	}
	if a := post("/login", 64<<10, "*/*"); a.Status == 413 {
		t.Errorf("got 413 for 64 KiB, want them read")
	}
	isErrorPage(post("/oauth/authorize", 1<<17, likesPages), t, "/oauth/authorize", 413,
		"This form is too large")
	for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/introspect",
		"/oauth/authorize", "/api/user", "/api/bulk", "/nowhere", "/mean"} {
		accept := likesPages
		if path == "/oauth/authorize" {
			accept = "*/*"
		}
		if a := post(path, 1<<17, accept); a.Status != 413 ||
			a.Object(t)["error"] != "payload_too_large" {
			t.Errorf("%s: got %d %s, want 413 and JSON", path, a.Status, a.Body)
		}
	}
	log := st.Log.Records("request")
	if last := log[len(log)-1]; last["status"] != float64(413) || last["route"] != "(broken)" {
		t.Errorf("got %v in the log, want the refusal", last)
	}
}

func TestWrongMethodAtAPage(t *testing.T) {
	st := stacktest.NewIdentity(t)
	const title = "This page cannot be used like that"
	for path, allow := range map[string]string{
		"/login": "GET, HEAD, POST, OPTIONS", "/consent": "GET, HEAD, POST, OPTIONS",
		"/register/verify": "GET, HEAD, POST, OPTIONS",
		"/me":              "GET, HEAD, POST, OPTIONS", "/me/deleted": "GET, HEAD, OPTIONS",
	} {
		for _, method := range []string{"PUT", "DELETE", "BREW"} {
			a := st.Send(t, method, st.URL+path, "")
			isErrorPage(a, t, method+" "+path, 405, title)
			a.Has(t, "Allow", allow, "Set-Cookie", "")
		}
	}
	isErrorPage(st.Send(t, "POST", st.URL+"/me/deleted", ""), t, "POST /me/deleted", 405,
		title)
	post := st.Send(t, "POST", st.URL+"/oauth/authorize", "", "Accept", likesPages)
	isErrorPage(post, t, "POST /oauth/authorize", 405, title)
	post.Has(t, "Allow", "GET, POST, OPTIONS")
	head := st.Send(t, "HEAD", st.URL+"/oauth/authorize", "", "Accept", likesPages)
	if head.Status != 405 || head.Body != "" ||
		head.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
		head.Header.Get("Content-Length") != post.Header.Get("Content-Length") {
		t.Errorf("HEAD: got %d %v %q, want the headers of the page alone", head.Status, head.Header,
			head.Body)
	}
	for _, target := range []string{"/oauth/authorize", "/oauth/token", "/api/user",
		"/.well-known/oauth-authorization-server", "/openapi.yaml"} {
		accept := likesPages
		if target == "/oauth/authorize" {
			accept = "application/json"
		}
		if a := st.Send(t, "PATCH", st.URL+target, "", "Accept", accept); a.Status != 405 ||
			a.Object(t)["error"] != "method_not_allowed" {
			t.Errorf("%s: got %d %s, want 405 and JSON", target, a.Status, a.Body)
		}
	}
}

func TestUnknownPathInABrowser(t *testing.T) {
	st := stacktest.NewIdentity(t, func(c *stack.Config) { c.Home = "off" })
	const title = "There is no page here"
	for _, path := range []string{"/favicon.ico", "/me/nothing", "/login/", "/Login", "/oauth",
		"/admin/v1/users"} {
		isErrorPage(st.Get(t, path, "Accept", likesPages), t, path, 404, title)
		for _, accept := range []string{"*/*", "", "application/json",
			"application/json, text/html;q=0.9"} {
			if a := st.Get(t, path, "Accept", accept); a.Status != 404 ||
				a.Object(t)["error"] != "not_found" {
				t.Errorf("%s for %q: got %d %s, want 404 and JSON", path, accept, a.Status, a.Body)
			}
		}
	}
	if a := st.Send(t, "HEAD", st.URL+"/favicon.ico", "", "Accept", likesPages); a.Status != 404 ||
		a.Body != "" || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("HEAD: got %d %v %q, want the headers of the page alone", a.Status, a.Header,
			a.Body)
	}
	for _, path := range []string{"/register", "/me/phone"} { // pages that are not offered
		isErrorPage(st.Get(t, path), t, path, 404, title)
	}
	for _, target := range []string{st.URL + "/api/lookup/8.8.8.8", st.AdminURL + "/nowhere"} {
		if a := st.Send(t, "GET", target, "", "Accept", likesPages); a.Status != 404 ||
			a.Object(t)["error"] != "not_found" {
			t.Errorf("%s: got %d %s, want 404 and JSON", target, a.Status, a.Body)
		}
	}
}
