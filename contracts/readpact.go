package contracts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/contracts/matching"
)

// ReadPact parses a pact. Errors and reports name it by source. An interaction that is malformed
// has a Problem and is no error.
func ReadPact(data []byte, source string) (*Pact, error) {
	whole, err := readObject(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a pact: %w", source, err)
	}
	p := &Pact{Source: source, Consumer: nameOf(whole["consumer"]),
		Provider: nameOf(whole["provider"]), whole: whole}
	if p.Consumer == "" || p.Provider == "" {
		return nil, fmt.Errorf("%s is not a pact: it names no consumer or no provider", source)
	}
	version, err := readVersion(whole)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", source, err)
	}
	all, err := listOf(whole, "interactions")
	if err != nil {
		return nil, fmt.Errorf("%s is not a pact: %w", source, err)
	}
	messages, err := listOf(whole, "messages")
	if err != nil {
		return nil, fmt.Errorf("%s is not a pact: %w", source, err)
	}
	plugins := pluginsOf(whole)
	for i, one := range append(all[:len(all):len(all)], messages...) {
		body, ok := one.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not a pact: interaction %d is no object", source, i+1)
		}
		it := Interaction{body: body, Version: version, States: readStates(body)}
		it.ID, _ = body["_id"].(string)
		it.Description, _ = body["description"].(string)
		it.Pending, _ = body["pending"].(bool)
		kind, typed := body["type"].(string)
		it.HTTP = i < len(all) && (!typed || kind == "Synchronous/HTTP")
		if it.HTTP {
			joinHeaders(body["request"])
			joinHeaders(body["response"])
			it.readRequest()
			it.Problem = it.malformed(plugins)
		}
		p.Interactions = append(p.Interactions, it)
	}
	return p, nil
}

// ResemblesPact reports whether JSON has a member that only a pact has. What is no JSON resembles
// one.
func ResemblesPact(data []byte) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return !json.Valid(data)
	}
	for _, name := range []string{"consumer", "provider", "interactions", "messages"} {
		if members[name] != nil {
			return true
		}
	}
	return false
}

// versions matches the versions of the Pact specification that a Pact is read from.
var versions = regexp.MustCompile(`^[1-4](\.[0-9]+)*$`)

// readVersion returns the major version of the specification. Without one, it is 3.
func readVersion(whole map[string]any) (int, error) {
	metadata, _ := whole["metadata"].(map[string]any)
	given := metadata["pactSpecificationVersion"]
	for _, name := range []string{"pactSpecification", "pact-specification"} {
		if o, ok := metadata[name].(map[string]any); ok {
			given = o["version"]
		}
	}
	if given == nil {
		return 3, nil
	}
	text, ok := given.(string)
	if !ok || !versions.MatchString(text) {
		return 0, fmt.Errorf("its version of the Pact specification is %s, want 1 to 4 such as \"4.0\"",
			written(given))
	}
	return int(text[0] - '0'), nil
}

// joinHeaders writes a header that has a list in one of its values as one text, of which verifiers
// read the parts of the list. They compare the values of an array with those parts.
func joinHeaders(part any) {
	one, _ := part.(map[string]any)
	headers, _ := one["headers"].(map[string]any)
	rules, _ := one["matchingRules"].(map[string]any)
	ruled, _ := rules["header"].(map[string]any)
	for name, value := range headers {
		list, ok := value.([]any)
		isList := func(v any) bool { s, ok := v.(string); return ok && strings.Contains(s, ",") }
		if !ok || !slices.ContainsFunc(list, isList) || hasFold(ruled, name) ||
			strings.EqualFold(name, "Set-Cookie") {
			continue
		}
		var parts []string
		for _, v := range list {
			parts = append(parts, fmt.Sprint(v))
		}
		headers[name] = strings.Join(parts, ", ")
	}
}

// hasFold reports whether a header has a rule. Names of headers have no case.
func hasFold(rules map[string]any, header string) bool {
	for name := range rules {
		if strings.EqualFold(name, header) {
			return true
		}
	}
	return false
}

// readObject parses a JSON object. Its error says where the JSON is broken.
func readObject(data []byte) (map[string]any, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return nil, errors.New("it starts with a byte order mark: save it as UTF-8 without BOM")
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8: save it as UTF-8")
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		line, column := position(data, syntax.Offset)
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var whole map[string]any
	if d.Decode(&whole) != nil || whole == nil {
		return nil, errors.New("it is no JSON object")
	}
	return whole, nil
}

