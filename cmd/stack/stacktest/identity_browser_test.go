package stacktest_test

import (
	"context"
	"net/url"
	"strings"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab"
)

// browser is a browser of a row's caller.
type browser struct {
	*row
	*lab.Browser
}

func (r *row) browser() *browser { return &browser{r, r.NewBrowser(r.t).Browser} }

// page is a page that a browser shows, or a redirect away from the service.
type page struct {
	stacktest.Page
	*row
	path, query string
}

// authorize opens an authorization request.
func (b *browser) authorize(c stacktest.Client, more ...string) page {
	b.t.Helper()
	return b.open("GET", "/oauth/authorize?"+c.Request(more...).Encode(), nil)
}

// open sends a request and follows redirects within the service.
func (b *browser) open(method, target string, form url.Values, headers ...string) page {
	b.t.Helper()
	p, err := b.Open(context.Background(), method, target, form,
		append(headers, "X-Forwarded-For", b.caller)...)
	stacktest.Must(b.t, err)
	path, query, _ := strings.Cut(p.Path, "?")
	return page{stacktest.Page{Response: stacktest.Response{Status: p.Status, Header: p.Header, Body: p.Body},
		Path: p.Path, Location: p.To}, b.row, path, query}
}

// send submits the page's form with changed fields; an empty value removes a field.
func (b *browser) send(p page, changes ...string) page {
	b.t.Helper()
	action, fields := p.Form(b.t)
	return b.open("POST", action, lab.Form{Fields: fields}.With(changes...))
}

// signIn submits the login page p.
func (b *browser) signIn(p page, u *account.User) page {
	b.t.Helper()
	p.shows(200, "/login")
	return b.send(p, "email", u.Email, "password", stacktest.Password)
}

// consented signs in, allows the request, and returns the code.
func (b *browser) consented(c stacktest.Client, u *account.User, more ...string) string {
	b.t.Helper()
	return b.send(b.signIn(b.authorize(c, more...), u), "decision", "allow").code(c.RedirectURIs...)
}

func (p page) shows(status int, path string) {
	p.t.Helper()
	p.Shows(p.t, status, path)
}

func (p page) code(uri ...string) string {
	p.t.Helper()
	return p.Code(p.t, p.IdentityStack, uri...)
}

func (p page) refusal(code string, uri ...string) {
	p.t.Helper()
	p.FailsWith(p.t, p.IdentityStack, code, uri...)
}

// showsError checks for an error page instead of a redirect.
func (p page) showsError() {
	p.t.Helper()
	if p.Status != 400 || p.Location != "" || !strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
		p.t.Errorf("got %d to %q: %s, want an error page with 400", p.Status, p.Location, p.Body)
	}
}
