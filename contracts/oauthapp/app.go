// Package oauthapp is a consumer of the identity service: an application that people sign in to with it (RFC 6749), and
// that reads their profiles.
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

// patience bounds a request whose context has no deadline.
const patience = 10 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// App is an application that is registered with the identity service. It must not be changed while it is in use; its
// methods may be called by many goroutines. Their errors are an *Error where the service refused.
type App struct {
	Service     string // required: URL of the identity service, also its issuer unless Issuer is set
	Issuer      string // as the metadata has it; "" = Service
	ClientID    string // required, but for Metadata and the profiles
	Secret      string // "" for a public client
	RedirectURI string // required for sign-ins
	Basic       bool   // authenticate by HTTP Basic, not in the body
	Origin      string // of the web page that the application is; "" = it is none
}

// noRedirects is a client that shows redirects to who asks.
var noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Request is one that App has no method of its own for.
type Request struct {
	Method string // "" = GET
	Path   string // with the query
	Header map[string]string
	Body   string
}

// Response is the answer to a Request that was not refused.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request. A status of 400 or more is an *Error; a redirect is not followed.
func (a *App) Do(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, strings.TrimRight(a.Service, "/")+r.Path, strings.NewReader(r.Body))
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
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	answer := &Response{response.StatusCode, response.Header, body}
	if answer.Status >= 400 {
		return nil, refusalOf(answer)
	}
	return answer, nil
}

// post sends a form in the name of the client.
func (a *App) post(ctx context.Context, path string, form url.Values) (*Response, error) {
	r := Request{Method: http.MethodPost, Path: path, Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}
	if a.Basic {
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

// decode reads the body of an answer that has to be JSON.
func (r *Response) decode(into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("got an answer with status %d that is not JSON", r.Status)
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("read an answer with status %d: %w", r.Status, err)
	}
	return nil
}

// list returns the members of a header that is a list.
func (r *Response) list(name string) []string {
	var all []string
	for v := range strings.SplitSeq(strings.Join(r.Header.Values(name), ","), ",") {
		if v = strings.TrimSpace(v); v != "" {
			all = append(all, v)
		}
	}
	return all
}
