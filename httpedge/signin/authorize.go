package signin

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// maxPending limits the query of an authorization request, in bytes: every step sends it again,
// together with cookies and other headers.
const maxPending = 12 << 10

// pendingParameters are the parameters of an authorization request, except the one that skips the
// account chooser.
var pendingParameters = []string{"response_type", "client_id", "redirect_uri", "scope", "state",
	"prompt", "code_challenge", "code_challenge_method", "resource", "ui_locales", "acr_values",
	"max_age"}

// openIDParameters are further ones of a request with the scope openid.
var openIDParameters = []string{"response_mode", "nonce", "login_hint", "id_token_hint"}

// flow returns a handler of a page that may belong to an authorization request. It refuses forms
// that other sites send.
func (s *service) flow(handle func(*visit.Visit)) fasthttp.RequestHandler {
	return s.Handle(func(v *visit.Visit) {
		if !s.readPending(v) {
			return
		}
		v.Secret = s.BrowserSecret(v.HTTP)
		v.OpenPending()
		if v.Pending == nil {
			v.OpenDevice()
		}
		handle(v)
	})
}

// refuseRequest responds with 400 and a page to an authorization request that must not get a
// redirect.
func (s *service) refuseRequest(v *visit.Visit, fault *oauth.Error) {
	s.WriteMessage(v.HTTP, fasthttp.StatusBadRequest,
		pages.Message{Title: texts.Of("message.cannot"), Text: textOf(fault),
			Fault: texts.Of("message.application"), Advice: texts.Of("message.tell_developers"),
			Technical: strings.TrimSpace(fault.Description + " " + fault.Hint)})
}

// textOf returns what an error means to a person, who cannot do anything about it.
func textOf(fault *oauth.Error) texts.Text {
	switch fault.Code {
	case oauth.InvalidClient:
		return texts.Of("message.unknown_client")
	case oauth.UnauthorizedClient, oauth.AccessDenied, oauth.InvalidScope, oauth.InvalidTarget:
		return texts.Of("message.not_allowed")
	}
	return texts.Of("message.not_understood")
}

// readPending reads the authorization request, if there is one. When it is not valid, it responds
// and returns false: with a page until the redirect URI is known to be the client's, with a
// redirect after that.
func (s *service) readPending(v *visit.Visit) bool {
	params, ok := endpoint.ParseParameters(v.HTTP.URI().QueryString())
	if !ok {
		s.RefusePage(v, texts.Of("message.malformed"), texts.Of("message.start_again"))
		return false
	}
	query := s.pendingQuery(params)
	if query == "" && string(v.HTTP.Path()) != pages.PathAuthorize {
		return true
	}
	request, fault := oauth.ParseAuthorizationRequest(params, s.chooser)
	if fault != nil {
		s.ClientFailed(v, endpoint.Value(params, "client_id"), fault)
		s.refuseRequest(v, fault)
		return false
	}
	v.Pending = &visit.Pending{Request: request, Query: query}
	if !s.pendingClient(v, request) {
		return false
	}
	if v.Pending.Unread {
		return s.isShort(v)
	}
	client := v.Pending.Client
	if fault := request.CheckClient(client); fault != nil {
		v.Pending = nil
		s.ClientFailed(v, request.ClientID, fault)
		s.refuseRequest(v, fault)
		return false
	}
	if len(request.Resources) > 0 || len(request.ResourceScopes) > 0 {
		known, err := s.tokens.Resources(v.Ctx)
		if err != nil {
			s.RefuseFailure(v, "read resources", err)
			return false
		}
		request.Resolve(known, client)
		v.Pending.Reaches = known.Reaches(request.Targets)
	}
	if fault := request.Check(client, s.defaults); fault != nil {
		s.refuseRead(v, fault)
		return false
	}
	return s.isShort(v) && s.readHint(v)
}

// refuseRead is Refuse for a request that no step of the flow has looked at. It finds out whether an
// account of the browser knows the client.
func (s *service) refuseRead(v *visit.Visit, fault *oauth.Error) {
	if v.Pending.Client.Options.SelfRegistered && !v.Pending.Unread {
		visitors, err := s.Visitors(v)
		for _, who := range visitors {
			var consent account.Consent
			consent, err = s.people.Consent(v.Ctx, who.User.ID, v.Pending.Client.ID)
			v.Pending.Known = v.Pending.Known || err == nil && v.Pending.Knows(consent)
		}
		if err != nil {
			s.RefuseFailure(v, "read consents", err)
			return
		}
	}
	s.Refuse(v, fault)
}

