// Package lint checks pacts against an OpenAPI document, and compares documents, without a service.
package lint

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"gatehouse/contracts"
	"gatehouse/contracts/matching"
)

// Finding is one error in a pact.
type Finding struct {
	Source      string `json:"source"` // of the pact
	Consumer    string `json:"consumer"`
	Interaction string `json:"interaction"` // its description
	Pointer     string `json:"pointer"`     // into the pact (RFC 6901)
	Document    string `json:"document"`    // into the OpenAPI document; "" = it is not about it
	Message     string `json:"message"`
}

// Of reports whether the error is in the interaction with that index.
func (f Finding) Of(index int) bool {
	at, ok := strings.CutPrefix(f.Pointer, fmt.Sprintf("/interactions/%d", index))
	return ok && (at == "" || at[0] == '/')
}

// Document is an OpenAPI document of version 3.0 or 3.1.
type Document struct {
	doc      *openapi3.T
	prefixes []string // paths of its servers
}

// Load reads a document.
func Load(data []byte) (*Document, error) {
	data, err := withLines(data)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, err
	}
	if doc.Paths == nil || doc.Paths.Len() == 0 {
		return nil, fmt.Errorf("it has no paths: is it an OpenAPI 3 document?")
	}
	d := &Document{doc: doc, prefixes: []string{""}}
	for _, server := range doc.Servers {
		if u, err := url.Parse(server.URL); err == nil && strings.Trim(u.Path, "/") != "" {
			d.prefixes = append(d.prefixes, "/"+strings.Trim(u.Path, "/"))
		}
	}
	return d, nil
}

// Title returns the title of the API.
func (d *Document) Title() string {
	if d.doc.Info == nil {
		return ""
	}
	return d.doc.Info.Title
}

// checker checks one interaction.
type checker struct {
	*Document
	pact  *contracts.Pact
	index int
	found []Finding
}

// Check returns the errors of a pact, in the order of its interactions. states also checks the
// provider states and their values, which only gatehouse's own document goes with.
func (d *Document) Check(p *contracts.Pact, states bool) (all []Finding) {
	for i := range p.Interactions {
		it := &p.Interactions[i]
		c := &checker{Document: d, pact: p, index: i}
		switch {
		case !it.HTTP:
			c.add("", "", "it is a message; only HTTP interactions can be checked")
		case it.Problem != "":
			c.add("", "", "%s", it.Problem)
		default:
			c.interaction(it)
		}
		if states && it.HTTP {
			for _, err := range contracts.Errors(it.Check()) {
				c.add("/providerStates", "", "%s", err)
			}
		}
		all = append(all, c.found...)
	}
	return all
}

func (c *checker) add(pointer, document, format string, args ...any) {
	c.found = append(c.found, Finding{c.pact.Source, c.pact.Consumer,
		c.pact.Interactions[c.index].Description, fmt.Sprintf("/interactions/%d%s", c.index, pointer),
		document, fmt.Sprintf(format, args...)})
}

