package pages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"gatehouse/actors/account"
	"gatehouse/actors/texts"
)

// TestAutocomplete compares each field's autocomplete attribute (HTML section
// 4.10.18.7).
func TestAutocomplete(t *testing.T) {
	for _, row := range []struct{ page, field, want string }{
		{"login", "email", "username"}, {"login", "password", "current-password"},
		{"register", "name", "name"}, {"register", "email", "username"},
		{"register", "password", "new-password"},
		{"phone", "phone_number", "tel"}, {"reset", "email", "username"},
		{"verify_registration", "code", "one-time-code"}, {"verify_phone_name", "name", "name"},
		{"verify_reset", "password", "new-password"},
		{"me_password", "current_password", "current-password"},
		{"me_password", "new_password", "new-password"},
		{"me_email", "email", "email"}, {"me_email", "current_password", "current-password"},
		{"me_phone_change", "phone_number", "tel"},
		{"me_delete", "current_password", "current-password"},
		{"me_profile", "name", "name"}, {"me_profile", "username", "nickname"}, {"me_profile", "gender", "sex"},
		{"me_profile", "date_of_birth", "bday"},
		{"me_profile", "address", "street-address"}, {"me_profile", "profile_picture", "photo"},
	} {
		field := named(nodes(t, render(t, all[row.page])), row.field)
		if field == nil || attr(field, "autocomplete") != row.want ||
			attr(field, "id") != row.field {
			t.Errorf("%s: got field %s %v, want it with its name as id and autocomplete=%q",
				row.page, row.field, field, row.want)
		}
	}
}

func named(all []*html.Node, name string) *html.Node {
	for _, n := range all {
		if attr(n, "name") == name && n.Data != "meta" {
			return n
		}
	}
	return nil
}

// TestFormsHaveTokensAndNoSecrets looks at the forms of every page.
func TestFormsHaveTokensAndNoSecrets(t *testing.T) {
	for name, p := range all {
		for _, n := range nodes(t, render(t, p)) {
			// One without an action chooses the language, and one that gets or searches changes nothing.
			if n.Data == "form" && attr(n, "action") != "" && has(n, "method") &&
				attr(n, "method") != "get" && attr(n, "role") != "search" {
				if token := formToken(n); token == nil || attr(token, "value") == "" ||
					attr(n, "method") != "post" {
					t.Errorf("%s: got a form to %q without post or an anti-forgery token", name,
						attr(n, "action"))
				}
			}
			if (attr(n, "type") == "password" || attr(n, "name") == "code" && name != "verify_phone_again" && name != "verify_phone_name") && has(n, "value") {
				t.Errorf("%s: got a value in %s, want none to come back", name, attr(n, "name"))
			}
			if index := attr(n, "tabindex"); index != "" && index != "-1" {
				t.Errorf("%s: got tabindex=%s, want the order of the page", name, index)
			}
		}
	}
}

// formToken returns the field with the anti-forgery token. A sealed challenge is one as well.
func formToken(form *html.Node) *html.Node {
	for n := range form.Descendants() {
		if name := attr(n, "name"); (name == "form_token" || name == "challenge") && attr(n, "type") == "hidden" {
			return n
		}
	}
	return nil
}

// TestProblemsHaveTheFocus wants a problem of the whole form first and focused, else the first wrong
// field, and each problem once.
func TestProblemsHaveTheFocus(t *testing.T) {
	for name, p := range all {
		if !strings.HasSuffix(name, "_again") {
			continue
		}
		elements := nodes(t, render(t, p))
		find := func(is func(*html.Node) bool) int { return slices.IndexFunc(elements, is) }
		first := find(func(n *html.Node) bool {
			return attr(n, "class") == "summary" || attr(n, "aria-invalid") == "true"
		})
		if summary := find(func(n *html.Node) bool { return attr(n, "class") == "summary" }); summary >= 0 {
			first = summary
		}
		focused := slices.DeleteFunc(slices.Clone(elements), func(n *html.Node) bool {
			return !has(n, "autofocus")
		})
		if first < 0 || len(focused) != 1 || focused[0] != elements[first] {
			t.Errorf("%s: got %d focused, want the first problem alone", name, len(focused))
		}
		seen := map[string]bool{}
		for _, n := range elements {
			if attr(n, "class") == "wrong" {
				if seen[attr(n, "id")] {
					t.Errorf("%s: got the problem %s more than once", name, attr(n, "id"))
				}
				seen[attr(n, "id")] = true
			}
		}
		title := slices.IndexFunc(elements, func(n *html.Node) bool { return n.Data == "title" })
		if text := elements[title].FirstChild.Data; !strings.HasPrefix(text, "Error: ") {
			t.Errorf("%s: got title %q, want it to begin with Error", name, text)
		}
	}
}

