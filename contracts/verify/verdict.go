//go:build pact

package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gatehouse/contracts"
	"gatehouse/contracts/matching"
	"gatehouse/contracts/report"
)

// verdict is the result of libpact_ffi for a verification.
type verdict struct {
	Errors        []fault `json:"errors"`
	PendingErrors []fault `json:"pendingErrors"`
}

type fault struct {
	Mismatch struct {
		Type       string     `json:"type"` // "mismatches" or "error"
		Message    string     `json:"message"`
		Mismatches []mismatch `json:"mismatches"`
	} `json:"mismatch"`
}

type mismatch struct {
	Type      string          `json:"type"`
	Path      string          `json:"path"` // of BodyMismatch
	Key       string          `json:"key"`  // of HeaderMismatch
	Expected  json.RawMessage `json:"expected"`
	Actual    json.RawMessage `json:"actual"`
	Mismatch  string          `json:"mismatch"`
	Parameter string          `json:"parameter"`
}

// problemsOf parses a verdict. The problems are in the order status, headers, body.
func problemsOf(text []byte) ([]report.Problem, error) {
	var v verdict
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("read the library's verdict: %w", err)
	}
	var all []report.Problem
	for _, f := range append(v.Errors, v.PendingErrors...) {
		if f.Mismatch.Type != "mismatches" {
			all = append(all, report.Problem{Reason: redacted(cmp.Or(f.Mismatch.Message,
				"it could not be verified"))})
		}
		for _, m := range f.Mismatch.Mismatches {
			for _, p := range m.problems() {
				all = append(all, cleaned(p))
			}
		}
	}
	slices.SortFunc(all, func(a, b report.Problem) int {
		return cmp.Or(cmp.Compare(place(a.Where), place(b.Where)), cmp.Compare(a.Where, b.Where),
			cmp.Compare(a.Reason, b.Reason))
	})
	return slices.CompactFunc(all, func(a, b report.Problem) bool { return a == b }), nil
}

func place(where string) int {
	return slices.IndexFunc([]string{"status", "header", "content type", "body", ""},
		func(s string) bool { return strings.HasPrefix(where, s) })
}

// missingMembers matches the library's text about an object without some members.
var missingMembers = regexp.MustCompile(`missing the following keys: (.*)$`)

// problems returns one problem, or one for each member that an object lacks.
func (m *mismatch) problems() []report.Problem {
	names := missingMembers.FindStringSubmatch(m.Mismatch)
	path, err := matching.ParsePath(m.Path)
	if m.Type != "BodyMismatch" || names == nil || err != nil {
		return []report.Problem{m.problem()}
	}
	var all []report.Problem
	for _, name := range strings.Split(names[1], ", ") {
		all = append(all, report.Problem{Where: "body " + path.Member(name).String(),
			Reason: report.Missing})
	}
	return all
}

func (m *mismatch) problem() report.Problem {
	p := report.Problem{Expected: shown(m.Expected), Actual: shown(m.Actual),
		Reason: unhidden(m.Mismatch)}
	switch m.Type {
	case "StatusMismatch":
		p.Where, p.Reason = "status", ""
	case "HeaderMismatch":
		p.Where = "header " + unhidden(m.Key)
	case "BodyTypeMismatch":
		p.Where, p.Reason = "content type", ""
	case "BodyMismatch":
		p.Where = "body " + m.Path
	default:
		p.Where = m.Type
	}
	return p
}

// shown returns a value of the library for people. Most values are JSON inside a string.
func shown(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		s = string(bytes.TrimSpace(raw))
		if s == "null" {
			s = ""
		}
	}
	return s
}

// unhidden replaces HiddenLocation by Location.
func unhidden(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, contracts.HiddenLocation, "Location"),
		strings.ToLower(contracts.HiddenLocation), "Location")
}
