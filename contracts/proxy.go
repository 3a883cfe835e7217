package contracts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

const (
	// statePath is the path of state changes. The service has no such path.
	statePath = "/_pact/state"
	// authorizePath is the path that browsers ask.
	authorizePath = "/oauth/authorize"
)

// A request with HideLocation gets a response that has HiddenLocation instead of Location.
// Verifiers follow redirects and cannot be told not to. The service never sees HideLocation.
const (
	HideLocation   = "X-Pact-Hide-Location"
	HiddenLocation = "X-Pact-Location"
)

// maxStateChange limits the body of a state change, in bytes.
const maxStateChange = 1 << 20

// transport keeps no connections: a fixture lives for one interaction.
var transport = &http.Transport{DisableKeepAlives: true, DisableCompression: true,
	DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}

// Proxy returns a reverse proxy that keeps forwarding headers as they are. rewrite sets the URL of
// each outgoing request. The response is 502 when the service does not respond; then failed gets
// the error, unless it is nil.
func Proxy(rewrite func(*httputil.ProxyRequest), failed func(error)) http.Handler {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			rewrite(r)
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
				"X-Forwarded-Proto"} {
				if values, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = values
				}
			}
			if _, ok := r.In.Header["User-Agent"]; !ok {
				r.Out.Header.Set("User-Agent", "")
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if failed != nil {
				failed(err)
			}
			http.Error(w, "the service did not respond: "+err.Error(), http.StatusBadGateway)
		},
	}
}

// HideRedirects returns service with support for HideLocation.
func HideRedirects(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(HideLocation) != "" {
			r.Header.Del(HideLocation)
			w = &hidingWriter{ResponseWriter: w}
		}
		service.ServeHTTP(w, r)
	})
}

// hidingWriter renames Location before the header is sent.
type hidingWriter struct {
	http.ResponseWriter
	sent bool
}

// WriteHeader implements http.ResponseWriter.
func (w *hidingWriter) WriteHeader(status int) {
	if h := w.Header(); !w.sent && h.Get("Location") != "" {
		h[HiddenLocation] = h["Location"]
		h.Del("Location")
	}
	w.sent = true
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *hidingWriter) Write(b []byte) (int, error) {
	if !w.sent {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *hidingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ServeHTTP serves state changes and forwards all other requests to the fixture.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == statePath {
		p.ChangeState(w, r)
		return
	}
	p.service.ServeHTTP(w, r)
}

// serveFixture forwards a request to the fixture. Without one, it starts one that holds nothing.
func (p *Provider) serveFixture(w http.ResponseWriter, r *http.Request) {
	p.mu.RLock()
	for p.fixture == nil {
		p.mu.RUnlock()
		p.mu.Lock()
		err := p.needFixture(r.Context())
		p.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		p.mu.RLock()
	}
	defer p.mu.RUnlock()
	p.used.Store(true)
	if p.fixture.caller != "" {
		r.Header.Set("X-Forwarded-For", p.fixture.caller)
	}
	if err := p.fixture.prepare(r); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if p.fixture.decision != "" && r.Method == http.MethodGet && r.URL.Path == authorizePath {
		serveBrowser(w, r, p.fixture)
		return
	}
	p.proxy.ServeHTTP(w, r)
}

// ChangeState serves POST of a state change. Its response holds the values of the state. A wrong
// state or value is 400.
func (p *Provider) ChangeState(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST a state change here", http.StatusMethodNotAllowed)
		return
	}
	var body map[string]any
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxStateChange)).Decode(&body)
	if err != nil {
		http.Error(w, fmt.Sprintf("a state change is a JSON object: %s", err),
			http.StatusBadRequest)
		return
	}
	values, err := p.change(r, body)
	var wrong *StateError
	switch {
	case errors.As(err, &wrong):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(values); err != nil &&
			!errors.Is(err, io.ErrClosedPipe) {
			p.log.Warn("respond to a state change", "error", err)
		}
	}
}

func (p *Provider) change(r *http.Request, body map[string]any) (map[string]any, error) {
	state, _ := body["state"].(string)
	action, ok := body["action"].(string)
	delete(body, "state")
	delete(body, "action")
	delete(body, "consumer")
	switch {
	case !ok, action == "setup":
		return p.SetUp(r.Context(), state, body)
	case action == "teardown":
		return map[string]any{}, p.TearDown(r.Context())
	}
	return nil, &StateError{state, fmt.Sprintf("got the action %q, want setup or teardown", action)}
}
