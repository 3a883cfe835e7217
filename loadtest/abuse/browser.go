package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// redirectURI is the client's. Nothing listens there: browsers only read the last redirect.
const redirectURI = "http://127.0.0.1:9/callback"

var formToken = regexp.MustCompile(`name="form_token" value="([^"]*)"`)

// browser is a person's browser with its own cookies.
type browser struct {
	http   *http.Client
	base   string
	caller string // address that the proxy tells
}

// newBrowser returns a browser without cookies. Browsers may share a transport.
func newBrowser(transport *http.Transport, base, caller string) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // never: there are no options
	}
	return &browser{&http.Client{Transport: transport, Jar: jar, CheckRedirect: stayInside},
		base, caller}
}

// stayInside stops at a redirect to the client.
func stayInside(next *http.Request, _ []*http.Request) error {
	if strings.HasPrefix(next.URL.String(), redirectURI) {
		return http.ErrUseLastResponse
	}
	return nil
}

// page is a response.
type page struct {
	status int
	at     *url.URL // after redirects
	to     string   // redirect to the client; "" = none
	text   string
}

// token returns the form token of the page's first form; "" = none.
func (p *page) token() string {
	if m := formToken.FindStringSubmatch(p.text); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// open requests a path, or posts a form to it unless form is nil.
func (b *browser) open(ctx context.Context, path string, form url.Values) (*page, error) {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(ctx, method, b.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Forwarded-For", b.caller)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.http.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	p := &page{response.StatusCode, response.Request.URL, "", string(text)}
	if to := response.Header.Get("Location"); strings.HasPrefix(to, redirectURI) {
		p.to = to
	}
	return p, nil
}

// send posts the first form of p, with its token.
func (b *browser) send(ctx context.Context, p *page, form url.Values) (*page, error) {
	form.Set("form_token", p.token())
	return b.open(ctx, p.at.RequestURI(), form)
}

// signIn signs in at a page with the form for it.
func (b *browser) signIn(ctx context.Context, path string, who person) (*page, error) {
	p, err := b.open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	if p, err = b.send(ctx, p, url.Values{"email": {who.email}, "password": {who.password}}); err != nil {
		return nil, err
	}
	if p.status != http.StatusOK {
		return nil, fmt.Errorf("sign in: got status %d", p.status)
	}
	return p, nil
}