// isShort reports whether the request can travel from page to page. If not, it responds.
func (s *service) isShort(v *visit.Visit) bool {
	if len(v.Pending.Query) > maxPending {
		s.refuseRead(v, &oauth.Error{Code: oauth.InvalidRequest,
			Description: "The request is too long."})
		return false
	}
	return true
}

// readHint verifies the id_token_hint of the request. When it is not valid, it responds and returns
// false. A hint that has expired is valid (OpenID Connect Core section 3.1.2.1).
func (s *service) readHint(v *visit.Visit) bool {
	request := v.Pending.Request
	if request.IDTokenHint == "" {
		return true
	}
	hint, ok := s.openHint(request.IDTokenHint)
	if !ok || hint.client != request.ClientID {
		s.refuseRead(v, &oauth.Error{Code: oauth.InvalidRequest,
			Description: "The id_token_hint is not a valid id_token of this client.",
			Hint:        "Send the last id_token as it was, or none."})
		return false
	}
	v.Pending.HintedUser = hint.user
	return true
}

// pendingQuery returns the parameters of an authorization request in params as a query; "" = none.
func (s *service) pendingQuery(params []oauth.Parameter) string {
	known := pendingParameters
	if oauth.AsksOpenID(params) {
		known = slices.Concat(known, openIDParameters)
	}
	return s.requestQuery(params, known)
}

// requestQuery returns the parameters that are known, and the one that skips the account chooser, as a
// query.
func (s *service) requestQuery(params []oauth.Parameter, known []string) string {
	return queryOf(params, append(slices.Clip(known), s.chooser))
}

// queryOf returns the parameters that are known as a query.
func queryOf(params []oauth.Parameter, known []string) string {
	var query strings.Builder
	for _, p := range params {
		if !slices.Contains(known, p.Name) {
			continue
		}
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.WriteString(p.Name + "=" + url.QueryEscape(p.Value))
	}
	return query.String()
}

// authorizeByForm serves a POST of an authorization request with the scope openid (OpenID Connect
// Core section 3.1.2.1). Browsers leave out the cookies of the service when another site sends a
// form, so the request continues with GET. A POST of any other request returns false.
func (s *service) authorizeByForm(ctx *fasthttp.RequestCtx) bool {
	params, ok := endpoint.ParseParameters(ctx.PostBody())
	if !ok || !endpoint.IsForm(ctx) || !oauth.AsksOpenID(params) {
		return false
	}
	for i := range params { // only whether they are there counts, and they may be long
		if name := params[i].Name; name == "request" || name == "request_uri" {
			params[i].Value = params[i].Value[:min(1, len(params[i].Value))]
		}
	}
	query := s.requestQuery(params,
		slices.Concat(pendingParameters, openIDParameters, []string{"request", "request_uri"}))
	if len(query) > maxPending {
		s.RefusePage(&visit.Visit{HTTP: ctx}, texts.Of("message.too_long"),
			texts.Of("message.start_again"))
		return true
	}
	visit.Redirect(ctx, pages.PathAuthorize+"?"+query)
	return true
}

// authorize serves GET /oauth/authorize (RFC 6749 section 4.1.1).
func (s *service) authorize(v *visit.Visit) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.RefuseFailure(v, "read sessions", err)
		return
	}
	if len(visitors) > 0 {
		s.KeepSessions(v, visitors)
	}
	s.advance(v, visitors, answer{})
}

// answer is what the user decided on the consent page. The zero answer is none.
type answer struct {
	decision oauth.Decision
	// before is when the user had last granted the client something, as the page was shown.
	before time.Time
}

