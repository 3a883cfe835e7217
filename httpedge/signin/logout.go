package signin

import (
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// logout signs out: of all accounts of the browser after a confirmation, or of the one that was
// chosen.
func (s *service) logout(v *visit.Visit) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return
	}
	form := v.Bind("logout")
	switch {
	case !v.HTTP.IsPost():
		s.WritePage(v.HTTP, fasthttp.StatusOK,
			pages.Logout{Accounts: visit.AccountsOf(visitors), FormToken: form.NewFormToken(v.Now)})
	case !v.CheckForm(form):
		s.WritePage(v.HTTP, fasthttp.StatusForbidden,
			pages.Logout{Accounts: visit.AccountsOf(visitors), FormToken: form.NewFormToken(v.Now),
				Problems: []pages.Problem{{Text: visit.TextStaleForm}}})
	case slices.ContainsFunc(v.Form,
		func(p oauth.Parameter) bool { return p.Name == fieldAccount }):
		s.signOutOne(v, visitors)
	default:
		s.signOut(v, visitors)
	}
}

// signOutOne ends the session of one account in this browser.
func (s *service) signOutOne(v *visit.Visit, visitors []visit.Visitor) {
	id, err := strconv.ParseInt(v.Field(fieldAccount), 10, 64)
	leaving, ok := visit.FindVisitor(visitors, id)
	if err != nil || !ok {
		s.showAccounts(v, visitors, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("accounts.left")})
		return
	}
	if err := s.people.SignOut(v.Ctx, leaving.Token); err != nil {
		s.WriteFailure(v.HTTP, "sign out", err)
		return
	}
	s.KeepSessions(v, slices.DeleteFunc(visitors, func(who visit.Visitor) bool {
		return who.User.ID == id
	}))
	visit.Redirect(v.HTTP, v.Path(pages.PathAccounts))
}

func (s *service) signOut(v *visit.Visit, visitors []visit.Visitor) {
	for _, who := range visitors {
		if err := s.people.SignOut(v.Ctx, who.Token); err != nil {
			s.WriteFailure(v.HTTP, "sign out", err)
			return
		}
	}
	s.DropSessions(v)
	s.RenewBrowserSecret(v.HTTP)
	visit.Redirect(v.HTTP, pages.PathLogout)
}
