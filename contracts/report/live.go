package report

import (
	"fmt"
	"io"
	"strings"
)

// Live writes a verification as it goes, one line an interaction, without control characters of pacts and answers. The first error of
// its writer is kept in Err.
type Live struct {
	W   io.Writer
	Err error
}

func (l *Live) printf(format string, args ...any) {
	if l.Err == nil {
		_, l.Err = io.WriteString(l.W, clean(fmt.Sprintf(format, args...)))
	}
}

// Pact writes the head of a pact.
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

// Interaction writes an interaction, and all that is wrong with it.
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
	if it.Answer != "" {
		l.printf("      answered: %s\n", indented(it.Answer))
	}
}

// Published writes what the broker said, if it was told.
func (l *Live) Published(p *Pact) {
	switch {
	case p.PublishError != "":
		l.printf("  ✗ the broker did not take the result: %s\n", p.PublishError)
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
