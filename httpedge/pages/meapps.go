package pages

import (
	"slices"
	"strconv"

	"gatehouse/actors/texts"
)

// maxPage is what a page has to stay below, in bytes.
const maxPage = 20 << 10

// fit renders a page with fewer and fewer rows, at last none, until it is small enough.
func fit(rows int, render func(rows int) ([]byte, error)) ([]byte, error) {
	for {
		page, err := render(rows)
		if err != nil || len(page) < maxPage || rows == 0 {
			return page, err
		}
		rows = rows * 2 / 3
	}
}

// MeApps is the page of all connected apps, some at a time. Its form goes to /me/apps with
// FormToken and field client_id; in its paths the parameter from is From, that of the page which is
// shown or led to.
type MeApps struct {
	Account     Account
	FormToken   string
	Connections []Connection // from From on; as many as have room are shown
	From        int          // how many are before Connections
	More        int          // how many are behind Connections
	Step        int          // how many the link to those before goes back, at least 1
	Notice      texts.Text   // something that has gone well; nil = nothing
	Problems    Problems
}

// Render returns the page.
func (p MeApps) Render(v *View) ([]byte, error) {
	return fit(len(p.Connections), func(rows int) ([]byte, error) {
		fewer := p
		// so that each page leads on
		fewer.Connections = p.Connections[:min(max(rows, 1), len(p.Connections))]
		fewer.More += len(p.Connections) - len(fewer.Connections)
		return v.render(meApps, fewer)
	})
}

// Span returns which part of the list is shown.
func (p MeApps) Span() Span { return Span{PathMeApps, p.From, len(p.Connections), p.More, p.Step} }

// MeSessions is the page of all sessions, some at a time. Its form goes to /me/sessions with
// FormToken and field session, or all=true for all but this browser's, and the parameter from as in
// MeApps.
type MeSessions struct {
	Account   Account
	FormToken string
	Sessions  []Session  // from From on
	From      int        // how many are before Sessions
	More      int        // how many are behind Sessions
	Step      int        // how many the link to those before goes back, at least 1
	Notice    texts.Text // something that has gone well; nil = nothing
	Problems  Problems
}

// Render returns the page.
func (p MeSessions) Render(v *View) ([]byte, error) {
	return fit(len(p.Sessions), func(rows int) ([]byte, error) {
		fewer := p
		fewer.Sessions = p.Sessions[:min(max(rows, 1), len(p.Sessions))]
		fewer.More += len(p.Sessions) - len(fewer.Sessions)
		return v.render(meSessions, fewer)
	})
}

// Others reports whether a session besides this browser's can be ended.
func (p MeSessions) Others() bool {
	return p.Span().Paged() || slices.ContainsFunc(p.Sessions, func(s Session) bool {
		return !s.Current
	})
}

// Span returns which part of the list is shown.
func (p MeSessions) Span() Span {
	return Span{PathMeSessions, p.From, len(p.Sessions), p.More, p.Step}
}

// Span is the part of a list that a page shows.
type Span struct {
	path                    string
	from, shown, more, step int
}

// Paged reports whether there are others than those that are shown.
func (s Span) Paged() bool { return s.from > 0 || s.more > 0 }

// First returns the place of the first that is shown, from 1 on.
func (s Span) First() int { return s.from + 1 }

// Last returns the place of the last that is shown.
func (s Span) Last() int { return s.from + s.shown }

// All returns how many there are, shown or not.
func (s Span) All() int { return s.Last() + s.more }

// Action returns where the form goes: back to what is shown.
func (s Span) Action() string { return s.at(s.from) }

// Previous returns the path of those before; "" = none.
func (s Span) Previous() string {
	if s.from == 0 {
		return ""
	}
	return s.at(max(0, s.from-s.step))
}

// Next returns the path of those behind; "" = none.
func (s Span) Next() string {
	if s.more == 0 {
		return ""
	}
	return s.at(s.Last())
}

func (s Span) at(from int) string { return s.path + "?from=" + strconv.Itoa(from) }
