// Package brokertest is a fake Pact Broker: the part of the HTTP interface that verifiers and the
// client of pact-cli use. It keeps pacts, versions, results, deployments and webhooks. The folder
// recorded has what a real broker (2.113.0) sent; the fake sends the same.
package brokertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Broker is a running fake. Methods are safe for concurrent use.
type Broker struct {
	URL string

	t      testing.TB
	server *httptest.Server
	mux    *http.ServeMux
	hooks  sync.WaitGroup // requests to webhooks

	mu        sync.Mutex
	asked     int    // requests
	token     string // required if not ""
	username  string // required with password if not ""
	password  string
	failing   string // the end of paths with the response 500; "" = none
	requests  []map[string]any
	published []Published
	branches  []string
	tags      []string
	store
}

// Published is a result that a verifier has published.
type Published struct {
	Consumer string
	Body     map[string]any
}

// New starts a broker with the environments production and test. It stops with the test.
func New(t testing.TB) *Broker {
	b := &Broker{t: t, mux: http.NewServeMux(), store: newStore()}
	b.routes()
	b.server = httptest.NewServer(http.HandlerFunc(b.serve))
	b.URL = b.server.URL
	t.Cleanup(func() {
		b.hooks.Wait()
		b.server.Close()
	})
	return b
}

// WantToken makes the broker require a bearer token.
func (b *Broker) WantToken(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token = token
}

// WantPassword makes the broker require a user name and password.
func (b *Broker) WantPassword(username, password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.username, b.password = username, password
}

// Fail makes the broker respond with 500 to paths with that end.
func (b *Broker) Fail(end string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing = end
}

// Publish publishes a pact of a version of its consumer, on a branch.
func (b *Broker) Publish(content []byte, version, branch string) {
	b.t.Helper()
	var pact map[string]any
	if err := json.Unmarshal(content, &pact); err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.publish(pact, version, branch, nil); err != nil {
		b.t.Fatal(err)
	}
}

// Verify records that a version of the provider, on a branch, fulfils all pacts of today.
func (b *Broker) Verify(provider, version, branch string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.participant(provider).version(version).addBranch(branch)
	for _, c := range b.contents {
		if c.provider == provider {
			c.results = append(c.results, result{version: version, success: true})
		}
	}
}

// Deploy records that a version is deployed to an environment, instead of any other version.
func (b *Broker) Deploy(pacticipant, version, environment string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.participant(pacticipant).version(version)
	b.deploy(pacticipant, version, environment)
}

// Deployed returns the version that is deployed to an environment, "" = none.
func (b *Broker) Deployed(pacticipant, environment string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.deployed[place{pacticipant, environment}]
}

// Requests returns the bodies of the requests for pacts to verify.
func (b *Broker) Requests() []map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

// Asked returns the number of requests of any kind.
func (b *Broker) Asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// Published returns the published results, in order.
func (b *Broker) Published() []Published {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.published
}

// Branches returns the published branches of providers, as branch@version.
func (b *Broker) Branches() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.branches
}

// Tags returns the published tags of providers, as tag@version.
func (b *Broker) Tags() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tags
}

func (b *Broker) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if !b.allowed(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="Restricted area"`)
		send(w, http.StatusUnauthorized, object{"error": "Unauthorized"})
		return
	}
	if b.failing != "" && strings.HasSuffix(r.URL.Path, b.failing) {
		send(w, http.StatusInternalServerError, object{"error": object{
			"message":   "An error has occurred. The details have been logged.",
			"reference": "a1b2"}})
		return
	}
	b.mux.ServeHTTP(w, r)
}

func (b *Broker) allowed(r *http.Request) bool {
	switch {
	case b.token != "":
		return r.Header.Get("Authorization") == "Bearer "+b.token
	case b.username != "":
		user, password, _ := r.BasicAuth()
		return user == b.username && password == b.password
	}
	return true
}

type object = map[string]any

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/hal+json;charset=utf-8")
	w.Header().Set("X-Pact-Broker-Version", "2.113.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the verifier notices a truncated body
}
