package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
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
	worse           []*worse // errors that only the new document finds
}

// worse is an error that only the new document finds in an interaction.
type worse struct {
	Finding
	explained bool // by a change that the interaction relies on
}

// about reports whether the error is about one of the names in the arguments of a change.
func (w *worse) about(args []any) bool {
	places := strings.Split(w.Pointer, "/")
	return slices.ContainsFunc(args, func(arg any) bool {
		name, _ := arg.(string)
		name = name[strings.LastIndex(name, "/")+1:]
		return name != "" && (slices.ContainsFunc(places, func(place string) bool {
			return strings.EqualFold(place, name)
		}) || words(w.Message, name))
	})
}

// words reports whether a text has a name as words of their own.
func words(text, name string) bool {
	found, err := regexp.MatchString(`(?i)(^|[^\w-])`+regexp.QuoteMeta(name)+`($|[^\w-])`, text)
	return err == nil && found
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
	found := map[int][]*worse{}
	for _, f := range c.after.Check(p, false) {
		for i := range p.Interactions {
			if f.Of(i) && !known[f.Pointer+f.Message] {
				found[i] = append(found[i], &worse{Finding: f})
			}
		}
	}
	for i := range p.Interactions {
		it := &p.Interactions[i]
		path, _, _ := strings.Cut(it.Path, "?")
		expected, err := it.ExpectedWith(nil)
		if known, item := c.before.find(path); item != nil && it.Problem == "" && err == nil {
			c.uses = append(c.uses, use{p.Consumer + ": " + it.Description,
				strings.ToUpper(it.Method) + " " + known, it, expected, found[i]})
		}
	}
}

// oasdiff adds the changes that oasdiff finds.
func (c *comparison) oasdiff(before, after []byte) error {
	before, err := withLines(before)
	if err != nil {
		return err
	}
	if after, err = withLines(after); err != nil {
		return err
	}
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
		if c.reliesOn(u, one.Rule, args) {
			u.explain(one.Rule, args)
			one.Class = BreaksConsumer
			one.PinnedBy = append(one.PinnedBy, u.name)
		}
	}
}

// reliesOn reports whether an interaction relies on what a change of its operation is about. args
// name it: a status, a header, a content type or the path of a member.
func (c *comparison) reliesOn(u use, rule string, args []any) bool {
	if !strings.HasPrefix(rule, "response-") {
		return strings.HasPrefix(rule, "api-") || slices.ContainsFunc(u.worse, func(w *worse) bool {
			return w.isRequest() && (w.about(args) || strings.HasPrefix(rule, "request-body-"))
		})
	}
	name, at := placeOf(rule, args)
	own := u.status(c.before)
	if at != "" && at != own || at == "" && !c.bodyChanged(u, own) {
		return false
	}
	switch {
	case name == "":
		return strings.Contains(rule, "status") || u.expected.Body.Bytes != nil
	case strings.HasPrefix(rule, "response-header-"):
		return slices.ContainsFunc(slices.Collect(maps.Keys(u.expected.Headers)),
			func(own string) bool { return strings.EqualFold(own, name) })
	case strings.HasPrefix(rule, "response-media"):
		kind, _, _ := strings.Cut(name, ";")
		return u.expected.Body.Bytes != nil && (u.expected.Body.Type == "" ||
			strings.HasPrefix(u.expected.Body.Type, strings.TrimSpace(kind)))
	case strings.HasPrefix(rule, "response-property-const-"): // without the path of the member
		value, ok := decoded(u.expected.Body)
		return ok && anywhere(value, name)
	case strings.Contains(rule, "property"):
		return u.has(name)
	}
	return true
}

// isRequest reports whether the error is in the request.
func (w *worse) isRequest() bool {
	_, place, _ := strings.Cut(strings.TrimPrefix(w.Pointer, "/interactions/"), "/")
	return strings.HasPrefix(place, "request")
}

// explain notes the errors of which a change is the reason.
func (u use) explain(rule string, args []any) {
	name, _ := placeOf(rule, args)
	for _, w := range u.worse {
		switch {
		case strings.HasPrefix(rule, "api-"):
			w.explained = true
		case !strings.HasPrefix(rule, "response-"):
			w.explained = w.explained || w.isRequest() && (w.about(args) || strings.HasPrefix(rule, "request-body-"))
		case name == "":
			w.explained = w.explained || !w.isRequest()
		default:
			w.explained = w.explained || !w.isRequest() && w.about([]any{name})
		}
	}
}

// status returns the status of a document that stands for that of the interaction.
func (u use) status(d *Document) string {
	method, path, _ := strings.Cut(u.operation, " ")
	item := d.doc.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		return ""
	}
	_, name := responseFor(item.GetOperation(method), u.expected.Status)
	return name
}

