package httpedge

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/pages"
)

const (
	// maxPending bounds the query of an authorization request, in bytes: it has to come back in every step, together with
	// cookies and other headers.
	maxPending = 12 << 10

	choiceLifetime = 10 * time.Minute // from choosing an account, or signing in, to consent
	choiceSize     = 9 + nonceSize    // bytes of a sealed choice
	paramChoice    = "chosen"         // carries a choice through the steps
	fieldFormToken = "form_token"
)

// pendingParameters are the parameters of an authorization request, beside the one that skips the account chooser.
var pendingParameters = []string{"response_type", "client_id", "redirect_uri", "scope", "state", "prompt", "code_challenge", "code_challenge_method"}

// pending is an authorization request on its way through the pages. It travels in their URLs and is checked anew at each.
type pending struct {
	request *oauth.AuthorizationRequest
	client  *oauth.Client
	query   string // its parameters
}

// choice is the account with which a person goes on with a pending request.
type choice struct {
	userID   int64
	signedIn bool // in answer to this request
	nonce    [nonceSize]byte
	made     time.Time // or last carried on; set by openChoice
}

func newChoice(userID int64, signedIn bool) choice {
	c := choice{userID: userID, signedIn: signedIn}
	rand.Read(c.nonce[:])
	return c
}

// visit is one request of the browser flow.
type visit struct {
	http    *fasthttp.RequestCtx
	ctx     context.Context // ends at pageDeadline
	now     time.Time
	pending *pending // nil = no client asked for this page
	choice  choice   // zero = none, or none that can be believed
	secret  string   // of the browser
	form    []oauth.Parameter
}

// flow makes a handler of one that needs a visit. It lets no form pass that comes from another site.
func (s *Server) flow(handle func(*visit)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		deadline, cancel := context.WithTimeout(context.Background(), pageDeadline)
		defer cancel()
		v := &visit{http: ctx, ctx: deadline, now: time.Now()}
		if ctx.IsPost() && !s.readPage(v) {
			return
		}
		if !s.readPending(v) {
			return
		}
		v.secret = s.browserSecret(ctx)
		v.choice = v.openChoice()
		if v.choice.signedIn && s.spent.knows(v.choice.made, v.choice.nonce) {
			v.choice.signedIn = false
		}
		handle(v)
	}
}

// readPage reads the form of a page, or answers what is wrong with it.
func (s *Server) readPage(v *visit) bool {
	if crossSite(v.http) {
		s.writeMessage(v.http, fasthttp.StatusForbidden, pages.Message{Title: "This form came from another site",
			Text: "For your safety nothing was done.", Advice: "Go back to the application and start again."})
		return false
	}
	var ok bool
	if v.form, ok = parseParameters(v.http.PostBody()); !ok || !isForm(v.http) {
		s.refusePage(v, "The form cannot be read.", "Go back, load the page again and send it once more.")
		return false
	}
	return true
}

// refusePage answers 400 with a page.
func (s *Server) refusePage(v *visit, text, advice string) {
	s.writeMessage(v.http, fasthttp.StatusBadRequest, pages.Message{Title: "This request cannot be served", Text: text, Advice: advice})
}

// readPending reads the authorization request, if there is one, or answers what is wrong with it: on a page as long as it is not
// sure that the redirect URI is the client's, and by a redirect after that.
func (s *Server) readPending(v *visit) bool {
	params, ok := parseParameters(v.http.URI().QueryString())
	if !ok {
		s.refusePage(v, "The address of this page is malformed.", "Go back to the application and start again.")
		return false
	}
	query := s.pendingQuery(params)
	if query == "" && string(v.http.Path()) != pathAuthorize {
		return true
	}
	request, fault := oauth.ParseAuthorizationRequest(params, s.config.SkipChooserParameter)
	if fault != nil {
		s.refusePage(v, fault.Description, fault.Hint)
		return false
	}
	client, err := s.config.Identity.Client(v.ctx, request.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		s.writeFailure(v.http, "read a client", err)
		return false
	}
	if fault := request.CheckClient(client); fault != nil {
		s.refusePage(v, fault.Description, fault.Hint)
		return false
	}
	v.pending = &pending{request, client, query}
	if fault := request.Check(client, s.config.DefaultScopes); fault != nil {
		s.refuse(v, fault)
		return false
	}
	if len(query) > maxPending {
		s.refuse(v, &oauth.Error{Code: oauth.InvalidRequest, Description: "The request is too long."})
		return false
	}
	return true
}

