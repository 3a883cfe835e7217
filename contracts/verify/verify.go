package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gatehouse/contracts"
	"gatehouse/contracts/report"
)

// requestTimeout limits each request and each state change.
const requestTimeout = time.Minute

// Verifier verifies pacts against one target. It is for one goroutine.
type Verifier struct {
	recorder *recorder
	engine   engine
}

// engine tries interactions and compares.
type engine interface {
	// try tries an interaction of a pact at the recorder and returns what differs. Its error is not
	// about the contract.
	try(ctx context.Context, p *contracts.Pact, i int) ([]report.Problem, error)
	close() error
}

// New returns a Verifier with the matching of this project. The caller must Close it.
func New(target Target) (*Verifier, error) {
	recorder, err := newRecorder(target)
	if err != nil {
		return nil, err
	}
	return &Verifier{recorder, newOwn(recorder)}, nil
}

// NewNative returns a Verifier with the matching of libpact_ffi, which only programs with the build
// tag pact have. The caller must Close it.
func NewNative(target Target) (*Verifier, error) {
	recorder, err := newRecorder(target)
	if err != nil {
		return nil, err
	}
	engine, err := newNative(recorder)
	if err != nil {
		return nil, errors.Join(err, recorder.close())
	}
	return &Verifier{recorder, engine}, nil
}

// Close releases the Verifier's server and files.
func (v *Verifier) Close() error { return errors.Join(v.engine.close(), v.recorder.close()) }

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
		it, err := v.interaction(ctx, p, i)
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
func (v *Verifier) interaction(ctx context.Context, p *contracts.Pact,
	i int) (*report.Interaction, error) {
	began, expected := time.Now(), &p.Interactions[i]
	it := &report.Interaction{Description: expected.Description,
		States:  stateNames(expected.States),
		Request: expected.Method + " " + redacted(expected.Path), Result: report.Verified}
	if it.Problems = v.untried(expected); len(it.Problems) > 0 {
		it.Result = report.Failed
		if !expected.HTTP {
			it.Request = "no HTTP request"
		}
		return it, nil
	}
	v.recorder.reset()
	problems, err := v.engine.try(ctx, p, i)
	if err == nil {
		err = v.recorder.target.absence()
	}
	if err != nil {
		return nil, err
	}
	it.Took = time.Since(began)
	v.explain(it, expected, problems)
	return it, nil
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

// explain sets the result.
func (v *Verifier) explain(it *report.Interaction, expected *contracts.Interaction,
	problems []report.Problem) {
	last, states := v.recorder.recorded(expected.Uses())
	if len(problems) == 0 && len(states) == 0 {
		return
	}
	it.Result, it.Problems = report.Failed, problems
	if len(states) > 0 {
		it.Problems = nil
	}
	for _, s := range states {
		it.Problems = append(it.Problems, report.Problem{Where: "state", Reason: s})
	}
	if last != nil {
		v.recorder.target.describe(it, expected, last)
	}
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
