package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const (
	person     = "rosa@example.com"
	password   = "correct horse battery staple"
	callback   = "https://app.example/callback"
	verifier   = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	userScopes = "view-user detail-user"
)

// browser is the browser of a user. Once the user has signed in and consented to a client, it gets
// codes for that client. It may be used by many goroutines.
type browser struct {
	client *http.Client
	query  url.Values // of the authorization request
}

// newBrowser returns a browser that nobody is signed in with.
func newBrowser(t *testing.T, clientID string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{newClient(t, ""), authorization(clientID)}
	b.client.Jar = jar
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host == "app.example" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return b
}

// signIn signs the user in at base and returns the consent page that follows.
func (b *browser) signIn(t *testing.T, base string) *http.Response {
	t.Helper()
	page := b.open(t, http.MethodGet, base+"/oauth/authorize?"+b.query.Encode(), nil)
	return b.send(t, page, url.Values{"email": {person}, "password": {password}})
}

// consent allows the client what it requests.
func (b *browser) consent(t *testing.T, page *http.Response) {
	t.Helper()
	if page = b.send(t, page,
		url.Values{"decision": {"allow"}}); page.Header.Get("Location") == "" {
		t.Fatalf("got %s, want the way back to the client", page.Status)
	}
}

func authorization(clientID string) url.Values {
	challenge := sha256.Sum256([]byte(verifier))
	return url.Values{"response_type": {"code"}, "client_id": {clientID},
		"redirect_uri": {callback}, "scope": {userScopes},
		"skip_account_chooser": {"true"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}}
}

// send submits the form of a page with these fields filled in.
func (b *browser) send(t *testing.T, page *http.Response, fields url.Values) *http.Response {
	t.Helper()
	target := fillIn(t, page, fields)
	return b.open(t, http.MethodPost, target.String(), fields)
}

// fillIn adds the hidden fields of a page's first form and returns the URL of its action.
func fillIn(t *testing.T, page *http.Response, fields url.Values) *url.URL {
	t.Helper()
	root, err := html.Parse(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	action, inside := "", root
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" {
			action, inside = attribute(n, "action"), n
			break
		}
	}
	for n := range inside.Descendants() {
		if n.Type == html.ElementNode && n.Data == "input" && attribute(n, "type") == "hidden" {
			fields.Set(attribute(n, "name"), attribute(n, "value"))
		}
	}
	target, err := page.Request.URL.Parse(action)
	if err != nil || action == "" {
		t.Fatalf("got %s and error %v, want a page with a form", page.Status, err)
	}
	return target
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func (b *browser) open(t *testing.T, method, url string, form url.Values) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url,
		strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	})
	return response
}

var formToken = regexp.MustCompile(`name="form_token" value="([^"]*)"`)

// allowDevice enters a user code at the server at base and allows the device.
func (b *browser) allowDevice(base, userCode string) error {
	response, err := b.client.Get(base + "/device")
	for _, decision := range []string{"", "allow"} {
		if err != nil {
			return err
		}
		page, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		found := formToken.FindSubmatch(page)
		if found == nil {
			return fmt.Errorf("%w: got %s from the page for devices, want a form", errUnexpected,
				response.Status)
		}
		response, err = b.client.PostForm(base+"/device", url.Values{"user_code": {userCode},
			"decision": {decision}, "form_token": {string(found[1])}})
		if err != nil {
			return err
		}
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.Request.URL.Query().Get("done") != "allow" {
		return fmt.Errorf("%w: got %s for an allowed device, want 200", errUnexpected,
			response.Status)
	}
	return nil
}

// code requests an authorization code from the server at base.
func (b *browser) code(base string) (string, error) {
	response, err := b.client.Get(base + "/oauth/authorize?" + b.query.Encode())
	if err != nil {
		return "", err
	}
	location, err := response.Location()
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("status %s: %w", response.Status, err)
	}
	code := location.Query().Get("code")
	if code == "" {
		return "", fmt.Errorf("sent back with %s, without a code", location.Query().Get("error"))
	}
	return code, nil
}
