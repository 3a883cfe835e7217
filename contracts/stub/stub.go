// Package stub is the real gatehouse for the tests of client programs: with states that requests
// choose, responses that they ask for, and faults.
package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/contracts"
	"gatehouse/contracts/lint"
	"gatehouse/httpedge"
)

// Headers of requests to a stub, and of its responses.
const (
	// StateHeader is a state, with its parameters as JSON after the name. A request may have several.
	StateHeader   = "X-Pact-State"
	ValuesHeader  = "X-Pact-Values"  // what the states gave, as JSON
	RefusedHeader = "X-Pact-Refused" // why the stub did not pass the request on
)

const (
	maxProviders = 32      // gatehouses in states of their own
	maxBody      = 2 << 20 // of a request, in bytes
)

// Config configures a Stub. The zero value is ready to use.
type Config struct {
	Listen  string // host and port; "" = a free port of 127.0.0.1
	States  []string
	Faults  []Fault
	Lenient bool // pass on requests that the document does not allow
}

// Stub is a running stub.
type Stub struct {
	config   Config
	document *lint.Document
	plain    *contracts.Provider

	mu      sync.Mutex
	inState map[string]*inState
	counts  []int // requests that each fault could have met
}

// inState is a gatehouse in a state that requests name.
type inState struct {
	provider *contracts.Provider
	values   string
}

// Start starts a Stub. The caller must Close it.
func Start(ctx context.Context, config Config) (*Stub, error) {
	document, err := lint.Load(httpedge.OpenAPI())
	if err != nil {
		return nil, err
	}
	s := &Stub{config: config, document: document, inState: map[string]*inState{},
		counts: make([]int, len(config.Faults))}
	s.plain, err = contracts.Start(contracts.Config{Listen: config.Listen, Wrap: s.wrap})
	if err != nil {
		return nil, err
	}
	for _, state := range config.States {
		if _, err := setUp(ctx, s.plain, state); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// URL returns the base URL, without a trailing slash.
func (s *Stub) URL() string { return s.plain.URL() }

// Close stops the stub and every gatehouse in it.
func (s *Stub) Close() error {
	err := s.plain.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.inState {
		err = errors.Join(err, one.provider.Close())
	}
	return err
}

// setUp puts a gatehouse into a state, such as: a user {"name":"Ada"}.
func setUp(ctx context.Context, p *contracts.Provider, text string) (map[string]any, error) {
	name, parameters, found := strings.Cut(text, "{")
	given := map[string]any{}
	if found {
		if err := json.Unmarshal([]byte("{"+parameters), &given); err != nil {
			return nil, fmt.Errorf("the parameters of the state %q are no JSON object: %w", text, err)
		}
	}
	return p.SetUp(ctx, strings.TrimSpace(name), given)
}

// wrap returns the handler of the stub.
func (s *Stub) wrap(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			refuse(w, http.StatusRequestEntityTooLarge, "the body is too large for a stub")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if status, ok := preferred(r.Header); ok {
			s.replay(w, r, status, "")
			return
		}
		if wrong := s.document.CheckRequest(r.Method, r.URL.Path, r.URL.RawQuery, r.Header,
			body); len(wrong) > 0 && !s.config.Lenient {
			refuse(w, http.StatusBadRequest, strings.Join(wrong, "; "))
			return
		}
		chosen := service
		if states := r.Header.Values(StateHeader); len(states) > 0 {
			chosen = s.serviceIn(w, r, states)
		}
		if chosen != nil {
			s.serve(w, r, chosen)
		}
	})
}

// refuse responds instead of gatehouse, and says why.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set(RefusedHeader, strings.NewReplacer("\n", " ", "\r", " ").Replace(why))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "refused_by_stub", "message": why})
}

// preferred parses Prefer: code=429 (RFC 7240).
func preferred(h http.Header) (status int, ok bool) {
	for _, value := range h.Values("Prefer") {
		for part := range strings.SplitSeq(value, ",") {
			name, code, _ := strings.Cut(strings.TrimSpace(part), "=")
			status, err := strconv.Atoi(strings.Trim(strings.TrimSpace(code), `"`))
			if strings.EqualFold(strings.TrimSpace(name), "code") && err == nil {
				return status, true
			}
		}
	}
	return 0, false
}

