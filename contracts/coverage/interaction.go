package coverage

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// interaction is the part of an interaction that matters here.
type interaction struct {
	name         string // consumer and description
	method, path string
	query, form  map[string][]string
	json         any // the body of the request
	status       int
	body         any // of the example response
	rules        []rule
	headers      map[string]*headerValue // by lower-case name
}

// rule is a matching rule for a place of the body.
type rule struct {
	at       []string // as place.at; "*" is any element
	matchers []object
}

// headerValue is an expected header.
type headerValue struct {
	values   []string
	matchers []object
}

// pact is the part of a pact file that matters here (versions 3 and 4).
type pact struct {
	Consumer     struct{ Name string }
	Interactions []struct {
		Description string
		Request     struct {
			Method, Path string
			Query        map[string][]string
			Body         json.RawMessage
		}
		Response struct {
			Status        int
			Headers       map[string]json.RawMessage
			Body          json.RawMessage
			MatchingRules struct {
				Body   map[string]ruleSet
				Header map[string]ruleSet
			}
		}
	}
}

type ruleSet struct{ Matchers []object }

// readPact returns the interactions of a pact file.
func readPact(text []byte) ([]*interaction, error) {
	var p pact
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("read a pact: %w", err)
	}
	var all []*interaction
	for _, one := range p.Interactions {
		i := &interaction{name: p.Consumer.Name + ": " + one.Description,
			method: one.Request.Method, path: one.Request.Path,
			query: one.Request.Query, status: one.Response.Status,
			headers: map[string]*headerValue{}}
		if text, ok := bodyOf(one.Request.Body).(string); ok {
			i.form, _ = url.ParseQuery(text) // a body that is not a form has no parameters
		}
		i.json, i.body = bodyOf(one.Request.Body), bodyOf(one.Response.Body)
		for at, set := range one.Response.MatchingRules.Body {
			i.rules = append(i.rules, rule{steps(at), set.Matchers})
		}
		for name, raw := range one.Response.Headers {
			i.headers[strings.ToLower(name)] = &headerValue{strs(raw),
				one.Response.MatchingRules.Header[name].Matchers}
		}
		all = append(all, i)
	}
	return all, nil
}

// bodyOf returns the content of a body, in the format of version 4 or 3.
func bodyOf(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	if o, ok := v.(object); ok && o["contentType"] != nil {
		return o["content"]
	}
	return v
}

func strs(raw json.RawMessage) []string {
	var all []string
	if json.Unmarshal(raw, &all) == nil {
		return all
	}
	var one string
	if json.Unmarshal(raw, &one) != nil {
		return nil
	}
	return []string{one}
}

var step = regexp.MustCompile(`\['([^']*)'\]|\[(\d+|\*)\]|\.([^.\[]+)`)

// steps parses a path such as $.results[*]['as'].
func steps(path string) []string {
	all := []string{}
	for _, found := range step.FindAllStringSubmatch(path, -1) {
		all = append(all, found[1]+found[2]+found[3])
	}
	return all
}

// header returns an expected header; nil = none.
func (i *interaction) header(name string) *headerValue { return i.headers[strings.ToLower(name)] }

// only reports whether the header may have the value, but not an invented one.
func (h *headerValue) only(value string) bool {
	if h == nil {
		return false
	}
	for _, m := range h.matchers {
		pattern, ok := m["regex"].(string)
		if !ok {
			continue
		}
		e, err := regexp.Compile("^(?:" + pattern + ")$")
		return err == nil && e.MatchString(value) && !e.MatchString("made-up-"+value) &&
			!e.MatchString("0")
	}
	return len(h.matchers) == 0 && slices.Equal(h.values, []string{value})
}

// has reports whether the header must be a URI with the parameter. A value other than "" must match
// too.
func (h *headerValue) has(name, value string) bool {
	if h == nil || len(h.values) != 1 {
		return false
	}
	u, err := url.Parse(h.values[0])
	if err != nil || !u.Query().Has(name) || value != "" && u.Query().Get(name) != value {
		return false
	}
	for _, m := range h.matchers {
		if pattern, ok := m["regex"].(string); ok {
			e, err := regexp.Compile("^(?:" + pattern + ")$")
			return err == nil && !e.MatchString(without(h.values[0], name)) &&
				(value == "" || !e.MatchString(strings.Replace(h.values[0], name+"="+value,
					name+"=made_up", 1)))
		}
	}
	return len(h.matchers) == 0
}

// without returns a URI without one of its parameters.
func without(uri, name string) string {
	path, query, _ := strings.Cut(uri, "?")
	parts := slices.DeleteFunc(strings.Split(query, "&"),
		func(p string) bool { return strings.HasPrefix(p, name+"=") })
	return path + "?" + strings.Join(parts, "&")
}
