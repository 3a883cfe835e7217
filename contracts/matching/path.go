package matching

import (
	"fmt"
	"strconv"
	"strings"
)

// Path is the place of a value in a JSON document or in a map of headers, such as $.list[0].name.
// In rules, "*" stands for any member and [*] for any element.
type Path []Step

// Step leads to a member or element. The zero value is invalid.
type Step struct {
	Name    string // of a member; ignored if IsIndex
	Index   int    // of an element, from 0; -1 = any
	IsIndex bool
	Any     bool // any member; an index may be any with Index -1
}

// ParsePath parses an expression that begins with "$".
func ParsePath(expression string) (Path, error) {
	rest, ok := strings.CutPrefix(expression, "$")
	if !ok {
		return nil, fmt.Errorf("the path %q does not begin with $", expression)
	}
	var path Path
	for rest != "" {
		step, after, err := parseStep(rest)
		if err != nil {
			return nil, fmt.Errorf("the path %q: %w", expression, err)
		}
		path, rest = append(path, step), after
	}
	return path, nil
}

// parseStep parses the first step of text, which is not empty.
func parseStep(text string) (step Step, rest string, err error) {
	switch text[0] {
	case '.':
		name := text[1:]
		if end := strings.IndexAny(name, ".["); end >= 0 {
			name, rest = name[:end], name[end:]
		}
		if name == "" {
			return Step{}, "", fmt.Errorf("a name is missing after a dot")
		}
		return Step{Name: name, Any: name == "*"}, rest, nil
	case '[':
		if strings.HasPrefix(text, "['") {
			name, rest, found := strings.Cut(text[2:], "']")
			if !found || name == "" {
				return Step{}, "", fmt.Errorf("write a name as ['name']")
			}
			return Step{Name: name}, rest, nil
		}
		inner, rest, found := strings.Cut(text[1:], "]")
		if !found {
			return Step{}, "", fmt.Errorf("a bracket is not closed")
		}
		if inner == "*" {
			return Step{Index: -1, IsIndex: true}, rest, nil
		}
		index, err := strconv.ParseUint(inner, 10, 31)
		if err != nil {
			return Step{}, "", fmt.Errorf("[%s] is no index: write a number, a * or a name in single quotes",
				inner)
		}
		return Step{Index: int(index), IsIndex: true}, rest, nil
	}
	return Step{}, "", fmt.Errorf("a dot or bracket is missing before %q", text)
}

// Member returns the path of a member of p.
func (p Path) Member(name string) Path { return append(p[:len(p):len(p)], Step{Name: name}) }

// Element returns the path of an element of p.
func (p Path) Element(index int) Path {
	return append(p[:len(p):len(p)], Step{Index: index, IsIndex: true})
}

// String returns the path as an expression.
func (p Path) String() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range p {
		switch {
		case s.IsIndex && s.Index < 0:
			b.WriteString("[*]")
		case s.IsIndex:
			fmt.Fprintf(&b, "[%d]", s.Index)
		case s.Any:
			b.WriteString(".*")
		case isPlain(s.Name):
			b.WriteString("." + s.Name)
		default:
			b.WriteString("['" + s.Name + "']")
		}
	}
	return b.String()
}

// isPlain reports whether a name needs no quotes.
func isPlain(name string) bool {
	for _, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// At returns the value at the path of a JSON document, as encoding/json decodes it into any.
func (p Path) At(document any) (value any, ok bool) {
	for _, s := range p {
		switch at := document.(type) {
		case map[string]any:
			document, ok = at[s.Name]
			if s.IsIndex || !ok {
				return nil, false
			}
		case []any:
			if !s.IsIndex || s.Index < 0 || s.Index >= len(at) {
				return nil, false
			}
			document = at[s.Index]
		default:
			return nil, false
		}
	}
	return document, true
}

// Put replaces the value at the path, if the document has one there. It does nothing for the root.
func (p Path) Put(document, value any) {
	if len(p) == 0 {
		return
	}
	last := p[len(p)-1]
	parent, _ := p[:len(p)-1].At(document)
	switch parent := parent.(type) {
	case map[string]any:
		if _, ok := parent[last.Name]; ok && !last.IsIndex {
			parent[last.Name] = value
		}
	case []any:
		if last.IsIndex && last.Index >= 0 && last.Index < len(parent) {
			parent[last.Index] = value
		}
	}
}
