package pages_test

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
)

// kinds is one value of every struct that is a page.
var kinds = []page{
	pages.Login{}, pages.Register{}, pages.Phone{}, pages.Reset{}, pages.Accounts{},
	pages.Consent{}, pages.Logout{}, pages.EndSession{}, pages.Me{}, pages.MeApps{}, pages.MeSessions{}, pages.MePassword{},
	pages.MeConfirm{}, pages.MeConnections{}, pages.Connect{}, pages.Link{}, pages.MeAddress{Channel: "email"}, pages.MeAddress{Channel: "phone"}, pages.MeDelete{},
	pages.Message{}, pages.PasskeyOffer{}, pages.MePasskeys{}, pages.MePasskeyAdd{},
	pages.Verify{Kind: pages.VerifyRegistration}, pages.Verify{Kind: pages.VerifyPhone},
	pages.Verify{Kind: pages.VerifyReset},
	pages.Verify{Kind: pages.VerifyEmailChange}, pages.Verify{Kind: pages.VerifyPhoneChange},
}

// attacks are texts that would do harm if they were not taken for text where they stand.
var attacks = []string{
	hostile,
	`javascript:alert(1)`,
	` JaVaScRiPt:alert(1)`,
	"java\tscript:alert(1)",
	`data:text/html,<script>alert(1)</script>`,
	`vbscript:msgbox(1)`,
	`https://client.example/"><script>alert(1)</script>`,
	`https://client.example/' onmouseover='alert(1)`,
	`</style><style>*{display:none}</style>`,
	`--><img src=x onerror=alert(1)>`,
	`</textarea></button></form><form action=https://evil.example>`,
	"\x00<b>\xff\xfe",
}

// TestFieldsAreEscaped puts hostile text in every string of every page, and expects the
// elements and attributes of the same page with harmless text, and nothing that runs.
func TestFieldsAreEscaped(t *testing.T) {
	for _, kind := range kinds {
		if missing := unset(reflect.ValueOf(fill(kind, "x"))); missing != "" {
			t.Fatalf("%T: got field %s empty, want it filled", kind, missing)
		}
		for _, attack := range attacks {
			harmless := "x"
			if strings.HasPrefix(attack, "https:") {
				harmless = "https://client.example/"
			}
			got, want := render(t, fill(kind, attack)), render(t, fill(kind, harmless))
			if got, want := skeleton(t, got), skeleton(t, want); !slices.Equal(got, want) {
				t.Errorf("%T with %q: got elements\n%q, want\n%q", kind, attack, got, want)
			}
			for _, n := range nodes(t, got) {
				for _, a := range n.Attr {
					if (a.Key == "href" || a.Key == "action") && !leadsToPage(a.Val) {
						t.Errorf("%T with %q: got %s=%q, want no such link", kind, attack, a.Key,
							a.Val)
					}
				}
			}
		}
	}
}

// leadsToPage reports whether a browser takes a link for one to a page, here or elsewhere, and not
// for something to run. It does not see tabs and line ends in links, nor spaces around them (WHATWG
// URL section 4.4).
func leadsToPage(link string) bool {
	u, err := url.Parse(strings.TrimSpace(
		strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(link)))
	return err == nil && (u.Scheme == "" || u.Scheme == "https")
}

// TestForeignTextIsShown finds a text of one's own as it was given, in every page that has
// one.
func TestForeignTextIsShown(t *testing.T) {
	for _, kind := range kinds {
		found := false
		for _, n := range nodes(t, render(t, fill(kind, hostile))) {
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				found = found || c.Type == html.TextNode && c.Data == hostile
			}
		}
		if !found {
			t.Errorf("%T: got no node with exactly the hostile text", kind)
		}
	}
}

// fill returns a copy of kind with text in every string but Channel, true in every boolean, one in
// every number but Kind, and two elements in every list.
func fill(kind page, text string) page {
	v := reflect.New(reflect.TypeOf(kind)).Elem()
	v.Set(reflect.ValueOf(kind))
	fillValue(v, text)
	return v.Interface().(page)
}

func fillValue(v reflect.Value, text string) {
	if v.Type() == reflect.TypeFor[texts.Text]() {
		v.Set(reflect.ValueOf(texts.Literal(text)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.Name != "Kind" && field.Name != "Channel" {
				fillValue(value, text)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillValue(v.Index(i), text)
		}
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	default:
		panic(fmt.Sprintf("no text for a %s", v.Type()))
	}
}

// unset returns the name of a field that is not set, or "".
func unset(v reflect.Value) string {
	for field, value := range v.Fields() {
		if value.IsZero() && field.Name != "Kind" {
			if field.Name == "Channel" {
				continue
			}
			return field.Name
		}
	}
	return ""
}

// skeleton returns a page's elements, each with the names of its attributes, in their order.
func skeleton(t *testing.T, source []byte) []string {
	t.Helper()
	var all []string
	for _, n := range nodes(t, source) {
		element := n.Data
		for _, a := range n.Attr {
			element += " " + a.Key
		}
		all = append(all, element)
	}
	return all
}
