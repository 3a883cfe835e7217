// Package report holds what came of the verification of pacts and writes it for people and for machines.
package report

import (
	"fmt"
	"strings"
	"time"
)

// Run is one verification of pacts.
type Run struct {
	Provider string        `json:"provider"` // base URL of what was tried
	Started  time.Time     `json:"started"`
	Took     time.Duration `json:"took_ns"`
	Pacts    []*Pact       `json:"pacts"`
}

// Pact is what came of one pact.
type Pact struct {
	Source       string         `json:"source"`
	Consumer     string         `json:"consumer"`
	Provider     string         `json:"provider"`
	Pending      bool           `json:"pending"` // the broker says that it may fail
	Notices      []string       `json:"notices,omitempty"`
	Interactions []*Interaction `json:"interactions"`
	Published    bool           `json:"published"` // to the broker
	PublishError string         `json:"publish_error,omitempty"`
}

// Interaction is what came of one interaction.
type Interaction struct {
	Description string        `json:"description"`
	States      []string      `json:"states,omitempty"` // with their parameters, as people read them
	Request     string        `json:"request"`          // method and path
	Result      Result        `json:"result"`
	Problems    []Problem     `json:"problems,omitempty"` // of Failed and Pending
	Answer      string        `json:"answer,omitempty"`   // what came: status, and the beginning of the body; of Failed and Pending
	Took        time.Duration `json:"took_ns"`
}

// Problem is one difference between what was expected and what came.
type Problem struct {
	Where    string `json:"where"` // "status", "header X", "body $.location.city", or ""
	Expected string `json:"expected,omitempty"`
	Actual   string `json:"actual,omitempty"`
	Reason   string `json:"reason"`
}

// Result is what came of an interaction.
type Result string

// The results.
const (
	Verified Result = "verified"
	Failed   Result = "failed"
	Pending  Result = "pending" // failed, as it may
)

// Counts returns how many interactions there are, and how many have each result.
func (r *Run) Counts() (all, verified, failed, pending int) {
	for _, p := range r.Pacts {
		for _, it := range p.Interactions {
			all++
			switch it.Result {
			case Verified:
				verified++
			case Failed:
				failed++
			case Pending:
				pending++
			}
		}
	}
	return all, verified, failed, pending
}

// OK reports whether no interaction failed and every result that was to be published was.
func (r *Run) OK() bool {
	_, _, failed, _ := r.Counts()
	for _, p := range r.Pacts {
		if p.PublishError != "" {
			return false
		}
	}
	return failed == 0
}

// Verified reports whether every interaction was verified, also of those that may fail.
func (p *Pact) Verified() bool {
	for _, it := range p.Interactions {
		if it.Result != Verified {
			return false
		}
	}
	return true
}

// String is one line: where, what was expected, what came and why that is not the same.
func (p Problem) String() string {
	var b strings.Builder
	if p.Where != "" {
		b.WriteString(p.Where + ": ")
	}
	if p.Expected != "" || p.Actual != "" {
		fmt.Fprintf(&b, "expected %s, got %s", orNothing(p.Expected), orNothing(p.Actual))
		if p.Reason != "" {
			fmt.Fprintf(&b, " (%s)", p.Reason)
		}
		return b.String()
	}
	return b.String() + p.Reason
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// Summary is one line about the whole.
func (r *Run) Summary() string {
	all, verified, failed, pending := r.Counts()
	s := fmt.Sprintf("%s of %s: %d verified, %d failed", count(all, "interaction"), count(len(r.Pacts), "pact"), verified, failed)
	if pending > 0 {
		s += fmt.Sprintf(", %d pending", pending)
	}
	return s + fmt.Sprintf(" in %.1f s", r.Took.Seconds())
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
