package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	compat "github.com/oasdiff/oasdiff/checker"
	"github.com/oasdiff/oasdiff/diff"
	"github.com/oasdiff/oasdiff/load"

	"gatehouse/contracts"
	"gatehouse/contracts/matching"
)

// Class says whom a change of a document breaks.
type Class string

// The classes, the worst first.
const (
	BreaksConsumer Class = "consumer"   // interactions of a pact rely on what has changed
	BreaksDocument Class = "document"   // pacts use the operation, but not what has changed
	BreaksNobody   Class = "unpinned"   // no pact uses the operation
	BreaksNothing  Class = "compatible" // clients of the old document need not change
)

// Change is one change between two documents.
type Change struct {
	Class     Class    `json:"class"`
	Operation string   `json:"operation"` // such as "GET /api/lookup"
	Message   string   `json:"message"`
	Rule      string   `json:"rule"`
	PinnedBy  []string `json:"pinned_by"` // consumers with descriptions of interactions
}

// use is an interaction with its operation in the old document.
type use struct {
	name, operation string
	it              *contracts.Interaction
	expected        *matching.Expected
	worse           []string // errors that only the new document finds
}

// comparison is one comparison of documents.
type comparison struct {
	before, after *Document
	uses          []use
	all           []Change
}

// Compare returns the changes from one document to another, the worst first.
func Compare(before, after []byte, pacts []*contracts.Pact) ([]Change, error) {
	c := &comparison{}
	var err error
	if c.before, err = Load(before); err != nil {
		return nil, fmt.Errorf("the old document: %w", err)
	}
	if c.after, err = Load(after); err != nil {
		return nil, fmt.Errorf("the new document: %w", err)
	}
	for _, p := range pacts {
		c.use(p)
	}
	if err := c.oasdiff(before, after); err != nil {
		return nil, err
	}
	for path, item := range c.before.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if other := c.after.doc.Paths.Value(path); other != nil && other.GetOperation(method) != nil {
				c.operation(method+" "+path, operation, other.GetOperation(method))
			}
		}
	}
	c.rest()
	order := []Class{BreaksConsumer, BreaksDocument, BreaksNobody, BreaksNothing}
	slices.SortStableFunc(c.all, func(a, b Change) int {
		if a.Class != b.Class {
			return slices.Index(order, a.Class) - slices.Index(order, b.Class)
		}
		return strings.Compare(a.Operation+a.Message, b.Operation+b.Message)
	})
	return c.all, nil
}

// use adds the interactions of a pact.
func (c *comparison) use(p *contracts.Pact) {
	known := map[string]bool{}
	for _, f := range c.before.Check(p, false) {
		known[f.Pointer+f.Message] = true
	}
	worse := map[int][]string{}
	for _, f := range c.after.Check(p, false) {
		for i := range p.Interactions {
			if f.Of(i) && !known[f.Pointer+f.Message] {
				worse[i] = append(worse[i], f.Message)
			}
		}
	}
	for i := range p.Interactions {
		it := &p.Interactions[i]
		path, _, _ := strings.Cut(it.Path, "?")
		expected, err := it.ExpectedWith(nil)
		if known, item := c.before.find(path); item != nil && it.Problem == "" && err == nil {
			c.uses = append(c.uses, use{p.Consumer + ": " + it.Description,
				strings.ToUpper(it.Method) + " " + known, it, expected, worse[i]})
		}
	}
}

// oasdiff adds the changes that oasdiff finds.
func (c *comparison) oasdiff(before, after []byte) error {
	old, err := load.NewSpecInfoFromData(openapi3.NewLoader(), before, "old")
	if err != nil {
		return fmt.Errorf("the old document: %w", err)
	}
	revised, err := load.NewSpecInfoFromData(openapi3.NewLoader(), after, "new")
	if err != nil {
		return fmt.Errorf("the new document: %w", err)
	}
	report, sources, err := diff.GetWithOperationsSourcesMap(diff.NewConfig(), old, revised)
	if err != nil {
		return fmt.Errorf("compare the documents: %w", err)
	}
	text := compat.NewDefaultLocalizer()
	for _, change := range compat.CheckBackwardCompatibilityUntilLevel(
		compat.NewConfig(compat.GetAllChecks()), report, sources, compat.INFO) {
		one := Change{Class: BreaksNothing, Rule: change.GetId(), PinnedBy: []string{},
			Operation: change.GetOperation() + " " + change.GetPath(),
			Message:   change.GetUncolorizedText(text)}
		if change.IsBreaking() {
			c.classify(&one, change.GetArgs())
		}
		c.all = append(c.all, one)
	}
	return nil
}

// classify sets the class of a change that breaks the document.
func (c *comparison) classify(one *Change, args []any) {
	one.Class = BreaksNobody
	for _, u := range c.uses {
		if u.operation != one.Operation {
			continue
		}
		if one.Class == BreaksNobody {
			one.Class = BreaksDocument
		}
		if u.reliesOn(one.Rule, args) {
			one.Class = BreaksConsumer
			one.PinnedBy = append(one.PinnedBy, u.name)
		}
	}
}