// TestHeadingsAreInOrder wants one first heading, and no level left out.
func TestHeadingsAreInOrder(t *testing.T) {
	for name, p := range all {
		var levels []int
		for _, n := range nodes(t, render(t, p)) {
			if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data != "hr" {
				level, err := strconv.Atoi(n.Data[1:])
				if err != nil {
					t.Fatal(err)
				}
				if len(levels) > 0 && (level == 1 || level > levels[len(levels)-1]+1) {
					t.Errorf("%s: got heading %d after %v", name, level, levels)
				}
				levels = append(levels, level)
			}
		}
		if len(levels) == 0 || levels[0] != 1 {
			t.Errorf("%s: got headings %v, want the first of level 1", name, levels)
		}
	}
}

// TestStyleSheetFollowsPreferences reads the one style sheet: colours by preference, and nothing
// that moves.
func TestStyleSheetFollowsPreferences(t *testing.T) {
	text, err := os.ReadFile("style.css")
	if err != nil {
		t.Fatal(err)
	}
	style := string(text)
	for _, want := range []string{"color-scheme:light dark", "(prefers-color-scheme:dark)",
		"(prefers-contrast:more)", "(forced-colors:active)", ":focus-visible{outline:"} {
		if !strings.Contains(style, want) {
			t.Errorf("got a style sheet without %s", want)
		}
	}
	if motion := regexp.MustCompile(
		`transition|animation|scroll-behavior|@keyframes`).FindString(style); motion != "" {
		t.Errorf("got %s in the style sheet, want nothing that moves", motion)
	}
	if physical := regexp.MustCompile(`(left|right)\b`).FindString(style); physical != "" {
		t.Errorf("got %s in the style sheet, want logical properties, which mirror pages from right to left",
			physical)
	}
	if foreign := regexp.MustCompile(`url\(|@import|@font-face|https?:`).FindString(
		style); foreign != "" {
		t.Errorf("got %s in the style sheet, want nothing from elsewhere", foreign)
	}
}

// TestPagesStateTheRules compares what the pages promise with the rules about accounts.
func TestPagesStateTheRules(t *testing.T) {
	password := fmt.Sprintf("At least %d characters.", account.MinPassword)
	code := fmt.Sprintf("It expires in %d minutes.", int(account.CodeLifetime.Minutes()))
	for name, want := range map[string]string{"register": password, "verify_reset": password,
		"me_password": password, "verify_registration": code, "verify_phone": code} {
		got := render(t, all[name])
		if !strings.Contains(string(got), want) {
			t.Errorf("%s: got a page without %q", name, want)
		}
		for _, n := range nodes(t, got) {
			if attr(n, "autocomplete") == "new-password" &&
				attr(n, "minlength") != strconv.Itoa(account.MinPassword) {
				t.Errorf("%s: got minlength=%q, want %d", name, attr(n, "minlength"),
					account.MinPassword)
			}
		}
	}
}

// textKey matches a text in a template.
var textKey = regexp.MustCompile(`\b(?:t|plain) "([a-z_]+\.[a-z_]+)"`)

// TestTextsOfTemplatesExist: the key of a text that is missing would be shown to people.
func TestTextsOfTemplatesExist(t *testing.T) {
	files, err := filepath.Glob("*.html")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, error %v, want the templates", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range textKey.FindAllSubmatch(text, -1) {
			if got := languages.Of("en").Plain(texts.Of(string(key[1]))); got == string(key[1]) {
				t.Errorf("%s: got no text %s, want one", name, key[1])
			}
		}
	}
}
