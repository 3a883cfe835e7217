//go:build pact

package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gatehouse/contracts"
	"gatehouse/contracts/report"
)

// requestTimeout limits each request and each state change.
const requestTimeout = time.Minute

// Verifier verifies pacts against one target. It is for one goroutine.
type Verifier struct {
	recorder *recorder
	folder   string
}

// New returns a Verifier. The caller must Close it.
func New(target Target) (*Verifier, error) {
	folder, err := os.MkdirTemp("", "pactcheck-")
	if err != nil {
		return nil, err
	}
	recorder, err := newRecorder(target)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &Verifier{recorder, folder}, nil
}

// Close releases the Verifier's server and files.
func (v *Verifier) Close() error { return errors.Join(v.recorder.close(), os.RemoveAll(v.folder)) }

// Pact verifies each interaction of a pact and passes its result to live. A failure is Pending if
// the pact or the interaction is pending. The error is not about the contract: it is a problem of
// the verification, or of ctx.
func (v *Verifier) Pact(ctx context.Context, p *contracts.Pact, pending bool,
	live func(*report.Interaction)) ([]*report.Interaction, error) {
	var all []*report.Interaction
	for i := range p.Interactions {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		it, err := v.interaction(p, i)
		if err != nil {
			return all, fmt.Errorf("%s: interaction %q: %w", p.Source,
				p.Interactions[i].Description, err)
		}
		if it.Result == report.Failed && (pending || p.Interactions[i].Pending) {
			it.Result = report.Pending
		}
		all = append(all, it)
		live(it)
	}
	return all, nil
}

// interaction verifies one interaction.
func (v *Verifier) interaction(p *contracts.Pact, i int) (*report.Interaction, error) {
	began, expected := time.Now(), &p.Interactions[i]
	it := &report.Interaction{Description: expected.Description,
		States:  stateNames(expected.States),
		Request: expected.Method + " " + expected.Path, Result: report.Verified}
	if it.Problems = v.untried(expected); len(it.Problems) > 0 {
		it.Result = report.Failed
		if !expected.HTTP {
			it.Request = "no HTTP request"
		}
		return it, nil
	}
	pact, err := p.Alone(i)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(v.folder, "pact.json")
	if err := os.WriteFile(file, pact, 0o600); err != nil {
		return nil, err
	}
	v.recorder.reset()
	text, passed, err := native(file, p.Provider, v.recorder.url, v.recorder.stateURL(),
		requestTimeout)
	if err != nil {
		return nil, err
	}
	// The library names the copy, which nobody else knows.
	text = bytes.ReplaceAll(text, []byte(file), []byte(filepath.Base(file)))
	if err := v.recorder.target.absence(); err != nil {
		return nil, err
	}
	it.Took = time.Since(began)
	return it, v.explain(it, expected.Uses(), text, passed)
}

// untried returns why an interaction cannot be tried; nil = it can.
func (v *Verifier) untried(expected *contracts.Interaction) []report.Problem {
	switch {
	case !expected.HTTP:
		return []report.Problem{{Reason: "gatehouse responds to HTTP requests; it sends and receives no messages"}}
	case expected.Problem != "":
		return []report.Problem{{Reason: expected.Problem}}
	case v.recorder.target.check == nil:
		return nil
	}
	var all []report.Problem
	for _, err := range contracts.Errors(v.recorder.target.check(expected)) {
		all = append(all, report.Problem{Where: "state", Reason: err.Error()})
	}
	return all
}

// explain sets the result that the library found. uses are the values that it takes from states.
func (v *Verifier) explain(it *report.Interaction, uses []string, text []byte, passed bool) error {
	problems, err := problemsOf(text)
	if err != nil {
		return err
	}
	response, states := v.recorder.recorded(uses)
	if passed && len(problems) == 0 && len(states) == 0 {
		return nil
	}
	it.Result, it.Response = report.Failed, response
	for _, s := range states {
		it.Problems = append(it.Problems, report.Problem{Where: "state", Reason: s})
	}
	if len(states) == 0 {
		it.Problems = problems
	}
	if len(it.Problems) == 0 {
		it.Problems = []report.Problem{{Reason: "the verifier gives no reason"}}
	}
	return nil
}

// stateNames returns states for people.
func stateNames(uses []contracts.StateUse) []string {
	var names []string
	for _, s := range uses {
		name := s.Name
		if len(s.Parameters) > 0 {
			if params, err := json.Marshal(s.Parameters); err == nil {
				name += " " + redacted(string(params))
			}
		}
		names = append(names, name)
	}
	return names
}
