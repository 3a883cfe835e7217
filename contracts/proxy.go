package contracts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// statePath is below what the service itself has.
const statePath = "/_pact/state"

// HideLocation is a request header by which the answer to a redirect carries HiddenLocation in the place of Location:
// verifiers follow redirects and cannot be told not to. The service never sees it.
const (
	HideLocation   = "X-Pact-Hide-Location"
	HiddenLocation = "X-Pact-Location"
)

// largestStateChange bounds the body of a state change, in bytes.
const largestStateChange = 1 << 20

// handler answers state changes and hands all else to the present fixture.
func (p *Provider) handler() http.Handler {
	service := http.Handler(http.HandlerFunc(p.serveFixture))
	if p.config.Wrap != nil {
		service = p.config.Wrap(service)
	}
	service = Hidden(service)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == statePath {
			p.changeState(w, r)
			return
		}
		service.ServeHTTP(w, r)
	})
}

// serveFixture hands a request to the present fixture, or to a new one that holds nothing.
func (p *Provider) serveFixture(w http.ResponseWriter, r *http.Request) {
	p.used.Store(true)
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
	p.fixture.serveHTTP(w, r, p.forward)
}

// serveHTTP hands r to the service, directly or by way of the browser of a person.
func (f *fixture) serveHTTP(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper) {
	if f.caller != "" {
		r.Header.Set("X-Forwarded-For", f.caller)
	}
	if f.decision != "" && r.Method == http.MethodGet && r.URL.Path == "/oauth/authorize" {
		b, err := newBrowser(f, transport)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		b.serve(rw, r)
		return
	}
	base, err := url.Parse(f.base)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	Forward(base, transport).ServeHTTP(rw, r)
}

// Forward returns a handler that hands requests to base and passes on what forwarding headers say.
func Forward(base *url.URL, transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = values
				}
			}
			if _, ok := r.In.Header["User-Agent"]; !ok {
				r.Out.Header.Set("User-Agent", "")
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "the service did not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
}

// Hidden returns service with redirects that HideLocation asks to hide.
func Hidden(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(HideLocation) == "" {
			service.ServeHTTP(w, r)
			return
		}
		r.Header.Del(HideLocation)
		service.ServeHTTP(&hidingWriter{ResponseWriter: w}, r)
	})
}

// hidingWriter renames Location before the header goes out.
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

// changeState answers POST of a state change with the values of the state. A state or a value that cannot be is 400.
func (p *Provider) changeState(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST a state change here", http.StatusMethodNotAllowed)
		return
	}
	var body map[string]any
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestStateChange)).Decode(&body)
	if err != nil {
		http.Error(w, fmt.Sprintf("a state change is a JSON object: %s", err), http.StatusBadRequest)
		return
	}
	values, err := p.change(r, body)
	var unknown *StateError
	switch {
	case errors.As(err, &unknown):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(values); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			p.log.Warn("answer a state change", "error", err)
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
