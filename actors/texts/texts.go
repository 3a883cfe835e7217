// Package texts holds what people read on pages and in messages, in every language: one catalogue
// a language, whose keys say the purpose of a sentence. It writes texts as HTML or plain, with the
// plurals, lists and dates of the language.
package texts

import (
	"html/template"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// Text is a sentence that is not written yet: a key, and the names and values of its slots in turn.
// nil is no text. A value is a string, which comes from outside, a number, or another text. The
// number n chooses the plural form.
type Text []any

// literal is a text that stands for itself, in no language of ours.
type literal string

// Of returns the text of a key.
func Of(key string, slots ...any) Text { return append(Text{key}, slots...) }

// Literal returns a text that is the same in every language.
func Literal(text string) Text { return Text{literal(text)} }

// List returns a text that joins texts, as in "a, b and c"; nil = no texts.
func List(all []Text) Text {
	if len(all) < 2 {
		return append(Text(nil), first(all)...)
	}
	joined := all[0]
	for _, next := range all[1 : len(all)-1] {
		joined = Of("list.more", "a", joined, "b", next)
	}
	return Of("list.two", "a", joined, "b", all[len(all)-1])
}

func first(all []Text) Text {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// Wait returns a time in words, rounded up: seconds up to two minutes, minutes up to two hours, else
// hours.
func Wait(seconds int) Text {
	switch {
	case seconds <= 120:
		return Of("wait.seconds", "n", seconds)
	case seconds <= 120*60:
		return Of("wait.minutes", "n", (seconds+59)/60)
	}
	return Of("wait.hours", "n", (seconds+3599)/3600)
}

// Ago returns how long before now t was, and the day of t after a week; nil = t is zero.
func Ago(t, now time.Time) Text {
	age := now.Sub(t)
	switch {
	case t.IsZero():
		return nil
	case age < 2*time.Minute:
		return Of("ago.now")
	case age < time.Hour:
		return Of("ago.minutes", "n", int(age/time.Minute))
	case age < 24*time.Hour:
		return Of("ago.hours", "n", int(age/time.Hour))
	case age < 7*24*time.Hour:
		return Of("ago.days", "n", int(age/(24*time.Hour)))
	}
	return Day(t)
}

// month is the place of a month in date.months, from 0 on.
type month int

// Day returns the day of t, in UTC.
func Day(t time.Time) Text {
	year, m, day := t.UTC().Date()
	return Of("date.day", "day", day, "month", month(m-1), "year", year)
}

// Moment returns the day and minute of t, in UTC.
func Moment(t time.Time) Text {
	return Of("date.moment", "date", Day(t), "time", Literal(t.UTC().Format("15:04")))
}

// nearMark separates a browser from its place in what is stored.
const nearMark = "\t"

// DeviceNear returns what to store of a browser and its place, for Device; "" = unknown.
func DeviceNear(device, place string) string {
	if device == "" || place == "" {
		return device
	}
	return device + nearMark + place
}

// Device returns what visit.DeviceOf says of a browser, which is stored in English, or DeviceNear; "" =
// unknown.
func Device(stored string) Text {
	if device, place, found := strings.Cut(stored, nearMark); found {
		return Of("device.near", "device", Device(device), "place", place)
	}
	browser, system, found := strings.Cut(stored, " on ")
	switch {
	case stored == "" || stored == "Unknown browser":
		return Of("device.unknown")
	case !found:
		return Literal(stored)
	case browser == "Browser":
		return Of("device.unknown_on", "system", Literal(system))
	}
	return Of("device.browser_on", "browser", Literal(browser), "system", Literal(system))
}

// Language is a language with its catalogue. Make it with Load. It may be used by many goroutines.
type Language struct {
	Tag       string // BCP 47, such as pt-BR
	Name      string // in the language itself
	Direction string // of the script: ltr or rtl

	tag    language.Tag
	texts  map[string]*message
	months []string
}

// Between returns what stands between two sentences: nothing in scripts without spaces.
func (l *Language) Between() string {
	if l.tag == language.Japanese {
		return ""
	}
	return " "
}

// writer writes texts: as HTML or plain.
type writer struct {
	*Language
	html bool
	out  strings.Builder
}

// HTML returns a text as HTML. What comes from outside is escaped and isolated, since its script may
// have another direction. link is where the words in [] lead, a URL of our own.
func (l *Language) HTML(t Text, link string) template.HTML {
	w := writer{Language: l, html: true}
	w.text(t, link)
	return template.HTML(w.out.String())
}

// Plain returns a text without markup, for titles, attributes and messages.
func (l *Language) Plain(t Text) string {
	w := writer{Language: l}
	w.text(t, "")
	return w.out.String()
}

func (w *writer) text(t Text, link string) {
	if len(t) == 0 {
		return
	}
	if own, ok := t[0].(literal); ok {
		w.put(string(own))
		return
	}
	key, _ := t[0].(string)
	m := w.texts[key]
	if m == nil { // a test finds it
		w.put(key)
		return
	}
	for _, p := range m.in(w.tag, t) {
		switch p.kind {
		case words:
			w.put(p.text)
		case slot:
			w.value(t.slot(p.text))
		case strong:
			w.markup("<strong>")
		case strongEnd:
			w.markup("</strong>")
		case anchor:
			w.markup(`<a href="` + template.HTMLEscapeString(link) + `">`)
		case anchorEnd:
			w.markup("</a>")
		}
	}
}

func (w *writer) value(value any) {
	switch v := value.(type) {
	case Text:
		w.text(v, "")
	case month:
		w.put(w.months[v])
	case int:
		w.put(strconv.Itoa(v))
	case template.HTML:
		w.markup(string(v))
	case string:
		w.markup("<bdi>")
		w.put(v)
		w.markup("</bdi>")
	}
}

func (w *writer) put(text string) {
	if w.html {
		text = template.HTMLEscapeString(text)
	}
	w.out.WriteString(text)
}

func (w *writer) markup(source string) {
	if w.html {
		w.out.WriteString(source)
	}
}

// slot returns the value of a slot; nil = it has none.
func (t Text) slot(name string) any {
	for i := 1; i+1 < len(t); i += 2 {
		if t[i] == name {
			return t[i+1]
		}
	}
	return nil
}

// in returns the parts of the form that the number n of t needs.
func (m *message) in(tag language.Tag, t Text) []part {
	if m.forms == nil {
		return m.parts
	}
	n, _ := t.slot("n").(int)
	return m.forms[formOf(tag, n)]
}

// formOf returns the plural form of a number that is not negative (CLDR).
func formOf(tag language.Tag, n int) string {
	switch plural.Cardinal.MatchPlural(tag, n, 0, 0, 0, 0) {
	case plural.Zero:
		return "zero"
	case plural.One:
		return "one"
	case plural.Two:
		return "two"
	case plural.Few:
		return "few"
	case plural.Many:
		return "many"
	}
	return "other"
}
