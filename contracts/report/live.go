package report

import (
	"fmt"
	"io"
	"strings"
)

// Live writes results during a verification, one line for each interaction. It removes control
// characters of pacts and responses. Err is the first error of W.
type Live struct {
	W   io.Writer
	Err error
}

func (l *Live) printf(format string, args ...any) {
	if l.Err == nil {
		_, l.Err = io.WriteString(l.W, clean(fmt.Sprintf(format, args...)))
	}
}

// Pact writes the heading of a pact.
func (l *Live) Pact(p *Pact) {
	mark := ""
	if p.Pending {
		mark = ", pending"
	}
	l.printf("%s (%s%s)\n", p.Consumer, p.Source, mark)
	for _, notice := range p.Notices {
		l.printf("  note: %s\n", notice)
	}
}

// Interaction writes the result of an interaction and all its problems.
func (l *Live) Interaction(it *Interaction) {
	l.printf("  %s %s  [%s]\n", mark(it.Result), it.Description, it.Request)
	if it.Result == Verified {
		return
	}
	for _, p := range it.Problems {
		l.printf("      %s\n", indented(p.String()))
	}
	if len(it.States) > 0 {
		l.printf("      given:    %s\n", strings.Join(it.States, "; "))
	}
	if it.Response != "" {
		l.printf("      response: %s\n", indented(it.Response))
	}
}

// Published writes whether the broker accepted the result, if it was published.
func (l *Live) Published(p *Pact) {
	switch {
	case p.PublishError != "":
		l.printf("  ✗ the broker rejected the result: %s\n", p.PublishError)
	case p.Published:
		l.printf("  published to the broker\n")
	}
}

// End writes the summary.
func (l *Live) End(r *Run) { l.printf("\n%s\n", r.Summary()) }

func mark(r Result) string {
	switch r {
	case Verified:
		return "✓"
	case Pending:
		return "~"
	}
	return "✗"
}

func indented(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n      ") }