// advance takes the next step of the flow.
func (s *service) advance(v *visit.Visit, visitors []visit.Visitor, a answer) {
	browser, current := browserOf(v, visitors)
	browser.Decision = a.decision
	var before time.Time
	if browser.SignedIn {
		consent, err := s.people.Consent(v.Ctx, current.User.ID, v.Pending.Client.ID)
		if err != nil {
			s.RefuseFailure(v, "read a consent", err)
			return
		}
		before = consent.Granted
		v.Pending.Known = v.Pending.Knows(consent) || a.decision == oauth.Allowed
		v.Pending.Denied = a.decision == oauth.Denied
		if v.Pending.Outdates(consent) {
			consent.Scopes, consent.Resources = 0, ""
		}
		browser.Consent = oauth.Scopes(consent.Scopes)
		if browser.Targets, err = oauth.ParseTargets(consent.Resources); err != nil {
			s.RefuseFailure(v, "read a consent", err)
			return
		}
	}
	if browser.SignedIn {
		browser.TwoFactors = current.Session.HasTwoFactors()
		browser.HasFactor = current.User.HasSecondFactor()
		browser.MustEnrol = s.people.MustEnrol(current.User, current.Session,
			v.Pending.Client.Options.RequireSecondFactor)
	}
	step, fault := oauth.NextStep(v.Pending.Request, v.Pending.Client, browser)
	if (step == oauth.StepConsent || step == oauth.StepIssue) &&
		!current.User.Groups.MayUse(v.Pending.Client.Options.RequireGroups) {
		s.refuseOutsider(v, current)
		return
	}
	switch step {
	case oauth.StepLogin:
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case oauth.StepChooseAccount:
		visit.Redirect(v.HTTP, v.Path(pages.PathAccounts))
	case oauth.StepEnrol:
		s.goToEnrol(v, current)
	case oauth.StepFactor:
		visit.Redirect(v.HTTP, v.PathChosen(pages.PathStepUp, current.User.ID))
	case oauth.StepConsent:
		visit.Redirect(v.HTTP, v.PathChosen(pages.PathConsent, current.User.ID))
	case oauth.StepIssue:
		if a.decision == 0 && !browser.Remembers(v.Pending.Request) { // an app of the operator's own
			a = answer{oauth.Allowed, before}
		}
		s.issue(v, current, a)
	default:
		s.Refuse(v, fault)
	}
}

// paramBack has the browser go back to a client that the person may not use.
const paramBack = "back"

// refuseOutsider tells a person who is in none of the groups that the client is for, and then the
// client.
func (s *service) refuseOutsider(v *visit.Visit, who visit.Visitor) {
	if v.Pending.Request.Prompt.Contains(oauth.PromptNone) || v.HTTP.QueryArgs().Has(paramBack) {
		s.Refuse(v, &oauth.Error{Code: oauth.AccessDenied,
			Description: "The user may not use this client.",
			Hint:        "The operator of the service decides who may."})
		return
	}
	m := noAccess("message.no_access_text", v.ClientName(), who)
	m.Link = v.PathChosen(pages.PathAuthorize, who.User.ID) + "&" + paramBack + "=1"
	m.LinkText = texts.Of("message.back_to_app")
	s.WriteMessage(v.HTTP, fasthttp.StatusForbidden, m)
}

// noAccess returns the page for a person who may not use a client.
func noAccess(text, client string, who visit.Visitor) pages.Message {
	return pages.Message{Title: texts.Of("message.no_access", "client", client),
		Text:   texts.Of(text, "client", client, "account", who.Account().Address),
		Advice: texts.Of("message.no_access_advice", "client", client)}
}

// browserOf returns the state of the browser for oauth.NextStep, and the account that continues:
// the chosen one, or the one that id_token_hint names, or the one that signed in last.
func browserOf(v *visit.Visit, visitors []visit.Visitor) (oauth.Browser, visit.Visitor) {
	if len(visitors) == 0 {
		return oauth.Browser{}, visit.Visitor{}
	}
	b := oauth.Browser{SignedIn: true, Several: len(visitors) > 1}
	hinted := v.Pending.HintedUser
	who, chosen := visit.FindVisitor(visitors, v.Chosen)
	if chosen {
		b.Chosen, b.Fresh = true, v.Pending.IsFresh(who.Session)
	} else if theirs, ok := visit.FindVisitor(visitors, hinted); ok {
		who = theirs
	} else {
		who = visitors[0]
	}
	b.HintAgrees = hinted != 0 && who.User.ID == hinted
	b.HintDiffers = hinted != 0 && who.User.ID != hinted
	b.Outdated = v.Pending.Request.IsOutdated(who.Session.SignedIn, v.Now)
	return b, who
}

// keepMetadataClient stores a client that a document describes. When the document has changed so
// that earlier consents do not count, what the person has granted before ends.
func (s *service) keepMetadataClient(v *visit.Visit, who visit.Visitor, a *answer) error {
	client := v.Pending.Client
	consent, err := s.people.Consent(v.Ctx, who.User.ID, client.ID)
	if err != nil {
		return err
	}
	if v.Pending.Outdates(consent) && consent.Granted.Equal(a.before) && !a.before.IsZero() {
		if err := s.people.Disconnect(v.Ctx, who.User.ID, client.ID, v.Now); err != nil {
			return err
		}
		a.before = time.Time{}
	}
	return s.tokens.KeepMetadataClient(v.Ctx, client, v.Now)
}

