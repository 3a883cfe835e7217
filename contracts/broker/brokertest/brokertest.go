// Package brokertest is a fake Pact Broker: the part of the HTTP interface that verifiers use, with
// the links and formats of the real broker.
package brokertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Broker is a running fake. Methods are safe for concurrent use.
type Broker struct {
	URL      string
	provider string

	t      testing.TB
	server *httptest.Server

	mu        sync.Mutex
	asked     int    // requests
	token     string // required if not ""
	username  string // required with password if not ""
	password  string
	failing   string // the end of paths with the response 500; "" = none
	pacts     []pact
	requests  []map[string]any
	published []Published
	branches  []string
	tags      []string
}

// pact is a published pact.
type pact struct {
	content  map[string]any
	consumer string
	pending  bool
}

// Published is a result that a verifier has published.
type Published struct {
	Consumer string
	Body     map[string]any
}

// New starts a broker with the pacts of a provider. It stops with the test.
func New(t testing.TB, provider string) *Broker {
	b := &Broker{provider: provider, t: t}
	b.server = httptest.NewServer(http.HandlerFunc(b.serve))
	b.URL = b.server.URL
	t.Cleanup(b.server.Close)
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

// Add publishes a pact to the broker.
func (b *Broker) Add(content []byte, pending bool) {
	b.t.Helper()
	var p pact
	if err := json.Unmarshal(content, &p.content); err != nil {
		b.t.Fatal(err)
	}
	consumer, _ := p.content["consumer"].(map[string]any)
	p.consumer, _ = consumer["name"].(string)
	p.pending = pending
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pacts = append(b.pacts, p)
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

// Branches returns the published branches, as branch@version.
func (b *Broker) Branches() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.branches
}

// Tags returns the published tags, as tag@version.
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
		send(w, http.StatusUnauthorized, map[string]any{"error": "Unauthorized"})
		return
	}
	if b.failing != "" && strings.HasSuffix(r.URL.Path, b.failing) {
		send(w, http.StatusInternalServerError,
			map[string]any{"error": map[string]any{"message": "An error has occurred. The details have been logged.", "reference": "a1b2"}})
		return
	}
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	pattern := r.Method + " " + shape(parts)
	switch pattern {
	case "GET ":
		send(w, http.StatusOK, b.index())
	case "GET pacts/provider/*/for-verification":
		b.sendList(w, r, false)
	case "POST pacts/provider/*/for-verification":
		b.list(w, r)
	case "GET pacts/provider/*/consumer/*/version/*":
		b.show(w, parts[4])
	case "GET pacticipants/*":
		send(w, http.StatusOK, b.pacticipant(parts[1]))
	case "PUT pacticipants/*/branches/*/versions/*":
		b.branches = append(b.branches, parts[3]+"@"+parts[5])
		send(w, http.StatusCreated, map[string]any{"_links": map[string]any{}})
	case "PUT pacticipants/*/versions/*/tags/*":
		b.tags = append(b.tags, parts[5]+"@"+parts[3])
		send(w, http.StatusCreated, map[string]any{"_links": map[string]any{}})
	case "POST pacts/provider/*/consumer/*/pact-version/*/metadata/*/verification-results":
		b.take(w, r, parts[4])
	default:
		send(w, http.StatusNotFound,
			map[string]any{"error": "The requested document was not found on this server."})
	}
}

// fixed holds the segments of paths that are not names.
var fixed = strings.Fields("pacts provider for-verification consumer version pacticipants branches versions tags pact-version metadata verification-results")

// shape replaces the names in a path by *. A name follows a fixed segment.
func shape(parts []string) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p
		named := i > 0 && parts[i-1] != "pacts" && all[i-1] != "*"
		if named || i > 0 && !slices.Contains(fixed, p) {
			all[i] = "*"
		}
	}
	return strings.Join(all, "/")
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

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/hal+json;charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the verifier notices a truncated body
}

func to(format string, args ...any) map[string]any {
	for i, a := range args[1:] {
		args[i+1] = url.PathEscape(fmt.Sprint(a))
	}
	return map[string]any{"href": fmt.Sprintf(format, args...)}
}