// pendingQuery returns the parameters of an authorization request among params as a query; "" = there are none.
func (s *Server) pendingQuery(params []oauth.Parameter) string {
	var query strings.Builder
	for _, p := range params {
		if p.Name != s.config.SkipChooserParameter && !slices.Contains(pendingParameters, p.Name) {
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
func (s *Server) authorize(v *visit) {
	visitors, err := s.visitors(v)
	if err != nil {
		s.refuseFailed(v, "read sessions", err)
		return
	}
	if len(visitors) > 0 {
		s.keepSessions(v, visitors)
	}
	s.advance(v, visitors, 0)
}

// advance does what comes next.
func (s *Server) advance(v *visit, visitors []visitor, decision oauth.Decision) {
	browser, current := v.browser(visitors)
	browser.Decision = decision
	if browser.SignedIn {
		var err error
		if browser.Consent, err = s.config.Identity.Consent(v.ctx, current.user.ID, v.pending.client.ID); err != nil {
			s.refuseFailed(v, "read a consent", err)
			return
		}
	}
	step, fault := oauth.NextStep(v.pending.request, v.pending.client, browser)
	switch step {
	case oauth.StepLogin:
		redirect(v.http, v.path(pathLogin))
	case oauth.StepChooseAccount:
		redirect(v.http, v.path(pathAccounts))
	case oauth.StepConsent:
		next := v.choice
		if next.userID != current.user.ID {
			next = newChoice(current.user.ID, false)
		}
		redirect(v.http, v.pathChosen(pathConsent, next))
	case oauth.StepIssue:
		s.issue(v, current, decision)
	default:
		s.refuse(v, fault)
	}
}

// browser returns what the rules want to know, and with whom the request goes on: who was chosen, or else the last who
// signed in.
func (v *visit) browser(visitors []visitor) (oauth.Browser, visitor) {
	if chosen, ok := visitorWith(visitors, v.choice.userID); ok {
		return oauth.Browser{SignedIn: true, Chosen: true, Fresh: v.choice.signedIn}, chosen
	}
	if len(visitors) == 0 {
		return oauth.Browser{}, visitor{}
	}
	return oauth.Browser{SignedIn: true}, visitors[0]
}

// issue ends the flow with a code. A consent that was given just now is remembered first. Where the client wants to see a person sign
// in, that is good for one code.
func (s *Server) issue(v *visit, who visitor, decision oauth.Decision) {
	request := v.pending.request
	if request.Prompt.Contains(oauth.PromptLogin) && !s.spent.spend(v.choice.made, v.choice.nonce) {
		redirect(v.http, v.path(pathLogin))
		return
	}
	if decision == oauth.Allowed {
		if err := s.config.Identity.GrantConsent(v.ctx, who.user.ID, request.ClientID, request.Scopes, v.now); err != nil {
			s.refuseFailed(v, "remember a consent", err)
			return
		}
	}
	code, fault := s.config.Identity.IssueCode(v.ctx, oauth.AuthorizationCode{
		ClientID: request.ClientID, UserID: who.user.ID, RedirectURI: request.RedirectURI,
		Scopes: request.Scopes, DefaultScopes: request.DefaultScopes, CodeChallenge: request.CodeChallenge,
	}, v.now)
	if fault != nil {
		s.refuse(v, fault)
		return
	}
	redirect(v.http, request.CodeURL(code, s.config.Issuer))
}

// refuse ends the flow with an error for the client.
func (s *Server) refuse(v *visit, fault *oauth.Error) {
	redirect(v.http, v.pending.request.ErrorURL(fault, s.config.Issuer))
}

// refuseFailed ends the flow because of something on our side: temporarily_unavailable when it passes, else server_error.
func (s *Server) refuseFailed(v *visit, step string, err error) {
	s.log.Error(step, "error", err)
	if actors.IsTemporary(err) {
		s.refuse(v, &oauth.Error{Code: oauth.TemporarilyUnavailable, Description: "The service could not do this just now. Try again in a few seconds."})
		return
	}
	s.refuse(v, &oauth.Error{Code: oauth.ServerError, Description: "Something went wrong on our side."})
}

// path returns where a page is, with the pending request.
func (v *visit) path(page string) string {
	if v.pending == nil {
		return page
	}
	return page + "?" + v.pending.query
}

// pathChosen is path with a choice, which needs a pending request.
func (v *visit) pathChosen(page string, c choice) string {
	payload := binary.BigEndian.AppendUint64(nil, uint64(c.userID))
	if c.signedIn {
		payload = append(payload, 1)
	} else {
		payload = append(payload, 0)
	}
	payload = append(payload, c.nonce[:]...)
	return v.path(page) + "&" + paramChoice + "=" + v.bind("choice").seal(payload, v.now)
}

func (v *visit) openChoice() choice {
	sealed := v.http.QueryArgs().Peek(paramChoice)
	payload, made, ok := v.bind("choice").open(string(sealed), choiceSize, choiceLifetime, v.now)
	if !ok || v.pending == nil {
		return choice{}
	}
	return choice{int64(binary.BigEndian.Uint64(payload)), payload[8] == 1, [nonceSize]byte(payload[9:]), made}
}

// bind returns the binding of a purpose to this browser and to the pending request.
func (v *visit) bind(purpose string) binding {
	if v.pending == nil {
		return binding{v.secret, purpose, ""}
	}
	return binding{v.secret, purpose, v.pending.query}
}

func (v *visit) clientName() string {
	if v.pending == nil {
		return ""
	}
	return v.pending.client.Name
}
