package coverage

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"gatehouse/contracts/report"
)

// Report is the result of Measure.
type Report struct {
	Parts []*Part `json:"parts"`
	// Stale lists exclusions of parts that are pinned or do not exist.
	Stale []string `json:"stale_exclusions"`
}

// Measure compares pact files with an OpenAPI document.
func Measure(openAPI []byte, pacts [][]byte, exclusions []Exclusion) (*Report, error) {
	d, err := readDocument(openAPI)
	if err != nil {
		return nil, err
	}
	var all []*interaction
	for _, text := range pacts {
		some, err := readPact(text)
		if err != nil {
			return nil, err
		}
		for _, i := range some {
			i.path = d.template(i.path)
		}
		all = append(all, some...)
	}
	r := &Report{Parts: d.parts(), Stale: []string{}}
	for _, p := range r.Parts {
		for _, i := range all {
			p.pin(i)
		}
	}
	for _, e := range exclusions {
		n := slices.IndexFunc(r.Parts, func(p *Part) bool { return p.Name == e.Part })
		if n < 0 || len(r.Parts[n].PinnedBy) > 0 || r.Parts[n].Excluded != "" {
			r.Stale = append(r.Stale, e.Part)
			continue
		}
		r.Parts[n].Excluded = e.Reason
	}
	return r, nil
}

// Missing returns the parts that no pact pins and that are not excluded.
func (r *Report) Missing() []*Part {
	return slices.DeleteFunc(slices.Clone(r.Parts),
		func(p *Part) bool { return len(p.PinnedBy) > 0 || p.Excluded != "" })
}

// Counts returns the number of all, of pinned and of excluded parts.
func (r *Report) Counts() (all, pinned, excluded int) {
	for _, p := range r.Parts {
		switch {
		case len(p.PinnedBy) > 0:
			pinned++
		case p.Excluded != "":
			excluded++
		}
	}
	return len(r.Parts), pinned, excluded
}

// Percent returns the share of pinned parts among those that are not excluded, rounded down.
func (r *Report) Percent() int {
	all, pinned, excluded := r.Counts()
	if all == excluded {
		return 100
	}
	return pinned * 100 / (all - excluded)
}

// Summary returns one line with the counts.
func (r *Report) Summary() string {
	all, pinned, excluded := r.Counts()
	return fmt.Sprintf("%d%% of the contract is pinned: %d of %d parts, and %d that are excluded",
		r.Percent(), pinned, all-excluded, excluded)
}

// WriteText writes the missing parts for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, p := range r.Missing() {
		fmt.Fprintf(&b, "✗ %s\n", report.Line(p.Name))
	}
	for _, name := range r.Stale {
		fmt.Fprintf(&b,
			"! %s has an exclusion that is not needed: it is pinned, or does not exist\n", name)
	}
	_, err := io.WriteString(w, b.String()+r.Summary()+"\n")
	return err
}

// WritePinned writes the pinned parts, each with the interactions that pin it, for people.
func (r *Report) WritePinned(w io.Writer) error {
	var b strings.Builder
	for _, p := range r.Parts {
		if len(p.PinnedBy) > 0 {
			fmt.Fprintf(&b, "✓ %s  [%s]\n", report.Line(p.Name),
				report.Line(strings.Join(p.PinnedBy, "; ")))
		}
	}
	_, err := io.WriteString(w, b.String()+r.Summary()+"\n")
	return err
}

// WriteJSON writes every part with the interactions that pin it.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteMarkdown writes tables of missing and excluded parts, for a pull request or a job summary.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Coverage of the contract\n\n%s.\n", r.Summary())
	if missing := r.Missing(); len(missing) > 0 {
		b.WriteString("\n| Not pinned |\n|---|\n")
		for _, p := range missing {
			fmt.Fprintf(&b, "| %s |\n", cell(p.Name))
		}
	}
	b.WriteString("\n| Excluded | Why |\n|---|---|\n")
	for _, p := range r.Parts {
		if p.Excluded != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", cell(p.Name), cell(p.Excluded))
		}
	}
	for _, name := range r.Stale {
		fmt.Fprintf(&b, "| %s | not needed: it is pinned, or does not exist |\n", cell(name))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func cell(s string) string { return strings.ReplaceAll(report.Line(s), "|", "\\|") }
