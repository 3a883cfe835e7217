package pages

// Page is a page that can be rendered.
type Page interface {
	Render(v *View) ([]byte, error)
}

// Form is a page of a form that GET can show again, with problems.
type Form struct {
	Page     Page
	Path     string    // path and query of the page; "" = none
	Problems *Problems // of Page, which shows what they are set to
}

// FormOf returns a copy of a page of a form. ok is false for other pages, and for forms that GET does
// not show.
func FormOf(p Page) (f Form, ok bool) {
	page, ok := p.(interface{ form() Form })
	if ok {
		f = page.form()
	}
	return f, ok
}

func (p Login) form() Form         { return Form{&p, p.Action, &p.Problems} }
func (p Register) form() Form      { return Form{&p, p.Action, &p.Problems} }
func (p Phone) form() Form         { return Form{&p, p.Action, &p.Problems} }
func (p Reset) form() Form         { return Form{&p, p.Action, &p.Problems} }
func (p Verify) form() Form        { return Form{&p, p.Action, &p.Problems} }
func (p Accounts) form() Form      { return Form{&p, p.Action, &p.Problems} }
func (p Consent) form() Form       { return Form{&p, p.Action, &p.Problems} }
func (p DeviceCode) form() Form    { return Form{&p, p.Action, &p.Problems} }
func (p MeProfile) form() Form     { return Form{&p, PathMeProfile, &p.Problems} }
func (p MeApps) form() Form        { return Form{&p, p.Span().Action(), &p.Problems} }
func (p MeSessions) form() Form    { return Form{&p, p.Span().Action(), &p.Problems} }
func (p MePassword) form() Form    { return Form{&p, p.Action, &p.Problems} }
func (p MePhoneSignIn) form() Form { return Form{&p, p.Action, &p.Problems} }
func (p MeAddress) form() Form     { return Form{&p, p.Action, &p.Problems} }
func (p MeDelete) form() Form      { return Form{&p, p.Action, &p.Problems} }
func (p MeConfirm) form() Form     { return Form{&p, p.Action, &p.Problems} }
