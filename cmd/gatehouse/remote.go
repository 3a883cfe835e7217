package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/actors/brand"
)

// adminSettings say where the admin listener is, and how both sides prove who they are.
type adminSettings struct {
	AdminURL   string `name:"admin-url" variable:"GATEHOUSE_ADMIN_URL" group:"remote" placeholder:"URL" help:"Where the admin API is: a URL or unix:/path (default: admin-listen of the settings file or the environment, else http://127.0.0.1:8081)."`
	CA         string `name:"ca" variable:"GATEHOUSE_CA" group:"remote" placeholder:"FILE" help:"Certificates, PEM, that the server's certificate may be signed by (default: those of the system)."`
	ClientCert string `name:"client-cert" variable:"GATEHOUSE_CLIENT_CERT" group:"remote" placeholder:"FILE" help:"Certificate to show to the server, PEM."`
	ClientKey  string `name:"client-key" variable:"GATEHOUSE_CLIENT_KEY" group:"remote" placeholder:"FILE" help:"Private key of that certificate, PEM."`
}

// remoteSettings say where the admin API is, and which client calls it.
type remoteSettings struct {
	adminSettings
	ClientID         string     `name:"client-id" variable:"GATEHOUSE_CLIENT_ID" group:"remote" placeholder:"ID" help:"Operator client; gatehouse init creates the first."`
	ClientSecret     secretText `name:"client-secret" variable:"GATEHOUSE_CLIENT_SECRET" group:"remote" placeholder:"SECRET" help:"Secret of the operator client. Other users of this machine can see flags: use the variable or the file."`
	ClientSecretFile secretFile `name:"client-secret-file" variable:"GATEHOUSE_CLIENT_SECRET_FILE" group:"remote" placeholder:"FILE" help:"File with that secret, in place of the value itself."`
}

// remoteFlags are the flags of all commands that call a running gatehouse.
type remoteFlags struct {
	remoteSettings
	BaseURL    string     `name:"base-url" variable:"GATEHOUSE_BASE_URL" group:"remote" placeholder:"URL" help:"Where the token endpoint is: a URL or unix:/path (default: listen of the settings file or the environment, else http://127.0.0.1:8080)."`
	Demo       string     `name:"demo" group:"remote" placeholder:"DIR" help:"Take addresses and operator from the demo in this folder."`
	JSON       bool       `name:"json" help:"Print JSON."`
	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, YAML (.yaml, .yml) or TOML (.toml), which may be that of the server. Flags and variables win over it."`
}

const (
	remoteTimeout = 30 * time.Second // for one request
	maxResponse   = 4 << 20          // bytes
)

// remote calls a running gatehouse.
type remote struct {
	p            *program
	json         bool
	base, admin  *site
	clientID     string
	clientSecret string
	token        string // access token with the scope server-operations; "" = none yet
}

// connect checks the flags. It sends nothing.
func (f *remoteFlags) connect(p *program) (*remote, error) {
	if f.Demo != "" {
		demo, err := readDemoFile(f.Demo)
		if err != nil {
			return nil, usagef("--demo %q: must be the folder of a demo that has run: %v", f.Demo,
				err)
		}
		if demo.Clients == nil {
			return nil, usagef("--demo %q: this demo does not offer the identity service", f.Demo)
		}
		f.BaseURL, f.AdminURL = demo.BaseURL, demo.AdminURL
		f.ClientID = demo.Clients.Operator.ClientID
		f.ClientSecret = secretText(demo.Clients.Operator.ClientSecret)
	}
	if f.ClientID == "" {
		return nil,
			refuse("client-id", "", "must be given (gatehouse init creates the first operator)")
	}
	if f.ClientSecret == "" {
		return nil, refuse("client-secret", "", "must be given, best in GATEHOUSE_CLIENT_SECRET"+
			" (gatehouse init creates the first operator)")
	}
	admin, err := f.site(p)
	if err != nil {
		return nil, err
	}
	base, err := newSite("base-url", first(f.BaseURL, p.resolver.serverURL("", defaultListen)),
		admin.secure)
	if err != nil {
		return nil, err
	}
	return &remote{
		p: p, json: f.JSON, base: base, admin: admin,
		clientID: f.ClientID, clientSecret: string(f.ClientSecret),
	}, nil
}

// The listeners of a server whose settings are not known.
const (
	defaultListen      = "127.0.0.1:8080"
	defaultAdminListen = "127.0.0.1:8081"
)

