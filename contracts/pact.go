package contracts

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// Pact is what a consumer expects of a provider. It is read from versions 1 to 4 of the Pact
// specification.
type Pact struct {
	Source             string // file or URL
	Consumer, Provider string
	Interactions       []Interaction

	whole map[string]any
}

// Interaction is one request with its expected response.
type Interaction struct {
	ID          string // from the broker; "" = none
	Description string
	States      []StateUse // in the order of their set-up
	Method      string     // "" unless HTTP
	Path        string     // of the example, with its query
	HTTP        bool       // false = a message, which gatehouse does not support
	Pending     bool       // a failure does not count (version 4)
	// Problem says why no service can be tried with it, such as a plugin; "" = one can.
	Problem string

	Version int // of the specification, its first number

	body map[string]any
}

// Raw returns the interaction as it is in the pact. It must not be changed.
func (it *Interaction) Raw() map[string]any { return it.body }

// StateUse is a state that a pact names.
type StateUse struct {
	Name       string
	Parameters map[string]any
}

// Prepared returns the pact for a verifier that follows redirects. Its requests have HideLocation,
// and it expects HiddenLocation instead of Location.
func (p *Pact) Prepared() ([]byte, error) { return p.prepared(p.Interactions) }

// Portable returns Prepared for other verifiers. libpact_ffi 0.4 splits a challenge at its commas
// into several values. Newer verifiers compare it as one value.
func (p *Pact) Portable() ([]byte, error) {
	whole := make([]Interaction, len(p.Interactions))
	for i, it := range p.Interactions {
		it.body = maps.Clone(it.body)
		it.body["response"] = joinChallenges(it.body["response"])
		whole[i] = it
	}
	return p.prepared(whole)
}

// joinChallenges returns a response with each challenge as one value.
func joinChallenges(response any) any {
	r, ok := response.(map[string]any)
	headers, has := r["headers"].(map[string]any)
	if !ok || !has {
		return response
	}
	r, headers = maps.Clone(r), maps.Clone(headers)
	for name, value := range headers {
		values, ok := value.([]any)
		if !ok || !strings.EqualFold(name, "WWW-Authenticate") {
			continue
		}
		parts := make([]string, len(values))
		for i, v := range values {
			parts[i] = fmt.Sprint(v)
		}
		headers[name] = []any{strings.Join(parts, ", ")}
		r["matchingRules"] = joinPatterns(r["matchingRules"], name)
	}
	r["headers"] = headers
	return r
}

// joinPatterns returns matching rules in which the patterns for each part of a header are patterns
// for the whole.
func joinPatterns(rules any, header string) any {
	all, _ := rules.(map[string]any)
	headers, _ := all["header"].(map[string]any)
	rule, _ := headers[header].(map[string]any)
	matchers, _ := rule["matchers"].([]any)
	if len(matchers) == 0 {
		return rules
	}
	joined := make([]any, len(matchers))
	for i, matcher := range matchers {
		m, _ := matcher.(map[string]any)
		if part, ok := m["regex"].(string); ok {
			part = "(?:" + strings.TrimSuffix(strings.TrimPrefix(part, "^"), "$") + ")"
			m = maps.Clone(m)
			m["regex"] = "^" + part + "(?:, " + part + ")*$"
		}
		joined[i] = m
	}
	all, headers, rule = maps.Clone(all), maps.Clone(headers), maps.Clone(rule)
	rule["matchers"], headers[header], all["header"] = joined, rule, headers
	return all
}

// Alone returns Prepared with only interaction i.
func (p *Pact) Alone(i int) ([]byte, error) { return p.prepared(p.Interactions[i : i+1]) }

func (p *Pact) prepared(interactions []Interaction) ([]byte, error) {
	whole := maps.Clone(p.whole)
	delete(whole, "messages")
	delete(whole, "_links")
	list := []any{}
	for _, it := range interactions {
		body := maps.Clone(it.body)
		if it.HTTP && it.Problem == "" {
			body["request"] = hideLocation(it.body["request"])
			body["response"] = renameLocation(it.body["response"])
		}
		list = append(list, body)
	}
	whole["interactions"] = list
	if metadata, ok := whole["metadata"].(map[string]any); ok {
		// The verifier would load them. What needs one is not tried.
		metadata = maps.Clone(metadata)
		delete(metadata, "plugins")
		whole["metadata"] = metadata
	}
	return json.Marshal(whole)
}

// hideLocation returns a request with HideLocation.
func hideLocation(request any) map[string]any {
	r, _ := request.(map[string]any)
	r = maps.Clone(r)
	headers, _ := r["headers"].(map[string]any)
	if headers = maps.Clone(headers); headers == nil {
		headers = map[string]any{}
	}
	headers[HideLocation] = "true"
	r["headers"] = headers
	return r
}

// renameLocation returns a response with HiddenLocation instead of Location, in the headers and in
// their rules.
func renameLocation(response any) any {
	r, ok := response.(map[string]any)
	if !ok {
		return response
	}
	r = maps.Clone(r)
	if headers, ok := r["headers"].(map[string]any); ok {
		r["headers"] = renamed(headers)
	}
	if rules, ok := r["matchingRules"].(map[string]any); ok {
		rules = renamed(rules)
		if header, ok := rules["header"].(map[string]any); ok {
			rules["header"] = renamed(header)
		}
		r["matchingRules"] = rules
	}
	return r
}

// locationRule matches the name of a rule for Location in version 2.
var locationRule = regexp.MustCompile(`(?i)^(\$\.headers?)(\.location|\['location'\])`)

func renamed(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		if strings.EqualFold(key, "Location") {
			key = HiddenLocation
		}
		out[locationRule.ReplaceAllString(key, "${1}['"+HiddenLocation+"']")] = value
	}
	return out
}
