package bulk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Limits of the different names that a Summary counts. Others are counted together.
const (
	maxNames = 1 << 18
	maxName  = 256 // bytes
)

// Summary counts answers.
type Summary struct {
	rows, failed int
	countries    map[string]int
	systems      map[string]int
	flags        map[string]int
	errors       map[string]int // by code and reason, with a space between
}

// NewSummary returns a Summary of no answers.
func NewSummary() *Summary {
	return &Summary{countries: map[string]int{}, systems: map[string]int{},
		flags:  map[string]int{"mobile": 0, "proxy": 0, "hosting": 0},
		errors: map[string]int{}}
}

func (s *Summary) add(a Answer) {
	s.rows++
	r := a.Record
	if r.failed && !r.unknown {
		s.failed++
		count(s.errors, r.facts.problem)
		return
	}
	count(s.countries, r.facts.country)
	count(s.systems, r.facts.as)
	for name, set := range map[string]bool{"mobile": r.facts.mobile, "proxy": r.facts.proxy,
		"hosting": r.facts.hosting} {
		if set {
			s.flags[name]++
		}
	}
}

func count(counts map[string]int, name string) {
	if _, known := counts[name]; !known && (len(counts) >= maxNames || len(name) > maxName) {
		name = "other"
	}
	counts[name]++
}

// counted is a name and how often it was seen.
type counted struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"` // of an error
	Rows   int    `json:"rows"`
}

// byCount returns the counts, the largest first.
func byCount(counts map[string]int) []counted {
	all := make([]counted, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, counted{Name: name, Rows: counts[name]})
	}
	slices.SortStableFunc(all, func(a, b counted) int { return cmp.Compare(b.Rows, a.Rows) })
	return all
}

// WriteJSON writes the summary as a JSON object. Unknown countries and systems have the name "".
func (s *Summary) WriteJSON(w io.Writer) error {
	problems := byCount(s.errors)
	for i := range problems {
		p := &problems[i]
		p.Name, p.Reason, _ = strings.Cut(p.Name, " ")
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Rows      int            `json:"rows"`
		Failed    int            `json:"failed"`
		Countries []counted      `json:"countries"`
		Systems   []counted      `json:"as"`
		Flags     map[string]int `json:"flags"`
		Errors    []counted      `json:"errors"`
	}{s.rows, s.failed, byCount(s.countries), byCount(s.systems), s.flags, problems})
}

// shown is how many lines of each list the text has.
const shown = 20

// WriteText writes the summary for people. clean makes a text safe for a terminal.
func (s *Summary) WriteText(w io.Writer, clean func(string) string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "rows\t%d\n", s.rows)
	fmt.Fprintf(table, "failed\t%d\t%s\n", s.failed, share(s.failed, s.rows))
	for _, list := range []struct {
		title string
		rows  []counted
	}{{"country", byCount(s.countries)}, {"as", byCount(s.systems)}, {"flag", byCount(s.flags)},
		{"error", byCount(s.errors)}} {
		if len(list.rows) == 0 {
			continue
		}
		fmt.Fprintf(table, "\n%s\trows\tshare\n", list.title)
		for i, c := range list.rows {
			if i == shown {
				fmt.Fprintf(table, "(%d more)\n", len(list.rows)-shown)
				break
			}
			fmt.Fprintf(table, "%s\t%d\t%s\n", cmp.Or(clean(c.Name), "(unknown)"), c.Rows,
				share(c.Rows, s.rows))
		}
	}
	return table.Flush()
}

func share(part, all int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1)))
}
