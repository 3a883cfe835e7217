package httpedge

import (
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/pages"
)

// logout ends all sessions of the browser, after a question, or the one of an account that was chosen among them.
func (s *Server) logout(v *visit) {
	visitors, err := s.visitors(v)
	if err != nil {
		s.writeFailure(v.http, "read sessions", err)
		return
	}
	form := v.bind("logout")
	switch {
	case !v.http.IsPost():
		s.writePage(v.http, fasthttp.StatusOK, pages.Logout{Accounts: accountsOf(visitors), FormToken: form.newFormToken(v.now)})
	case !form.checkFormToken(value(v.form, fieldFormToken), v.now):
		s.writePage(v.http, fasthttp.StatusForbidden, pages.Logout{Accounts: accountsOf(visitors), FormToken: form.newFormToken(v.now),
			Problems: []pages.Problem{{Text: textStaleForm}}})
	case slices.ContainsFunc(v.form, func(p oauth.Parameter) bool { return p.Name == fieldAccount }):
		s.signOutOne(v, visitors)
	default:
		s.signOut(v, visitors)
	}
}

// signOutOne ends the session of one account here and goes on with the others.
func (s *Server) signOutOne(v *visit, visitors []visitor) {
	id, err := strconv.ParseInt(value(v.form, fieldAccount), 10, 64)
	leaving, ok := visitorWith(visitors, id)
	if err != nil || !ok {
		s.showAccounts(v, visitors, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: "This account is signed out already."})
		return
	}
	if err := s.config.Identity.SignOut(v.ctx, leaving.token); err != nil {
		s.writeFailure(v.http, "sign out", err)
		return
	}
	s.keepSessions(v, slices.DeleteFunc(visitors, func(who visitor) bool { return who.user.ID == id }))
	redirect(v.http, v.path(pathAccounts))
}

func (s *Server) signOut(v *visit, visitors []visitor) {
	for _, who := range visitors {
		if err := s.config.Identity.SignOut(v.ctx, who.token); err != nil {
			s.writeFailure(v.http, "sign out", err)
			return
		}
	}
	s.cookies.write(v.http, s.cookies.session, nil, 0)
	s.renewBrowserSecret(v.http)
	redirect(v.http, pathLogout)
}
