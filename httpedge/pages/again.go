package pages

// Page is a page that can be rendered.
type Page interface {
	Render(v *View) ([]byte, error)
}

// A page of a form can be shown again, with problems, by GET at a path. Wrong returns the problems
// that it has.

// Again returns the path of the page and the page with problems.
func (p Login) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p Login) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p Register) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p Register) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p Phone) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p Phone) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p Reset) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p Reset) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p Verify) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p Verify) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p Accounts) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p Accounts) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p Consent) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p Consent) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p DeviceCode) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p DeviceCode) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MeProfile) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return PathMeProfile, p
}

// Wrong returns what is wrong.
func (p MeProfile) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MeApps) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Span().Action(), p
}

// Wrong returns what is wrong.
func (p MeApps) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MeSessions) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Span().Action(), p
}

// Wrong returns what is wrong.
func (p MeSessions) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MePassword) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p MePassword) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MePhoneSignIn) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p MePhoneSignIn) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MeAddress) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p MeAddress) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MeDelete) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p MeDelete) Wrong() Problems { return p.Problems }

// Again returns the path of the page and the page with problems.
func (p MeConfirm) Again(problems Problems) (string, Page) {
	p.Problems = problems
	return p.Action, p
}

// Wrong returns what is wrong.
func (p MeConfirm) Wrong() Problems { return p.Problems }
