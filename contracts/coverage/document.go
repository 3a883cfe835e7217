// Package coverage reports which parts of the interface pacts pin. The parts are those of
// operations with the tag contract in an OpenAPI document.
package coverage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is a mapping of the document.
type object = map[string]any

// document is an OpenAPI document.
type document struct{ root object }

// operation is an operation that client programs use.
type operation struct {
	method, path string
	body         object
}

func (o operation) String() string { return o.method + " " + o.path }

// isAdmin reports whether operators call it. There are many such operations with few kinds of
// responses: the parts of a component count once for all of them.
func (o operation) isAdmin() bool { return slices.Contains(list(o.body["tags"]), any("admin")) }

func readDocument(text []byte) (*document, error) {
	var root object
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return &document{root}, nil
}

// operations returns the operations with the tag contract, by path and method.
func (d *document) operations() []operation {
	var all []operation
	paths := members(d.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods := members(paths[path])
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			body := members(methods[method])
			if slices.Contains(list(body["tags"]), any("contract")) {
				all = append(all, operation{strings.ToUpper(method), path, body})
			}
		}
	}
	return all
}

// template returns the path of the document that a path of a request belongs to; the path itself if
// there is none. One without parameters wins.
func (d *document) template(path string) string {
	paths := members(d.root["paths"])
	if paths[path] != nil {
		return path
	}
	segments := strings.Split(path, "/")
	for _, known := range slices.Sorted(maps.Keys(paths)) {
		if slices.EqualFunc(strings.Split(known, "/"), segments, func(k, s string) bool {
			return k == s || strings.HasPrefix(k, "{") && s != ""
		}) {
			return known
		}
	}
	return path
}

// resolve follows references. name is the component of v, "" = none.
func (d *document) resolve(v any) (o object, name string) {
	o = members(v)
	for {
		reference, ok := o["$ref"].(string)
		if !ok {
			return o, name
		}
		target := any(d.root)
		for part := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
			target, name = members(target)[part], part
		}
		o = members(target)
	}
}

// alternative is a possible shape of a body.
type alternative struct {
	name   string // of the component; "" = none
	schema object
}

// alternatives returns the shapes of a schema. It leaves out selections of members of another shape:
// their members are the same.
func (d *document) alternatives(v any) []alternative {
	schema, name := d.resolve(v)
	choices := list(schema["anyOf"])
	if len(choices) == 0 {
		return []alternative{{name, schema}}
	}
	var all []alternative
	for i, choice := range choices {
		one, own := d.resolve(choice)
		if one["x-selection-of"] != nil {
			continue
		}
		if own == "" {
			own = fmt.Sprintf("%s %d", name, i+1)
		}
		all = append(all, alternative{own, one})
	}
	return all
}

// fits returns the alternative of an expected value. whole means that the value must have the
// required members.
func (d *document) fits(all []alternative, v any, whole bool) (alternative, bool) {
	o, ok := v.(object)
	if !ok || len(all) == 1 {
		return all[0], len(all) == 1
	}
	for _, a := range all {
		if d.shape(a.schema, o, whole) {
			return a, true
		}
	}
	return alternative{}, false
}

func (d *document) shape(schema, o object, whole bool) bool {
	properties := members(schema["properties"])
	for name, value := range o {
		property, _ := d.resolve(properties[name])
		if _, ok := properties[name]; !ok {
			return false
		}
		if constant, ok := property["const"]; ok && constant != value {
			return false
		}
	}
	for _, name := range list(schema["required"]) {
		if _, ok := o[name.(string)]; !ok && whole {
			return false
		}
	}
	return true
}

// content returns the JSON schema of a request or response; nil = none.
func content(o object) any {
	return members(members(o["content"])["application/json"])["schema"]
}

func members(v any) object {
	o, _ := v.(object)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// types returns the JSON types of a schema.
func types(schema object) []string {
	if name, ok := schema["type"].(string); ok {
		return []string{name}
	}
	var all []string
	for _, name := range list(schema["type"]) {
		all = append(all, name.(string))
	}
	return all
}

// Operations returns the operations of an OpenAPI document that client programs use, such as "GET
// /api/user".
func Operations(openAPI []byte) ([]string, error) {
	d, err := readDocument(openAPI)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, o := range d.operations() {
		all = append(all, o.String())
	}
	return all, nil
}
