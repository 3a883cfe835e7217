package gatehouse_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// compact returns a JSON text without what only people need.
func (r *reader) compact(b block, text string) string {
	r.t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		r.t.Fatalf("README.md:%d: %v: %s", b.line, err, text)
	}
	return compact.String()
}

// lines returns an output with the line ends of this page.
func lines(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// pattern returns what an answer of README.md stands for. An ellipsis in it is what is another each time: one or more
// words with single spaces between, and nothing beyond a quotation mark, an ampersand or the end of the line. The width
// of the space between columns does not count.
func pattern(answer string) *regexp.Regexp {
	words := regexp.QuoteMeta(lines(answer))
	words = regexp.MustCompile(` {2,}`).ReplaceAllString(words, ` {2,}`)
	words = strings.ReplaceAll(words, "…", `[^"&\s]+(?: [^"&\s]+)*`)
	return regexp.MustCompile(`\A` + words + `\z`)
}

// TestPattern holds the ellipsis to what it stands for.
func TestPattern(t *testing.T) {
	for _, c := range []struct {
		answer, output string
		want           bool
	}{
		{`{"token":"…","n":1}`, `{"token":"gtat_0","n":1}`, true},
		{`{"token":"…","n":1}`, `{"token":"","n":1}`, false},
		{`{"token":"…","n":1}`, `{"token":"gtat_0","more":"","n":1}`, false},
		{`?code=…&state=xyz`, `?code=gtac_0&state=xyz`, true},
		{`?code=…&state=xyz`, `?code=gtac_0&error=no&state=xyz`, false},
		{"Date: …\nAge: …", "Date: Sat, 21 Nov 2026 09:00:00 GMT\r\nAge: 14\r\n", true},
		{"Date: …\nAge: …", "Date: Sat, 21 Nov 2026 09:00:00 GMT\nVary: Origin\nAge: 14", false},
		{"…    Shop   yes", "0-1-2  Shop  yes", true},
		{"…    Shop   yes", "0-1-2  Shop  no  yes", false},
		{"…    Shop   yes", "0-1-2 Shop yes", false},
		{"a.c", "abc", false},
		{"exact", "exactly", false},
	} {
		if got := pattern(c.answer).MatchString(lines(c.output)); got != c.want {
			t.Errorf("got %v for %q as %q, want %v", got, c.output, c.answer, c.want)
		}
	}
}
