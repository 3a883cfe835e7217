package signin

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// consent shows and handles the consent page.
func (s *service) consent(v *visit.Visit) {
	if v.Pending == nil {
		visit.Redirect(v.HTTP, pages.PathAccounts)
		return
	}
	visitors, err := s.Visitors(v)
	if err != nil {
		s.RefuseFailure(v, "read sessions", err)
		return
	}
	who, ok := visit.FindVisitor(visitors, v.Chosen)
	if !ok {
		visit.Redirect(v.HTTP, v.Path(pages.PathAuthorize))
		return
	}
	if !v.HTTP.IsPost() {
		s.showConsent(v, who, fasthttp.StatusOK)
		return
	}
	decision := map[string]oauth.Decision{"allow": oauth.Allowed,
		"deny": oauth.Denied}[v.Field("decision")]
	if decision == 0 {
		s.showConsent(v, who, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("consent.choose")})
		return
	}
	consent, err := s.people.Consent(v.Ctx, who.User.ID, v.Pending.Client.ID)
	if err != nil {
		s.RefuseFailure(v, "read a consent", err)
		return
	}
	if !v.CheckForm(consentForm(v, who, consent)) {
		s.showConsent(v, who, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
		return
	}
	s.advance(v, visitors, answer{decision, consent.Granted})
}

// textTooManyClients tells that an account has reached oauth.MostSelfRegistered.
var textTooManyClients = texts.Of("consent.too_many", "n", oauth.MostSelfRegistered)

// consentForm binds the form to the session and to the time of the last consent as well. A form
// that granted something is then no longer valid: GrantConsent compares that time in the database,
// so this holds for forms that are sent at the same time, and on all servers.
func consentForm(v *visit.Visit, who visit.Visitor, consent account.Consent) visit.Binding {
	return v.Bind("consent " + who.Token + " " +
		strconv.FormatInt(consent.Granted.UnixMilli(), 10) + v.Pending.Client.Description())
}

func (s *service) showConsent(v *visit.Visit, who visit.Visitor, status int,
	problems ...pages.Problem) {
	request, client := v.Pending.Request, v.Pending.Client
	consent, err := s.people.Consent(v.Ctx, who.User.ID, client.ID)
	if err != nil {
		s.RefuseFailure(v, "read a consent", err)
		return
	}
	if v.Pending.Outdates(consent) {
		consent.Scopes, consent.Resources = 0, ""
	}
	granted, err := oauth.ParseTargets(consent.Resources)
	if err != nil {
		s.RefuseFailure(v, "read a consent", err)
		return
	}
	s.Show(v, status, pages.Consent{
		Client: client.Name, ClientURI: client.URI, Account: who.Account(),
		Permissions: append(
			pages.Permissions(request.Scopes, oauth.Scopes(consent.Scopes)),
			pages.ResourcePermissions(v.Pending.Reaches, granted)...),
		Unapproved:  request.Scopes.Contains(oauth.DetailUser) && !client.DetailApproved,
		Destination: request.Destination(), Host: client.HostBeforeConsent(request.RedirectURI),
		Scheme:     oauth.PrivateScheme(request.RedirectURI),
		Unverified: client.IsUnverified(), ReturnsHere: request.ReturnsHere(),
		Action:    v.PathChosen(pages.PathConsent, who.User.ID),
		FormToken: consentForm(v, who, consent).NewFormToken(v.Now),
		Another:   v.Path(pages.PathAccounts), Problems: problems,
	})
}
