package httpedge_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"gatehouse/cmd/stack/stacktest"
)

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// challenge is that of verifier.
func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// query makes a query of name, value, name, value…; an empty value leaves its name out.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Add(pairs[i], pairs[i+1])
		}
	}
	return q
}

// asked returns the query of an ordinary authorization request of c; more overrides it.
func asked(c stacktest.Client, more ...string) url.Values {
	q := query("response_type", "code", "client_id", c.ID, "redirect_uri", stacktest.RedirectURI,
		"scope", "view-user",
		"state", "s t&ä", "code_challenge", challenge(), "code_challenge_method", "S256")
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
		if more[i+1] == "" {
			q.Del(more[i])
		}
	}
	return q
}

// browser keeps cookies and follows no redirect by itself.
type browser struct {
	t      *testing.T
	st     *stacktest.IdentityStack
	client *http.Client
	jar    *cookiejar.Jar
	pairs  *pairs // holds up what sendTwice sends; nil = nothing does
}

func newBrowser(t *testing.T, st *stacktest.IdentityStack) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: st.Client.Transport, Timeout: 5 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &browser{t: t, st: st, client: client, jar: jar}
}

// page is what the browser shows, or where it is sent.
type page struct {
	response
	path     string // with its query
	location string
}

// get opens path and follows redirects as long as they stay on the service.
func (b *browser) get(path string) page { return b.open("GET", path, nil) }

// send sends the page's first form, with changes to its fields: name, value, name, value…; ""
// leaves the field out.
func (b *browser) send(p page, changes ...string) page {
	b.t.Helper()
	action, fields := p.form(b.t)
	return b.open("POST", action, changed(fields, changes))
}

func (b *browser) open(method, path string, form url.Values, headers ...string) page {
	b.t.Helper()
	for range 8 {
		p := b.once(method, path, form, headers...)
		if !strings.HasPrefix(p.location, "/") {
			return p
		}
		method, path, form = "GET", p.location, nil
	}
	b.t.Fatalf("got no end of redirects, at last to %s", path)
	return page{}
}

// once does one request.
func (b *browser) once(method, path string, form url.Values, headers ...string) page {
	b.t.Helper()
	req, err := http.NewRequest(method, b.st.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	a := read(b.t, res)
	if a.status >= 500 {
		b.t.Errorf("%s %s: got %d %s", method, path, a.status, a.body)
	}
	want := map[string]int{"GET": 302, "POST": 303}[method]
	location := a.header.Get("Location")
	if (location != "") != (a.status == want) {
		b.t.Errorf("%s %s: got %d to %q, want %d exactly for redirects", method, path, a.status,
			location, want)
	}
	return page{a, path, location}
}

// webForm is a form of a page: where it goes and what is in it, without its buttons.
type webForm struct {
	action string
	fields url.Values
}

// forms returns the page's forms.
func (p page) forms(t *testing.T) []webForm {
	t.Helper()
	root, err := html.Parse(strings.NewReader(p.body))
	if err != nil {
		t.Fatal(err)
	}
	var all []webForm
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode && n.Data == "form":
			all = append(all, webForm{attribute(n, "action"), url.Values{}})
		case n.Type == html.ElementNode && n.Data == "input" && attribute(n, "type") != "checkbox":
			all[len(all)-1].fields.Set(attribute(n, "name"), attribute(n, "value"))
		case n.Type == html.ElementNode && n.Data == "textarea":
			all[len(all)-1].fields.Set(attribute(n, "name"), text(n))
		}
	}
	if len(all) == 0 {
		t.Fatalf("got %d %s, want a page with a form", p.status, p.body)
	}
	return all
}

// form returns where the page's first form goes and what is in it.
func (p page) form(t *testing.T) (action string, fields url.Values) {
	t.Helper()
	first := p.forms(t)[0]
	return first.action, first.fields
}

// formTo returns the page's first form that goes to path.
func (p page) formTo(t *testing.T, path string) webForm {
	t.Helper()
	for _, f := range p.forms(t) {
		if to, _, _ := strings.Cut(f.action, "?"); to == path {
			return f
		}
	}
	t.Fatalf("got %d %s, want a form that goes to %s", p.status, p.body, path)
	return webForm{}
}

// sendTo sends the page's first form that goes to path, with changes to its fields as in send.
func (b *browser) sendTo(p page, path string, changes ...string) page {
	b.t.Helper()
	form := p.formTo(b.t, path)
	return b.open("POST", form.action, changed(form.fields, changes))
}

// changed sets fields: name, value, name, value…; "" leaves the field out.
func changed(fields url.Values, changes []string) url.Values {
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

// shows checks which page it is.
func (p page) shows(t *testing.T, status int, path string) {
	t.Helper()
	got, _, _ := strings.Cut(p.path, "?")
	if p.status != status || got != path || p.location != "" {
		t.Fatalf("got %d at %s to %q: %s, want %d at %s", p.status, p.path, p.location, p.body,
			status, path)
	}
}

// returns checks that the browser is sent to the client and gives back the parameters that were
// added.
func (p page) returns(t *testing.T, st *stacktest.IdentityStack) url.Values {
	t.Helper()
	rest, ok := strings.CutPrefix(p.location, stacktest.RedirectURI+"&")
	if !ok {
		t.Fatalf("got %d at %s to %q: %s, want a redirect to the client", p.status, p.path,
			p.location, p.body)
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

// gets checks that the client got a code and returns it.
func (p page) gets(t *testing.T, st *stacktest.IdentityStack) string {
	t.Helper()
	q := p.returns(t, st)
	if q.Get("code") == "" || len(q) != 3 {
		t.Fatalf("got %v, want code, state and iss", q)
	}
	return q.Get("code")
}

// failsWith checks that the client got an error.
func (p page) failsWith(t *testing.T, st *stacktest.IdentityStack, code string) {
	t.Helper()
	q := p.returns(t, st)
	if q.Get("error") != code || q.Get("error_description") == "" || q.Has("code") {
		t.Errorf("got %v, want the error %s", q, code)
	}
}

// signIn opens the authorization request and signs in; it returns what follows.
func (b *browser) signIn(q url.Values, email string) page {
	b.t.Helper()
	login := b.get("/oauth/authorize?" + q.Encode())
	login.shows(b.t, 200, "/login")
	return b.send(login, "email", email, "password", stacktest.Password)
}

// redeem exchanges a code and returns the response.
func redeem(t *testing.T, st *stacktest.IdentityStack, c stacktest.Client, code string) response {
	t.Helper()
	return postToken(t, st, query("grant_type", "authorization_code", "code", code, "redirect_uri",
		stacktest.RedirectURI,
		"client_id", c.ID, "client_secret", c.Secret, "code_verifier", verifier))
}

func postToken(t *testing.T, st *stacktest.IdentityStack, form url.Values,
	headers ...string) response {
	t.Helper()
	return send(t, st.Stack, "POST", st.URL+"/oauth/token", form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// failsAs checks an error of the token endpoint: status, code, and that all four members say
// something.
func (a response) failsAs(t *testing.T, status int, code string) {
	t.Helper()
	o := a.object(t)
	if a.status != status || o["error"] != code {
		t.Errorf("got %d %s, want %d %s", a.status, a.body, status, code)
	}
	for _, member := range []string{"error_description", "message", "hint"} {
		if text, ok := o[member].(string); !ok || text == "" {
			t.Errorf("got %s, want the member %s in it", a.body, member)
		}
	}
}
