package texts_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/BurntSushi/toml"

	"gatehouse/actors/texts"
)

// all are the languages with drafts. Load has compared every text of each with the English one: its
// slots, its links and its plural forms.
func all(t *testing.T) *texts.Set {
	t.Helper()
	set, err := texts.Load(texts.Options{Drafts: true})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestHTMLEscapesWhatComesFromOutside(t *testing.T) {
	set, err := texts.Load(texts.Options{Dir: fstest.MapFS{"en.toml": {Data: []byte(
		"[consent]\nheading = \"<script>\\\"{client}\"\n[history]\nlead = \"[<b>]\"\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	en := set.Initial()
	got := string(en.HTML(texts.Of("consent.heading", "client", "<i>&"), ""))
	if want := "&lt;script&gt;&#34;<bdi>&lt;i&gt;&amp;</bdi>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got = string(en.HTML(texts.Of("history.lead"), "/me?a&b"))
	if want := `<a href="/me?a&amp;b">&lt;b&gt;</a>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestBadFilesAreRefused expects a line that names the file, the key and what to do.
func TestBadFilesAreRefused(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"en.toml", "[login]\nheading = ", "en.toml: is not TOML"},
		{"en.toml", "[login]\nheading = 1", "login.heading: must be a text"},
		{"en.toml", "[login]\nheadding = \"x\"", "login.headding: is no key"},
		{"en.toml", "[login]\nheading = \"\"", "login.heading: must not be empty"},
		{"en.toml", "[login]\nheading = \"{x}\"", "login.heading: must have no {slot}"},
		{"en.toml", "[login]\nheading = \"**x\"", "login.heading: must close"},
		{"en.toml", "[sms]\ncode = \"{service} {n}\"", "sms.code: must have {code} {n} {service}"},
		{"en.toml", "[wait]\nhours = { other = \"{n} h\" }", `wait.hours: needs the form "one"`},
		{"en.toml", "[language]\ndirection = \"up\"", "must be ltr or rtl"},
		{"xx-.toml", "", "the file's name must be a language"},
		{"it.toml", "[login]\nheading = \"Accedi\"", "it.toml: needs language.name"},
		{"texts.txt", "", "has no file"},
	} {
		_, err := texts.Load(texts.Options{Dir: fstest.MapFS{row.name: {Data: []byte(row.text)}}})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: got %v, want a line with %q", row.name, row.text, err, row.want)
		}
	}
	_, err := texts.Load(texts.Options{Initial: "it"})
	if err == nil || !strings.Contains(err.Error(), "must be one of en") {
		t.Errorf("got %v, want the languages that there are", err)
	}
}

func TestMatch(t *testing.T) {
	set := all(t)
	for preferred, want := range map[string]string{
		"de-AT,en;q=0.5": "de", "en-GB": "en", "da;q=0.9, de;q=0.8": "de", "de en": "de",
		"da": "", "": "", "*": "", ";;;": "", strings.Repeat("x", 5000): "",
	} {
		got := ""
		if l := set.Match(preferred); l != nil {
			got = l.Tag
		}
		if got != want {
			t.Errorf("%.40q: got %q, want %q", preferred, got, want)
		}
	}
}

// TestDates compares with the forms of CLDR.
func TestDates(t *testing.T) {
	at := time.Date(2026, time.March, 1, 9, 4, 0, 0, time.UTC)
	want := map[string]string{"en": "1 March 2026", "de": "1. März 2026", "fr": "1 mars 2026",
		"es": "1 de marzo de 2026", "pt-BR": "1 de março de 2026", "id": "1 Maret 2026",
		"ar": "1 مارس 2026", "ja": "2026年3月1日"}
	for _, l := range all(t).All() {
		if got := l.Plain(texts.Day(at)); got != want[l.Tag] {
			t.Errorf("%s: got %q, want %q", l.Tag, got, want[l.Tag])
		}
		if got := l.Plain(texts.Moment(at)); !strings.Contains(got, want[l.Tag]) ||
			!strings.Contains(got, "09:04") {
			t.Errorf("%s: got %q, want the day and the time", l.Tag, got)
		}
	}
}

func TestPlurals(t *testing.T) {
	now := time.Date(2026, time.March, 1, 9, 4, 0, 0, time.UTC)
	en := all(t).Initial()
	for age, want := range map[time.Duration]string{0: "just now", 119 * time.Second: "just now",
		2 * time.Minute: "2 minutes ago", time.Hour: "an hour ago", 2 * time.Hour: "2 hours ago",
		24 * time.Hour: "a day ago", 6 * 24 * time.Hour: "6 days ago",
		7 * 24 * time.Hour: "22 February 2026"} {
		if got := en.Plain(texts.Ago(now.Add(-age), now)); got != want {
			t.Errorf("%v: got %q, want %q", age, got, want)
		}
	}
	for seconds, want := range map[int]string{1: "1 second", 120: "120 seconds", 121: "3 minutes",
		7200: "120 minutes", 7201: "3 hours"} {
		if got := en.Plain(texts.Wait(seconds)); got != want {
			t.Errorf("%d: got %q, want %q", seconds, got, want)
		}
	}
	list := []texts.Text{texts.Literal("a"), texts.Literal("b"), texts.Literal("c")}
	for n, want := range []string{"", "a", "a and b", "a, b and c"} {
		if got := en.Plain(texts.List(list[:n])); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

// TestLanguagesAreWhole finds texts for people that a language does not have, or has in English.
func TestLanguagesAreWhole(t *testing.T) {
	read := func(name string) (file map[string]map[string]any) {
		t.Helper()
		if _, err := toml.DecodeFile("languages/"+name, &file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	english, operators := read("en.toml"), []string{"console", "trail"}
	for _, name := range []string{"ar.toml", "de.toml", "es.toml", "fr.toml", "id.toml", "ja.toml", "pt-BR.toml"} {
		file := read(name)
		isDraft := name == "ar.toml" || name == "ja.toml"
		for group, all := range english {
			if isDraft && slices.Contains(operators, group) {
				continue
			}
			for key, text := range all {
				own, ok := file[group][key]
				words, isText := text.(string)
				if !ok || isText && own == text && strings.Count(words, " ") > 2 {
					t.Errorf("%s: got %v for %s.%s, want a text of that language", name, own, group, key)
				}
			}
		}
	}
}
