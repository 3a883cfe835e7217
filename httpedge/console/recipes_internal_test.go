package console

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page has the recipes: a heading of the third level for each program.
const page = "../../docs/apps.md"

// left are the recipes that the console has not: their apps may introspect every token, or need a file
// that declares more than an app.
var left = []string{"MCP server", "Apache as an API", "Roles in a Go API"}

var (
	create = regexp.MustCompile(`(?m)^bin/gatehouse client create((?:.*\\\n)*.*)$`)
	word   = regexp.MustCompile(`"([^"]*)"|(\S+)`)
)

// TestRecipesAreThoseOfTheHandbook compares each recipe with the flags of its command.
func TestRecipesAreThoseOfTheHandbook(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Connect your app\n")
	section, _, _ = strings.Cut(section, "\n## ")
	known := map[string]bool{}
	for _, part := range strings.Split(section, "\n### ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		if slices.Contains(left, name) {
			continue
		}
		command := create.FindStringSubmatch(body)
		r := recipeOf(name)
		if r == nil || command == nil {
			t.Errorf("%s: got recipe %v and command %q, want both", name, r, command)
			continue
		}
		known[name] = true
		want := fieldsOfFlags(t, name, command[1])
		got := fieldsOf(&r.client)
		if name == "openid-client with a key" { // which the person has to enter
			delete(want, "jwks")
		}
		maps.DeleteFunc(got, func(_, text string) bool { return text == "" })
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for _, r := range recipes {
		if !known[r.name] {
			t.Errorf("got a recipe for %q, want those of %s only", r.name, page)
		}
	}
}

// fieldsOfFlags returns the fields of a form that says what the flags of client create say.
func fieldsOfFlags(t *testing.T, name, flags string) map[string]string {
	t.Helper()
	fields := map[string]string{"scopes": "view-user"}
	var grants, words []string
	for _, found := range word.FindAllStringSubmatch(strings.ReplaceAll(flags, "\\\n", " "), -1) {
		words = append(words, found[1]+found[2])
	}
	values := map[string]string{"--name": "name", "--scope": "scopes", "--redirect-uri": "redirect_uris",
		"--post-logout-redirect-uri": "post_logout_redirect_uris",
		"--backchannel-logout-uri":   "backchannel_logout_uri", "--jwks": "jwks"}
	ticked := map[string]string{"--public": "public", "--require-pkce": "require_pkce",
		"--claims-in-id-token": "claims_in_id_token"}
	for i := 0; i < len(words); i++ {
		switch flag := words[i]; {
		case flag == "--demo":
			i++
		case flag == "--grant":
			i++
			grants = append(grants, words[i])
		case flag == "--access-token-format" && words[i+1] == "jwt":
			i++
			fields["jwt_access_tokens"] = "true"
		case values[flag] != "":
			i++
			fields[values[flag]] = words[i]
		case ticked[flag] != "":
			fields[ticked[flag]] = "true"
		default:
			t.Errorf("%s: got flag %q, which no field of the console stands for", name, flag)
		}
	}
	if grants == nil {
		grants = []string{"authorization_code", "refresh_token"}
	}
	fields["grants"] = strings.Join(grants, "\n")
	maps.DeleteFunc(fields, func(_, text string) bool { return text == "" })
	return fields
}
