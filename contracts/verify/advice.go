package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"gatehouse/contracts"
	"gatehouse/contracts/matching"
	"gatehouse/contracts/report"
)

// describe adds to a failure what was sent and received, and what to try.
func (t Target) describe(it *report.Interaction, expected *contracts.Interaction, got *recording) {
	it.Response = strings.TrimSpace(fmt.Sprintf("%d %s", got.status, legible(got.body.String())))
	it.Sent = got.line(expected)
	it.Curl = got.curl(t.address, expected)
	if path := got.request.URL.Path; got.status == http.StatusNotFound {
		if near := contracts.NearestPath(path); near != "" {
			it.Advice = append(it.Advice, fmt.Sprintf("gatehouse has no path %s; did you mean %s?", path,
				near))
		}
	}
	if state := expected.Forgotten(got.status); state != "" {
		it.Advice = append(it.Advice, fmt.Sprintf(
			"did the pact forget the state %q? No state gives what the request needs", state))
	}
	var body any
	if json.Unmarshal([]byte(got.body.String()), &body) != nil {
		return
	}
	for _, p := range it.Problems {
		if near := nearestMember(body, p); near != "" {
			it.Advice = append(it.Advice, fmt.Sprintf("the response has no %s; did you mean %s?",
				strings.TrimPrefix(p.Where, "body "), near))
		}
	}
}

// nearestMember returns the path of the member that is named most like a missing one; "" = none.
func nearestMember(body any, p report.Problem) string {
	place, ok := strings.CutPrefix(p.Where, "body ")
	path, err := matching.ParsePath(place)
	if !ok || p.Reason != report.Missing || err != nil || len(path) == 0 {
		return ""
	}
	parent, _ := path[:len(path)-1].At(body)
	object, _ := parent.(map[string]any)
	near := contracts.Nearest(path[len(path)-1].Name, slices.Sorted(maps.Keys(object)))
	if near == "" {
		return ""
	}
	return path[:len(path)-1].Member(near).String()
}

// headers returns the headers that the pact names, as they were sent, without secrets.
func (g *recording) headers(expected *contracts.Interaction) []string {
	var all []string
	for _, name := range expected.RequestHeaders() {
		for _, value := range g.request.Header.Values(name) {
			all = append(all, name+": "+headerValue(name, value))
		}
	}
	return all
}

// line returns the request as one line: method, path with query, headers and body.
func (g *recording) line(expected *contracts.Interaction) string {
	parts := append([]string{g.request.Method + " " + redacted(g.request.RequestURI)},
		g.headers(expected)...)
	if body := string(g.sent); body != "" {
		parts = append(parts, "body "+shortened(body))
	}
	return strings.Join(parts, "; ")
}

// curl returns a command that sends the request to a service at base.
func (g *recording) curl(base *url.URL, expected *contracts.Interaction) string {
	at := *base
	at.User = nil
	words := []string{"curl", "-i"}
	switch g.request.Method {
	case http.MethodGet:
	case http.MethodHead:
		words = append(words, "--head")
	default:
		words = append(words, "-X", g.request.Method)
	}
	words = append(words, quoted(strings.TrimSuffix(at.String(), "/")+
		redacted(g.request.RequestURI)))
	for _, header := range g.headers(expected) {
		words = append(words, "-H", quoted(header))
	}
	if body := string(g.sent); body != "" {
		words = append(words, "--data-raw", quoted(shortened(body)))
	}
	return strings.Join(words, " ")
}

// safeWord matches words that no shell changes.
var safeWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// quoted returns a word for a POSIX shell.
func quoted(word string) string {
	if safeWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// served is where the guide starts pactcheck serve.
var served = &url.URL{Scheme: "http", Host: "127.0.0.1:9080"}
