package pages

import "strconv"

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
	Notice      string       // something that has gone well, in one sentence; "" = nothing
	Problems    Problems
}

// Render returns the page.
func (p MeApps) Render() ([]byte, error) {
	return fit(len(p.Connections), func(rows int) ([]byte, error) {
		fewer := p
		// so that each page leads on
		fewer.Connections = p.Connections[:min(max(rows, 1), len(p.Connections))]
		fewer.More += len(p.Connections) - len(fewer.Connections)
		return render(meApps, fewer)
	})
}

// Paged reports whether there are others than those that are shown.
func (p MeApps) Paged() bool { return p.From > 0 || p.More > 0 }

// First returns the place of the first that is shown, from 1 on.
func (p MeApps) First() int { return p.From + 1 }

// Last returns the place of the last that is shown.
func (p MeApps) Last() int { return p.From + len(p.Connections) }

// All returns how many there are, shown or not.
func (p MeApps) All() int { return p.Last() + p.More }

// Action returns where the form goes: back to what is shown.
func (p MeApps) Action() string { return appsFrom(p.From) }

// Previous returns the path of those before; "" = none.
func (p MeApps) Previous() string {
	if p.From == 0 {
		return ""
	}
	return appsFrom(max(0, p.From-p.Step))
}

// Next returns the path of those behind; "" = none.
func (p MeApps) Next() string {
	if p.More == 0 {
		return ""
	}
	return appsFrom(p.Last())
}

func appsFrom(from int) string { return "/me/apps?from=" + strconv.Itoa(from) }
