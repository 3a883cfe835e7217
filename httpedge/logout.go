package httpedge

import (
	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/pages"
)

// logout ends all sessions of the browser, after a question.
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
	default:
		s.signOut(v, visitors)
	}
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
