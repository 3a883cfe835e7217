package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteJSON writes the run as one object.
func (r *Run) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
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
	s := junitSuite{Name: clean(p.Consumer + " and " + p.Provider),
		Timestamp: r.Started.UTC().Format(time.RFC3339)}
	var took time.Duration
	for _, it := range p.Interactions {
		c := junitCase{Class: clean(p.Consumer), Name: clean(it.Description),
			Time: seconds(it.Took)}
		note := &junitNote{Message: clean(it.headline()), Type: string(it.Result),
			Text: clean(it.details())}
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
		s.Cases = append(s.Cases, junitCase{Class: clean(p.Consumer), Name: "publish the result",
			Time:  "0.000",
			Error: &junitNote{Message: clean(p.PublishError), Type: "publish"}})
	}
	s.Tests, s.Time = len(s.Cases), seconds(took)
	return s
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// clean removes the characters that XML 1.0 forbids. Terminals interpret the same ones.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7F && r < 0xA0 || r == 0xFFFE ||
			r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

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
	fmt.Fprintf(&b, "\nrequest: %s\n", it.Request)
	for _, s := range it.States {
		fmt.Fprintf(&b, "given: %s\n", s)
	}
	for _, p := range it.Problems {
		fmt.Fprintf(&b, "%s\n", p)
	}
	if it.Response != "" {
		fmt.Fprintf(&b, "response: %s\n", it.Response)
	}
	return b.String()
}

// WriteMarkdown writes a table of pacts and all failures, for a pull request or a job summary.
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
					cell(p.Consumer), cell(it.Description),
					strings.ReplaceAll(strings.TrimSpace(it.details()), "```", "'''"))
			}
		}
		if p.PublishError != "" {
			fmt.Fprintf(&b, "\n## ✗ %s: the broker rejected the result\n\n%s\n", cell(p.Consumer), cell(p.PublishError))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell returns s on one line, escaped for a table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ", "<", "&lt;", "`", "'").Replace(s)
}
