// Package report holds the results of verifying pacts and writes them for people and for machines.
package report

import (
	"fmt"
	"strings"
	"time"
)

// Run is one verification of pacts.
type Run struct {
	Provider string        `json:"provider"` // base URL of the verified service
	Started  time.Time     `json:"started"`
	Took     time.Duration `json:"took_ns"`
	Pacts    []*Pact       `json:"pacts"`
}

// Pact is the result of one pact.
type Pact struct {
	Source       string         `json:"source"`
	Consumer     string         `json:"consumer"`
	Provider     string         `json:"provider"`
	Pending      bool           `json:"pending"` // as the broker says: a failure does not count
	Notices      []string       `json:"notices,omitempty"`
	Interactions []*Interaction `json:"interactions"`
	Published    bool           `json:"published"` // to the broker
	PublishError string         `json:"publish_error,omitempty"`
}

// Interaction is the result of one interaction.
type Interaction struct {
	Description string    `json:"description"`
	States      []string  `json:"states,omitempty"` // with their parameters, for people
	Request     string    `json:"request"`          // method and path
	Result      Result    `json:"result"`
	Problems    []Problem `json:"problems,omitempty"` // if Failed or Pending
	// status and start of the body, if Failed or Pending
	Response string        `json:"answer,omitempty"`
	Took     time.Duration `json:"took_ns"`
}

// Problem is one difference between the expected and the actual response.
type Problem struct {
	Where    string `json:"where"` // "status", "header X", "body $.location.city", or ""
	Expected string `json:"expected,omitempty"`
	Actual   string `json:"actual,omitempty"`
	Reason   string `json:"reason"`
}

// Result is the result of an interaction.
type Result string

// The results.
const (
	Verified Result = "verified"
	Failed   Result = "failed"
	Pending  Result = "pending" // failed, which does not count
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

// OK reports whether no interaction failed and no result failed to be published.
func (r *Run) OK() bool {
	_, _, failed, _ := r.Counts()
	for _, p := range r.Pacts {
		if p.PublishError != "" {
			return false
		}
	}
	return failed == 0
}

// Verified reports whether every interaction was verified, including pending ones.
func (p *Pact) Verified() bool {
	for _, it := range p.Interactions {
		if it.Result != Verified {
			return false
		}
	}
	return true
}

// String returns one line: the place, the expected and the actual value, and the reason.
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

// Summary returns one line with the counts.
func (r *Run) Summary() string {
	all, verified, failed, pending := r.Counts()
	s := fmt.Sprintf("%s of %s: %d verified, %d failed", count(all, "interaction"),
		count(len(r.Pacts), "pact"), verified, failed)
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
