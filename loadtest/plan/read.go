package plan

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxFile and maxNodes limit a file, since aliases can make a small one large.
const (
	maxFile  = 1 << 20
	maxNodes = 100_000
)

// source is the text of a file, for the lines of errors.
type source struct {
	name string
	root *yaml.Node
}

func (s source) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", s.name, line, fmt.Sprintf(format, args...))
}

// at returns the line of a part of the file, or of the last part on the way that exists.
func (s source) at(path []any) int {
	node := s.root
	line := node.Line
	for _, p := range path {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		var next *yaml.Node
		key := fmt.Sprint(p)
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i < len(node.Content); i += 2 {
				if node.Content[i].Value == key {
					line, next = node.Content[i].Line, node.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(key); err == nil && i < len(node.Content) {
				next = node.Content[i]
				line = next.Line
			}
		}
		if next == nil {
			break
		}
		node = next
	}
	return line
}

var compiled = sync.OnceValue(func() *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema))
	if err != nil {
		panic(err) // never: it is part of the program
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.json", doc); err != nil {
		panic(err)
	}
	return c.MustCompile("scenario.json")
})

// Read reads a file. name is for errors and the default name of the scenario. columns returns the
// names of the variables of a CSV file.
func Read(name string, text []byte, columns func(file string) ([]string, error)) (*Plan, error) {
	p := &Plan{file: source{name: name}}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: is longer than %d bytes: put long data into a CSV file", name,
			maxFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: is no YAML: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s:1: is empty: a scenario needs steps (loadtest schema prints what a file may have)", name)
	}
	p.file.root = doc.Content[0]
	nodes := 0
	value, err := p.file.value(p.file.root, &nodes)
	if err != nil {
		return nil, err
	}
	if err := compiled().Validate(value); err != nil {
		return nil, p.file.explain(err)
	}
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, p.check(columns)
}

// value returns a node as JSON has it.
func (s source) value(n *yaml.Node, nodes *int) (any, error) {
	if *nodes++; *nodes > maxNodes {
		return nil, s.errorf(n.Line, "the file has more than %d values: put data into a CSV file",
			maxNodes)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return s.value(n.Alias, nodes)
	case yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			v, err := s.value(item, nodes)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, again := all[key.Value]; again || key.Kind != yaml.ScalarNode {
				return nil, s.errorf(key.Line, "%q is repeated or no name: remove one", key.Value)
			}
			v, err := s.value(n.Content[i+1], nodes)
			if err != nil {
				return nil, err
			}
			all[key.Value] = v
		}
		return all, nil
	}
	var v any
	if n.ShortTag() != "!!timestamp" && n.Decode(&v) == nil {
		if v, err := json.Marshal(v); err == nil {
			return jsonschema.UnmarshalJSON(strings.NewReader(string(v)))
		}
	}
	return n.Value, nil
}