// issue sends the browser to the client with a code. It stores a new consent first. A request that
// needs a sign-in of its own gets one code for it.
func (s *service) issue(v *visit.Visit, who visit.Visitor, a answer) {
	v.By(who.User.ID)
	if a.decision == oauth.Allowed && !s.keepConsent(v, who, a) || !s.confirmClient(v) ||
		!s.useSignIn(v, who) {
		return
	}
	code, ok := s.newCode(v, who)
	if !ok {
		return
	}
	plain, fault := s.tokens.IssueConsentedCode(v.Ctx, code, v.Now)
	if fault != nil {
		s.Refuse(v, fault)
		return
	}
	// A new password ends the code, also if it was saved later. Then the person has to sign in again.
	switch _, _, err := s.people.Session(v.Ctx, who.Token, v.Now); {
	case errors.Is(err, account.ErrNotFound):
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case err != nil:
		s.RefuseFailure(v, "read a session", err)
	default:
		s.Respond(v, v.Pending.Request.CodeResponse(plain, s.issuer))
	}
}

// keepConsent stores the consent that the person has just given. If that fails, it responds and
// returns false.
func (s *service) keepConsent(v *visit.Visit, who visit.Visitor, a answer) bool {
	request := v.Pending.Request
	if v.Pending.Client.Options.MetadataURL != "" {
		if err := s.keepMetadataClient(v, who, &a); err != nil {
			s.RefuseFailure(v, "keep a client", err)
			return false
		}
	}
	err := s.people.GrantConsent(v.Ctx, who.User.ID, v.Pending.Client.ID, request.Scopes,
		request.Targets, v.Pending.Reaches, a.before, v.Now)
	switch {
	case errors.Is(err, account.ErrConflict) && !v.HTTP.IsPost(): // another tab was faster
		visit.Redirect(v.HTTP, v.Path(pages.PathAuthorize))
	case errors.Is(err, account.ErrConflict): // the form was sent more than once
		s.showConsent(v, who, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	case errors.Is(err, account.ErrTooManyClients):
		s.showConsent(v, who, fasthttp.StatusForbidden, pages.Problem{Text: textTooManyClients})
	case err != nil:
		s.RefuseFailure(v, "remember a consent", err)
	}
	return err == nil
}

// confirmClient keeps a client that registered itself, since a person has consented to it. If that
// fails, it responds and returns false.
func (s *service) confirmClient(v *visit.Visit) bool {
	client := v.Pending.Client
	if client.Awaits.IsZero() {
		return true
	}
	err := s.tokens.ConfirmClient(v.Ctx, client.ID, v.Now)
	if err != nil {
		s.RefuseFailure(v, "keep a client", err)
	}
	return err == nil
}

// useSignIn uses the sign-in if the request needs one of its own. If it was used before, it
// responds and returns false.
func (s *service) useSignIn(v *visit.Visit, who visit.Visitor) bool {
	request := v.Pending.Request
	if !request.Prompt.Contains(oauth.PromptLogin) &&
		!request.IsOutdated(who.Session.SignedIn, v.Now) {
		return true
	}
	err := s.people.UseSignIn(v.Ctx, who.Session)
	switch {
	case errors.Is(err, account.ErrConflict):
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case err != nil:
		s.RefuseFailure(v, "use a sign-in", err)
	}
	return err == nil
}

// newCode returns what the code is for. If the session has ended, it responds and returns false.
func (s *service) newCode(v *visit.Visit, who visit.Visitor) (
	code oauth.AuthorizationCode, ok bool) {
	request := v.Pending.Request
	code = oauth.AuthorizationCode{
		ClientID: v.Pending.Client.ID, UserID: who.User.ID, RedirectURI: request.RedirectURI,
		Scopes: request.Scopes, DefaultScopes: request.DefaultScopes,
		CodeChallenge: request.CodeChallenge, Epochs: oauth.Epochs{User: who.User.Epoch},
		Details:   oauth.GrantDetails{Targets: request.Targets, First: request.First},
		SessionID: who.Session.ID(),
	}
	code.Details.AuthTime, code.Details.AMR = who.Session.SignedIn.Unix(), who.Session.AMR
	if !request.Scopes.Contains(oauth.OpenID) {
		return code, true
	}
	sid, err := s.people.ClientSession(v.Ctx, who.Session, v.Pending.Client.ID)
	switch {
	case errors.Is(err, account.ErrNotFound):
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
	case err != nil:
		s.RefuseFailure(v, "add a client to a session", err)
	default:
		code.Session = who.Session.Hash
		code.Details.SID, code.Details.Nonce = sid, request.Nonce
	}
	return code, err == nil
}
