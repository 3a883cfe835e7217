package signin

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/lookalike"
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

// maxCompared limits the clients whose names are compared with that of a client that nobody has
// checked.
const maxCompared = 500

// resembled returns the name for which people could take that of a client that nobody has checked: the
// service's, or that of a client that an operator made or checked. "" = none.
func (s *service) resembled(v *visit.Visit, client *oauth.Client) (string, error) {
	if !client.IsUnverified() {
		return "", nil
	}
	if lookalike.Looks(client.Name, s.ServiceName()) {
		return s.ServiceName(), nil
	}
	all, err := s.tokens.SettledClients(v.Ctx, "", maxCompared)
	for _, other := range all {
		if !other.IsUnverified() &&
			lookalike.Skeleton(client.Name) == lookalike.Skeleton(other.Name) {
			return other.Name, nil
		}
	}
	return "", err
}

// resembledByHost returns the service's name if people could take the host of a client that nobody has
// checked for that of the service. "" = not.
func (s *service) resembledByHost(client *oauth.Client, host string) string {
	if client.IsUnverified() && lookalike.HostLooks(host, s.Host(), s.ServiceName()) {
		return s.ServiceName()
	}
	return ""
}

func (s *service) showConsent(v *visit.Visit, who visit.Visitor, status int,
	problems ...pages.Problem) {
	request, client := v.Pending.Request, v.Pending.Client
	host := client.HostBeforeConsent(request.RedirectURI)
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
	resembles, err := s.resembled(v, client)
	if err != nil {
		s.RefuseFailure(v, "read clients", err)
		return
	}
	onward, err := s.tokens.Onward(v.Ctx, client, request.Targets)
	if err != nil {
		s.RefuseFailure(v, "read clients", err)
		return
	}
	s.Show(v, status, pages.Consent{
		Client: client.Name, ClientURI: client.URI, Logo: pages.AppLogo(client),
		Account: who.Account(),
		Permissions: append(
			pages.Permissions(pages.Uncovered(request.Scopes, client.DetailApproved),
				oauth.Scopes(consent.Scopes)),
			pages.ResourcePermissions(v.Pending.Reaches, granted)...),
		Onward:      pages.ResourcePermissions(onward, nil),
		Unapproved:  request.Scopes.Contains(oauth.DetailUser) && !client.DetailApproved,
		Destination: request.Destination(), Host: host,
		Scheme:     oauth.PrivateScheme(request.RedirectURI),
		Unverified: client.IsUnverified(), ReturnsHere: request.ReturnsHere(),
		Resembles: resembles, Mixed: lookalike.MixesScripts(client.Name),
		HostResembles: s.resembledByHost(client, host),
		Action:        v.PathChosen(pages.PathConsent, who.User.ID),
		FormToken:     consentForm(v, who, consent).NewFormToken(v.Now),
		Another:       v.Path(pages.PathAccounts), Problems: problems,
	})
}
