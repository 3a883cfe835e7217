package stacktest

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// Browser opens the pages of a service and submits their forms. It keeps cookies, and has no scripts.
type Browser struct {
	T      *testing.T
	Stack  *IdentityStack
	Client *http.Client
	Jar    *cookiejar.Jar
}

// NewBrowser returns a Browser without cookies.
func (st *IdentityStack) NewBrowser(t *testing.T) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: st.Client.Transport, Timeout: 5 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Browser{T: t, Stack: st, Client: client, Jar: jar}
}

// Page is a response to a Browser: what it shows, or where it is sent.
type Page struct {
	Response
	Path     string // with its query
	Location string
}

// Get opens path and follows redirects as long as they stay on the service.
func (b *Browser) Get(path string) Page { return b.Open("GET", path, nil) }

// Send sends the page's first form, with changes to its fields: name, value, name, value…; ""
// leaves the field out.
func (b *Browser) Send(p Page, changes ...string) Page {
	b.T.Helper()
	action, fields := p.Form(b.T)
	return b.Open("POST", action, Changed(fields, changes))
}

// Open is Get with another method and with a form; headers are name, value, name, value….
func (b *Browser) Open(method, path string, form url.Values, headers ...string) Page {
	b.T.Helper()
	for range 8 {
		p := b.Once(method, path, form, headers...)
		if !strings.HasPrefix(p.Location, "/") {
			return p
		}
		method, path, form = "GET", p.Location, nil
	}
	b.T.Fatalf("got no end of redirects, at last to %s", path)
	return Page{}
}

// Once does one request. It checks that the status is that of a redirect if there is a Location.
func (b *Browser) Once(method, path string, form url.Values, headers ...string) Page {
	b.T.Helper()
	req, err := http.NewRequest(method, b.Stack.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.T.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.Client.Do(req)
	if err != nil {
		b.T.Fatal(err)
	}
	a := ReadResponse(b.T, res)
	if a.Status >= 500 {
		b.T.Errorf("%s %s: got %d %s", method, path, a.Status, a.Body)
	}
	want := map[string]int{"GET": 302, "POST": 303}[method]
	location := a.Header.Get("Location")
	if (location != "") != (a.Status == want) {
		b.T.Errorf("%s %s: got %d to %q, want %d exactly for redirects", method, path, a.Status,
			location, want)
	}
	return Page{a, path, location}
}

// webForm is a form of a page: where it goes and what is in it, without its buttons.
type webForm struct {
	action string
	Fields url.Values
}

// forms returns the page's forms.
func (p Page) forms(t *testing.T) []webForm {
	t.Helper()
	root, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		t.Fatal(err)
	}
	var all []webForm
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode && n.Data == "form":
			all = append(all, webForm{attribute(n, "action"), url.Values{}})
		case n.Type == html.ElementNode && n.Data == "input" && attribute(n, "type") != "checkbox":
			all[len(all)-1].Fields.Set(attribute(n, "name"), attribute(n, "value"))
		case n.Type == html.ElementNode && n.Data == "textarea":
			all[len(all)-1].Fields.Set(attribute(n, "name"), text(n))
		}
	}
	if len(all) == 0 {
		t.Fatalf("got %d %s, want a page with a form", p.Status, p.Body)
	}
	return all
}

// Form returns the action and the fields of the page's first form.
func (p Page) Form(t *testing.T) (action string, fields url.Values) {
	t.Helper()
	first := p.forms(t)[0]
	return first.action, first.Fields
}

// FormTo returns the page's first form that goes to path.
func (p Page) FormTo(t *testing.T, path string) webForm {
	t.Helper()
	for _, f := range p.forms(t) {
		if to, _, _ := strings.Cut(f.action, "?"); to == path {
			return f
		}
	}
	t.Fatalf("got %d %s, want a form that goes to %s", p.Status, p.Body, path)
	return webForm{}
}

// SendTo sends the page's first form that goes to path, with changes to its fields as in Send.
func (b *Browser) SendTo(p Page, path string, changes ...string) Page {
	b.T.Helper()
	form := p.FormTo(b.T, path)
	return b.Open("POST", form.action, Changed(form.Fields, changes))
}

// Changed sets fields: name, value, name, value…; "" leaves the field out.
func Changed(fields url.Values, changes []string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		fields.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			fields.Del(changes[i])
		}
	}
	return fields
}

// text returns the text in n.
func text(n *html.Node) string {
	var all strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			all.WriteString(c.Data)
		}
	}
	return all.String()
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// Shows checks which page it is.
func (p Page) Shows(t *testing.T, status int, path string) {
	t.Helper()
	got, _, _ := strings.Cut(p.Path, "?")
	if p.Status != status || got != path || p.Location != "" {
		t.Fatalf("got %d at %s to %q: %s, want %d at %s", p.Status, p.Path, p.Location, p.Body,
			status, path)
	}
}

