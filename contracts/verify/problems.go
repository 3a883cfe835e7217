//go:build pact

package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/contracts"
	"gatehouse/contracts/report"
)

// maxShown limits the shown part of a value or a body, in bytes.
const maxShown = 600

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
			all = append(all, m.problem())
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

func (m *mismatch) problem() report.Problem {
	p := report.Problem{Expected: shown(m.Expected), Actual: shown(m.Actual),
		Reason: named(m.Mismatch)}
	switch m.Type {
	case "StatusMismatch":
		p.Where, p.Reason = "status", ""
	case "HeaderMismatch":
		p.Where = "header " + named(m.Key)
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
	return shortened(s)
}

// named replaces HiddenLocation by Location.
func named(s string) string {
	return redacted(strings.ReplaceAll(strings.ReplaceAll(s, contracts.HiddenLocation, "Location"),
		strings.ToLower(contracts.HiddenLocation), "Location"))
}

// shortened returns the start of s, without secrets.
func shortened(s string) string {
	s = redacted(s)
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// markup matches the parts of a page that people do not read, pageTitle its title.
var (
	pageTitle = regexp.MustCompile(`(?is)<title>(.*?)</title>`)
	markup    = regexp.MustCompile(`(?is)<(style|script|head)\b.*?</(?:style|script|head)>|<[^>]*>`)
)

// legible returns a body for people. Of a page it keeps only the text.
func legible(body string) string {
	if !strings.HasPrefix(strings.ToLower(body), "<!doctype html") {
		return shortened(body)
	}
	title := pageTitle.FindStringSubmatch(body)
	words := strings.Join(strings.Fields(html.UnescapeString(markup.ReplaceAllString(body, " "))),
		" ")
	if title != nil {
		words = "page \"" + html.UnescapeString(title[1]) + "\": " + words
	}
	return shortened(words)
}

// secrets matches gatehouse's codes, tokens and client secrets.
var secrets = regexp.MustCompile(`\b(gt(?:at|rt|ac|cs)_)[0-9A-Za-z_-]+`)

func redacted(s string) string { return secrets.ReplaceAllString(s, "${1}…") }
