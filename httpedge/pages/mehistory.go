package pages

import (
	"strconv"

	"gatehouse/actors/texts"
)

// MeHistory is the page with the security history of an account, the newest event first, some at a
// time.
type MeHistory struct {
	Account Account
	Events  []HistoryEvent // as many as have room are shown
	More    bool           // there are older ones behind Events
	Later   bool           // there are newer ones before Events
}

// HistoryEvent is something that happened to an account.
type HistoryEvent struct {
	Number int64
	Time   texts.Text // such as "3 May 2026, 12:04 UTC"
	At     string     // the same by RFC 3339
	Text   texts.Text
	Count  int        // how often it happened, at least 1
	Device texts.Text // browser and system in a few words; nil = unknown
	Near   string     // such as "London, United Kingdom"; "" = unknown
	Place  string     // an address or a prefix; "" = unknown
}

// Render returns the page.
func (p MeHistory) Render(v *View) ([]byte, error) {
	return fit(len(p.Events), func(rows int) ([]byte, error) {
		fewer := p
		// so that each page leads on
		fewer.Events = p.Events[:min(max(rows, 1), len(p.Events))]
		fewer.More = p.More || len(fewer.Events) < len(p.Events)
		return v.render(meHistory, fewer)
	})
}

// Older returns the path of the events behind those that are shown; "" = none.
func (p MeHistory) Older() string {
	if !p.More || len(p.Events) == 0 {
		return ""
	}
	return PathMeHistory + "?before=" + strconv.FormatInt(p.Events[len(p.Events)-1].Number, 10)
}
