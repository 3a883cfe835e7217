package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"gatehouse/contracts/report"
)

// run returns a verification with each of the results.
func run() *report.Run {
	return &report.Run{Provider: "here", Started: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Took: 1500 * time.Millisecond, Pacts: []*report.Pact{{
			Source: "p.json", Consumer: "shop | co", Provider: "gatehouse",
			Notices: []string{"it is the newest"}, Published: true,
			Interactions: []*report.Interaction{
				{Description: "one", Request: "GET /a", Result: report.Verified, Took: time.Second},
				{Description: "two <b>", Request: "GET /b", Result: report.Failed,
					States: []string{`a user {"name":"x"}`}, Response: "200 {}",
					Sent: "GET /b; X: 1", Curl: "curl -i http://x/b",
					Problems: []report.Problem{{Where: "body $.id", Expected: "5", Actual: `"5"`,
						Reason: "a number is due"},
						{Where: "header X", Expected: "1", Reason: "it is missing\x01"}}},
				{Description: "three", Request: "GET /c", Result: report.Pending,
					Problems: []report.Problem{{Reason: "no response"},
						{Where: "$.a", Reason: report.Missing}}, Advice: []string{"look"}},
			},
		}}}
}

func TestLiveLines(t *testing.T) {
	var b strings.Builder
	l, r := &report.Live{W: &b}, run()
	l.Pact(r.Pacts[0])
	for _, it := range r.Pacts[0].Interactions {
		l.Interaction(it)
	}
	l.Published(r.Pacts[0])
	l.End(r)
	want := `shop | co (p.json)
  note: it is the newest
  ✓ one  [GET /a]
  ✗ two <b>  [GET /b]
      body $.id: expected 5, got "5" (a number is due)
      header X: expected 1, got nothing (it is missing)
      given:    a user {"name":"x"}
      request:  GET /b; X: 1
      response: 200 {}
      repeat:   curl -i http://x/b
  ~ three  [GET /c]
      no response
      $.a is missing
      try:      look
      given:    none
  published to the broker

3 interactions of 1 pact: 1 verified, 1 failed, 1 pending in 1.5 s
`
	if b.String() != want || l.Err != nil {
		t.Errorf("got %s and error %v, want %s", b.String(), l.Err, want)
	}
}

// broken fails like a full disk.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteErrorIsKept(t *testing.T) {
	l := &report.Live{W: broken{}}
	l.End(run())
	if l.Err == nil {
		t.Error("got no error, want the writer's")
	}
	for _, write := range []func(*report.Run) error{
		func(r *report.Run) error { return r.WriteJSON(broken{}) },
		func(r *report.Run) error { return r.WriteJUnit(broken{}) },
		func(r *report.Run) error { return r.WriteMarkdown(broken{}) },
	} {
		if err := write(run()); err == nil {
			t.Error("got no error, want the writer's")
		}
	}
}

func TestOK(t *testing.T) {
	r := run()
	if r.OK() || r.Pacts[0].Verified() {
		t.Error("got a run with a failure taken for a good one")
	}
	its := r.Pacts[0].Interactions
	r.Pacts[0].Interactions = []*report.Interaction{its[0], its[2]}
	if !r.OK() || r.Pacts[0].Verified() {
		t.Error("got a pending failure taken for more than that")
	}
	r.Pacts[0].PublishError = "500"
	if r.OK() {
		t.Error("got a result that was not published taken for a good one")
	}
}

func TestJUnitCounts(t *testing.T) {
	r := run()
	r.Pacts[0].PublishError = "the broker responds 500"
	var b bytes.Buffer
	if err := r.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<testsuites tests="4" failures="1" errors="1" skipped="1" time="1.500">`, `timestamp="2026-11-21T12:00:00Z"`,
		`name="two &lt;b&gt;"`, `<skipped message="no response"`,
		`<error message="the broker responds 500"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %s, want %s in it", b.String(), want)
		}
	}
	if err := xml.Unmarshal(b.Bytes(), new(struct{})); err != nil {
		t.Errorf("got %v, want XML", err)
	}
}

func TestMarkdownIsSafe(t *testing.T) {
	var b strings.Builder
	if err := run().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| `shop \\| co` | 1 | 1 | 1 |", "## ✗ `shop | co`: `two <b>`",
		`body $.id: expected 5, got "5" (a number is due)`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %s, want %s in it", b.String(), want)
		}
	}
}

// forged is a text that tries to be more than text.
const forged = "x\n::error::forged\r\n##vso[task.complete]\u2028##[error]\x1b[31mred\u202etxt\u200b\x00 " +
	"[a](https://evil.example) @root `</b>` ``` ::warning file=a::b"

// TestForeignTextIsOneLine puts forged into every text of a run.
func TestForeignTextIsOneLine(t *testing.T) {
	r := &report.Run{Pacts: []*report.Pact{{Source: forged, Consumer: "::error::" + forged,
		Provider: forged, Pending: true, Notices: []string{forged}, PublishError: forged,
		Interactions: []*report.Interaction{{Description: forged, States: []string{forged},
			Request: forged, Result: report.Failed, Response: forged,
			Problems: []report.Problem{{Where: forged, Expected: forged, Actual: forged,
				Reason: forged}}}}}}}
	var live, junit, markdown, text strings.Builder
	l := &report.Live{W: &live}
	l.Pact(r.Pacts[0])
	l.Interaction(r.Pacts[0].Interactions[0])
	l.Published(r.Pacts[0])
	if err := errors.Join(l.Err, r.WriteJUnit(&junit), r.WriteMarkdown(&markdown),
		r.WriteJSON(&text)); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(live.String(), "\n"); lines != 7 {
		t.Errorf("got %d lines, want 7: %s", lines, &live)
	}
	for name, got := range map[string]string{"live": live.String(), "JUnit": junit.String(),
		"Markdown": markdown.String(), "JSON": text.String()} {
		if i := strings.IndexFunc(got, func(r rune) bool {
			return r != '\n' && unicode.Is(unicode.C, r) || r == 0x2028
		}); i >= 0 {
			t.Errorf("%s: got %q, want no control and format characters", name, got[i:])
		}
		for _, command := range []string{"::error", "::warning", "##vso[", "##["} {
			if strings.Contains(got, command) {
				t.Errorf("%s: got %s, want no %s", name, got, command)
			}
		}
	}
	inside := false
	for line := range strings.Lines(markdown.String()) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		}
		outside := regexp.MustCompile("`[^`]*`").ReplaceAllString(line, "")
		if !inside && strings.ContainsAny(outside, "[@<`") && !strings.HasPrefix(line, "```") {
			t.Errorf("Markdown: got %s, want foreign text as code", line)
		}
	}
	var back report.Run
	if err := json.Unmarshal([]byte(text.String()), &back); err != nil ||
		back.Pacts[0].Source != strings.ToValidUTF8(forged, "") {
		t.Errorf("JSON: got %+v and error %v, want the text as it was", back, err)
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"2001:db8::cafe and fe80::1": "2001:db8::cafe and fe80::1",
		"::group::a":                 ": :group::a", "::set-output name=a::b": ": :set-output name=a::b",
		"##[debug]": "# #[debug]", "# a ## b [c]": "# a ## b [c]", "a\tb\r\nc": "a b  c",
		"\xff": "\uFFFD", "grün ✓": "grün ✓",
	} {
		if got := report.Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
