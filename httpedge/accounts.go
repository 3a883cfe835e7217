package httpedge

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/pages"
)

// accounts lets a person choose with which account to go on. Without a pending request it shows who is signed in.
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
	case v.pending == nil:
		redirect(v.http, pathAccounts)
	case !v.bind("accounts").checkFormToken(value(v.form, fieldFormToken), v.now):
		s.showAccounts(v, visitors, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
	default:
		s.choose(v, visitors)
	}
}

func (s *Server) choose(v *visit, visitors []visitor) {
	id, err := strconv.ParseInt(value(v.form, "account"), 10, 64)
	chosen, ok := visitorWith(visitors, id)
	if err != nil || !ok {
		s.showAccounts(v, visitors, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: "Choose one of these accounts, or use another."})
		return
	}
	redirect(v.http, v.pathChosen(pathAuthorize, newChoice(chosen.user.ID, false)))
}

func (s *Server) showAccounts(v *visit, visitors []visitor, status int, problems ...pages.Problem) {
	s.show(v, status, pages.Accounts{
		Client: v.clientName(), Action: v.path(pathAccounts), FormToken: v.bind("accounts").newFormToken(v.now),
		Accounts: accountsOf(visitors), Another: v.path(pathLogin), Problems: problems,
	})
}