// bodyChanged reports whether the schema of a response with that status has changed by itself,
// without the members and elements in it.
func (c *comparison) bodyChanged(u use, status string) bool {
	method, path, _ := strings.Cut(u.operation, " ")
	var texts [2]string
	for i, d := range []*Document{c.before, c.after} {
		item := d.doc.Paths.Value(path)
		if item == nil || item.GetOperation(method) == nil {
			return true
		}
		ref := item.GetOperation(method).Responses.Value(status)
		if ref == nil || ref.Value == nil {
			return true
		}
		for _, kind := range slices.Sorted(maps.Keys(ref.Value.Content)) {
			if schema := ref.Value.Content[kind].Schema; schema != nil && schema.Value != nil {
				alone := *merged(schema.Value)
				alone.Properties, alone.Items, alone.AnyOf, alone.OneOf = nil, nil, nil, nil
				texts[i] += kind + " " + textOf(&alone)
			}
		}
	}
	return texts[0] != texts[1]
}

// noMember matches a part of oasdiff's path that names no member.
var noMember = regexp.MustCompile(`^((prefixI|i)tems|anyOf|oneOf|allOf|not|if|then|else|contains|(additional|pattern)Properties|dependentSchemas)$`)

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

// anywhere reports whether a value has a member with that name at any depth.
func anywhere(value any, name string) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return anywhere(one, name) })
	case map[string]any:
		for own, member := range v {
			if own == name || anywhere(member, name) {
				return true
			}
		}
	}
	return false
}

// add adds a change of our own rules, unless oasdiff has found it. args are those of placeOf.
func (c *comparison) add(operation, rule, message string, args ...any) {
	for _, known := range c.all {
		if known.Operation == operation && known.Class != BreaksNothing &&
			!slices.ContainsFunc(args, func(name any) bool {
				return !strings.Contains(known.Message, fmt.Sprintf("`%s`", name))
			}) {
			return
		}
	}
	quoted := make([]any, len(args))
	for i, name := range args {
		quoted[i] = fmt.Sprintf("`%s`", name)
	}
	one := Change{Rule: rule, Operation: operation, Message: fmt.Sprintf(message, quoted...),
		PinnedBy: []string{}}
	c.classify(&one, args)
	c.all = append(c.all, one)
}

// operation applies our own rules: oasdiff overlooks statuses of errors, required names without a
// property, and headers of requests whose names begin with x-.
func (c *comparison) operation(name string, before, after *openapi3.Operation) {
	statuses := after.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(before.Responses.Map())) {
		if statuses[status] == nil {
			c.add(name, "response-status-removed", "removed the status %s", status)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		if old := before.Responses.Value(status); old != nil && old.Value != nil && statuses[status].Value != nil {
			c.headers(name, status, old.Value.Headers, statuses[status].Value.Headers)
		}
	}
	for _, required := range requiredOf(after) {
		if !slices.Contains(requiredOf(before), required) {
			c.add(name, "request-property-required", "the request now needs %s", required)
		}
	}
	for _, ref := range after.Parameters {
		p := ref.Value
		if p != nil && p.In == "header" && p.Required && strings.HasPrefix(strings.ToLower(p.Name), "x-") &&
			!slices.ContainsFunc(before.Parameters, func(old *openapi3.ParameterRef) bool {
				return old.Value != nil && strings.EqualFold(old.Value.Name, p.Name) && old.Value.Required
			}) {
			c.add(name, "request-header-required", "the request now needs the header %s", p.Name)
		}
	}
}

// headers adds headers of a response with another schema, and those that are gone though
// interactions rely on them: the document may call them optional.
func (c *comparison) headers(operation, status string, before, after openapi3.Headers) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == nil {
			gone := Change{Rule: "response-header-removed", Operation: operation, PinnedBy: []string{},
				Message: fmt.Sprintf("removed the header `%s` for the status `%s`", name, status)}
			c.classify(&gone, []any{name, status})
			if gone.Class == BreaksConsumer && !slices.ContainsFunc(c.all, gone.isKnown) {
				c.all = append(c.all, gone)
			}
		}
		old, revised := schemaOf(before[name]), schemaOf(after[name])
		if old != "" && revised != "" && old != revised {
			c.add(operation, "response-header-changed",
				"changed the values of the header %s for the status %s", name, status)
		}
	}
}

// isKnown reports whether another change breaks the same interactions by the same rule.
func (one Change) isKnown(other Change) bool {
	return other.Operation == one.Operation && other.Rule == one.Rule && slices.Equal(other.PinnedBy, one.PinnedBy)
}

// schemaOf returns the schema of a header as JSON, without descriptions; "" = it has none.
func schemaOf(ref *openapi3.HeaderRef) string {
	if ref == nil || ref.Value == nil || ref.Value.Schema == nil || ref.Value.Schema.Value == nil {
		return ""
	}
	return textOf(ref.Value.Schema.Value)
}

// textOf returns a schema as JSON, without descriptions.
func textOf(s *openapi3.Schema) string {
	schema := *s
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

// rest adds what check finds with the new document alone, if no other change is the reason.
func (c *comparison) rest() {
	for _, u := range c.uses {
		var messages []string
		for _, w := range u.worse {
			if !w.explained {
				messages = append(messages, w.Message)
			}
		}
		if len(messages) > 0 {
			c.all = append(c.all, Change{Class: BreaksConsumer, Operation: u.operation, Rule: "check",
				Message: strings.Join(messages, "; "), PinnedBy: []string{u.name}})
		}
	}
}
