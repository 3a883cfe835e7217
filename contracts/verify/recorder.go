//go:build pact

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/contracts"
)

// statePath is where the front takes state changes; no service has it.
const statePath = "/_pactcheck/state"

// mostKept bounds what is kept of a body, in bytes.
const mostKept = 64 << 10

// front stands between the library and the service: it hides redirects and keeps what was answered.
type front struct {
	url    *url.URL
	server *http.Server
	served chan error

	mu     sync.Mutex
	answer *answer // to the last request; nil = none yet
	states []string
}

// answer is what a service said.
type answer struct {
	status int
	body   strings.Builder
}

func newFront(target Target) (*front, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	f := &front{url: &url.URL{Scheme: "http", Host: ln.Addr().String()}, served: make(chan error, 1)}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	service := contracts.Hidden(contracts.Forward(target.Base, transport))
	f.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == statePath {
			f.changeState(w, r, target.StateURL)
			return
		}
		kept := &answer{}
		service.ServeHTTP(&keeper{w, kept}, r)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.answer = kept
	})}
	go func() { f.served <- f.server.Serve(ln) }()
	return f, nil
}

func (f *front) close() error {
	err := f.server.Close()
	if served := <-f.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// begin forgets the interaction before.
func (f *front) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.states = nil, nil
}

// seen returns what was answered, "" = nothing, and what was wrong with state changes.
func (f *front) seen() (answered string, problems []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answer != nil {
		answered = strings.TrimSpace(fmt.Sprintf("%d %s", f.answer.status, legible(f.answer.body.String())))
	}
	return answered, f.states
}

// changeState passes a state change on, and keeps why it failed.
func (f *front) changeState(w http.ResponseWriter, r *http.Request, to string) {
	body, status, kind, err := post(r.Context(), to, r.Body)
	if err == nil && status >= http.StatusBadRequest {
		err = fmt.Errorf("%d %s", status, shortened(strings.TrimSpace(body)))
	}
	if err != nil {
		f.mu.Lock()
		if !slices.Contains(f.states, err.Error()) { // the library tries three times
			f.states = append(f.states, err.Error())
		}
		f.mu.Unlock()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the library is gone if it fails
}

func post(ctx context.Context, to string, body io.Reader) (content string, status int, kind string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, body)
	if err != nil {
		return "", 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, "", err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return string(read), response.StatusCode, response.Header.Get("Content-Type"), err
}

// keeper keeps what goes through it.
type keeper struct {
	http.ResponseWriter
	answer *answer
}

// WriteHeader implements http.ResponseWriter.
func (k *keeper) WriteHeader(status int) {
	k.answer.status = status
	k.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (k *keeper) Write(b []byte) (int, error) {
	if k.answer.status == 0 {
		k.answer.status = http.StatusOK
	}
	k.answer.body.Write(b[:min(len(b), mostKept-min(mostKept, k.answer.body.Len()))])
	return k.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }
