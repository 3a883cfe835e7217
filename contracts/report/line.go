package report

import (
	"regexp"
	"strings"
	"unicode"
)

// commands matches the start of a command to a CI system, such as ::error:: or ##vso[.
var commands = regexp.MustCompile(`:(:[A-Za-z]*[G-Zg-z-])|#(#[A-Za-z.]*\[)`)

// Line returns text of a pact, a response or a broker as one line that every program shows as
// text. It removes control and format characters, such as those that change the direction of text,
// and puts a space into commands to CI systems.
func Line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.C, r) || r == 0xFFFE || r == 0xFFFF:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return commands.ReplaceAllStringFunc(s, func(c string) string { return c[:1] + " " + c[1:] })
}

// Code returns text as code in Markdown, where it has no links, mentions or markup.
func Code(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(Line(s), "`", "'"))
	if s == "" {
		return "(nothing)"
	}
	return "`" + s + "`"
}

// cell returns text as code for a table in Markdown.
func cell(s string) string { return strings.ReplaceAll(Code(s), "|", `\|`) }
