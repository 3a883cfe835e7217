package stacktest

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"gatehouse/actors/account"
	"gatehouse/loadtest/lab"
)

// Browser checks the statuses that pages and redirects have.
type Browser struct {
	*lab.Browser
	T     *testing.T
	Stack *IdentityStack
}

// NewBrowser returns a Browser without cookies.
func (st *IdentityStack) NewBrowser(t *testing.T) *Browser {
	t.Helper()
	b := lab.NewBrowser(st.URL, st.Client.Transport)
	b.Client.Timeout = 5 * time.Minute
	return &Browser{b, t, st}
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
	return b.Open("POST", action, lab.Form{Fields: fields}.With(changes...))
}

// Open is Get with another method and with a form; headers are name, value, name, value….
func (b *Browser) Open(method, path string, form url.Values, headers ...string) Page {
	b.T.Helper()
	p, err := b.Browser.Open(context.Background(), method, path, form, headers...)
	return b.checked(method, p, err)
}

// Once does one request.
func (b *Browser) Once(method, path string, form url.Values, headers ...string) Page {
	b.T.Helper()
	p, err := b.Do(context.Background(), method, path, form, headers...)
	return b.checked(method, p, err)
}

// checked checks that redirects, and no others, have the status of a redirect after the method.
func (b *Browser) checked(method string, p *lab.Page, err error) Page {
	b.T.Helper()
	if err != nil {
		b.T.Fatal(err)
	}
	want := map[string]int{"GET": http.StatusFound, "POST": http.StatusSeeOther}[method]
	for _, status := range p.Redirects {
		if status != want {
			b.T.Errorf("%s to %s: got %d for a redirect, want %d", method, p.Path, status, want)
		}
		want = http.StatusFound
	}
	if p.Status >= 500 || p.To == "" && p.Status/100 == 3 {
		b.T.Errorf("%s to %s: got %d %s", method, p.Path, p.Status, p.Body)
	}
	return Page{Response{Status: p.Status, Header: p.Header, Body: p.Body}, p.Path, p.To}
}

// forms returns the page's forms.
func (p Page) forms(t *testing.T) []lab.Form {
	t.Helper()
	all := (&lab.Page{Body: p.Body}).Forms()
	if len(all) == 0 {
		t.Fatalf("got %d %s, want a page with a form", p.Status, p.Body)
	}
	return all
}

// Form returns the action and the fields of the page's first form.
func (p Page) Form(t *testing.T) (action string, fields url.Values) {
	t.Helper()
	first := p.forms(t)[0]
	return first.Action, first.Fields
}

// FormTo returns the page's first form that goes to path.
func (p Page) FormTo(t *testing.T, path string) lab.Form {
	t.Helper()
	for _, f := range p.forms(t) {
		if to, _, _ := strings.Cut(f.Action, "?"); to == path {
			return f
		}
	}
	t.Fatalf("got %d %s, want a form that goes to %s", p.Status, p.Body, path)
	return lab.Form{}
}

// SendTo sends the page's first form that goes to path, with changes to its fields as in Send.
func (b *Browser) SendTo(p Page, path string, changes ...string) Page {
	b.T.Helper()
	form := p.FormTo(b.T, path)
	return b.Open("POST", form.Action, form.With(changes...))
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
// added. uri is RedirectURI if it is left out.
func (p Page) returns(t *testing.T, st *IdentityStack, uri ...string) url.Values {
	t.Helper()
	rest, ok := strings.CutPrefix(p.Location, slices.Concat(uri, []string{RedirectURI})[0])
	if !ok || rest == "" || rest[0] != '?' && rest[0] != '&' {
		t.Fatalf("got %d at %s to %q: %s, want a redirect to the client", p.Status, p.Path,
			p.Location, p.Body)
	}
	got, err := url.ParseQuery(rest[1:])
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
func (p Page) Code(t *testing.T, st *IdentityStack, uri ...string) string {
	t.Helper()
	q := p.returns(t, st, uri...)
	if q.Get("code") == "" || len(q) != 3 {
		t.Fatalf("got %v, want code, state and iss", q)
	}
	return q.Get("code")
}

// FailsWith checks that the client got an error.
func (p Page) FailsWith(t *testing.T, st *IdentityStack, code string, uri ...string) {
	t.Helper()
	q := p.returns(t, st, uri...)
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
	all := map[string]string{}
	for _, c := range b.Client.Jar.Cookies(nil) {
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

var (
	appSecret     = regexp.MustCompile(`name="secret" value="([A-Z2-7]{32})"`)
	recoveryCodes = regexp.MustCompile(`<code dir="ltr">([a-z2-7-]{19})</code>`)
)

// AddApp sets up an authenticator app for a person whose password is Password. It takes the page that
// asks for the app's code, and returns that with the recovery codes.
func (b *Browser) AddApp(p Page) Page {
	b.T.Helper()
	secret := appSecret.FindStringSubmatch(p.Body)
	if secret == nil || !strings.Contains(p.Body, "<svg ") {
		b.T.Fatalf("got %d at %s: %s, want a key and a QR code", p.Status, p.Path, p.Body)
	}
	code, err := totp.GenerateCode(secret[1], time.Now())
	if err != nil {
		b.T.Fatal(err)
	}
	p = b.Send(p, "code", code, "current_password", Password)
	p.Shows(b.T, 200, "/me/factors/app")
	return p
}

// RecoveryCodes returns those that a page shows.
func (p Page) RecoveryCodes(t *testing.T) (codes []string) {
	t.Helper()
	for _, one := range recoveryCodes.FindAllStringSubmatch(p.Body, -1) {
		codes = append(codes, one[1])
	}
	if len(codes) != account.NewRecoveryCodes {
		t.Fatalf("got %d at %s: %s, want %d recovery codes", p.Status, p.Path, p.Body, account.NewRecoveryCodes)
	}
	return codes
}
