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
)

// Target is a gatehouse that is to be asked. What is "" is not known, and scenarios that need it say so.
type Target struct {
	Base         string // public address
	Admin        string // admin listener: set-up, and what the process says of itself
	Simulator    string // of the upstream: outages
	ClientID     string // of an operator client
	ClientSecret string
	Version      string // of the program, for reports
	Own          bool   // it is a Local: nothing is missing, and its breaker's cool-down is a second
}

// isLoopback reports whether host is this machine, which needs no confirmation.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// CheckOwner returns an error unless all addresses of the target are on loopback or at the host that its owner has named.
func (t Target) CheckOwner(owned string) error {
	for _, a := range []struct{ flag, text string }{{"--target", t.Base}, {"--admin", t.Admin}, {"--simulator", t.Simulator}} {
		if a.text == "" {
			continue
		}
		u, err := url.Parse(a.text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			return fmt.Errorf("%s %q: write scheme, host and port, such as http://127.0.0.1:8080", a.flag, a.text)
		case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
			return fmt.Errorf("%s: write scheme, host and port alone, such as %s://%s, without user, path, query and fragment", a.flag, u.Scheme, u.Host)
		}
		if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return fmt.Errorf("%s %q: a port is a number from 1 to 65535", a.flag, a.text)
			}
		}
		if host := u.Hostname(); !isLoopback(host) && host != owned {
			return fmt.Errorf("%s: %s is not this machine: a load test of somebody else's server is an attack. If it is yours, say --i-own-this-target %s", a.flag, host, host)
		}
	}
	return nil
}

// operator is a session with the target's token endpoint and admin API, for set-up.
type operator struct {
	target Target
	http   *http.Client
	mu     sync.Mutex
	token  string
	until  time.Time // when another token is due
}

func newOperator(t Target) *operator {
	return &operator{target: t, http: &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// errNoOperator says what set-up needs.
var errNoOperator = errors.New("this scenario makes its clients and users itself: give --admin, --client-id and --client-secret of an operator client (gatehouse init makes one), or no --target at all")

// call asks the admin API and reads its answer into answer, nil = it has none.
func (o *operator) call(ctx context.Context, method, path string, body, answer any) error {
	token, err := o.authenticate(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(o.target.Admin, "/")+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	return o.do(request, "the admin API", answer)
}

// authenticate returns an access token with the scope server-operations.
func (o *operator) authenticate(ctx context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.target.Admin == "" || o.target.ClientID == "" || o.target.ClientSecret == "" {
		return "", errNoOperator
	}
	if o.token != "" && time.Now().Before(o.until) {
		return o.token, nil
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"server-operations"}, "client_id": {o.target.ClientID}, "client_secret": {o.target.ClientSecret}}
	if err := o.exchange(ctx, form, &answer); err != nil {
		return "", err
	}
	o.token, o.until = answer.AccessToken, time.Now().Add(time.Minute)
	return o.token, nil
}

// exchange asks the token endpoint.
func (o *operator) exchange(ctx context.Context, form url.Values, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(o.target.Base, "/")+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return o.do(request, "the token endpoint", answer)
}

func (o *operator) do(request *http.Request, who string, answer any) error {
	response, err := o.http.Do(request)
	if err != nil {
		return fmt.Errorf("reach %s: %w", who, err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read the answer of %s: %w", who, err)
	}
	if response.StatusCode/100 != 2 {
		var said struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(text, &said) != nil || said.Message == "" {
			said.Message = "no reason given"
		}
		return fmt.Errorf("%s answered %d: %s", who, response.StatusCode, said.Message)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", who, err)
	}
	return nil
}
