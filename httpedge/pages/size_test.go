package pages_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"gatehouse/httpedge/pages"
)

const most = 20 << 10 // bytes of a page

// crowded is a profile with a text about its owner.
func crowded(bio string) pages.MeProfile {
	p := rosaProfile
	p.FormToken = strings.Repeat("t", 75)
	p.Fields.Bio = bio
	return p
}

// TestProfilePageSize fills the text about a person with 2,000 characters, the most there can be.
// What is written in any language has room, and so has what HTML escapes. What was entered and is far
// too long is shown again whole, because nobody wants to lose it.
func TestProfilePageSize(t *testing.T) {
	for _, unit := range []string{"It's \"me\", 1+1=2. ", "\"", "'", "+", ">", "<", "\n", "a & b ",
		"ü", "漢", "😀", "&"} {
		bio := string([]rune(strings.Repeat(unit, 2000))[:2000])
		got := render(t, crowded(bio))
		if len(got) >= most+1<<10 || unit != "&" && len(got) >= most {
			t.Errorf("%q: got %d bytes, want less than 20 KiB", unit, len(got))
		}
		if text := areaText(t, got, "bio"); text != bio {
			t.Errorf("%q: got another text in the field: %.40q", unit, text)
		}
	}
}

// areaText returns what a browser has in the textarea of that name.
func areaText(t *testing.T, page []byte, name string) string {
	t.Helper()
	area := named(nodes(t, page), name)
	if area == nil || area.Data != "textarea" {
		t.Fatalf("got no textarea %s", name)
	}
	var text strings.Builder
	for c := area.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.TextNode {
			t.Fatalf("got a node of type %d in %s, want text alone", c.Type, name)
		}
		text.WriteString(c.Data)
	}
	return text.String()
}

// TestAllAppsArePaged goes through apps whose rows are so long that not all of a page's have room,
// forwards, and finds each once.
func TestAllAppsArePaged(t *testing.T) {
	const count, step = 40, 12
	all := apps(count)
	for i := range all {
		all[i].URI = "https://atlas.example/" + strings.Repeat("x", 1900)
	}
	var found []string
	for from, next := 0, "/me/apps?from=0"; next != ""; {
		if want := fmt.Sprintf("/me/apps?from=%d", from); next != want {
			t.Fatalf("got a link to %s, want %s", next, want)
		}
		to := min(from+step, count)
		got := render(t, pages.MeApps{Account: rosa, FormToken: "token", Connections: all[from:to],
			From: from, More: count - to, Step: step})
		if len(got) >= most {
			t.Errorf("from %d: got %d bytes, want less than 20 KiB", from, len(got))
		}
		next = ""
		before := from
		for _, n := range nodes(t, got) {
			switch {
			case attr(n, "name") == "client_id":
				found = append(found, attr(n, "value"))
				from++
			case attr(n, "rel") == "next":
				next = attr(n, "href")
			case attr(n, "rel") == "prev" &&
				attr(n, "href") != fmt.Sprintf("/me/apps?from=%d", max(0, before-step)):
				t.Errorf("from %d: got %s before it", before, attr(n, "href"))
			case n.Data == "form" && has(n, "action") && attr(n, "action") != fmt.Sprintf("/me/apps?from=%d", before):
				t.Errorf("from %d: got a form to %s, want it back here", before, attr(n, "action"))
			}
		}
		if want := fmt.Sprintf("These are %d to %d of %d, by name.", before+1, from,
			count); from == before || !strings.Contains(string(got), want) {
			t.Fatalf("got no %q: %s", want, got)
		}
	}
	if len(found) != count || found[0] != all[0].ClientID ||
		found[count-1] != all[count-1].ClientID {
		t.Errorf("got %d apps, want each of %d once", len(found), count)
	}
}

// TestTextareaKeepsLeadingNewline shows a line break at the beginning, which HTML drops
// where it is the first.
func TestTextareaKeepsLeadingNewline(t *testing.T) {
	me := rosaProfile
	me.Fields.Bio, me.Fields.Address = "\n\nlate", "&lt;b&gt; &amp &#60; </textarea>"
	for name, want := range map[string]string{"bio": me.Fields.Bio, "address": me.Fields.Address} {
		if got := areaText(t, render(t, me), name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
