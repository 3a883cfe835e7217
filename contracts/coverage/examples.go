package coverage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"gatehouse/cmd/stack/described"
)

// WithExamples returns an OpenAPI document with an example for each body that a pact pins: of a
// request, and of each response in JSON. It takes the place of the examples that the document has.
// The interaction with the fullest response counts that is still easy to read.
func WithExamples(text []byte, pacts [][]byte) ([]byte, error) {
	d, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	whole, err := described.Read(text)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	e := &examples{doc: whole.Doc, root: root.Content[0], lines: strings.SplitAfter(string(text), "\n"), at: map[*yaml.Node]string{}}
	e.find(e.root)
	var all []*interaction
	for _, text := range pacts {
		interactions, err := readPact(text)
		if err != nil {
			return nil, err
		}
		all = append(all, interactions...)
	}
	slices.SortStableFunc(all, func(a, b *interaction) int { return fullness(b) - fullness(a) })
	for _, i := range all {
		e.add(d, i)
	}
	return e.write(), nil
}

// mostRead is how many characters of an example are easy to read.
const mostRead = 1000

func fullness(i *interaction) int {
	n := len(inJSON(i.body))
	if n > mostRead {
		return -n
	}
	return n
}

func inJSON(body any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		panic(err) // never: it was read from JSON
	}
	return strings.TrimSpace(text.String())
}

// examples are those of a document.
type examples struct {
	doc   *openapi3.T
	root  *yaml.Node
	lines []string
	media []*yaml.Node          // all media types of bodies
	at    map[*yaml.Node]string // the example of a media type, in JSON
}

// find notes the media types below a node.
func (e *examples) find(n *yaml.Node) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "content" {
			for j := 1; j < len(child.Content); j += 2 {
				e.media = append(e.media, child.Content[j])
			}
		}
		e.find(child)
	}
}

// member returns what a node has under keys, through references and aliases; nil = nothing.
func (e *examples) member(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var next *yaml.Node
		if n = e.resolve(n); n != nil {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					next = n.Content[i+1]
				}
			}
		}
		n = next
	}
	return e.resolve(n)
}

func (e *examples) resolve(n *yaml.Node) *yaml.Node {
	switch {
	case n == nil:
	case n.Kind == yaml.AliasNode:
		return e.resolve(n.Alias)
	case len(n.Content) == 2 && n.Content[0].Value == "$ref":
		path := strings.TrimPrefix(n.Content[1].Value, "#/")
		return e.member(e.root, strings.Split(path, "/")...)
	}
	return n
}

// add takes the bodies of an interaction as examples, where there are none.
func (e *examples) add(d *document, i *interaction) {
	path := d.template(i.path)
	if !slices.ContainsFunc(d.operations(), func(o operation) bool {
		return o.method == i.method && o.path == path
	}) {
		return
	}
	node := e.member(e.root, "paths", path, strings.ToLower(i.method))
	known := e.doc.Paths.Value(path).GetOperation(i.method)
	status := strconv.Itoa(i.status)
	response := known.Responses.Value(status)
	if response == nil {
		response, status = known.Responses.Default(), "default"
	}
	if response == nil {
		return
	}
	e.set(e.member(node, "responses", status), response.Value.Content, "application/json", i.body)
	if i.status >= 400 || known.RequestBody == nil {
		return // the request may be what the document forbids
	}
	node = e.member(node, "requestBody")
	e.set(node, known.RequestBody.Value.Content, "application/json", i.json)
	form := object{}
	for name, values := range i.form {
		if form[name] = values[0]; len(values) > 1 {
			form[name] = values
		}
	}
	e.set(node, known.RequestBody.Value.Content, "application/x-www-form-urlencoded", any(form))
}

// set takes a body as the example of a media type, unless it is empty or a part only: pacts pin
// what a consumer reads.
func (e *examples) set(node *yaml.Node, content openapi3.Content, kind string, body any) {
	media, known := e.member(node, "content", kind), content[kind]
	all, _ := body.([]any)
	if media != nil && e.at[media] == "" && len(all)+len(members(body)) > 0 &&
		known.Schema.Value.VisitJSON(body) == nil {
		e.at[media] = inJSON(body)
	}
}

// write returns the document. An example is the first member of its media type, on a line of its own
// unless the media type is on one line. The last is written first, so that places stay true.
func (e *examples) write() []byte {
	slices.SortFunc(e.media, func(a, b *yaml.Node) int { return b.Line*10_000 + b.Column - a.Line*10_000 - a.Column })
	for _, n := range e.media {
		if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
			continue
		}
		first := n.Content[0]
		line := &e.lines[first.Line-1]
		runes := []rune(*line)
		before, after := string(runes[:first.Column-1]), string(runes[first.Column-1:])
		inline := n.Style&yaml.FlowStyle != 0
		if first.Value == "example" {
			if !inline {
				*line = ""
				line = &e.lines[n.Content[2].Line-1]
				after = strings.TrimPrefix(*line, before)
			} else {
				after = string(runes[n.Content[2].Column-1:])
			}
		}
		switch example := e.at[n]; {
		case example == "":
			*line = before + after
		case inline:
			*line = before + "example: " + example + ", " + after
		default:
			*line = before + "example: " + example + "\n" + before + after
		}
	}
	return []byte(strings.Join(e.lines, ""))
}