func (b *Broker) index() map[string]any {
	templated := func(path string) map[string]any {
		return map[string]any{"href": b.URL + path, "templated": true}
	}
	return map[string]any{"_links": map[string]any{
		"self": map[string]any{"href": b.URL, "title": "Index",
			"templated": false},
		"pb:provider-pacts-for-verification": templated("/pacts/provider/{provider}/for-verification"),
		"pb:latest-provider-pacts":           templated("/pacts/provider/{provider}/latest"),
		"pb:pacticipant-branch-version":      templated("/pacticipants/{pacticipant}/branches/{branch}/versions/{version}"),
		"pb:webhooks": map[string]any{"href": b.URL + "/webhooks",
			"templated": false},
		"curies": []any{map[string]any{"name": "pb",
			"href": b.URL + "/doc/{rel}?context=index", "templated": true}},
	}}
}

func (b *Broker) list(w http.ResponseWriter, r *http.Request) {
	var request map[string]any
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		send(w, http.StatusBadRequest,
			map[string]any{"errors": map[string]any{"body": []string{"is no JSON"}}})
		return
	}
	b.requests = append(b.requests, request)
	pending, _ := request["includePendingStatus"].(bool)
	b.sendList(w, r, pending)
}

// sendList responds with all pacts. pending adds whether each is pending.
func (b *Broker) sendList(w http.ResponseWriter, r *http.Request, pending bool) {
	list := []any{}
	for _, p := range b.pacts {
		properties := map[string]any{"notices": []any{
			map[string]any{"when": "before_verification",
				"text": "The pact at " + b.URL +
					" is being verified because it matches a selector."},
			map[string]any{"when": "after_verification:success_false_published_true",
				"text": "It failed."},
		}}
		if pending {
			properties["pending"] = p.pending
		}
		self := to("%s/pacts/provider/%s/consumer/%s/version/1", b.URL, b.provider, p.consumer)
		self["name"] = "Pact between " + p.consumer + " and " + b.provider
		list = append(list, map[string]any{"shortDescription": "latest from main",
			"verificationProperties": properties, "_links": map[string]any{"self": self}})
	}
	send(w, http.StatusOK, map[string]any{"_embedded": map[string]any{"pacts": list},
		"_links": map[string]any{
			"self": map[string]any{"href": b.URL + r.URL.Path, "title": "Pacts to be verified"}}})
}

func (b *Broker) show(w http.ResponseWriter, consumer string) {
	for _, p := range b.pacts {
		if p.consumer != consumer {
			continue
		}
		content := map[string]any{}
		for key, value := range p.content {
			content[key] = value
		}
		content["createdAt"] = "2026-11-21T00:00:00+00:00"
		content["_links"] = map[string]any{
			"self": to("%s/pacts/provider/%s/consumer/%s/version/1", b.URL, b.provider,
				consumer),
			"pb:consumer": to("%s/pacticipants/%s", b.URL, consumer),
			"pb:provider": to("%s/pacticipants/%s", b.URL, b.provider),
			"pb:publish-verification-results": to("%s/pacts/provider/%s/consumer/%s/pact-version/%s/metadata/%s/verification-results",
				b.URL, b.provider, consumer, "c0ffee", "Y3ZuPTE"),
			"curies": []any{map[string]any{"name": "pb", "href": b.URL + "/doc/{rel}?context=pact",
				"templated": true}},
		}
		send(w, http.StatusOK, content)
		return
	}
	send(w, http.StatusNotFound,
		map[string]any{"error": "The requested document was not found on this server."})
}

func (b *Broker) pacticipant(name string) map[string]any {
	at := b.URL + "/pacticipants/" + url.PathEscape(name)
	return map[string]any{"name": name, "mainBranch": "main", "_links": map[string]any{
		"self": map[string]any{"href": at},
		"pb:version": map[string]any{"title": "Get, create or delete a pacticipant version",
			"href": at + "/versions/{version}", "templated": true},
		"pb:version-tag": map[string]any{"title": "Get, create or delete a tag",
			"href": at + "/versions/{version}/tags/{tag}", "templated": true},
		"pb:branch-version": map[string]any{"title": "Get or add/create a branch version",
			"href": at + "/branches/{branch}/versions/{version}", "templated": true},
	}}
}

func (b *Broker) take(w http.ResponseWriter, r *http.Request, consumer string) {
	content, err := io.ReadAll(r.Body)
	var body map[string]any
	if err != nil || json.Unmarshal(content, &body) != nil ||
		body["providerApplicationVersion"] == nil || body["success"] == nil {
		send(w, http.StatusBadRequest,
			map[string]any{"errors": map[string]any{"success": []string{"can't be blank"}}})
		return
	}
	b.published = append(b.published, Published{consumer, body})
	send(w, http.StatusCreated, body)
}
