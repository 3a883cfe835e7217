package stacktest_test

import (
	"context"
	"net/url"
	"strings"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab"
)

// browser is a browser of a row's caller.
type browser struct {
	*row
	*lab.Browser
}

func (r *row) browser() *browser {
	b := lab.NewBrowser(r.URL, r.Client.Transport)
	b.Client.Timeout = timeout
	return &browser{r, b}
}

// page is a page that a browser shows, or a redirect away from the service.
type page struct {
	reply
	*row
	path  string
	query string
	to    string // the redirect that was not followed
	hops  []int  // the statuses of all redirects
}

// authorizationQuery returns the query of an ordinary authorization request; more overrides it.
func authorizationQuery(c stacktest.Client, more ...string) string {
	uri := stacktest.RedirectURI
	if len(c.RedirectURIs) > 0 {
		uri = c.RedirectURIs[0]
	}
	return stacktest.Values(overridden([]string{"response_type", "code", "client_id", c.ID, "redirect_uri", uri,
		"scope", "view-user",
		"state", "s t&ä", "code_challenge", challenge, "code_challenge_method", "S256"},
		more)...).Encode()
}

// authorize opens an authorization request.
func (b *browser) authorize(c stacktest.Client, more ...string) page {
	b.t.Helper()
	return b.open("GET", "/oauth/authorize?"+authorizationQuery(c, more...), nil)
}

// open sends a request and follows redirects within the service.
func (b *browser) open(method, target string, form url.Values, headers ...string) page {
	b.t.Helper()
	p, err := b.Open(context.Background(), method, target, form,
		append(headers, "X-Forwarded-For", b.caller)...)
	if err != nil {
		b.t.Fatal(err)
	}
	path, query, _ := strings.Cut(p.Path, "?")
	return page{reply{status: p.Status, header: p.Header, body: p.Body}, b.row, path, query, p.To,
		p.Redirects}
}

// send submits the page's form with changed fields; an empty value removes a field.
func (b *browser) send(p page, changes ...string) page {
	b.t.Helper()
	action, fields := p.form()
	return b.open("POST", action, lab.Form{Fields: fields}.With(changes...))
}

// form returns the action and the fields of the page's first form.
func (p page) form() (action string, fields url.Values) {
	p.t.Helper()
	forms := (&lab.Page{Body: p.body}).Forms()
	if len(forms) == 0 {
		p.t.Fatalf("got %d at %s to %q, want a page with a form", p.status, p.path, p.to)
	}
	return forms[0].Action, forms[0].Fields
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
	return b.send(b.signIn(b.authorize(c, more...), u), "decision", "allow").code()
}

// shows checks the page's status and path.
func (p page) shows(status int, path string) {
	p.t.Helper()
	if p.status != status || p.path != path || p.to != "" {
		p.t.Fatalf("got %d at %s to %q: %s, want %d at %s", p.status, p.path, p.to, p.body, status, path)
	}
}

// returned checks for a redirect to the client and returns its parameters.
func (p page) returned() url.Values {
	p.t.Helper()
	u, err := url.Parse(p.to)
	if err != nil || p.to == "" {
		p.t.Fatalf("got %d at %s to %q: %s, want a redirect to the client", p.status, p.path, p.to,
			p.body)
	}
	q := u.Query()
	if q.Get("iss") != p.URL {
		p.t.Errorf("got iss %q, want %q", q.Get("iss"), p.URL)
	}
	return q
}

// code checks that the client gets a code and the state, and returns the code.
func (p page) code() string {
	p.t.Helper()
	q := p.returned()
	if !oauth.LooksLikeAuthorizationCode(q.Get("code")) || q.Get("state") != "s t&ä" ||
		q.Has("error") {
		p.t.Fatalf("got %v, want a code and the state", q)
	}
	return q.Get("code")
}

// refusal checks that the client gets an error with a description, and the state.
func (p page) refusal(code string) {
	p.t.Helper()
	q := p.returned()
	if q.Get("error") != code || q.Get("error_description") == "" || q.Get("state") != "s t&ä" ||
		q.Has("code") {
		p.t.Errorf("got %v, want %s with the state", q, code)
	}
}

// showsError checks for an error page instead of a redirect.
func (p page) showsError() {
	p.t.Helper()
	if p.status != 400 || p.to != "" || !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
		p.t.Errorf("got %d to %q: %s, want an error page with 400", p.status, p.to, p.body)
	}
}
