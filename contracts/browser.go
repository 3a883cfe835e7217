package contracts

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// mostPages bounds the steps of an authorization.
const mostPages = 10

// formToken finds the hidden field of a page's form, formAction where the form goes.
var (
	formToken  = regexp.MustCompile(`name="form_token" value="([^"]+)"`)
	formAction = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
)

// browser is that of a person who is signed in and answers each page of an authorization.
type browser struct {
	fixture *fixture
	client  *http.Client
}

func newBrowser(f *fixture, transport http.RoundTripper) (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(f.base)
	if err != nil {
		return nil, err
	}
	cookies, _ := f.values["cookie"].(string)
	_, session, _ := strings.Cut(cookies, "=")
	jar.SetCookies(base, []*http.Cookie{{Name: sessionCookie, Value: session, Path: "/"}})
	return &browser{f, &http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// authorize makes the authorization request r and goes on until the service sends the browser elsewhere, or shows a page that has
// nothing to answer. Its answer is the service's own.
func (b *browser) authorize(r *http.Request) (*http.Response, error) {
	next := r.Clone(r.Context())
	next.RequestURI = ""
	var err error
	if next.URL, err = url.Parse(b.fixture.base + r.URL.RequestURI()); err != nil {
		return nil, err
	}
	for range mostPages {
		response, err := b.client.Do(next)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(strings.NewReader(string(body)))
		if next = b.answer(next, response, string(body)); next == nil {
			return response, nil
		}
	}
	return nil, fmt.Errorf("the authorization has more than %d pages", mostPages)
}

// answer returns what the browser does next; nil = nothing.
func (b *browser) answer(asked *http.Request, response *http.Response, page string) *http.Request {
	location := response.Header.Get("Location")
	action, token := formAction.FindStringSubmatch(page), formToken.FindStringSubmatch(page)
	var next *http.Request
	var err error
	switch {
	case strings.HasPrefix(location, "/"):
		next, err = http.NewRequestWithContext(asked.Context(), http.MethodGet, b.fixture.base+location, nil)
	case location == "" && response.StatusCode == http.StatusOK && action != nil && token != nil:
		form := url.Values{"form_token": {token[1]}, "decision": {b.fixture.decision}, "account": {strconv.FormatInt(b.fixture.user.ID, 10)}}
		path := html.UnescapeString(action[1])
		next, err = http.NewRequestWithContext(asked.Context(), http.MethodPost, b.fixture.base+path, strings.NewReader(form.Encode()))
		if err == nil {
			next.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	if err != nil {
		return nil
	}
	return next
}

// serve answers r with the end of the authorization.
func (b *browser) serve(w http.ResponseWriter, r *http.Request) {
	response, err := b.authorize(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}
