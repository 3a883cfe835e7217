package pages_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"gatehouse/httpedge/pages"
)

var update = flag.Bool("update", false, "write the golden files anew")

type page interface{ Render() ([]byte, error) }

// hostile is what somebody could call himself or his program.
const hostile = `</title><script>alert(1)</script>" onfocus="x" ' {{.}} &amp; ` + "\u202egnp\u202c `"

var (
	rosa  = pages.Account{ID: 7, Name: "Rosa Liebermann", Address: "rosa@example.com"}
	kofi  = pages.Account{ID: 9007199254740991, Name: "Kofi", Address: "+4915112345678"}
	rogue = pages.Account{ID: 8, Name: hostile, Address: hostile}
)

var all = map[string]page{
	"login":       pages.Login{Client: "Atlas", Action: "/login?client_id=a&state=%26%3D+x", FormToken: "token"},
	"login_again": pages.Login{Action: "/login", FormToken: "token", Email: "rosa@example.com", Problems: []pages.Problem{{Field: "email", Text: "Enter your email address."}, {Field: "password", Text: "Enter your password."}, {Text: "Wrong."}}},
	"login_hostile": pages.Login{Client: hostile, Action: "/login?state=" + `%22%3E%3Cscript%3E`, FormToken: hostile, Email: hostile,
		Problems: []pages.Problem{{Field: "email", Text: hostile}}},
	"accounts":         pages.Accounts{Client: "Atlas", Action: "/accounts?client_id=a", FormToken: "token", Accounts: []pages.Account{rosa, kofi}, Another: "/login?client_id=a"},
	"accounts_shown":   pages.Accounts{Accounts: []pages.Account{rosa, {ID: 9, Name: "Without address"}}, Another: "/login"},
	"accounts_none":    pages.Accounts{Another: "/login"},
	"accounts_hostile": pages.Accounts{Client: hostile, Action: "/accounts", FormToken: hostile, Accounts: []pages.Account{rogue}, Another: "/login", Problems: []pages.Problem{{Text: hostile}}},
	"consent":          pages.Consent{Client: "Atlas", Account: rosa, Permissions: []pages.Permission{{Text: "see your name"}, {Text: "see your address", Granted: true}}, Destination: "https://atlas.example", Action: "/consent?client_id=a", FormToken: "token", Another: "/accounts?client_id=a"},
	"consent_nothing":  pages.Consent{Client: "Atlas", Account: kofi, Destination: "com.example.atlas", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_hostile":  pages.Consent{Client: hostile, Account: rogue, Permissions: []pages.Permission{{Text: hostile}}, Destination: hostile, Action: "/consent", FormToken: hostile, Another: "/accounts", Problems: []pages.Problem{{Text: hostile}}},
	"logout":           pages.Logout{Accounts: []pages.Account{rosa}, FormToken: "token"},
	"logout_none":      pages.Logout{},
	"message":          pages.Message{Title: "This request cannot be served", Text: "The client is unknown.", Advice: "Go back.", Reference: "abc", Link: "/login", LinkText: "Sign in"},
	"message_hostile":  pages.Message{Title: hostile, Text: hostile},
}

func TestGolden(t *testing.T) {
	for name, p := range all {
		got := render(t, p)
		path := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got another page than %s (-update writes it anew):\n%s", name, path, got)
		}
	}
}

func TestPagesAreSmallAndStandAlone(t *testing.T) {
	foreign := regexp.MustCompile(`(?i)<(script|img|link|iframe|object|embed|base|svg|video)\b|[\s"']on\w+=|javascript:|@import|url\(`)
	for name, p := range all {
		got := render(t, p)
		if len(got) >= 20<<10 {
			t.Errorf("%s: got %d bytes, want less than 20 KiB", name, len(got))
		}
		for _, n := range nodes(t, got) {
			if foreign.MatchString("<" + n.Data + " ") {
				t.Errorf("%s: got element %s, want none of its kind", name, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || (a.Key == "href" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("%s: got attribute %s=%q, want none such", name, a.Key, a.Val)
				}
			}
		}
	}
}

func TestFieldsHaveLabelsAndProblemsPointAtThem(t *testing.T) {
	for name, p := range all {
		ids, labels, targets := map[string]bool{}, map[string]bool{}, []string{}
		var inputs []string
		for _, n := range nodes(t, render(t, p)) {
			if id := attr(n, "id"); id != "" {
				if ids[id] {
					t.Errorf("%s: got id %q twice", name, id)
				}
				ids[id] = true
			}
			switch {
			case n.Data == "label":
				labels[attr(n, "for")] = true
			case n.Data == "input" && attr(n, "type") != "hidden":
				inputs = append(inputs, attr(n, "id"))
				if by := attr(n, "aria-describedby"); by != "" {
					targets = append(targets, by)
				}
			case n.Data == "a" && strings.HasPrefix(attr(n, "href"), "#"):
				targets = append(targets, attr(n, "href")[1:])
			}
		}
		for _, id := range inputs {
			if !labels[id] {
				t.Errorf("%s: got input %q without a label", name, id)
			}
		}
		for _, id := range targets {
			if !ids[id] {
				t.Errorf("%s: got a reference to %q, which is not there", name, id)
			}
		}
	}
}

func TestWhatComesFromOutsideIsText(t *testing.T) {
	for name, p := range all {
		if !strings.HasSuffix(name, "_hostile") {
			continue
		}
		found := false
		for _, n := range nodes(t, render(t, p)) {
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				found = found || c.Type == html.TextNode && c.Data == hostile
			}
		}
		if !found {
			t.Errorf("%s: got no node with exactly the hostile text", name)
		}
	}
}

func TestStyleSourceIsTheHashOfTheStyleSheet(t *testing.T) {
	for name, p := range all {
		_, rest, _ := strings.Cut(string(render(t, p)), "<style>")
		style, _, _ := strings.Cut(rest, "</style>")
		sum := sha256.Sum256([]byte(style))
		if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; pages.StyleSource != want {
			t.Errorf("%s: got style source %s, want %s", name, pages.StyleSource, want)
		}
	}
}

func render(t *testing.T, p page) []byte {
	t.Helper()
	got, err := p.Render()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func nodes(t *testing.T, source []byte) []*html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	var found []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			found = append(found, n)
		}
	}
	return found
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