// explain returns the first error of the schema in the file, with its line and what to do. An
// unknown name comes before all others, since it may be that of a missing one, misspelt.
func (s source) explain(err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	order := func(e *jsonschema.ValidationError) int {
		if _, unknown := e.ErrorKind.(*kind.AdditionalProperties); unknown {
			return 0
		}
		return s.at(anys(e.InstanceLocation))
	}
	for len(invalid.Causes) > 0 {
		invalid = slices.MinFunc(invalid.Causes, func(a, b *jsonschema.ValidationError) int {
			return order(a) - order(b)
		})
	}
	where := ""
	if len(invalid.InstanceLocation) > 0 {
		where = strings.Join(invalid.InstanceLocation, ".") + ": "
	}
	at := anys(invalid.InstanceLocation)
	if more, ok := invalid.ErrorKind.(*kind.AdditionalProperties); ok {
		at = append(at, more.Properties[0])
	}
	return s.errorf(s.at(at),
		"%s%s (loadtest schema prints what a file may have)", where,
		invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

func anys(path []string) []any {
	var all []any
	for _, p := range path {
		all = append(all, p)
	}
	return all
}

// BuiltIn are the variables of every scenario, except ${env.NAME}.
var BuiltIn = []string{"hit", "random", "run", "target", "operator.id", "operator.secret"}

// check checks what the schema cannot say: variables, patterns, and members that exclude each other.
func (p *Plan) check(columns func(string) ([]string, error)) error {
	if p.Stages != nil && p.Users > 0 {
		return p.Errorf([]any{"users"}, "stages and users: choose one of them")
	}
	known := map[string]bool{}
	for _, name := range BuiltIn {
		known[name] = true
	}
	for name := range p.Variables {
		known[name] = true
	}
	row := maps.Clone(known)
	if p.Data != nil {
		names, err := columns(p.Data.File)
		if err != nil {
			return p.Errorf([]any{"data", "file"}, "%s", err)
		}
		for _, name := range names {
			row[name] = true
		}
	}
	for i := range p.Setup {
		names := known
		if p.Setup[i].EachRow {
			names = row
		}
		if err := p.checkStep([]any{"setup", i}, &p.Setup[i], names); err != nil {
			return err
		}
		for name := range p.Setup[i].Save {
			row[name] = true
			known[name] = known[name] || !p.Setup[i].EachRow
		}
	}
	hit := maps.Clone(row)
	for i := range p.Steps {
		if err := p.checkStep([]any{"steps", i}, &p.Steps[i], hit); err != nil {
			return err
		}
		for name := range p.Steps[i].Save {
			hit[name] = true
		}
	}
	for i := range p.Teardown {
		names := known
		if p.Teardown[i].EachRow {
			names = row
		}
		if err := p.checkStep([]any{"teardown", i}, &p.Teardown[i], names); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) checkStep(path []any, s *Step, known map[string]bool) error {
	measured := path[0] == "steps"
	bodies := 0
	for _, has := range []bool{s.Form != nil, s.JSON != nil, s.Body != nil} {
		if has {
			bodies++
		}
	}
	switch {
	case bodies > 1:
		return p.Errorf(path, "%s: form, json and body: choose one of them", s.Name)
	case measured && s.EachRow:
		return p.Errorf(append(path, "each_row"), "each_row: only setup and teardown have it: hits take the rows in turn")
	case measured && s.Server == "admin":
		return p.Errorf(append(path, "server"), "server: only setup and teardown may use the admin listener")
	case s.EachRow && p.Data == nil:
		return p.Errorf(append(path, "each_row"), "each_row: there is no data: name a CSV file in data")
	}
	for name, from := range s.Save {
		at := append(slices.Clip(path), "save", name)
		if from.JSON != nil && from.Header != "" {
			return p.Errorf(at, "%s: json and header: choose one of them", name)
		}
		if from.Pattern == "" {
			continue
		}
		var err error
		if from.pattern, err = regexp.Compile(from.Pattern); err != nil {
			return p.Errorf(append(at, "pattern"), "pattern: %s", err)
		}
		if from.pattern.NumSubexp() != 1 {
			return p.Errorf(append(at, "pattern"), "pattern: needs one group in parentheses, for the value")
		}
	}
	return p.checkVariables(path, s, known)
}

// checkVariables returns an error for a variable that no earlier part of the file has.
func (p *Plan) checkVariables(path []any, s *Step, known map[string]bool) error {
	check := func(t Text, at ...any) error {
		for _, piece := range t.pieces {
			if piece.variable && !known[piece.text] {
				names := slices.Sorted(maps.Keys(known))
				return p.Errorf(append(slices.Clip(path), at...),
					"%s: there is no variable %q here: there are %s ($${ is a literal ${)", s.Name,
					piece.text, strings.Join(names, ", "))
			}
		}
		return nil
	}
	errs := []error{check(s.Path, "path")}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		errs = append(errs, check(s.Headers[name], "headers", name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Form)) {
		errs = append(errs, check(s.Form[name], "form", name))
	}
	if s.Body != nil {
		errs = append(errs, check(*s.Body, "body"))
	}
	if s.JSON != nil {
		eachText(s.JSON.value, func(t Text) { errs = append(errs, check(t, "json")) })
	}
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i]
}

func eachText(v any, do func(Text)) {
	switch v := v.(type) {
	case Text:
		do(v)
	case []any:
		for _, item := range v {
			eachText(item, do)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachText(v[name], do)
		}
	}
}

// Constants returns the values of the variables of the file. getenv reads the environment.
func (p *Plan) Constants(getenv func(string) (string, bool)) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		var wrong error
		all[name] = Text{split(string(p.Variables[name]))}.Fill(func(from string) string {
			env, ok := strings.CutPrefix(from, "env.")
			value, found := getenv(env)
			switch {
			case !ok:
				wrong = p.Errorf([]any{"variables", name}, "%s: only ${env.NAME} can be used here", name)
			case !found:
				wrong = p.Errorf([]any{"variables", name}, "%s: set the environment variable %s", name, env)
			}
			return value
		}, nil)
		if wrong != nil {
			return nil, wrong
		}
	}
	return all, nil
}

var column = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ReadRows reads a CSV file whose first line names the variables.
func ReadRows(r io.Reader) (names []string, rows []map[string]string, err error) {
	c := csv.NewReader(r)
	for {
		record, err := c.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if names == nil {
			names = slices.Clone(record)
			names[0] = strings.TrimPrefix(names[0], "\ufeff")
			for i, name := range names {
				if !column.MatchString(name) || slices.Contains(names[:i], name) {
					return nil, nil, fmt.Errorf("line 1: %.50q: the first line names the variables, each once, with letters, digits and _", name)
				}
			}
			continue
		}
		row := map[string]string{}
		for i, name := range names {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, nil, errors.New("has no rows: write one line for each after the line of names")
	}
	return names, rows, nil
}