// serverURL returns where this machine reaches a listener of the server, by the server's settings.
// Their names begin with prefix.
func (r *resolver) serverURL(prefix, fallback string) string {
	listen, _, ok := r.lookUp(prefix + "listen")
	if !ok {
		listen = fallback
	}
	if strings.HasPrefix(listen, "unix:") {
		path, _, _ := strings.Cut(listen, "?")
		return path
	}
	host, port, _ := net.SplitHostPort(listen)
	if isUnspecified(host) {
		host = "localhost"
	}
	scheme := "http://"
	if _, _, secure := r.lookUp(prefix + "tls-cert"); secure {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// site returns the admin listener.
func (f *adminSettings) site(p *program) (*site, error) {
	secure, err := f.tls()
	if err != nil {
		return nil, err
	}
	return newSite("admin-url",
		first(f.AdminURL, p.resolver.serverURL("admin-", defaultAdminListen)), secure)
}

// tls returns how servers are checked, and what they are shown.
func (f *adminSettings) tls() (*tls.Config, error) {
	var c tls.Config
	if f.CA != "" {
		var err error
		if c.RootCAs, err = readCertificates(f.CA); err != nil {
			return nil, refuse("ca", f.CA, "%v", err)
		}
	}
	if err := checkPair("client", f.ClientCert, f.ClientKey); err != nil {
		return nil, err
	}
	if f.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(f.ClientCert, f.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("read the client's certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return &c, nil
}

// site is a server to call.
type site struct {
	url    string // without a slash at the end
	shown  string // as it was given
	secure *tls.Config
	client *http.Client
}

// newSite checks the address that a setting names: a URL, or unix: and a path. Plain http is
// allowed, since admin listeners on loopback speak it.
func newSite(setting, address string, secure *tls.Config) (*site, error) {
	address = strings.TrimSuffix(address, "/")
	transport := &http.Transport{TLSClientConfig: secure}
	s := &site{url: address, shown: redactURL(address), secure: secure, client: &http.Client{
		Transport: transport, Timeout: remoteTimeout,
		CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if !isSocketPath(path) {
			return nil, refuse(setting, s.shown,
				"must be a URL, or unix: and a path of at most %d bytes", maxSocketPath)
		}
		s.url = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		return s, nil
	}
	u, err := url.Parse(address)
	if err != nil || !isHTTP(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, refuse(setting, s.shown, "must be a URL such as https://example.com with no "+
			"user, query and fragment, or unix:/path")
	}
	return s, nil
}

// call sends body, JSON or a *brand.Image, to path of the admin API and returns the JSON of the
// response. Either may be nil
// = none. A long command needs more than one access token.
func (r *remote) call(method, path string, body any) (json.RawMessage, error) {
	fresh := r.token == ""
	response, err := r.callOnce(method, path, body)
	var status *statusError
	if !fresh && errors.As(err, &status) && status.status == http.StatusUnauthorized {
		r.token = ""
		return r.callOnce(method, path, body)
	}
	return response, err
}

func (r *remote) callOnce(method, path string, body any) (json.RawMessage, error) {
	if err := r.authenticate(); err != nil {
		return nil, err
	}
	payload, written := body.(json.RawMessage) // as it is
	contentType := "application/json"
	if image, ok := body.(*brand.Image); ok {
		payload, written, contentType = image.Data, true, image.Type
	}
	if body != nil && !written {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(r.p.ctx, method, r.admin.url+path,
		bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	return r.admin.do("admin API", request)
}

// authenticate requests an access token for the admin API (RFC 6749 section 4.4), once.
func (r *remote) authenticate() error {
	if r.token != "" {
		return nil
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "scope": {"server-operations"},
		"client_id": {r.clientID}, "client_secret": {r.clientSecret},
	}
	request, err := http.NewRequestWithContext(r.p.ctx, http.MethodPost, r.base.url+"/oauth/token",
		strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	text, err := r.base.do("token endpoint", request)
	if err != nil {
		return err
	}
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &token); err != nil || token.AccessToken == "" {
		return fmt.Errorf("token endpoint at %s: the response has no access token", r.base.shown)
	}
	r.token = token.AccessToken
	return nil
}

// do sends a request and returns the JSON of a successful response. name is for errors.
func (s *site) do(name string, request *http.Request) (json.RawMessage, error) {
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reach the %s at %s: %w", name, s.shown, reason(err))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the response of the %s at %s: %w", name, s.shown, reason(err))
	}
	s.client.CloseIdleConnections()
	if response.StatusCode/100 != 2 {
		err := refusal(fmt.Sprintf("%s at %s", name, s.shown), response.StatusCode, text)
		if id := response.Header.Get("X-Request-Id"); response.StatusCode >= 500 && id != "" {
			return nil, fmt.Errorf("%w (request id %s: see the log of the server)", err, id)
		}
		return nil, err
	}
	if len(text) == 0 {
		return nil, nil
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("%s at %s: the response is not JSON", name, s.shown)
	}
	return text, nil
}

// reason returns an error of net/http without the URL that it begins with.
func reason(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// statusError is a response that is not successful.
type statusError struct {
	status  int
	message string
}

// Error says where the response came from, and what it describes.
func (e *statusError) Error() string { return e.message }

// refusal returns the error that a response describes.
func refusal(where string, status int, text []byte) error {
	var response struct {
		Message string            `json:"message"`
		Hint    string            `json:"hint"`
		Fields  map[string]string `json:"fields"`
	}
	if err := json.Unmarshal(text, &response); err != nil || response.Message == "" {
		return &statusError{status, fmt.Sprintf("%s: status %d", where, status)}
	}
	message := strings.TrimSpace(response.Message + " " + response.Hint)
	if len(response.Fields) > 0 {
		message = fieldList(response.Fields)
	}
	return &statusError{status, where + ": " + message}
}