// reliesOn reports whether an interaction relies on what a change of its operation is about. args
// name it: a status, a header, a content type or the path of a member.
func (u use) reliesOn(rule string, args []any) bool {
	if !strings.HasPrefix(rule, "response-") {
		return strings.HasPrefix(rule, "api-") || len(u.worse) > 0
	}
	relies := true
	for _, arg := range args {
		name, ok := arg.(string)
		if !ok {
			continue
		}
		status, err := strconv.Atoi(name)
		switch {
		case err == nil && status >= 100 && status <= 599:
			relies = relies && u.expected.Status == status
		case strings.Contains(rule, "header"):
			relies = relies && slices.ContainsFunc(slices.Collect(maps.Keys(u.expected.Headers)),
				func(own string) bool { return strings.EqualFold(own, name) })
		case strings.Contains(rule, "property"):
			relies = relies && u.has(name)
		}
		if strings.Contains(rule, "property") && err != nil {
			break // what follows are values
		}
	}
	return relies
}

// noMember matches a part of oasdiff's path that names no member.
var noMember = regexp.MustCompile(`^(items|anyOf|oneOf|allOf)$`)

// brackets matches the brackets of a path, whose slashes separate nothing.
var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// has reports whether the expected body has the member at a path, such as location/city.
func (u use) has(path string) bool {
	value, ok := decoded(u.expected.Body)
	parts := strings.FieldsFunc(brackets.ReplaceAllString(path, ""), func(r rune) bool { return r == '/' })
	return ok && holds(value, slices.DeleteFunc(parts, noMember.MatchString))
}

// holds reports whether a value has members inside each other.
func holds(value any, names []string) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return holds(one, names) })
	case map[string]any:
		if len(names) == 0 {
			return true
		}
		member, ok := v[names[0]]
		return ok && (len(names) == 1 || holds(member, names[1:]))
	}
	return len(names) == 0
}

// add adds a change of our own rules, unless oasdiff has found it.
func (c *comparison) add(operation, rule, name, format string, args ...any) {
	for _, known := range c.all {
		if known.Operation == operation && known.Class != BreaksNothing &&
			strings.Contains(known.Message, "`"+name+"`") {
			return
		}
	}
	one := Change{Rule: rule, Operation: operation, Message: fmt.Sprintf(format, args...),
		PinnedBy: []string{}}
	c.classify(&one, []any{name})
	c.all = append(c.all, one)
}

// operation applies our own rules: oasdiff overlooks statuses of errors, required names without a
// property, and headers of requests whose names begin with x-.
func (c *comparison) operation(name string, before, after *openapi3.Operation) {
	statuses := after.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(before.Responses.Map())) {
		if statuses[status] == nil {
			c.add(name, "response-status-removed", status, "removed the status `%s`", status)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		if old := before.Responses.Value(status); old != nil && old.Value != nil && statuses[status].Value != nil {
			c.headers(name, old.Value.Headers, statuses[status].Value.Headers)
		}
	}
	for _, required := range requiredOf(after) {
		if !slices.Contains(requiredOf(before), required) {
			c.add(name, "request-property-required", required, "the request now needs `%s`", required)
		}
	}
	for _, ref := range after.Parameters {
		p := ref.Value
		if p != nil && p.In == "header" && p.Required && strings.HasPrefix(strings.ToLower(p.Name), "x-") &&
			!slices.ContainsFunc(before.Parameters, func(old *openapi3.ParameterRef) bool {
				return old.Value != nil && strings.EqualFold(old.Value.Name, p.Name) && old.Value.Required
			}) {
			c.add(name, "request-header-required", p.Name, "the request now needs the header `%s`", p.Name)
		}
	}
}

// headers adds headers of a response with another schema.
func (c *comparison) headers(operation string, before, after openapi3.Headers) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		old, revised := schemaOf(before[name]), schemaOf(after[name])
		if old != "" && revised != "" && old != revised {
			c.add(operation, "response-header-changed", name, "changed the values of the header `%s`", name)
		}
	}
}

// schemaOf returns the schema of a header as JSON, without descriptions; "" = it has none.
func schemaOf(ref *openapi3.HeaderRef) string {
	if ref == nil || ref.Value == nil || ref.Value.Schema == nil || ref.Value.Schema.Value == nil {
		return ""
	}
	schema := *ref.Value.Schema.Value
	schema.Description, schema.Title, schema.Example, schema.Examples = "", "", nil, nil
	text, err := schema.MarshalJSON()
	if err != nil {
		return ""
	}
	return string(text)
}

// requiredOf returns the required members of the request of an operation.
func requiredOf(o *openapi3.Operation) (names []string) {
	if o.RequestBody == nil || o.RequestBody.Value == nil {
		return nil
	}
	for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Value.Content)) {
		if schema := o.RequestBody.Value.Content[kind].Schema; schema != nil && schema.Value != nil {
			names = append(names, merged(schema.Value).Required...)
		}
	}
	return names
}

// rest adds what check finds with the new document alone, for interactions without another change.
func (c *comparison) rest() {
	for _, u := range c.uses {
		if len(u.worse) == 0 || slices.ContainsFunc(c.all, func(one Change) bool {
			return slices.Contains(one.PinnedBy, u.name)
		}) {
			continue
		}
		c.all = append(c.all, Change{Class: BreaksConsumer, Operation: u.operation, Rule: "check",
			Message: strings.Join(u.worse, "; "), PinnedBy: []string{u.name}})
	}
}
