package httpedge

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/pages"
)

// fieldAccount is the field with the id of an account.
const fieldAccount = "account"

// accounts lets a person choose with which account to go on: with a pending request, or else to the account's own page.
func (s *Server) accounts(v *visit) {
	visitors, err := s.visitors(v)
	if err != nil {
		s.writeFailure(v.http, "read sessions", err)
		return
	}
	switch {
	case v.pending != nil && len(visitors) == 0:
		redirect(v.http, v.path(pathLogin))
	case !v.http.IsPost():
		s.showAccounts(v, visitors, fasthttp.StatusOK)
	case !v.bind("accounts").checkFormToken(value(v.form, fieldFormToken), v.now):
		s.showAccounts(v, visitors, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
	default:
		s.choose(v, visitors)
	}
}

func (s *Server) choose(v *visit, visitors []visitor) {
	id, err := strconv.ParseInt(value(v.form, fieldAccount), 10, 64)
	chosen, ok := visitorWith(visitors, id)
	if err != nil || !ok {
		s.showAccounts(v, visitors, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: "Choose one of these accounts, or use another."})
		return
	}
	if v.pending == nil {
		s.putFirst(v, visitors, chosen)
		redirect(v.http, pathMe)
		return
	}
	redirect(v.http, v.pathChosen(pathAuthorize, newChoice(chosen.user.ID, false)))
}

// putFirst makes the chosen account the one that this browser goes on with.
func (s *Server) putFirst(v *visit, visitors []visitor, chosen visitor) {
	all := []visitor{chosen}
	for _, who := range visitors {
		if who.user.ID != chosen.user.ID {
			all = append(all, who)
		}
	}
	s.keepSessions(v, all)
}

func (s *Server) showAccounts(v *visit, visitors []visitor, status int, problems ...pages.Problem) {
	s.show(v, status, pages.Accounts{
		Client: v.clientName(), Action: v.path(pathAccounts), FormToken: v.bind("accounts").newFormToken(v.now),
		Accounts: accountsOf(visitors), Another: v.path(pathLogin), SignOut: v.path(pathLogout), SignOutToken: v.bind("logout").newFormToken(v.now),
		Me: pathMe, Problems: problems,
	})
}
