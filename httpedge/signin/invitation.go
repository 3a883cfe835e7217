package signin

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// invitation shows the form of an invitation, and makes the account when it is sent: programs that
// look at mails open links.
func (s *service) invitation(v *visit.Visit) {
	v.Secret = s.BrowserSecret(v.HTTP)
	token := string(v.HTTP.QueryArgs().Peek("token"))
	if v.HTTP.IsPost() {
		token = v.Field("token")
	}
	i, err := s.people.Invitation(v.Ctx, token, v.Now)
	switch {
	case err != nil:
		s.refuseInvitation(v, err)
	case !v.HTTP.IsPost():
		s.showInvitation(v, i, token, fasthttp.StatusOK)
	case !v.CheckForm(v.Bind("invitation")):
		s.showInvitation(v, i, token, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		s.acceptInvitation(v, i, token)
	}
}

func (s *service) showInvitation(v *visit.Visit, i *account.Invitation, token string, status int,
	problems ...pages.Problem) {
	name := i.Name
	if v.HTTP.IsPost() {
		name = v.Shown("name")
	}
	s.WritePage(v.HTTP, status, pages.Invitation{Email: i.Email, Name: name, Token: token,
		Action: pages.PathInvitation, FormToken: v.Bind("invitation").NewFormToken(v.Now),
		Providers: s.vouching(v), Problems: problems})
}

// refuseInvitation responds when the link of an invitation does not work.
func (s *service) refuseInvitation(v *visit.Visit, err error) {
	if !errors.Is(err, account.ErrNotFound) {
		s.WriteFailure(v.HTTP, "use an invitation", err)
		return
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusGone, pages.Message{Title: texts.Of("invitation.gone"),
		Text: texts.Of("invitation.gone_text"), Advice: texts.Of("invitation.gone_advice"),
		Link: pages.PathLogin, LinkText: texts.Of("login.heading")})
}

func (s *service) acceptInvitation(v *visit.Visit, i *account.Invitation, token string) {
	in, err := s.people.AcceptInvitation(v.Ctx, token, v.Field("name"), v.Field("password"),
		s.Browser(v, i.Email), v.Now)
	status, problems := visit.Again(v, err, "password", "")
	switch {
	case err == nil:
		s.finishSignIn(v, in)
	case errors.Is(err, account.ErrTaken):
		s.showLogin(v, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: texts.Of("login.taken")})
	case errors.Is(err, account.ErrNotFound):
		s.refuseInvitation(v, err)
	case status != 0:
		s.showInvitation(v, i, token, status, problems...)
	default:
		s.WriteFailure(v.HTTP, "accept an invitation", err)
	}
}
