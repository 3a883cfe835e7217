// Package oauthapp is a consumer of the identity service: an application where people sign in with
// it (RFC 6749) and that reads their profiles.
package oauthapp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// requestTimeout limits each request.
const requestTimeout = time.Minute

// maxResponse limits the body of a response, in bytes.
const maxResponse = 1 << 20

// App is an application that is registered with the identity service. Methods are safe for
// concurrent use, but the fields must not change meanwhile. An error response is an *Error.
type App struct {
	Service     string // required: URL of the identity service
	Issuer      string // of the metadata; "" = Service
	ClientID    string // required, except for Metadata and profiles
	Secret      string // "" for a public client
	RedirectURI string // required for sign-ins
	Basic       bool   // authenticate by HTTP Basic, not in the body
	// Assertion returns a new JWT that authenticates the client (RFC 7523); nil = Secret does.
	Assertion func() (string, error)
	// Resource is the URI of the API of others that tokens are for (RFC 8707); "" = of the service.
	Resource string
	Origin   string // if the application is a web page; "" = it is not
}

// noRedirects is a client that does not follow redirects.
var noRedirects = &http.Client{CheckRedirect: func(*http.Request,
	[]*http.Request) error {
	return http.ErrUseLastResponse
}}

// Request is a request without an own method of App.
type Request struct {
	Method string // "" = GET
	Path   string // with the query
	Header map[string]string
	Body   string
}

// Response is a response with a status below 400.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request. A status of 400 or more is an *Error; a redirect is not followed.
func (a *App) Do(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method,
		strings.TrimRight(a.Service, "/")+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	if a.Origin != "" {
		request.Header.Set("Origin", a.Origin)
	}
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	response, err := noRedirects.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, fmt.Errorf("read a response: %w", err)
	}
	got := &Response{response.StatusCode, response.Header, body}
	if got.Status >= 400 {
		return nil, errorOf(got)
	}
	return got, nil
}

// post sends a form with the client's credentials.
func (a *App) post(ctx context.Context, path string, form url.Values) (*Response, error) {
	r := Request{Method: http.MethodPost, Path: path,
		Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}
	if a.Assertion != nil {
		assertion, err := a.Assertion()
		if err != nil {
			return nil, fmt.Errorf("make an assertion: %w", err)
		}
		form.Set("client_assertion", assertion)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	} else if a.Basic {
		r.Header["Authorization"] = a.basic()
	} else {
		form.Set("client_id", a.ClientID)
		if a.Secret != "" {
			form.Set("client_secret", a.Secret)
		}
	}
	r.Body = form.Encode()
	return a.Do(ctx, r)
}

// basic returns the Authorization header of the client (RFC 6749 section 2.3.1).
func (a *App) basic() string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(url.QueryEscape(a.ClientID), url.QueryEscape(a.Secret))
	return r.Header.Get("Authorization")
}

// decode parses the body, which must be JSON.
func (r *Response) decode(into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("got a response with status %d that is not JSON", r.Status)
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("read a response with status %d: %w", r.Status, err)
	}
	return nil
}

// list returns the elements of a list header.
func (r *Response) list(name string) []string {
	var all []string
	for v := range strings.SplitSeq(strings.Join(r.Header.Values(name), ","), ",") {
		if v = strings.TrimSpace(v); v != "" {
			all = append(all, v)
		}
	}
	return all
}
