package gatehouse_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReadmeErrors compares the tables of errors with the source: codes with their statuses, and reasons.
func TestReadmeErrors(t *testing.T) {
	source := readSource(t, "actors/geo", "httpedge")
	for _, c := range []struct {
		header []string
		want   []string
	}{
		{[]string{"Code", "Status", "When", "What to do"}, source.lookupErrors()},
		{[]string{"Code", "Status", "When"}, source.problems},
		{[]string{"Reason", "When"}, slices.Sorted(maps.Values(source.reasons))},
	} {
		var got []string
		for _, row := range readTable(t, c.header...) {
			line := plain(row[0])
			if c.header[0] == "Code" {
				line += " " + row[1]
			}
			got = append(got, line)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("got %q in the table %q, want %q", got, c.header, c.want)
		}
	}
}

// source is what the packages say of errors.
type source struct {
	codes    map[string]string // value by the constant's name
	reasons  map[string]string
	statuses map[string]string // by the name of a code's constant
	problems []string          // "code status" of the errors beside those of look-ups, sorted
}

// lookupErrors returns "code status" of the errors of look-ups, sorted.
func (s *source) lookupErrors() []string {
	var lines []string
	for name, code := range s.codes {
		lines = append(lines, code+" "+s.statuses[name])
	}
	slices.Sort(lines)
	return lines
}

// readSource reads the constants of type Code and Reason, the cases of statusOf and the calls of writeProblem.
func readSource(t *testing.T, dirs ...string) *source {
	t.Helper()
	s := &source{codes: map[string]string{}, reasons: map[string]string{}, statuses: map[string]string{}}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool { s.read(n); return true })
		}
	}
	slices.Sort(s.problems)
	s.problems = slices.Compact(s.problems)
	return s
}

func (s *source) read(n ast.Node) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		values := map[string]map[string]string{"Code": s.codes, "Reason": s.reasons}[lastName(n.Type)]
		if values != nil && len(n.Values) == 1 {
			values[n.Names[0].Name] = text(n.Values[0])
		}
	case *ast.FuncDecl:
		if n.Name.Name == "statusOf" {
			ast.Inspect(n, func(n ast.Node) bool { s.readCase(n); return true })
		}
	case *ast.CallExpr:
		if lastName(n.Fun) == "writeProblem" {
			s.problems = append(s.problems, text(n.Args[2])+" "+status(n.Args[1]))
		}
	}
}

// readCase reads a case that returns a status.
func (s *source) readCase(n ast.Node) {
	c, ok := n.(*ast.CaseClause)
	if !ok || len(c.Body) != 1 {
		return
	}
	returned, ok := c.Body[0].(*ast.ReturnStmt)
	if !ok {
		return
	}
	for _, name := range c.List {
		s.statuses[lastName(name)] = status(returned.Results[0])
	}
}

// lastName returns the name that an expression ends with: Code of geo.Code.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// text returns the value of a string literal.
func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		if value, err := strconv.Unquote(literal.Value); err == nil {
			return value
		}
	}
	return fmt.Sprintf("(%T)", e)
}

// status returns the number of a constant that is named as in net/http.
func status(e ast.Expr) string {
	name := lastName(e)
	for code := 400; code < 600; code++ {
		if words := http.StatusText(code); words != "" && name == "Status"+strings.ReplaceAll(words, " ", "") {
			return strconv.Itoa(code)
		}
	}
	return name
}
