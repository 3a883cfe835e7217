package browser_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/edgetest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// house is the real service, with what it sends to people and an app that they use.
type house struct {
	*edgetest.IdentityStack
	*edgetest.Mailbox
	app  *app
	file string // the database
}

func newHouse(t *testing.T) *house {
	t.Helper()
	mailbox, file := edgetest.NewMailbox(), sqlitetest.File(t)
	h := &house{edgetest.NewIdentity(t, edgetest.Database("sqlite:"+file), mailbox.Deliver), mailbox, nil, file}
	h.app = h.newApp(t, "Atlas")
	return h
}

// app is a confidential client with a page that people come back to.
type app struct {
	edgetest.Client
	house *house
	url   string // of the page
}

// newApp registers an app of that name.
func (h *house) newApp(t *testing.T, name string) *app {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>%s</title><h1>Back at %[1]s</h1>`, name)
	}))
	t.Cleanup(server.Close)
	a := &app{house: h, url: server.URL + "/back"}
	a.Client = h.NewClient(t, func(c *oauth.Client) { c.Name, c.RedirectURIs = name, []string{a.url} })
	return a
}

// asks is where the app sends a browser to sign in; more are further parameters, each followed by its value.
func (a *app) asks(scope string, more ...string) string {
	q := url.Values{"response_type": {"code"}, "client_id": {a.ID}, "redirect_uri": {a.url}, "scope": {scope}, "state": {"s t&ä"}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/oauth/authorize?" + q.Encode()
}

// back checks that the person has come back to the app, and returns the parameters.
func (p *person) back(a *app) url.Values {
	p.t.Helper()
	all := p.read()
	if !strings.Contains(all, "Back at "+a.Name) || p.query.Get("state") != "s t&ä" || p.query.Get("iss") != p.URL {
		p.t.Fatalf("got %d at %s?%s:\n%s\nwant to be back at %s", p.status, p.path, p.query.Encode(), all, a.Name)
	}
	return p.query
}

// token is what the app gets for the code that the person has come back with.
func (p *person) token(a *app) string {
	p.t.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {p.back(a).Get("code")}, "redirect_uri": {a.url},
		"client_id": {a.ID}, "client_secret": {a.Secret}}
	response, err := p.Client.PostForm(p.URL+"/oauth/token", form)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Token == "" {
		p.t.Fatalf("got %d %v, want a token", response.StatusCode, err)
	}
	return answer.Token
}

// profile is what a token lets an app see.
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
	var answer struct{ Name string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, answer.Name
}

// code returns the code that was sent to an address, and checks what the message is.
func (p *person) code(to string, kind account.Kind) string {
	p.t.Helper()
	m := p.Next(p.t, to)
	if m.Kind != kind || len(m.Code) != 6 {
		p.t.Fatalf("got a message %s with %d digits, want %s with 6", m.Kind, len(m.Code), kind)
	}
	return m.Code
}

// notice checks that an address was sent a message without a code.
func (p *person) notice(to string, kind account.Kind) {
	p.t.Helper()
	if m := p.Next(p.t, to); m.Kind != kind || m.Code != "" {
		p.t.Errorf("got a message %s with %d digits, want %s without code", m.Kind, len(m.Code), kind)
	}
}

// alter changes the database behind the service's back: it lets time go by where nobody can wait for it.
func (h *house) alter(t *testing.T, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+h.file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s: got %d rows, %v, want some", statement, n, err)
	}
}

// other returns a code that is not this one.
func other(code string) string { return fmt.Sprintf("%06d", (len(code)+int(code[0])+1)*1009%1_000_000) }