// position returns where the byte before offset is. Lines and columns count from 1, columns in
// characters.
func position(data []byte, offset int64) (line, column int) {
	before := data[:max(0, offset-1)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// listOf returns a member that is an array or absent.
func listOf(o map[string]any, name string) ([]any, error) {
	list, ok := o[name].([]any)
	if !ok && o[name] != nil {
		return nil, fmt.Errorf("%s is no array", name)
	}
	return list, nil
}

func nameOf(v any) string {
	party, _ := v.(map[string]any)
	name, _ := party["name"].(string)
	return name
}

// pluginsOf returns the names of the plugins that a pact declares.
func pluginsOf(whole map[string]any) []string {
	metadata, _ := whole["metadata"].(map[string]any)
	declared, _ := metadata["plugins"].([]any)
	var names []string
	for _, one := range declared {
		names = append(names, cmp.Or(nameOf(one), "without a name"))
	}
	return names
}

func (it *Interaction) readRequest() {
	request, _ := it.body["request"].(map[string]any)
	it.Method, _ = request["method"].(string)
	it.Path, _ = request["path"].(string)
	if query, ok := request["query"].(string); ok && query != "" {
		it.Path += "?" + query
	}
}

func readStates(body map[string]any) []StateUse {
	var uses []StateUse
	if list, ok := body["providerStates"].([]any); ok {
		for _, one := range list {
			state, _ := one.(map[string]any)
			name, _ := state["name"].(string)
			params, _ := state["params"].(map[string]any)
			uses = append(uses, StateUse{name, params})
		}
		return uses
	}
	for _, member := range []string{"providerState", "provider_state"} {
		if name, ok := body[member].(string); ok && name != "" {
			return []StateUse{{Name: name}}
		}
	}
	return nil
}

// malformed returns why the library cannot read an HTTP interaction; "" = it can. The library ends
// the program, or accepts any response, when it gets some of these.
func (it *Interaction) malformed(plugins []string) string {
	for _, part := range []string{"request", "response"} {
		one, ok := it.body[part].(map[string]any)
		if !ok {
			return "it has no " + part
		}
		for _, member := range []string{"headers", "matchingRules", "generators"} {
			if _, ok := one[member].(map[string]any); !ok && one[member] != nil {
				return fmt.Sprintf("%s of the %s is no object", member, part)
			}
		}
	}
	request, _ := it.body["request"].(map[string]any)
	for _, member := range []string{"method", "path"} {
		if text, ok := request[member].(string); !ok || text == "" {
			return "the request has no " + member
		}
	}
	response, _ := it.body["response"].(map[string]any)
	if given, ok := response["status"]; ok {
		status, ok := given.(json.Number)
		if n, err := strconv.Atoi(status.String()); !ok || err != nil || n < 100 || n > 599 {
			return fmt.Sprintf("the status is %s, want an integer from 100 to 599", written(given))
		}
	}
	if list, ok := it.body["providerStates"].([]any); ok {
		for _, one := range list {
			state, _ := one.(map[string]any)
			if _, ok := state["name"].(string); !ok {
				return "a provider state has no name"
			}
		}
	} else if it.body["providerStates"] != nil {
		return "providerStates is no array"
	}
	if problem := it.pluginProblem(plugins); problem != "" {
		return problem
	}
	if _, err := it.Expected(); err != nil {
		return "the response: " + err.Error()
	}
	return ""
}

// Expected returns the response that the interaction expects.
func (it *Interaction) Expected() (*matching.Expected, error) {
	response, _ := it.body["response"].(map[string]any)
	return matching.ReadExpected(response, it.Version)
}

// written returns a value as JSON.
func written(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "malformed"
	}
	return string(text)
}

// withoutPlugin holds parts of the content types that need no plugin.
var withoutPlugin = []string{"json", "xml", "form", "text/plain", "html", "octet-stream"}

// pluginProblem returns why an interaction needs one of the plugins that its pact declares; "" = it
// needs none.
func (it *Interaction) pluginProblem(plugins []string) string {
	needed := it.body["pluginConfiguration"] != nil || it.body["interactionMarkup"] != nil
	for _, part := range []string{"request", "response"} {
		one, _ := it.body[part].(map[string]any)
		body, _ := one["body"].(map[string]any)
		kind, _ := body["contentType"].(string)
		if media, _, err := mime.ParseMediaType(kind); err == nil && len(plugins) > 0 {
			needed = needed || !slices.ContainsFunc(withoutPlugin,
				func(s string) bool { return strings.Contains(media, s) })
		}
	}
	if !needed {
		return ""
	}
	if len(plugins) == 0 {
		return "it needs a plugin, and pactcheck has none"
	}
	return fmt.Sprintf("it needs the plugin %s, and pactcheck has none", strings.Join(plugins, ", "))
}
