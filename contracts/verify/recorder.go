package verify

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gatehouse/contracts"
)

// Target is the service that is verified.
type Target struct {
	Service http.Handler
	States  http.Handler // handles state changes; nil = the service already has its states

	address *url.URL                           // for commands that people repeat; nil = that of pactcheck serve
	check   func(*contracts.Interaction) error // of the states; nil = they are unknown
	absent  *atomic.Pointer[AbsentError]       // nil = the service is in this process
}

// Of returns a Provider as a target.
func Of(p *contracts.Provider) Target {
	return Target{Service: p, States: http.HandlerFunc(p.ChangeState),
		check: (*contracts.Interaction).Check}
}

// Remote returns the service at base as a target. Its state changes go to states, nil = it has
// none.
func Remote(base, states *url.URL) Target {
	t := Target{address: base, absent: new(atomic.Pointer[AbsentError])}
	t.Service = contracts.HideRedirects(contracts.Proxy(func(r *httputil.ProxyRequest) {
		r.SetURL(base)
	}, t.failed(base)))
	if states != nil {
		t.States = contracts.Proxy(func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = states, ""
		}, t.failed(states))
	}
	return t
}

// AbsentError means that there is no service at a URL: it says nothing about a contract.
type AbsentError struct {
	URL *url.URL
	Err error
}

// Error names the URL.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("there is no service at %s: %s", e.URL.Redacted(), e.Err)
}

// Unwrap returns the cause.
func (e *AbsentError) Unwrap() error { return e.Err }

// failed keeps errors of connecting to u. A connection that ends during a request is a failure of
// the service instead.
func (t Target) failed(u *url.URL) func(error) {
	return func(err error) {
		var connect *net.OpError
		var certificate *tls.CertificateVerificationError
		var plain tls.RecordHeaderError
		if errors.As(err, &connect) && connect.Op == "dial" || errors.As(err, &certificate) ||
			errors.As(err, &plain) {
			t.absent.CompareAndSwap(nil, &AbsentError{u, err})
		}
	}
}

// absence returns an *AbsentError if the service could not be reached, else nil.
func (t Target) absence() error {
	if t.absent == nil {
		return nil
	}
	if err := t.absent.Load(); err != nil {
		return err
	}
	return nil
}

// statePath is where the recorder takes state changes. No service has this path.
const statePath = "/_pactcheck/state"

// maxRecorded limits what is kept of a body, in bytes.
const maxRecorded = 64 << 10

// recorder is the server that the library sends its requests to. It passes them to the target and
// keeps what the target responds.
type recorder struct {
	target Target
	url    *url.URL
	server *http.Server
	served chan error

	// held during each request: a client may read a response before its handler returns
	mu     sync.Mutex
	last   *recording // of the service; nil = none yet
	states []string   // failed state changes
	values map[string]any
}

// recording keeps a response that goes through it, and its request.
type recording struct {
	http.ResponseWriter
	status  int
	body    strings.Builder
	request *http.Request
	sent    []byte // the beginning of the body of the request
}

func newRecorder(target Target) (*recorder, error) {
	target.address = cmp.Or(target.address, served)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	r := &recorder{target: target, url: &url.URL{Scheme: "http", Host: ln.Addr().String()},
		served: make(chan error, 1)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: requestTimeout}
	go func() { r.served <- r.server.Serve(ln) }()
	return r, nil
}

func (r *recorder) close() error {
	err := r.server.Close()
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// stateURL returns where state changes go, "" for a target without them.
func (r *recorder) stateURL() string {
	if r.target.States == nil {
		return ""
	}
	return r.url.String() + statePath
}

// reset forgets the previous interaction.
func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.states, r.values = nil, nil, map[string]any{}
}

// failed reports whether a state change failed.
func (r *recorder) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.states) > 0
}

// recorded returns the last exchange, nil = none, and the failed state changes. It counts each of
// the uses that no state has given a value as one.
func (r *recorder) recorded(uses []string) (last *recording, states []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	states = r.states
	for _, name := range uses {
		if _, ok := r.values[name]; !ok && len(states) == 0 && r.target.States != nil {
			states = []string{fmt.Sprintf("it uses the value %q, and its states give %s", name,
				cmp.Or(strings.Join(slices.Sorted(maps.Keys(r.values)), ", "), "none"))}
		}
	}
	return r.last, states
}

// ServeHTTP implements http.Handler.
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := &recording{ResponseWriter: w, request: request.Clone(request.Context())}
	if request.URL.Path != statePath {
		r.last = got
		// A proxy may read on after its response. An error comes again when the rest is read.
		body := request.Body
		got.sent, _ = io.ReadAll(io.LimitReader(body, maxRecorded))
		request.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(got.sent), body), body}
		r.target.Service.ServeHTTP(got, request)
		return
	}
	r.target.States.ServeHTTP(got, request)
	if got.status < http.StatusBadRequest {
		var values map[string]any
		if json.Unmarshal([]byte(got.body.String()), &values) == nil {
			maps.Copy(r.values, values)
		}
		return
	}
	failure := fmt.Sprintf("%d %s", got.status, shortened(strings.TrimSpace(got.body.String())))
	if !slices.Contains(r.states, failure) { // the library tries three times
		r.states = append(r.states, failure)
	}
}

// WriteHeader implements http.ResponseWriter.
func (r *recording) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recording) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.body.Write(b[:min(len(b), maxRecorded-min(maxRecorded, r.body.Len()))])
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recording) Unwrap() http.ResponseWriter { return r.ResponseWriter }
