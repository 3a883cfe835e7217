package verify

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxShown limits the shown part of a value or a body, in bytes.
const maxShown = 600

// shortened returns the start of s, without secrets.
func shortened(s string) string {
	s = redacted(s)
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// markup matches the parts of a page that people do not read, pageTitle its title.
var (
	pageTitle = regexp.MustCompile(`(?is)<title>(.*?)</title>`)
	markup    = regexp.MustCompile(`(?is)<(style|script|head)\b.*?</(?:style|script|head)>|<[^>]*>`)
)

// legible returns a body for people. Of a page it keeps only the text.
func legible(body string) string {
	if !strings.HasPrefix(strings.ToLower(body), "<!doctype html") {
		return shortened(body)
	}
	title := pageTitle.FindStringSubmatch(body)
	words := strings.Join(strings.Fields(html.UnescapeString(markup.ReplaceAllString(body, " "))),
		" ")
	if title != nil {
		words = "page \"" + html.UnescapeString(title[1]) + "\": " + words
	}
	return shortened(words)
}
