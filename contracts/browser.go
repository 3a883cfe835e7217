package contracts

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// maxPages limits the pages of one authorization.
const maxPages = 10

// formToken finds the hidden field of a page's form, formAction the form's target.
var (
	formToken  = regexp.MustCompile(`name="form_token" value="([^"]+)"`)
	formAction = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
)

// browser is the browser of a signed-in person who submits each page of an authorization.
type browser struct {
	fixture *fixture
	client  *http.Client
}

// serveBrowser responds to an authorization request with the end of the authorization.
func serveBrowser(w http.ResponseWriter, r *http.Request, f *fixture) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	cookies, _ := f.values["cookie"].(string)
	_, session, _ := strings.Cut(cookies, "=")
	jar.SetCookies(f.base(), []*http.Cookie{{Name: sessionCookie, Value: session, Path: "/"}})
	b := &browser{f, &http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}}
	response, body, err := b.authorize(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(body) // the verifier notices a truncated body
}

// authorize sends the authorization request r. It continues until the service redirects the browser
// elsewhere or shows a page without a form. It returns the last response with its body.
func (b *browser) authorize(r *http.Request) (*http.Response, []byte, error) {
	next := r.Clone(r.Context())
	next.RequestURI = ""
	base := b.fixture.base()
	next.URL.Scheme, next.URL.Host = base.Scheme, base.Host
	for range maxPages {
		response, err := b.client.Do(next)
		if err != nil {
			return nil, nil, err
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, nil, err
		}
		if next, err = b.next(r.Context(), response, string(body)); next == nil {
			return response, body, err
		}
	}
	return nil, nil, fmt.Errorf("the authorization has more than %d pages", maxPages)
}

// next returns the browser's next request; nil = the authorization has ended.
func (b *browser) next(ctx context.Context, response *http.Response, page string) (*http.Request,
	error) {
	location := response.Header.Get("Location")
	if strings.HasPrefix(location, "/") {
		return http.NewRequestWithContext(ctx, http.MethodGet, b.fixture.base().String()+location,
			nil)
	}
	action, token := formAction.FindStringSubmatch(page), formToken.FindStringSubmatch(page)
	if location != "" || response.StatusCode != http.StatusOK || action == nil || token == nil {
		return nil, nil
	}
	form := url.Values{"form_token": {token[1]}, "decision": {b.fixture.decision},
		"account": {strconv.FormatInt(b.fixture.user.ID, 10)}}
	to := b.fixture.base().String() + html.UnescapeString(action[1])
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to,
		strings.NewReader(form.Encode()))
	if err == nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return request, err
}
