package signin

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// fieldAccount is the form field with the id of an account.
const fieldAccount = "account"

// accounts shows and handles the account chooser. Without a pending request it leads to the
// account's own page.
func (s *service) accounts(v *visit.Visit) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return
	}
	switch {
	case v.Pending != nil && len(visitors) == 0:
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case !v.HTTP.IsPost():
		s.showAccounts(v, visitors, fasthttp.StatusOK)
	case !v.CheckForm(v.Bind("accounts")):
		s.showAccounts(v, visitors, fasthttp.StatusForbidden,
			pages.Problem{Text: visit.TextStaleForm})
	default:
		s.choose(v, visitors)
	}
}

func (s *service) choose(v *visit.Visit, visitors []visit.Visitor) {
	id, err := strconv.ParseInt(v.Field(fieldAccount), 10, 64)
	chosen, ok := visit.FindVisitor(visitors, id)
	if err != nil || !ok {
		s.showAccounts(v, visitors, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("accounts.choose_problem")})
		return
	}
	if v.Pending == nil {
		s.putFirst(v, visitors, chosen)
		visit.Redirect(v.HTTP, v.Home())
		return
	}
	visit.Redirect(v.HTTP, v.PathChosen(pages.PathAuthorize, chosen.User.ID))
}

// putFirst makes the chosen account the current one of this browser.
func (s *service) putFirst(v *visit.Visit, visitors []visit.Visitor, chosen visit.Visitor) {
	all := []visit.Visitor{chosen}
	for _, who := range visitors {
		if who.User.ID != chosen.User.ID {
			all = append(all, who)
		}
	}
	s.KeepSessions(v, all)
}

func (s *service) showAccounts(v *visit.Visit, visitors []visit.Visitor, status int,
	problems ...pages.Problem) {
	s.Show(v, status, pages.Accounts{
		Client: v.ClientName(), Action: v.Path(pages.PathAccounts),
		FormToken: v.Bind("accounts").NewFormToken(v.Now),
		Accounts:  visit.AccountsOf(visitors), Another: v.Path(pages.PathLogin),
		SignOut: v.Path(pages.PathLogout), SignOutToken: v.Bind("logout").NewFormToken(v.Now),
		Me: v.Home(), Problems: problems,
	})
}
