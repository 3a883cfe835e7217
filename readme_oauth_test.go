package gatehouse_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

// TestReadmeOAuthErrors compares the table of OAuth errors with the source: the codes, and their statuses where the
// table gives one.
func TestReadmeOAuthErrors(t *testing.T) {
	source := readSource(t, "actors/oauth")
	var want []string
	for _, code := range source.codes {
		want = append(want, code)
	}
	slices.Sort(want)
	var got []string
	for _, row := range readTable(t, "OAuth error", "Status", "By redirect", "When") {
		code := plain(row[0])
		got = append(got, code)
		status := strconv.Itoa((&oauth.Error{Code: oauth.Code(code)}).Status())
		if row[1] != status && row[1] != "none" {
			t.Errorf("%s: got status %s, want %s", code, row[1], status)
		}
		if row[1] == "none" && row[2] == "no" {
			t.Errorf("%s: got an error that nobody is told, want a status or a redirect", code)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got OAuth errors %q, want %q", got, want)
	}
}

var errorMember = regexp.MustCompile(`^\{"error":"(\w+)"`)

// TestReadmeProfileErrors compares the table of errors of the profiles with the function that answers them.
func TestReadmeProfileErrors(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "httpedge/userinfo.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"none, message alone 401"}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok && f.Name.Name != "refuseAdmission" {
			return false
		}
		if c, ok := n.(*ast.CaseClause); ok && c.List != nil {
			want = append(want, refusal(c))
		}
		return true
	})
	var got []string
	for _, row := range readTable(t, "Profile error", "Status", "When") {
		got = append(got, plain(row[0])+" "+row[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got errors of profiles %q, want %q", got, want)
	}
}

// refusal returns "code status" of the answer that a case gives.
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
			code = errorCode(call.Args[0])
		}
		return true
	})
	return code + " " + number
}

// errorCode returns the code at the beginning of a body that is a literal or a sum of them.
func errorCode(body ast.Expr) string {
	for {
		sum, ok := body.(*ast.BinaryExpr)
		if !ok {
			break
		}
		body = sum.X
	}
	if found := errorMember.FindStringSubmatch(text(body)); found != nil {
		return found[1]
	}
	return ""
}

// TestReadmeScopesAndLifetimes compares the tables of scopes and lifetimes with the program's own.
func TestReadmeScopesAndLifetimes(t *testing.T) {
	var scopes []string
	for _, row := range readTable(t, "Scope", "What it is for") {
		scopes = append(scopes, plain(row[0]))
	}
	if want := (oauth.UserScopes | oauth.ServerOperations).String(); strings.Join(scopes, " ") != want {
		t.Errorf("got scopes %q, want %q", scopes, want)
	}
	defaults := map[string]string{}
	for _, row := range readTable(t, "Flag", "Variable", "Default", "Meaning") {
		if strings.HasSuffix(plain(row[1]), "_TTL") || plain(row[1]) == "GATEHOUSE_REFRESH_GRACE" {
			defaults[plain(row[1])] = plain(row[2])
		}
	}
	for _, row := range readTable(t, "What lasts", "How long", "Setting") {
		got, _, _ := strings.Cut(row[1], " ")
		if want := defaults[plain(row[2])]; got != want {
			t.Errorf("%s: got %s, want %s", row[0], got, want)
		}
		delete(defaults, plain(row[2]))
	}
	if len(defaults) > 0 {
		t.Errorf("got no lifetimes for %v, want them", defaults)
	}
}