// pointer returns a JSON pointer.
func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// meant returns a hint with the most similar name; "" = none.
func meant(wrong string, names []string) string {
	if near := contracts.Nearest(wrong, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// interaction checks path, method, request and response.
func (c *checker) interaction(it *contracts.Interaction) {
	raw := it.Raw()
	request, response := object(raw["request"]), object(raw["response"])
	expected, err := it.ExpectedWith(nil)
	if err != nil {
		c.add("/response", "", "%s", err)
		return
	}
	path, _, _ := strings.Cut(it.Path, "?")
	known, item := c.find(path)
	if item == nil {
		if expected.Status != 404 {
			c.add("/request/path", "/paths", "the document has no path %s%s", path,
				meant(path, slices.Sorted(maps.Keys(c.doc.Paths.Map()))))
		}
		return
	}
	method := strings.ToUpper(it.Method)
	at := pointer("paths", known, strings.ToLower(method))
	operation := item.GetOperation(method)
	if operation == nil {
		if expected.Status != 405 && method != "OPTIONS" {
			methods := slices.Sorted(maps.Keys(item.Operations()))
			c.add("/request/method", pointer("paths", known), "%s has no %s; it has %s", known, method,
				strings.Join(methods, ", "))
		}
		return
	}
	if !isError(expected) {
		c.request(it, request, operation, item, at)
	}
	c.response(it, response, expected, operation, at)
}

// isError reports whether a response is an error, or a redirect with one (RFC 6749 section 4.1.2.1).
func isError(e *matching.Expected) bool {
	for name, values := range e.Headers {
		if strings.EqualFold(name, "Location") && strings.Contains(strings.Join(values, ","), "error=") {
			return true
		}
	}
	return e.Status >= 400
}

// find returns the path of the document for a path of a pact; one without parameters wins.
func (d *Document) find(path string) (string, *openapi3.PathItem) {
	for _, prefix := range d.prefixes {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		if item := d.doc.Paths.Value(rest); item != nil {
			return rest, item
		}
		segments := strings.Split(rest, "/")
		for _, known := range slices.Sorted(maps.Keys(d.doc.Paths.Map())) {
			if slices.EqualFunc(strings.Split(known, "/"), segments, func(k, s string) bool {
				return k == s || strings.Contains(k, "{") && s != ""
			}) {
				return known, d.doc.Paths.Value(known)
			}
		}
	}
	return "", nil
}

// parametersOf returns the parameters of an operation: its own, and those of its path that it does
// not replace.
func parametersOf(operation *openapi3.Operation, item *openapi3.PathItem) (all []*openapi3.Parameter) {
	for _, ref := range slices.Concat(operation.Parameters, item.Parameters) {
		p := ref.Value
		if p != nil && !slices.ContainsFunc(all, func(own *openapi3.Parameter) bool {
			return own.In == p.In && own.Name == p.Name
		}) {
			all = append(all, p)
		}
	}
	return all
}

// request checks parameters and body of a request that succeeds.
func (c *checker) request(it *contracts.Interaction, request map[string]any,
	operation *openapi3.Operation, item *openapi3.PathItem, at string) {
	query, err := url.ParseQuery(contracts.Query(request["query"]))
	if err != nil {
		c.add("/request/query", at, "the query is malformed: %s", err)
		return
	}
	headers, err := matching.ReadHeaders(request["headers"])
	if err != nil {
		c.add("/request/headers", "", "%s", err)
		return
	}
	sent := http.Header{}
	for name, values := range headers {
		sent[http.CanonicalHeaderKey(name)] = []string{strings.Join(values, ", ")}
	}
	path, _, _ := strings.Cut(it.Path, "?")
	given := map[string]map[string][]string{"query": query, "header": sent, "path": c.pathValues(path)}
	var names []string
	for _, p := range parametersOf(operation, item) {
		if p.In == "query" {
			names = append(names, p.Name)
		}
		c.parameter(p, given[p.In], request, at)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		plain, _, _ := strings.Cut(name, "[")
		if !slices.Contains(names, name) && !slices.Contains(names, plain) {
			c.add(memberOf(request, "/request/query", name), at+"/parameters",
				"the operation has no parameter %s%s", name, meant(name, names))
		}
	}
	c.requestBody(it, request, operation, at)
}

// byMessage are the headers that an operation cannot have as parameters (OpenAPI 3.1, section
// 4.8.12.1).
var byMessage = []string{"Accept", "Content-Type", "Authorization"}

// parameter checks the values of a parameter. Cookies and values of states are not checked.
func (c *checker) parameter(p *openapi3.Parameter, given map[string][]string, request map[string]any,
	at string) {
	name, prefix := p.Name, "/request/"+p.In
	generators := object(object(request["generators"])[p.In])
	switch p.In {
	case "header":
		name, prefix = http.CanonicalHeaderKey(name), "/request/headers"
		if slices.Contains(byMessage, name) {
			return
		}
	case "path":
		generators = object(request["generators"])
	case "cookie":
		return
	}
	values, there := given[name]
	if p.Required && !there && p.In != "path" {
		noun := map[string]string{"header": "request", "query": "query"}[p.In]
		c.add(withoutMember(request, prefix), at+"/parameters", "the %s needs %s%s", noun,
			map[string]string{"header": "the header "}[p.In], p.Name)
	}
	for own := range generators {
		if strings.Contains(strings.ToLower(own), strings.ToLower(p.Name)) || p.In == "path" && own == "path" {
			return
		}
	}
	for _, value := range values {
		if p.Schema == nil || p.Content != nil {
			continue
		}
		found := (&walker{c: c}).attempt(func() {
			w := &walker{c: c, document: at + "/parameters"}
			w.text(nil, p.Schema.Value, value)
		})
		for _, f := range found {
			where := prefix
			if p.In != "path" {
				where = memberOf(request, prefix, p.Name)
			}
			c.add(where, f.Document, "%s%s", map[string]string{"header": "the header " + p.Name + ": ",
				"path": "the parameter " + p.Name + ": "}[p.In], f.Message)
		}
	}
}

// withoutMember returns a pointer to a part of the request, or to the request if it lacks the part.
func withoutMember(request map[string]any, part string) string {
	if _, ok := request[strings.TrimPrefix(part, "/request/")]; ok {
		return part
	}
	return "/request"
}

// member returns a pointer to a header or parameter of the query, whose names have any case. A query
// of version 2 is one text.
func memberOf(request map[string]any, part, name string) string {
	all, ok := request[strings.TrimPrefix(part, "/request/")].(map[string]any)
	if !ok {
		return withoutMember(request, part)
	}
	for own := range all {
		if own == name || part == "/request/headers" && strings.EqualFold(own, name) {
			return part + pointer(own)
		}
	}
	return part
}

// pathValues returns the values of the parameters that are whole segments of a path.
func (c *checker) pathValues(path string) map[string][]string {
	known, _ := c.find(path)
	all := map[string][]string{}
	segments := strings.Split(path, "/")
	names := strings.Split(known, "/")
	segments = segments[max(0, len(segments)-len(names)):]
	for i, name := range names {
		if inner, ok := strings.CutPrefix(name, "{"); ok && strings.HasSuffix(inner, "}") && i < len(segments) {
			if value, err := url.PathUnescape(segments[i]); err == nil {
				all[strings.TrimSuffix(inner, "}")] = []string{value}
			}
		}
	}
	return all
}

// CheckRequest returns what the document does not allow about a request.
func (d *Document) CheckRequest(method, path, query string, header http.Header, body []byte) (wrong []string) {
	known, item := d.find(path)
	if item == nil {
		return []string{fmt.Sprintf("the document has no path %s%s", path,
			meant(path, slices.Sorted(maps.Keys(d.doc.Paths.Map()))))}
	}
	operation := item.GetOperation(method)
	if operation == nil {
		return []string{fmt.Sprintf("%s has no %s; it has %s", known, method,
			strings.Join(slices.Sorted(maps.Keys(item.Operations())), ", "))}
	}
	headers := map[string]any{}
	for name, values := range header {
		headers[name] = strings.Join(values, ", ")
	}
	request := map[string]any{"query": query, "headers": headers}
	if len(body) > 0 {
		request["body"] = string(body)
	}
	c := &checker{Document: d, pact: &contracts.Pact{Interactions: make([]contracts.Interaction, 1)}}
	c.request(&contracts.Interaction{Version: 3, Path: path}, request, operation, item, "")
	for _, f := range c.found {
		wrong = append(wrong, f.Message)
	}
	return wrong
}

func (c *checker) requestBody(it *contracts.Interaction, request map[string]any,
	operation *openapi3.Operation, at string) {
	headers, err := matching.ReadHeaders(request["headers"])
	if err != nil {
		c.add("/request/headers", "", "%s", err)
		return
	}
	content, err := matching.ReadContent(request, headers, it.Version)
	if err != nil {
		c.add("/request/body", "", "%s", err)
		return
	}
	if operation.RequestBody == nil || operation.RequestBody.Value == nil {
		return
	}
	body := operation.RequestBody.Value
	if len(content.Bytes) == 0 {
		if body.Required {
			c.add("/request", at+"/requestBody", "the operation needs a body")
		}
		return
	}
	media, kind := mediaType(body.Content, content.Type)
	if media == nil {
		c.add("/request/body", at+"/requestBody/content", "the operation takes no %s; it takes %s", kind,
			strings.Join(slices.Sorted(maps.Keys(body.Content)), ", "))
		return
	}
	if media.Schema == nil || media.Schema.Value == nil || isText(kind, media.Schema.Value) {
		return
	}
	w := &walker{c: c, prefix: bodyPrefix("/request", it), whole: true,
		document: at + "/requestBody" + pointer("content", kind, "schema")}
	switch value, ok := decoded(content); {
	case ok:
		w.value(nil, media.Schema, value)
	case kind == "application/x-www-form-urlencoded":
		w.form(media.Schema.Value, string(content.Bytes))
	}
}

// bodyPrefix returns the pointer to the body of a part.
func bodyPrefix(part string, it *contracts.Interaction) string {
	if it.Version >= 4 {
		return part + "/body/content"
	}
	return part + "/body"
}

// response checks status, headers, content type, body and rules.
func (c *checker) response(it *contracts.Interaction, raw map[string]any, expected *matching.Expected,
	operation *openapi3.Operation, at string) {
	ref, name := responseFor(operation, expected.Status)
	if ref == nil || ref.Value == nil {
		c.add("/response/status", at+"/responses", "the operation has no status %d; it has %s",
			expected.Status, strings.Join(slices.Sorted(maps.Keys(operation.Responses.Map())), ", "))
		return
	}
	at += pointer("responses", name)
	c.headers(expected, ref.Value, at)
	if len(expected.Body.Bytes) == 0 || len(ref.Value.Content) == 0 {
		if len(expected.Body.Bytes) > 0 && name != "default" {
			c.add("/response/body", at, "the response has no body")
		}
		return
	}
	media, kind := mediaType(ref.Value.Content, expected.Body.Type)
	if media == nil {
		c.add("/response/body", at+"/content", "the response is no %s; it is %s", kind,
			strings.Join(slices.Sorted(maps.Keys(ref.Value.Content)), ", "))
		return
	}
	value, ok := decoded(expected.Body)
	if !ok || media.Schema == nil || media.Schema.Value == nil || isText(kind, media.Schema.Value) {
		return
	}
	w := &walker{c: c, prefix: bodyPrefix("/response", it), rules: expected.Rules.Body,
		document: at + pointer("content", kind, "schema")}
	if slices.Contains(lineTypes, kind) {
		if _, ruled := matching.Best(expected.Rules.Body, nil); ruled {
			return // a rule about the text
		}
		w.lines, w.rules = true, nil
		w.value(nil, media.Schema, value)
		return
	}
	w.value(nil, media.Schema, value)
	w.unused(object(object(raw["matchingRules"])["body"]), value)
}

// isText reports whether a document describes a body of lines as one text.
func isText(kind string, s *openapi3.Schema) bool {
	return slices.Contains(lineTypes, kind) && !s.Type.Is("array")
}

// responseFor returns the response of an operation with a status, and its key; nil = there is none.
func responseFor(operation *openapi3.Operation, number int) (*openapi3.ResponseRef, string) {
	text, listed := strconv.Itoa(number), operation.Responses.Map()
	for _, key := range []string{text, text[:1] + "XX", "default"} {
		if ref := listed[key]; ref != nil && (key != "default" || number >= 400 || !succeeds(listed)) {
			return ref, key
		}
	}
	return nil, ""
}

// succeeds reports whether a status of success is listed. Then the default is for errors.
func succeeds(listed map[string]*openapi3.ResponseRef) bool {
	for status := range listed {
		if status[0] == '2' || status[0] == '3' {
			return true
		}
	}
	return false
}

// common are the headers that documents leave out.
var common = []string{"content-type", "content-length", "content-encoding", "content-language",
	"date", "connection", "transfer-encoding", "server", "vary", "etag", "last-modified", "location",
	"cache-control", "expires", "pragma", "set-cookie", "allow", "age", "www-authenticate", "link",
	"retry-after", "strict-transport-security"}

func (c *checker) headers(expected *matching.Expected, response *openapi3.Response, at string) {
	for _, name := range slices.Sorted(maps.Keys(expected.Headers)) {
		var names []string
		var schema *openapi3.Schema
		for own, header := range response.Headers {
			names = append(names, own)
			if strings.EqualFold(own, name) && header.Value != nil && header.Value.Schema != nil {
				schema = header.Value.Schema.Value
			}
		}
		known := slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		lower := strings.ToLower(name)
		if !known && len(names) > 0 && !slices.Contains(common, lower) &&
			!strings.HasPrefix(lower, "access-control-") {
			c.add(pointer("response", "headers", name), at+"/headers",
				"the response has no header %s%s", name, meant(name, names))
		}
		if _, ruled := expected.Rules.Headers[lower]; schema != nil && !ruled {
			w := &walker{c: c, prefix: "/response/headers", document: at + pointer("headers", name, "schema")}
			w.text(matching.Path{}.Member(name), schema, strings.Join(expected.Headers[name], ", "))
		}
	}
}
