package contracts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/contracts/matching"
)

// NewRequest returns the request of an interaction for a service at base. values are those of its
// states, which generators put into the request. Generators of other types do nothing.
func (it *Interaction) NewRequest(ctx context.Context, base *url.URL,
	values map[string]any) (*http.Request, error) {
	part := it.part("request", values)
	headers, err := matching.ReadHeaders(part["headers"])
	if err != nil {
		return nil, err
	}
	content, err := matching.ReadContent(part, headers, it.Version)
	if err != nil {
		return nil, err
	}
	path, _ := part["path"].(string)
	to, err := url.Parse(strings.TrimSuffix(base.String(), "/") + path)
	if err != nil {
		to = base.JoinPath(path)
	}
	to.RawQuery = Query(part["query"])
	var body io.Reader
	if content.Bytes != nil {
		body = bytes.NewReader(content.Bytes)
	}
	request, err := http.NewRequestWithContext(ctx, strings.ToUpper(it.Method), to.String(), body)
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	request.Header.Set("Accept", "*/*")
	request.Header.Set("User-Agent", "")
	if content.Type != "" && len(content.Bytes) > 0 {
		request.Header.Set("Content-Type", content.Type)
	}
	for name, values := range headers {
		request.Header.Set(name, strings.Join(values, ", "))
		if strings.EqualFold(name, "Host") {
			request.Host = values[0]
		}
	}
	return request, nil
}

// ExpectedWith returns the response that the interaction expects, with the values of its states.
func (it *Interaction) ExpectedWith(values map[string]any) (*matching.Expected, error) {
	return matching.ReadExpected(it.part("response", values), it.Version)
}

// Query returns a query: a text before version 3, then an object of lists.
func Query(given any) string {
	if s, ok := given.(string); ok {
		if parsed, err := url.ParseQuery(s); err == nil {
			return parsed.Encode()
		}
		return s
	}
	query := url.Values{}
	for name, value := range members(given) {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			query.Add(name, plainText(one))
		}
	}
	return query.Encode()
}

func members(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// plainText returns a string as it is, null as "", and any other value as JSON.
func plainText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return written(v)
}

// part returns the request or response with what its generators take from the values of states.
func (it *Interaction) part(name string, values map[string]any) map[string]any {
	part := members(it.body[name])
	all := members(part["generators"])
	if len(all) == 0 {
		return part
	}
	part = cloned(part).(map[string]any)
	if value, ok := generated(all["path"], values); ok {
		part["path"] = plainText(value)
	}
	if value, ok := generated(all["status"], values); ok {
		part["status"] = json.Number(plainText(value))
	}
	putAll(part, "headers", all["header"], values)
	putAll(part, "query", all["query"], values)
	body := part["body"]
	if o := members(body); it.Version >= 4 {
		body = o["content"]
	}
	for key, generator := range members(all["body"]) {
		path, err := matching.ParsePath(key)
		if value, ok := generated(generator, values); ok && err == nil {
			path.Put(body, value)
		}
	}
	return part
}

// putAll puts generated texts into the headers or the query.
func putAll(part map[string]any, name string, generators any, values map[string]any) {
	target := members(part[name])
	for key, generator := range members(generators) {
		value, ok := generated(generator, values)
		if !ok || target == nil {
			continue
		}
		key = strings.TrimPrefix(key, "$.")
		key, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSuffix(key, "']"), "$['"), "[")
		for own := range maps.Clone(target) {
			if own == key || name == "headers" && strings.EqualFold(own, key) {
				target[own] = []any{plainText(value)}
			}
		}
	}
}

// generated returns the value of a generator; ok is false if it does not take one from a state, or
// if no state gives it.
func generated(generator any, values map[string]any) (value any, ok bool) {
	g := members(generator)
	expression, isText := g["expression"].(string)
	if !isText || g["type"] != "ProviderState" {
		return nil, false
	}
	found := expressionNames(expression)
	if len(found) == 1 && (expression == found[0] || expression == "${"+found[0]+"}") {
		value, ok = values[found[0]]
		return value, ok
	}
	for _, name := range found {
		value, ok := values[name]
		if !ok {
			return nil, false
		}
		expression = strings.ReplaceAll(expression, "${"+name+"}", plainText(value))
	}
	return expression, true
}

// cloned returns a copy of JSON.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := make(map[string]any, len(v))
		for name, value := range v {
			o[name] = cloned(value)
		}
		return o
	case []any:
		list := slices.Clone(v)
		for i, value := range list {
			list[i] = cloned(value)
		}
		return list
	}
	return v
}
