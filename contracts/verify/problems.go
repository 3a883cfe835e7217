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

// mostShown bounds what is shown of a value or a body, in bytes.
const mostShown = 600

// verdict is what libpact_ffi says of a verification.
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

// problemsOf reads a verdict; the problems stand in the order status, headers, body.
func problemsOf(text []byte) ([]report.Problem, error) {
	var v verdict
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("read the library's verdict: %w", err)
	}
	var all []report.Problem
	for _, f := range append(v.Errors, v.PendingErrors...) {
		if f.Mismatch.Type != "mismatches" {
			all = append(all, report.Problem{Reason: redacted(cmp.Or(f.Mismatch.Message, "it could not be tried"))})
		}
		for _, m := range f.Mismatch.Mismatches {
			all = append(all, m.problem())
		}
	}
	slices.SortFunc(all, func(a, b report.Problem) int {
		return cmp.Or(cmp.Compare(place(a.Where), place(b.Where)), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.CompactFunc(all, func(a, b report.Problem) bool { return a == b }), nil
}

func place(where string) int {
	return slices.IndexFunc([]string{"status", "header", "content type", "body", ""}, func(s string) bool { return strings.HasPrefix(where, s) })
}

func (m *mismatch) problem() report.Problem {
	p := report.Problem{Expected: shown(m.Expected), Actual: shown(m.Actual), Reason: named(m.Mismatch)}
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

// shown returns a value of the library as people read it: mostly it is JSON inside a string.
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

// named puts Location in the place of the header by which it was hidden.
func named(s string) string {
	return redacted(strings.ReplaceAll(strings.ReplaceAll(s, contracts.HiddenLocation, "Location"), strings.ToLower(contracts.HiddenLocation), "Location"))
}

// shortened returns the beginning of s, without secrets.
func shortened(s string) string {
	s = redacted(s)
	if len(s) <= mostShown {
		return s
	}
	cut := mostShown
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// unread are the parts of a page that nobody reads, pageTitle what it is called.
var (
	pageTitle = regexp.MustCompile(`(?is)<title>(.*?)</title>`)
	unread    = regexp.MustCompile(`(?is)<(style|script|head)\b.*?</(?:style|script|head)>|<[^>]*>`)
)

// legible returns a body as people read it: of a page its words alone.
func legible(body string) string {
	if !strings.HasPrefix(strings.ToLower(body), "<!doctype html") {
		return shortened(body)
	}
	title := pageTitle.FindStringSubmatch(body)
	words := strings.Join(strings.Fields(html.UnescapeString(unread.ReplaceAllString(body, " "))), " ")
	if title != nil {
		words = "page \"" + html.UnescapeString(title[1]) + "\": " + words
	}
	return shortened(words)
}

// secrets are codes, tokens and client secrets of gatehouse.
var secrets = regexp.MustCompile(`\b(gt(?:at|rt|ac|cs)_)[0-9A-Za-z]+`)

func redacted(s string) string { return secrets.ReplaceAllString(s, "${1}…") }