// returns checks that the browser is sent to the client and gives back the parameters that were
// added.
func (p Page) returns(t *testing.T, st *IdentityStack) url.Values {
	t.Helper()
	rest, ok := strings.CutPrefix(p.Location, RedirectURI+"&")
	if !ok {
		t.Fatalf("got %d at %s to %q: %s, want a redirect to the client", p.Status, p.Path,
			p.Location, p.Body)
	}
	got, err := url.ParseQuery(rest)
	if err != nil {
		t.Fatal(err)
	}
	if got.Get("iss") != st.URL || got.Get("state") != "s t&ä" {
		t.Errorf("got iss %q and state %q, want %q and the one that was sent", got.Get("iss"),
			got.Get("state"), st.URL)
	}
	return got
}

// Code checks that the client got a code and returns it.
func (p Page) Code(t *testing.T, st *IdentityStack) string {
	t.Helper()
	q := p.returns(t, st)
	if q.Get("code") == "" || len(q) != 3 {
		t.Fatalf("got %v, want code, state and iss", q)
	}
	return q.Get("code")
}

// FailsWith checks that the client got an error.
func (p Page) FailsWith(t *testing.T, st *IdentityStack, code string) {
	t.Helper()
	q := p.returns(t, st)
	if q.Get("error") != code || q.Get("error_description") == "" || q.Has("code") {
		t.Errorf("got %v, want the error %s", q, code)
	}
}

// SignIn opens the authorization request and signs in; it returns what follows.
func (b *Browser) SignIn(q url.Values, email string) Page {
	b.T.Helper()
	login := b.Get("/oauth/authorize?" + q.Encode())
	login.Shows(b.T, 200, "/login")
	return b.Send(login, "email", email, "password", Password)
}

// Authorize opens the authorization request.
func (b *Browser) Authorize(q url.Values) Page {
	b.T.Helper()
	return b.Get("/oauth/authorize?" + q.Encode())
}

// Allow signs in for the request and consents.
func (b *Browser) Allow(q url.Values, email string) Page {
	b.T.Helper()
	return b.Send(b.SignIn(q, email), "decision", "allow")
}

// LogOut opens a logout request: name, value, name, value….
func (b *Browser) LogOut(pairs ...string) Page {
	b.T.Helper()
	return b.Get("/oauth/logout?" + Values(pairs...).Encode())
}

// Cookies returns the browser's cookies by name.
func (b *Browser) Cookies() map[string]string {
	b.T.Helper()
	u, err := url.Parse(b.Stack.URL)
	if err != nil {
		b.T.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range b.Jar.Cookies(u) {
		all[c.Name] = c.Value
	}
	return all
}

// ChooserValue returns the value of a user's button in the chooser.
func ChooserValue(id int64) string { return strconv.FormatInt(id, 10) }

// LetIn consents for an account that is signed in already, and returns an access token.
func (b *Browser) LetIn(c Client, more ...string) string {
	b.T.Helper()
	p := b.Get("/oauth/authorize?" + c.Request(more...).Encode())
	if path, _, _ := strings.Cut(p.Path, "?"); path == "/accounts" {
		action, fields := p.Form(b.T)
		_, id, _ := strings.Cut(p.Body, `name="account" value="`)
		id, _, _ = strings.Cut(id, `"`)
		fields.Set("account", id)
		p = b.Open("POST", action, fields)
	}
	p.Shows(b.T, 200, "/consent")
	code := b.Send(p, "decision", "allow").Code(b.T, b.Stack)
	return b.Stack.Redeem(b.T, c, code).Object(b.T)["access_token"].(string)
}

// SessionIDs returns the ids of the sessions that the page lists.
func (p Page) SessionIDs() []string {
	var ids []string
	for _, part := range strings.Split(p.Body, `name="session" value="`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	return ids
}

// SignedIn returns a new browser that has signed in, and the page of the account.
func (st *IdentityStack) SignedIn(t *testing.T, email string) (*Browser, Page) {
	t.Helper()
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/login"), "email", email, "password", Password)
	p.Shows(t, 200, "/me")
	return b, p
}

// Says lets a client in and returns an access token of it.
// profile asks for the basic profile and returns the status.
// says checks that a page holds all of the texts, as people read them.
func (p Page) Says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.Body, text) {
			t.Errorf("got %d at %s: %s, want %q in it", p.Status, p.Path, p.Body, text)
		}
	}
}

// Register sends the registration form of Ida, with NewPassword, and returns the page for the code.
func (b *Browser) Register(path, email string) Page {
	b.T.Helper()
	p := b.Send(b.Get(path), "name", "Ida", "email", email, "password", NewPassword)
	p.Shows(b.T, 200, "/register/verify")
	return p
}
