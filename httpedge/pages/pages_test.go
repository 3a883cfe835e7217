package pages_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/pages"
)

func TestPagesAreSmallAndSelfContained(t *testing.T) {
	foreign := regexp.MustCompile(
		`(?i)<(iframe|object|embed|base|video|use|image|foreignobject)\b|[\s"']on\w+=|javascript:|@import|url\(`)
	for name, p := range all {
		got := render(t, p)
		if len(got) >= 20<<10 {
			t.Errorf("%s: got %d bytes, want less than 20 KiB", name, len(got))
		}
		for _, n := range nodes(t, got) {
			if n.Data == "script" && scriptIsOurs(p, n) {
				continue
			}
			qr := n.Data == "svg" && strings.HasPrefix(name, "me_app") // the QR code of a key
			if foreign.MatchString("<"+n.Data+" ") && !qr {
				t.Errorf("%s: got element %s, want none of its kind", name, n.Data)
			}
			if n.Data == "script" { // the one that every policy allows
				sum := sha256.Sum256([]byte(n.FirstChild.Data))
				if source := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; source != pages.ScriptSource {
					t.Errorf("%s: got a script of the source %s, want %s", name, source, pages.ScriptSource)
				}
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" ||
					a.Key == "src" && !strings.HasPrefix(a.Val, pages.PathLogo+"?v=") && a.Val != atlasLogo || leadsAway(n, a) {
					t.Errorf("%s: got attribute %s=%q, want none such", name, a.Key, a.Val)
				}
			}
		}
	}
}

// scriptIsOurs reports whether a script is that of passkeys, on a page that says so.
func scriptIsOurs(p page, script *html.Node) bool {
	scripted, ok := p.(interface{ Scripted() bool })
	if !ok || !scripted.Scripted() || script.FirstChild == nil {
		return false
	}
	sum := sha256.Sum256([]byte(script.FirstChild.Data))
	return pages.PasskeySource == "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'"
}

// leadsAway reports whether an attribute leads to another origin, other than a link back to a client,
// or to a client's site in a tab of its own that learns nothing of this page.
func leadsAway(n *html.Node, a html.Attribute) bool {
	if a.Key != "href" && a.Key != "action" || strings.HasPrefix(a.Val, "/") ||
		strings.HasPrefix(a.Val, "#") {
		return false
	}
	if slices.Contains([]string{"https://atlas.example/terms", "https://atlas.example/privacy",
		"mailto:help@atlas.example"}, a.Val) {
		return false // the operator's own
	}
	if n.Data == "a" && (attr(n, "rel") == "noreferrer" ||
		strings.HasPrefix(a.Val, "otpauth://totp/")) { // which opens an app of the device
		return false
	}
	return n.Data != "a" || attr(n, "target") != "_blank" ||
		attr(n, "rel") != "noopener noreferrer" || !strings.HasPrefix(a.Val, "https://")
}

func TestFieldsHaveLabels(t *testing.T) {
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
			case (n.Data == "input" || n.Data == "textarea") && attr(n, "type") != "hidden" &&
				!has(n, "hidden"):
				inputs = append(inputs, attr(n, "id"))
				if by := attr(n, "aria-describedby"); by != "" {
					targets = append(targets, strings.Fields(by)...)
				}
			case attr(n, "aria-labelledby") != "":
				targets = append(targets, attr(n, "aria-labelledby"))
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

func TestStyleSourceIsTheHashOfTheStyleSheet(t *testing.T) {
	for name, p := range all {
		want := plain.StyleSource()
		if _, ok := p.(branded); ok {
			want = atlas.StyleSource()
		}
		_, rest, _ := strings.Cut(string(render(t, p)), "<style>")
		style, _, _ := strings.Cut(rest, "</style>")
		sum := sha256.Sum256([]byte(style))
		if got := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; got != want {
			t.Errorf("%s: got a style sheet of the source %s, want %s", name, got, want)
		}
	}
}

func render(t *testing.T, p page) []byte {
	t.Helper()
	got, err := p.Render(plain)
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

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// TestPermissionsAreGrouped puts permissions below headings if they are about several things.
func TestPermissionsAreGrouped(t *testing.T) {
	resources := pages.ResourcePermissions([]oauth.Reach{{Place: "notes.example", Texts: []string{"read your notes"}}}, nil)
	for name, row := range map[string]struct {
		permissions []pages.Permission
		want        []int // permissions of each group
	}{
		"nothing":   {nil, nil},
		"person":    {pages.Permissions(oauth.OpenID|oauth.Profile|oauth.Email, 0), []int{3}},
		"away":      {pages.Permissions(oauth.OpenID|oauth.OfflineAccess|oauth.Email, 0), []int{2, 1}},
		"resources": {append(pages.Permissions(oauth.GrantableScopes, 0), resources...), []int{8, 1, 1}},
	} {
		for _, groups := range [][]pages.PermissionGroup{
			pages.Consent{Permissions: row.permissions}.Groups(), pages.Device{Permissions: row.permissions}.Groups(),
		} {
			var got []int
			for _, g := range groups {
				got = append(got, len(g.Permissions))
				if (g.About == "") != (len(row.want) == 1) {
					t.Errorf("%s: got the heading %q of one of %d groups", name, g.About, len(groups))
				}
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("%s: got groups of %v, want %v", name, got, row.want)
			}
		}
	}
}
