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
	// Errors are why the verification ended before its end, or could not begin.
	Errors []string `json:"errors,omitempty"`
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
	Response string `json:"answer,omitempty"`
	// Sent is the request as the service got it, and Curl the command that sends it, both without
	// secrets, if Failed or Pending and the request was sent.
	Sent   string        `json:"sent,omitempty"`
	Curl   string        `json:"curl,omitempty"`
	Advice []string      `json:"advice,omitempty"` // what to try, one sentence each
	Took   time.Duration `json:"took_ns"`
}

// facts returns what is known about a failure besides its problems: name and text of each line.
func (it *Interaction) facts() (all [][2]string) {
	for _, advice := range it.Advice {
		all = append(all, [2]string{"try", advice})
	}
	given := "none"
	if len(it.States) > 0 {
		given = strings.Join(it.States, "; ")
	}
	all = append(all, [2]string{"given", given})
	for _, fact := range [][2]string{{"request", it.Sent}, {"response", it.Response},
		{"repeat", it.Curl}} {
		if fact[1] != "" {
			all = append(all, fact)
		}
	}
	return all
}

// Problem is one difference between the expected and the actual response.
type Problem struct {
	Where    string `json:"where"` // "status", "header X", "body $.location.city", or ""
	Expected string `json:"expected,omitempty"`
	Actual   string `json:"actual,omitempty"`
	Reason   string `json:"reason"`
}

// Missing is the Reason of a Problem whose Where the response does not have.
const Missing = "is missing"

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
	return failed == 0 && len(r.Errors) == 0
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
	if p.Reason == Missing {
		return p.Where + " " + Missing
	}
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
