package coverage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// body adds the parts of a JSON value. where names the response, at the place in it. matches
// selects the interactions with that response.
func (g *gatherer) body(where string, schema any, at string, matches func(*interaction) bool) {
	all := g.alternatives(schema)
	for _, a := range all {
		prefix, owner := where, a.name
		if len(all) > 1 {
			prefix += " " + a.name
		}
		if owner == "" {
			owner = where
		}
		chosen := func(i *interaction, p place, whole bool) bool {
			got, ok := g.fits(all, p.value, whole)
			return ok && got.name == a.name
		}
		g.members(prefix, owner, a.schema, at, "$", func(i *interaction, whole bool) []place {
			if !matches(i) {
				return nil
			}
			return slices.DeleteFunc(i.places(at),
				func(p place) bool { return !chosen(i, p, whole) })
		})
	}
}

// finder returns the places of an object in the body of an interaction. whole is false for an
// expectation that only limits the names of members.
type finder func(i *interaction, whole bool) []place

// members adds the parts of an object: each member, and that there are no others. Optional members,
// listed values and the closed set belong to their schema, so they count once for all responses.
// inside is the place in that schema.
func (g *gatherer) members(where, owner string, schema object, at, inside string, find finder) {
	properties := members(schema["properties"])
	required := list(schema["required"])
	if closed, ok := schema["additionalProperties"].(bool); ok && !closed {
		g.add(fmt.Sprintf("%s %s: nothing else", owner, inside), Place{Body, "", at, Closed, nil},
			func(i *interaction) bool {
				return slices.ContainsFunc(find(i, false), func(p place) bool {
					return i.closed(p, slices.Collect(maps.Keys(properties)))
				})
			})
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, component := g.resolve(properties[name])
		child := func(i *interaction) []place { return held(i, find(i, true), name, false) }
		label, part := where+" "+at+"."+name, owner+" "+inside+"."+name
		if !slices.Contains(required, any(name)) {
			label = part
			g.add(part+": left out", Place{Body, "", at + "." + name, LeftOut, nil},
				func(i *interaction) bool {
					return slices.ContainsFunc(find(i, false),
						func(p place) bool { return i.forbids(p, name) })
				})
		}
		g.value(label, part, at+"."+name, property, child)
		g.deeper(where, owner, component, property, at+"."+name, inside+"."+name,
			func(i *interaction, whole bool) []place {
				return held(i, find(i, whole), name, !whole)
			})
	}
}

// held returns the members with a name. It includes those that may be missing only if loose is set.
func held(i *interaction, all []place, name string, loose bool) []place {
	var found []place
	for _, p := range all {
		if q, ok := p.member(name); ok && (loose || !i.loose(p)) {
			found = append(found, q)
		}
	}
	return found
}

// value adds the possible values of the member at a path.
func (g *gatherer) value(label, part, at string, property object,
	child func(*interaction) []place) {
	for _, kind := range types(property) {
		name := label
		if kind == "null" {
			name += ": null"
		}
		g.add(name, Place{Body, "", at, kind, nil}, func(i *interaction) bool {
			return slices.ContainsFunc(child(i), func(p place) bool { return i.pinsType(p, kind) })
		})
	}
	only := func(name string, value, other any) {
		g.add(name, Place{Body, "", at, "", other}, func(i *interaction) bool {
			return slices.ContainsFunc(child(i), func(p place) bool { return i.pinsValue(p, value) })
		})
	}
	for _, value := range constant(property) {
		other := any(invented)
		if is, ok := value.(bool); ok {
			other = !is
		}
		only(fmt.Sprintf("%s: %v", label, value), value, other)
	}
	values := list(property["enum"])
	for n, value := range values {
		only(fmt.Sprintf("%s: %q", part, value), value, values[(n+1)%len(values)])
	}
}

// deeper adds the parts inside a member that is an object or an array of objects.
func (g *gatherer) deeper(where, owner, component string, property object, at, inside string,
	find finder) {
	switch {
	case property["properties"] != nil:
		if component != "" {
			owner, inside = component, "$"
		}
		g.members(where, owner, property, at, inside, find)
	case property["items"] != nil:
		items, _ := g.resolve(property["items"])
		if items["properties"] == nil && items["anyOf"] == nil {
			return
		}
		g.elements(where, property["items"], at+"[*]", find)
	}
}

// elements is body for the elements of arrays.
func (g *gatherer) elements(where string, schema any, at string, find finder) {
	all := g.alternatives(schema)
	for _, a := range all {
		g.members(strings.TrimSpace(where+" "+a.name), a.name, a.schema, at, "$",
			func(i *interaction, whole bool) []place {
				var found []place
				for _, p := range find(i, whole) {
					for _, q := range p.elements() {
						if got, ok := g.fits(all, q.value, whole); ok && got.name == a.name {
							found = append(found, q)
						}
					}
				}
				return found
			})
	}
}
