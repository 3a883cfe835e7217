package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/loadtest/lab"
)

// Target is a gatehouse under load. Fields may be "" if no scenario of the run needs them.
type Target struct {
	Base         string // public address
	Admin        string // admin address, for setup and metrics
	Simulator    string // address of the simulated upstream, for outages
	ClientID     string // of an operator client
	ClientSecret string
	Version      string // of the program, for reports
	Own          bool   // it is a Local: complete, with localCooldown
	// Header has names and values that go with the requests to Base, except the operator's and those
	// of the garbage of overload. They may be secret.
	Header [][2]string
}

// dress adds the target's headers to a request of setup.
func (t Target) dress(request *http.Request) {
	for _, h := range t.Header {
		request.Header.Set(h[0], h[1])
	}
}

// isLoopback reports whether host is this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// CheckOwner returns an error unless all addresses of the target are on loopback or at the host
// owned.
func (t Target) CheckOwner(owned string) error {
	for _, a := range []struct{ flag, text string }{{"--target", t.Base}, {"--admin", t.Admin},
		{"--simulator", t.Simulator}} {
		if a.text == "" {
			continue
		}
		u, err := url.Parse(a.text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			return fmt.Errorf("%s %q: write scheme, host and port, such as http://127.0.0.1:8080",
				a.flag, a.text)
		case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery ||
			u.Fragment != "":
			return fmt.Errorf("%s: write only scheme, host and port, such as %s://%s, without user, path, query and fragment",
				a.flag, u.Scheme, u.Host)
		}
		if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return fmt.Errorf("%s %q: the port must be 1 to 65535", a.flag, a.text)
			}
		}
		if host := u.Hostname(); !isLoopback(host) && host != owned {
			return fmt.Errorf("%s: %s is not this machine: a load test of someone else's server is an attack. If it is yours, add --i-own-this-target %s",
				a.flag, host, host)
		}
	}
	return nil
}

// Operator is a client of the target's token endpoint and admin API, for setup. Its methods may be
// called by many goroutines.
type Operator struct {
	target Target
	http   *http.Client
	mu     sync.Mutex
	token  string
	until  time.Time // when to get a new token
}

// NewOperator returns an operator of a target.
func NewOperator(t Target) *Operator {
	return &Operator{target: t, http: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// browser returns a browser for setup, whose requests are not measured.
func (o *Operator) browser() *lab.Browser {
	b := lab.NewBrowser(o.target.Base, o.http.Transport)
	b.Client.Timeout = o.http.Timeout
	return b
}

// errNoOperator is returned if the target has no operator client.
var errNoOperator = errors.New("this scenario creates clients and users: give --admin, --client-id and --client-secret of an operator client (gatehouse init creates one), or leave out --target")

// Call calls the admin API and decodes the response into response; nil = ignore it.
func (o *Operator) Call(ctx context.Context, method, path string, body, response any) error {
	token, err := o.authenticate(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method,
		strings.TrimSuffix(o.target.Admin, "/")+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	return o.do(request, "the admin API", response)
}

// authenticate returns an access token with the scope server-operations.
func (o *Operator) authenticate(ctx context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.target.Admin == "" || o.target.ClientID == "" || o.target.ClientSecret == "" {
		return "", errNoOperator
	}
	if o.token != "" && time.Now().Before(o.until) {
		return o.token, nil
	}
	var response struct {
		AccessToken string `json:"access_token"`
	}
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"server-operations"},
		"client_id": {o.target.ClientID}, "client_secret": {o.target.ClientSecret}}
	if err := o.RequestToken(ctx, form, &response); err != nil {
		return "", err
	}
	o.token, o.until = response.AccessToken, time.Now().Add(time.Minute)
	return o.token, nil
}

// RequestToken calls the token endpoint.
func (o *Operator) RequestToken(ctx context.Context, form url.Values, response any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		strings.TrimSuffix(o.target.Base, "/")+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return o.do(request, "the token endpoint", response)
}

// do sends a request and decodes its response into into; nil = ignore it. where names the endpoint
// in errors.
func (o *Operator) do(request *http.Request, where string, into any) error {
	response, err := o.http.Do(request)
	if err != nil {
		return fmt.Errorf("reach %s: %w", where, err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read the response of %s: %w", where, err)
	}
	if response.StatusCode/100 != 2 {
		var problem struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(text, &problem) != nil || problem.Message == "" {
			problem.Message = "no reason given"
		}
		return fmt.Errorf("%s responded with status %d: %s", where, response.StatusCode,
			problem.Message)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the response of %s: %w", where, err)
	}
	return nil
}
