//go:build !pact

package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is what the code says about errors.
type source struct {
	codes    map[string]map[string]string // folder → name of a constant of type Code → value
	statuses map[string]string            // the same name → status, from cases that return one
	problems []string                     // "code status" of the calls of writeProblem
	profiles []string                     // "code status" of the cases of refuseAdmission
	admin    []string                     // "code status" of the literals of adminProblem
}

var readSource = sync.OnceValues(func() (*source, error) {
	s := &source{codes: map[string]map[string]string{}, statuses: map[string]string{}}
	read := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool { s.read(filepath.Dir(path), n); return true })
		return nil
	}
	all := os.DirFS(root)
	return s, errors.Join(fs.WalkDir(all, "actors", read), fs.WalkDir(all, "httpedge", read))
})

func sourceOf(t *testing.T) *source {
	t.Helper()
	s, err := readSource()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lookupErrors returns "code status" of the codes of lookups: all but those of OAuth.
func lookupErrors(t *testing.T) []string {
	s := sourceOf(t)
	var lines []string
	for folder, codes := range s.codes {
		for name, code := range codes {
			if folder != "actors/oauth" {
				lines = append(lines, code+" "+s.statuses[name])
			}
		}
	}
	return lines
}

// reasons are those of lookup errors; "" stands for none.
func reasons(t *testing.T) []string {
	return slices.DeleteFunc(enum(t, "schemas", "LookupError", "properties", "reason"),
		func(reason string) bool { return reason == "" })
}

func problems(t *testing.T) []string { return sourceOf(t).problems }

func oauthErrors(t *testing.T) []string {
	var codes []string
	for _, code := range sourceOf(t).codes["actors/oauth"] {
		codes = append(codes, code)
	}
	return codes
}

func profileErrors(t *testing.T) []string {
	return append([]string{"none, message alone 401"}, sourceOf(t).profiles...)
}

// adminErrors returns "code status" of the errors of the admin API. The zero value of adminProblem
// is invalid_request.
func adminErrors(t *testing.T) []string { return append(sourceOf(t).admin, "invalid_request 400") }

func (s *source) read(folder string, n ast.Node) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if len(n.Values) != 1 {
			return
		}
		if lastName(n.Type) == "Code" {
			if s.codes[folder] == nil {
				s.codes[folder] = map[string]string{}
			}
			s.codes[folder][n.Names[0].Name] = text(n.Values[0])
		}
	case *ast.CaseClause:
		s.readStatus(n)
	case *ast.CallExpr:
		if lastName(n.Fun) == "writeProblem" {
			s.problems = append(s.problems, text(n.Args[2])+" "+status(n.Args[1]))
		}
	case *ast.CompositeLit:
		if code := member(n, "code"); code != nil && lastName(n.Type) == "adminProblem" {
			s.admin = append(s.admin, text(code)+" "+status(member(n, "status")))
		}
	case *ast.FuncDecl:
		if n.Name.Name == "refuseAdmission" {
			ast.Inspect(n, func(n ast.Node) bool {
				if c, ok := n.(*ast.CaseClause); ok && c.List != nil {
					s.profiles = append(s.profiles, refusal(c))
				}
				return true
			})
		}
	}
}

// readStatus reads a case for codes that does nothing but return a status.
func (s *source) readStatus(c *ast.CaseClause) {
	if len(c.Body) != 1 {
		return
	}
	returned, ok := c.Body[0].(*ast.ReturnStmt)
	if !ok || len(returned.Results) != 1 {
		return
	}
	if number := status(returned.Results[0]); number != "" {
		for _, name := range c.List {
			s.statuses[lastName(name)] = number
		}
	}
}

var errorMember = regexp.MustCompile(`^\{"error":"(\w+)"`)

// refusal returns "code status" of the response that a case writes.
func refusal(c *ast.CaseClause) string {
	var code, number string
	ast.Inspect(c, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch lastName(call.Fun) {
		case "SetStatusCode":
			number = status(call.Args[0])
		case "writeRefusal":
			code = text(call.Args[1])
		case "SetBodyString":
			body := call.Args[0]
			for sum, ok := body.(*ast.BinaryExpr); ok; sum, ok = body.(*ast.BinaryExpr) {
				body = sum.X
			}
			if found := errorMember.FindStringSubmatch(text(body)); found != nil {
				code = found[1]
			}
		}
		return true
	})
	return code + " " + number
}

// member returns the value of a member of a composite literal; nil = there is none.
func member(literal *ast.CompositeLit, name string) ast.Expr {
	for _, e := range literal.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok && lastName(pair.Key) == name {
			return pair.Value
		}
	}
	return nil
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

// status returns the number of a status that is named as in net/http; "" for another expression.
func status(e ast.Expr) string {
	name := lastName(e)
	for code := 400; code < 600; code++ {
		words := strings.ReplaceAll(http.StatusText(code), " ", "")
		if words != "" && name == "Status"+words {
			return strconv.Itoa(code)
		}
	}
	return ""
}
