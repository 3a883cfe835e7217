package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
)

// WriteJSON writes the run as one object. Texts are complete: format characters are escaped.
func (r *Run) WriteJSON(w io.Writer) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, escapeFormat(b.String()))
	return err
}

// commandParts are what commands to CI systems start with.
var commandParts = strings.NewReplacer("::", `:\u003a`, "##", `#\u0023`)

// escapeFormat escapes control and format characters of JSON, and the starts of commands. They
// occur inside strings only.
func escapeFormat(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || !unicode.Is(unicode.C, r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return commandParts.Replace(b.String())
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitNote `xml:"failure"`
	Skipped *junitNote `xml:"skipped"`
	Error   *junitNote `xml:"error"`
}

type junitNote struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the run as JUnit XML: a suite for each pact, a case for each interaction.
// Pending failures are skipped cases.
func (r *Run) WriteJUnit(w io.Writer) error {
	all, _, failed, pending := r.Counts()
	doc := junitSuites{Tests: all, Failures: failed, Skipped: pending, Time: seconds(r.Took)}
	for _, p := range r.Pacts {
		suite := r.suite(p)
		doc.Tests += suite.Tests - len(p.Interactions)
		doc.Errors += suite.Errors
		doc.Suites = append(doc.Suites, suite)
	}
	if suite := r.errorSuite(); suite.Tests > 0 {
		doc.Tests += suite.Tests
		doc.Errors += suite.Errors
		doc.Suites = append(doc.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r *Run) suite(p *Pact) junitSuite {
	s := junitSuite{Name: Line(p.Consumer + " and " + p.Provider),
		Timestamp: r.Started.UTC().Format(time.RFC3339)}
	var took time.Duration
	for _, it := range p.Interactions {
		c := junitCase{Class: Line(p.Consumer), Name: Line(it.Description),
			Time: seconds(it.Took)}
		note := &junitNote{Message: Line(it.headline()), Type: string(it.Result),
			Text: it.details()}
		switch it.Result {
		case Failed:
			c.Failure = note
			s.Failures++
		case Pending:
			c.Skipped = note
			s.Skipped++
		}
		took += it.Took
		s.Cases = append(s.Cases, c)
	}
	if p.PublishError != "" {
		s.Errors++
		s.Cases = append(s.Cases, junitCase{Class: Line(p.Consumer), Name: "publish the result",
			Time:  "0.000",
			Error: &junitNote{Message: Line(p.PublishError), Type: "publish"}})
	}
	s.Tests, s.Time = len(s.Cases), seconds(took)
	return s
}

// errorSuite returns a case for each of the Errors.
func (r *Run) errorSuite() junitSuite {
	s := junitSuite{Name: "pactcheck", Tests: len(r.Errors), Errors: len(r.Errors), Time: "0.000",
		Timestamp: r.Started.UTC().Format(time.RFC3339)}
	for _, text := range r.Errors {
		s.Cases = append(s.Cases, junitCase{Class: "pactcheck", Name: "verify", Time: "0.000",
			Error: &junitNote{Message: Line(text), Type: "run"}})
	}
	return s
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// headline returns the first problem.
func (it *Interaction) headline() string {
	if len(it.Problems) == 0 {
		return string(it.Result)
	}
	return it.Problems[0].String()
}

// details returns everything known about a failure, one fact a line.
func (it *Interaction) details() string {
	var b strings.Builder
	b.WriteString("\n")
	if it.Sent == "" {
		fmt.Fprintf(&b, "request: %s\n", Line(it.Request))
	}
	for _, p := range it.Problems {
		fmt.Fprintf(&b, "%s\n", Line(p.String()))
	}
	for _, fact := range it.facts() {
		fmt.Fprintf(&b, "%s: %s\n", fact[0], Line(fact[1]))
	}
	return b.String()
}

// WriteMarkdown writes a table of pacts and all failures, for a pull request or a job summary.
// Texts of pacts and responses are code: they have no links, mentions or markup.
func (r *Run) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b,
		"# Contracts\n\n%s.\n\n| Consumer | Verified | Failed | Pending |\n|---|---|---|---|\n",
		r.Summary())
	for _, p := range r.Pacts {
		_, verified, failed, pending := (&Run{Pacts: []*Pact{p}}).Counts()
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", cell(p.Consumer), verified, failed, pending)
	}
	for _, p := range r.Pacts {
		for _, it := range p.Interactions {
			if it.Result != Verified {
				fmt.Fprintf(&b, "\n## %s %s: %s\n\n```\n%s\n```\n", mark(it.Result),
					Code(p.Consumer), Code(it.Description),
					strings.ReplaceAll(strings.TrimSpace(it.details()), "```", "'''"))
			}
		}
		if p.PublishError != "" {
			fmt.Fprintf(&b, "\n## ✗ %s: the broker rejected the result\n\n%s\n",
				Code(p.Consumer), Code(p.PublishError))
		}
	}
	for _, text := range r.Errors {
		fmt.Fprintf(&b, "\n## ✗ the verification ended\n\n%s\n", Code(text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
