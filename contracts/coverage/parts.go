package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Part is a part of the interface that client programs rely on.
type Part struct {
	// Name describes it, such as "GET /api/user 200 body $.email: null". Names are unique.
	Name string `json:"name"`
	// PinnedBy lists all interactions that would fail without it; empty = none.
	PinnedBy []string `json:"pinned_by"`
	// Excluded is the reason why no pact pins it; "" = a pact should.
	Excluded string `json:"excluded,omitempty"`
	// Pins holds the place of the part in each interaction of PinnedBy.
	Pins []Pin `json:"-"`

	claims []claim
}

// Pin is the place of a part in an interaction that pins it.
type Pin struct {
	Interaction string // consumer and description
	Operation   string // such as "GET /api/user"
	Status      int
	Place       Place
}

// Response names the response, such as "GET /api/user 200".
func (p Pin) Response() string { return fmt.Sprint(p.Operation, " ", p.Status) }

// Place is where a part is in requests or responses.
type Place struct {
	In   Area
	Name string // of a header or parameter
	Path string // of a member or object in the body, such as $.results[*].ok
	// Kind is the JSON type of a member; "" = the part is its value. An object without other members
	// has the kind Closed, a member that may be missing the kind LeftOut.
	Kind string
	// Other is a value that the part rules out; nil = none is known.
	Other any
}

// Area is a part of a request or response.
type Area int

// The areas of places.
const (
	Request Area = iota // the request, or the whole interaction
	Status
	Header
	Redirect // a parameter of the URI in Location
	Body
)

// Kinds of places besides the JSON types.
const (
	Closed  = "closed"
	LeftOut = "left out"
)

// claim says which interactions pin a part in a place.
type claim struct {
	place Place
	pins  func(*interaction) bool
}

// gatherer collects the parts of a document.
type gatherer struct {
	*document
	parts []*Part
	names map[string]*Part
}

func (d *document) parts() []*Part {
	g := &gatherer{d, nil, map[string]*Part{}}
	for _, o := range d.operations() {
		g.operation(o)
	}
	return g.parts
}

// add adds a part. A part that several responses share is added once, and any of them can pin it.
func (g *gatherer) add(name string, at Place, pins func(*interaction) bool) {
	p, ok := g.names[name]
	if !ok {
		p = &Part{Name: name, PinnedBy: []string{}}
		g.names[name] = p
		g.parts = append(g.parts, p)
	}
	p.claims = append(p.claims, claim{at, pins})
}

// pin adds an interaction to those that pin the part, if it does.
func (p *Part) pin(i *interaction) {
	for _, c := range p.claims {
		if c.pins(i) {
			p.PinnedBy = append(p.PinnedBy, i.name)
			p.Pins = append(p.Pins, Pin{i.name, i.method + " " + i.path, i.status, c.place})
			return
		}
	}
}

func (g *gatherer) operation(o operation) {
	of := func(i *interaction) bool { return i.method == o.method && i.path == o.path }
	g.add(o.String(), Place{}, of)
	g.parameters(o, of)
	g.form(o, of)
	g.limits(o, of)
	responses := members(o.body["responses"])
	listed := slices.Sorted(maps.Keys(responses))
	for _, status := range listed {
		if status == "default" && (o.method == "HEAD" || o.method == "OPTIONS") {
			continue // errors are those of the other methods, without a body
		}
		matches := func(i *interaction) bool { return of(i) && strconv.Itoa(i.status) == status }
		if status == "default" {
			matches = func(i *interaction) bool {
				return (i.path == o.path || !o.isAdmin() && !g.known(i.path)) && i.method != "OPTIONS" &&
					i.method != "HEAD" && !slices.Contains(listed, strconv.Itoa(i.status))
			}
		}
		name := o.String() + " " + status
		response, shared := g.resolve(responses[status])
		if !o.isAdmin() {
			shared = ""
		}
		g.add(name, Place{In: Status}, matches)
		if shared == "" {
			g.headers(o, name, response, of, matches)
		} else {
			g.headers(o, shared, response, matches, matches)
		}
		if schema := content(response); schema != nil {
			if _, component := g.resolve(schema); o.isAdmin() {
				shared = cmp.Or(component, shared)
			}
			g.body(cmp.Or(shared, name+" body"), schema, "$", matches)
		}
	}
}

// known reports whether the document has the path.
func (g *gatherer) known(path string) bool {
	_, ok := members(g.root["paths"])[path]
	return ok
}

