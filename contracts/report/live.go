package report

import (
	"fmt"
	"io"
	"strings"
)

// Live writes results during a verification, one line for each fact. Err is the first error of W.
type Live struct {
	W   io.Writer
	Err error
}

// printf writes a line. Arguments that are strings become Lines.
func (l *Live) printf(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = strings.TrimSpace(Line(text))
		}
	}
	if l.Err == nil {
		_, l.Err = fmt.Fprintf(l.W, format+"\n", args...)
	}
}

// Pact writes the heading of a pact.
func (l *Live) Pact(p *Pact) {
	if p.Pending {
		l.printf("%s (%s, pending)", p.Consumer, p.Source)
	} else {
		l.printf("%s (%s)", p.Consumer, p.Source)
	}
	for _, notice := range p.Notices {
		l.printf("  note: %s", notice)
	}
}

// Interaction writes the result of an interaction and all its problems.
func (l *Live) Interaction(it *Interaction) {
	l.printf("  %s %s  [%s]", mark(it.Result), it.Description, it.Request)
	if it.Result == Verified {
		return
	}
	for _, p := range it.Problems {
		l.printf("      %s", p.String())
	}
	for _, fact := range it.facts() {
		l.printf("      %-9s %s", fact[0]+":", fact[1])
	}
}

// Published writes whether the broker accepted the result, if it was published.
func (l *Live) Published(p *Pact) {
	switch {
	case p.PublishError != "":
		l.printf("  ✗ the broker rejected the result: %s", p.PublishError)
	case p.Published:
		l.printf("  published to the broker")
	}
}

// End writes the summary.
func (l *Live) End(r *Run) { l.printf("\n%s", r.Summary()) }

func mark(r Result) string {
	switch r {
	case Verified:
		return "✓"
	case Pending:
		return "~"
	}
	return "✗"
}
