package stacktest_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// browser keeps cookies and follows redirects within the service.
type browser struct {
	*row
	client *http.Client
}

func (r *row) browser() *browser {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{r, &http.Client{Jar: jar, Transport: r.Client.Transport, Timeout: timeout,
		CheckRedirect: stay}}
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
	var hops []int
	for range 8 {
		request, err := http.NewRequest(method, b.URL+target, strings.NewReader(form.Encode()))
		if err != nil {
			b.t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", b.caller)
		if method == "POST" {
			request.Header.Set("Content-Type", formType)
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := b.client.Do(request)
		if err != nil {
			b.t.Fatal(err)
		}
		p := page{reply: readReply(b.t, response), row: b.row, to: response.Header.Get("Location")}
		p.path, p.query, _ = strings.Cut(target, "?")
		if p.to != "" {
			hops = append(hops, p.status)
		}
		p.hops = hops
		if !strings.HasPrefix(p.to, "/") {
			return p
		}
		method, target, form = "GET", p.to, nil
	}
	b.t.Fatalf("got 8 redirects, the last to %s, want fewer", target)
	return page{}
}

// send submits the page's form with changed fields; an empty value removes a field.
func (b *browser) send(p page, changes ...string) page {
	b.t.Helper()
	action, fields := p.form()
	for i := 0; i < len(changes); i += 2 {
		fields.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			fields.Del(changes[i])
		}
	}
	return b.open("POST", action, fields)
}

// form returns the action and the fields of the page's first form.
func (p page) form() (action string, fields url.Values) {
	p.t.Helper()
	first, _, _ := strings.Cut(p.body, "</form>")
	root, err := html.Parse(strings.NewReader(first))
	if err != nil {
		p.t.Fatal(err)
	}
	fields = url.Values{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
		}
		switch n.Data {
		case "form":
			action = attributes["action"]
		case "input":
			fields.Set(attributes["name"], attributes["value"])
		}
	}
	if action == "" {
		p.t.Fatalf("got %d at %s to %q, want a page with a form", p.status, p.path, p.to)
	}
	return action, fields
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
