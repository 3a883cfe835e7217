package httpedge

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/pages"
)

// consent asks a person whether to let the client in, and takes the answer.
func (s *Server) consent(v *visit) {
	if v.pending == nil {
		redirect(v.http, pathAccounts)
		return
	}
	visitors, err := s.visitors(v)
	if err != nil {
		s.refuseFailed(v, "read sessions", err)
		return
	}
	who, ok := visitorWith(visitors, v.choice.userID)
	if !ok {
		redirect(v.http, v.path(pathAuthorize))
		return
	}
	if !v.http.IsPost() {
		s.showConsent(v, who, fasthttp.StatusOK)
		return
	}
	decision := map[string]oauth.Decision{"allow": oauth.Allowed, "deny": oauth.Denied}[value(v.form, "decision")]
	if decision == 0 {
		s.showConsent(v, who, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: "Choose Allow or Deny."})
		return
	}
	form, err := s.consentForm(v, who)
	if err != nil {
		s.refuseFailed(v, "read a consent", err)
		return
	}
	if !form.spendFormToken(s.spent, value(v.form, fieldFormToken), v.now) {
		s.showConsent(v, who, fasthttp.StatusForbidden, pages.Problem{Text: textStaleForm})
		return
	}
	s.advance(v, visitors, decision)
}

// consentForm binds the form also to the session, so that it ends with it, and to what the person has granted the client before, so
// that one by which something was granted is not good again at another server either.
func (s *Server) consentForm(v *visit, who visitor) (binding, error) {
	granted, err := s.config.Identity.ConsentGranted(v.ctx, who.user.ID, v.pending.client.ID)
	return v.bind("consent " + who.token + " " + strconv.FormatInt(granted.UnixMilli(), 10)), err
}

func (s *Server) showConsent(v *visit, who visitor, status int, problems ...pages.Problem) {
	request := v.pending.request
	form, err := s.consentForm(v, who)
	if err != nil {
		s.refuseFailed(v, "read a consent", err)
		return
	}
	s.show(v, status, pages.Consent{
		Client: v.clientName(), Account: who.account(), Permissions: permissions(request.Scopes),
		Destination: oauth.RedirectOrigin(request.RedirectURI),
		Action:      v.pathChosen(pathConsent, v.choice), FormToken: form.newFormToken(v.now),
		Another: v.path(pathAccounts), Problems: problems,
	})
}

// permissions says what scopes let a client do, each after "will be able to".
func permissions(scopes oauth.Scopes) []string {
	var all []string
	if scopes.Contains(oauth.ViewUser) {
		all = append(all, "see your name, email address, username, profile picture and gender")
	}
	if scopes.Contains(oauth.DetailUser) {
		all = append(all, "see all of your profile: also your phone number, address, date and place of birth, and what you wrote about yourself")
	}
	return all
}
