package signin

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// maxPending bounds the query of an authorization request, in bytes: it has to come back in every step, together with
// cookies and other headers.
const maxPending = 12 << 10

// pendingParameters are the parameters of an authorization request, beside the one that skips the account chooser.
var pendingParameters = []string{"response_type", "client_id", "redirect_uri", "scope", "state", "prompt", "code_challenge", "code_challenge_method"}

// flow makes a handler of one that needs a visit with the authorization request that it is about, if there is one. It lets no
// form pass that comes from another site.
func (s *service) flow(handle func(*visit.Visit)) fasthttp.RequestHandler {
	return s.Handle(func(v *visit.Visit) {
		if !s.readPending(v) {
			return
		}
		v.Secret = s.BrowserSecret(v.HTTP)
		v.Choice = s.OpenChoice(v)
		handle(v)
	})
}

// refuseRequest answers 400 with a page about an authorization request that must not be answered by a redirect.
func (s *service) refuseRequest(v *visit.Visit, fault *oauth.Error) {
	advice := "Go back to the application and start again. If this happens again, tell the people who run it."
	if fault.Hint != "" {
		advice += " For them: " + fault.Hint
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusBadRequest, pages.Message{Title: "This request cannot be served", Text: fault.Description,
		Fault: "The cause lies with the application that sent you here, not with you.", Advice: advice})
}

// readPending reads the authorization request, if there is one, or answers what is wrong with it: on a page as long as it is not
// sure that the redirect URI is the client's, and by a redirect after that.
func (s *service) readPending(v *visit.Visit) bool {
	params, ok := endpoint.ParseParameters(v.HTTP.URI().QueryString())
	if !ok {
		s.RefusePage(v, "The address of this page is malformed.", "Go back to the application and start again.")
		return false
	}
	query := s.pendingQuery(params)
	if query == "" && string(v.HTTP.Path()) != pages.PathAuthorize {
		return true
	}
	request, fault := oauth.ParseAuthorizationRequest(params, s.chooser)
	if fault != nil {
		s.refuseRequest(v, fault)
		return false
	}
	client, err := s.tokens.Client(v.Ctx, request.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		s.WriteFailure(v.HTTP, "read a client", err)
		return false
	}
	if fault := request.CheckClient(client); fault != nil {
		s.refuseRequest(v, fault)
		return false
	}
	v.Pending = &visit.Pending{Request: request, Client: client, Query: query}
	if fault := request.Check(client, s.defaults); fault != nil {
		s.Refuse(v, fault)
		return false
	}
	if len(query) > maxPending {
		s.Refuse(v, &oauth.Error{Code: oauth.InvalidRequest, Description: "The request is too long."})
		return false
	}
	return true
}

// pendingQuery returns the parameters of an authorization request among params as a query; "" = there are none.
func (s *service) pendingQuery(params []oauth.Parameter) string {
	var query strings.Builder
	for _, p := range params {
		if p.Name != s.chooser && !slices.Contains(pendingParameters, p.Name) {
			continue
		}
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.WriteString(p.Name + "=" + url.QueryEscape(p.Value))
	}
	return query.String()
}

// authorize answers GET /oauth/authorize (RFC 6749 section 4.1.1): it sends the browser to the next page, or back to the client.
func (s *service) authorize(v *visit.Visit) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.RefuseFailed(v, "read sessions", err)
		return
	}
	if len(visitors) > 0 {
		s.KeepSessions(v, visitors)
	}
	s.advance(v, visitors, 0)
}

// advance does what comes next.
func (s *service) advance(v *visit.Visit, visitors []visit.Visitor, decision oauth.Decision) {
	browser, current := browserOf(v, visitors)
	browser.Decision = decision
	if browser.SignedIn {
		consent, err := s.people.Consent(v.Ctx, current.User.ID, v.Pending.Client.ID)
		if err != nil {
			s.RefuseFailed(v, "read a consent", err)
			return
		}
		browser.Consent = oauth.Scopes(consent.Scopes)
	}
	step, fault := oauth.NextStep(v.Pending.Request, v.Pending.Client, browser)
	switch step {
	case oauth.StepLogin:
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case oauth.StepChooseAccount:
		visit.Redirect(v.HTTP, v.Path(pages.PathAccounts))
	case oauth.StepConsent:
		next := v.Choice
		if next.UserID != current.User.ID {
			next = visit.NewChoice(current.User.ID, false)
		}
		visit.Redirect(v.HTTP, v.PathChosen(pages.PathConsent, next))
	case oauth.StepIssue:
		s.issue(v, current, decision)
	default:
		s.Refuse(v, fault)
	}
}

// browserOf returns what the rules want to know, and with whom the request goes on: who was chosen, or else the last who
// signed in.
func browserOf(v *visit.Visit, visitors []visit.Visitor) (oauth.Browser, visit.Visitor) {
	if chosen, ok := visit.VisitorWith(visitors, v.Choice.UserID); ok {
		return oauth.Browser{SignedIn: true, Chosen: true, Fresh: v.Choice.SignedIn}, chosen
	}
	if len(visitors) == 0 {
		return oauth.Browser{}, visit.Visitor{}
	}
	return oauth.Browser{SignedIn: true}, visitors[0]
}

// issue ends the flow with a code. A consent that was given just now is remembered first. Where the client wants to see a person sign
// in, that is good for one code.
func (s *service) issue(v *visit.Visit, who visit.Visitor, decision oauth.Decision) {
	request := v.Pending.Request
	if request.Prompt.Contains(oauth.PromptLogin) && !s.SpendChoice(v.Choice) {
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
		return
	}
	if decision == oauth.Allowed {
		if err := s.people.GrantConsent(v.Ctx, who.User.ID, request.ClientID, request.Scopes, v.Now); err != nil {
			s.RefuseFailed(v, "remember a consent", err)
			return
		}
	}
	code, fault := s.tokens.IssueConsentedCode(v.Ctx, oauth.AuthorizationCode{
		ClientID: request.ClientID, UserID: who.User.ID, RedirectURI: request.RedirectURI,
		Scopes: request.Scopes, DefaultScopes: request.DefaultScopes, CodeChallenge: request.CodeChallenge,
	}, v.Now)
	if fault != nil {
		s.Refuse(v, fault)
		return
	}
	visit.Redirect(v.HTTP, request.CodeURL(code, s.issuer))
}
