package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// service is a running service with a mailbox and an app.
type service struct {
	*stacktest.IdentityStack
	*stacktest.Mailbox
	app *app
}

func newService(t *testing.T, options ...stacktest.Option) *service {
	t.Helper()
	mailbox := stacktest.NewMailbox()
	s := &service{stacktest.NewIdentity(t, append(options, mailbox.Deliver)...), mailbox, nil}
	s.app = s.newApp(t, "Atlas", nil)
	return s
}

// app is a confidential client with a page to return to.
type app struct {
	stacktest.Client
	service *service
	url     string // of the page
}

// newApp registers an app with this name, and with options unless they are nil.
func (s *service) newApp(t *testing.T, name string, options *oauth.ClientOptions) *app {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>%s</title><h1>Back at %[1]s</h1>`, name)
	}))
	t.Cleanup(server.Close)
	a := &app{service: s, url: server.URL + "/back"}
	a.Client = s.NewClient(t, func(c *oauth.Client) {
		c.Name, c.RedirectURIs = name, []string{a.url}
		if options != nil {
			c.Options = *options
		}
	})
	return a
}

// authorizeURL returns the path of the app's authorization request. more alternates names and
// values of further parameters.
func (a *app) authorizeURL(scope string, more ...string) string {
	q := url.Values{"response_type": {"code"}, "client_id": {a.ID}, "redirect_uri": {a.url},
		"scope": {scope}, "state": {"s t&ä"}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/oauth/authorize?" + q.Encode()
}

// back checks that the browser is back at the app, and returns the parameters.
func (p *person) back(a *app) url.Values {
	p.t.Helper()
	all := p.read()
	if !strings.Contains(all, "Back at "+a.Name) || p.query.Get("state") != "s t&ä" ||
		p.query.Get("iss") != p.URL {
		p.t.Fatalf("got %d at %s?%s:\n%s\nwant to be back at %s", p.status, p.path, p.query.Encode(), all,
			a.Name)
	}
	return p.query
}

// token redeems the code that the app got, and returns the access token.
func (p *person) token(a *app) string {
	p.t.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {p.back(a).Get("code")},
		"redirect_uri": {a.url}, "client_id": {a.ID},
		"client_secret": {a.Secret}}
	response, err := p.Client.PostForm(p.URL+"/oauth/token", form)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || body.Token == "" {
		p.t.Fatalf("got %d %v, want a token", response.StatusCode, err)
	}
	return body.Token
}

// profile requests a profile. It returns the status and the name in it.
func (p *person) profile(token string) (status int, name string) {
	p.t.Helper()
	request, err := http.NewRequest(http.MethodGet, p.URL+"/api/user", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := p.Client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct{ Name string }
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, body.Name
}

// code returns the code that was sent to an address, and checks the kind of message.
func (p *person) code(to string, kind account.Kind) string {
	p.t.Helper()
	m := p.Next(p.t, to)
	if m.Kind != kind || len(m.Code) != 6 {
		p.t.Fatalf("got a message %s with %d digits, want %s with 6", m.Kind, len(m.Code), kind)
	}
	return m.Code
}

// alter changes the database directly, such as times in place of waiting.
func (s *service) alter(t *testing.T, statement string) {
	t.Helper()
	if s.Alter(t, statement) == 0 {
		t.Fatalf("%s: got no row, want some", statement)
	}
}

// other returns a different code.
func other(code string) string {
	return fmt.Sprintf("%06d", (len(code)+int(code[0])+1)*1009%1_000_000)
}