// parameters adds the parameters of the query.
func (g *gatherer) parameters(o operation, of func(*interaction) bool) {
	for _, p := range list(o.body["parameters"]) {
		parameter, _ := g.resolve(p)
		name := parameter["name"].(string)
		schema, _ := g.resolve(parameter["schema"])
		if o.method == "HEAD" && o.isAdmin() {
			schema = nil // its values are those of GET
		}
		g.sent(o.String()+" query "+name, schema, func(i *interaction) []string {
			if !of(i) {
				return nil
			}
			return i.query[name]
		})
	}
}

// form adds the parameters of a form body.
func (g *gatherer) form(o operation, of func(*interaction) bool) {
	request, _ := g.resolve(o.body["requestBody"])
	schema, _ := g.resolve(members(members(request["content"])["application/x-www-form-urlencoded"])["schema"])
	for _, name := range slices.Sorted(maps.Keys(members(schema["properties"]))) {
		g.sent(o.String()+" form "+name, members(members(schema["properties"])[name]),
			func(i *interaction) []string {
				if !of(i) {
					return nil
				}
				return i.form[name]
			})
	}
}

// sent adds a parameter and its listed values. values returns the values in an interaction.
func (g *gatherer) sent(name string, schema object, values func(*interaction) []string) {
	g.add(name, Place{}, func(i *interaction) bool { return len(values(i)) > 0 })
	for _, value := range append(list(schema["enum"]), constant(schema)...) {
		g.add(fmt.Sprintf("%s: %v", name, value), Place{}, func(i *interaction) bool {
			return i.status < 400 && slices.Contains(values(i), fmt.Sprint(value))
		})
	}
}

// limits adds the limits of an array in the request: the maximum and minimum are accepted, one more
// and one less are rejected.
func (g *gatherer) limits(o operation, of func(*interaction) bool) {
	request, _ := g.resolve(o.body["requestBody"])
	schema, _ := g.resolve(content(request))
	for name, property := range members(schema["properties"]) {
		least, hasLeast := members(property)["minItems"].(int)
		most, hasMost := members(property)["maxItems"].(int)
		if !hasLeast || !hasMost {
			continue
		}
		for _, count := range []int{least - 1, least, most, most + 1} {
			taken := count >= least && count <= most
			g.add(fmt.Sprintf("%s %s of %d", o, name, count), Place{}, func(i *interaction) bool {
				elements, ok := members(i.json)[name].([]any)
				return of(i) && ok && len(elements) == count && (i.status < 300) == taken
			})
		}
	}
}

// headers adds the headers of a response. A required header counts for each status, any other once
// for the operation.
func (g *gatherer) headers(o operation, response string, r object, of,
	matches func(*interaction) bool) {
	headers := members(r["headers"])
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		header, _ := g.resolve(headers[name])
		where, when := response, matches
		if always, _ := header["required"].(bool); !always {
			where = o.String()
			when = func(i *interaction) bool { return of(i) || matches(i) }
		}
		where += " header " + name
		place := Place{In: Header, Name: name}
		g.add(where, place, func(i *interaction) bool { return when(i) && i.header(name) != nil })
		schema := members(header["schema"])
		place.Other = invented
		for _, value := range append(list(schema["enum"]), constant(schema)...) {
			g.add(fmt.Sprintf("%s: %v", where, value), place, func(i *interaction) bool {
				return when(i) && i.header(name).only(fmt.Sprint(value))
			})
		}
		g.redirects(o, name, members(header["x-parameters"]), of)
	}
}

// redirects adds the parameters of a URI in a header.
func (g *gatherer) redirects(o operation, header string, parameters object,
	of func(*interaction) bool) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		where, place := o.String()+" header "+header+" parameter "+name, Place{In: Redirect, Name: name}
		g.add(where, place,
			func(i *interaction) bool { return of(i) && i.header(header).has(name, "") })
		values := list(members(parameters[name])["enum"])
		for n, value := range values {
			place.Other = values[(n+1)%len(values)]
			g.add(fmt.Sprintf("%s: %v", where, value), place, func(i *interaction) bool {
				return of(i) && i.header(header).has(name, value.(string))
			})
		}
	}
}

// invented is a value that no schema lists.
const invented = "made_up"

// constant returns the only value that a schema allows, if there is one.
func constant(schema object) []any {
	if value, ok := schema["const"]; ok {
		return []any{value}
	}
	return nil
}