// serviceIn returns a gatehouse in states, which are set up in their order. Each list of states, with
// their parameters, has one of its own. nil = it has responded with what is wrong.
func (s *Stub) serviceIn(w http.ResponseWriter, r *http.Request, states []string) http.Handler {
	key := strings.Join(states, "\n")
	r.Header.Del(StateHeader)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.inState[key]
	if one == nil {
		if len(s.inState) >= maxProviders {
			refuse(w, http.StatusServiceUnavailable, fmt.Sprintf(
				"requests have named %d lists of states, the most there can be: restart the stub", maxProviders))
			return nil
		}
		provider, err := contracts.Start(contracts.Config{})
		if err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return nil
		}
		values := map[string]any{}
		for _, state := range states {
			var given map[string]any
			if given, err = setUp(r.Context(), provider, state); err != nil {
				break
			}
			maps.Copy(values, given)
		}
		var text []byte
		if err == nil {
			text, err = json.Marshal(values)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, errors.Join(err, provider.Close()).Error())
			return nil
		}
		one = &inState{provider, string(text)}
		s.inState[key] = one
	}
	w.Header().Set(ValuesHeader, one.values)
	return forward(one.provider)
}

// forward returns a handler that passes requests to a gatehouse.
func forward(p *contracts.Provider) http.Handler {
	return contracts.Proxy(func(r *httputil.ProxyRequest) {
		if to, err := url.Parse(p.URL()); err == nil {
			r.SetURL(to)
		}
	}, nil)
}

// serve serves a request with the first fault that it meets, or without one.
func (s *Stub) serve(w http.ResponseWriter, r *http.Request, service http.Handler) {
	f := s.fault(r)
	switch {
	case f == nil:
		service.ServeHTTP(w, r)
	case f.Status != 0:
		s.replay(w, r, f.Status, "")
	case f.Expired:
		s.replay(w, r, http.StatusUnauthorized, "expired")
	case f.Cut:
		recorded := httptest.NewRecorder()
		service.ServeHTTP(recorded, r)
		maps.Copy(w.Header(), recorded.Header())
		w.Header().Set("Content-Length", strconv.Itoa(recorded.Body.Len()))
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // ends the connection
	default:
		select {
		case <-time.After(f.Delay):
			service.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// fault returns the fault that a request meets; nil = none. Of each hundred requests, a fault meets
// as many as it says, evenly.
func (s *Stub) fault(r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.config.Faults {
		f := &s.config.Faults[i]
		if f.Method != r.Method || f.Path != r.URL.Path {
			continue
		}
		s.counts[i]++
		if n := s.counts[i]; n*f.Percent/100 > (n-1)*f.Percent/100 {
			return f
		}
	}
	return nil
}

// replay responds as gatehouse does to an interaction of its own pacts with the wanted status, for
// the same method and path. Its states hold the word, if there is one.
func (s *Stub) replay(w http.ResponseWriter, r *http.Request, status int, word string) {
	pact, i, there := find(r.Method, r.URL.Path, status, word)
	if pact == nil {
		refuse(w, http.StatusNotImplemented, fmt.Sprintf("gatehouse's pacts have no response %d to %s %s; they have %v",
			status, r.Method, r.URL.Path, there))
		return
	}
	response, err := answer(r.Context(), &pact.Interactions[i])
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	maps.Copy(w.Header(), response.Header)
	w.Header().Set("Preference-Applied", fmt.Sprintf("code=%d", status))
	w.WriteHeader(response.StatusCode)
	// An error means that the client is gone.
	_, _ = io.Copy(w, response.Body)
	_ = response.Body.Close()
}

// find returns the first interaction with a status, and the statuses there are.
func find(method, path string, status int, word string) (*contracts.Pact, int, []int) {
	found := map[int]bool{}
	for _, p := range contracts.Own() {
		for i := range p.Interactions {
			it := &p.Interactions[i]
			own, _, _ := strings.Cut(it.Path, "?")
			expected, err := it.Expected()
			if err != nil || own != path || !strings.EqualFold(it.Method, method) {
				continue
			}
			found[expected.Status] = true
			if expected.Status == status && strings.Contains(fmt.Sprint(it.States), word) {
				return p, i, nil
			}
		}
	}
	return nil, 0, slices.Sorted(maps.Keys(found))
}

// answer sends the request of an interaction to a gatehouse in its states. The body is read.
func answer(ctx context.Context, it *contracts.Interaction) (response *http.Response, err error) {
	p, err := contracts.Start(contracts.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	values := map[string]any{}
	for _, state := range it.States {
		given, err := p.SetUp(ctx, state.Name, state.Parameters)
		if err != nil {
			return nil, err
		}
		maps.Copy(values, given)
	}
	base, err := url.Parse(p.URL())
	if err != nil {
		return nil, err
	}
	request, err := it.NewRequest(ctx, base, values)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	if response, err = transport.RoundTrip(request); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}
