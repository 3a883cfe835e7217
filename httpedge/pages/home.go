package pages

import "gatehouse/actors/texts"

// Home is the page at / for people.
type Home struct {
	SignIn   bool        // accounts are here
	SignedIn bool        // the browser is signed in
	Lookup   *HomeLookup // nil = lookups are not offered
}

// HomeLookup is the form for a lookup, with its result. Its field is q, in the URL.
type HomeLookup struct {
	Query        string // as it was entered
	Own          string // address of the visitor; "" = unknown
	OwnPlace     string // where that is, such as "London, United Kingdom"; "" = unknown
	CanLookUpOwn bool   // the page offers to look it up
	Rows         []HomeRow
	Curl         string // command with the same result; "" = there is none
	Problems     Problems
}

// HomeRow is a row of a result.
type HomeRow struct{ Name, Value texts.Text }

// Problems returns what is wrong with the form.
func (p Home) Problems() Problems {
	if p.Lookup == nil {
		return nil
	}
	return p.Lookup.Problems
}

// Render returns the page.
func (p Home) Render(v *View) ([]byte, error) { return v.render(home, p) }
