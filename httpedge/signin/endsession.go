package signin

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// logoutRequest is a logout request that was checked.
type logoutRequest struct {
	*oauth.LogoutRequest
	client *oauth.Client // that asks for it; nil = not known
	hint   *idTokenHint  // nil = none, or not a valid one of the client
	query  string        // its parameters, encoded
}

// endSession serves the logout requests of clients (OpenID Connect RP-Initiated Logout). Browsers
// leave out the cookies of the service when another site sends a form, so a POST continues with
// GET.
func (s *service) endSession(ctx *fasthttp.RequestCtx) {
	if !ctx.IsPost() || visit.ChoosesLanguage(ctx) {
		s.Handle(s.askEndSession)(ctx)
		return
	}
	params, ok := endpoint.ParseParameters(ctx.PostBody())
	query := queryOf(params, oauth.LogoutParameters)
	if !ok || !endpoint.IsForm(ctx) || len(query) > maxPending {
		s.RefusePage(&visit.Visit{HTTP: ctx}, texts.Of("message.unread"),
			texts.Of("message.start_again"))
		return
	}
	visit.Redirect(ctx, pages.PathEndSession+"?"+query)
}

// askEndSession ends the session that the request's id_token_hint names, or asks the person.
func (s *service) askEndSession(v *visit.Visit) {
	r, visitors, ok := s.readLogout(v)
	if !ok {
		return
	}
	if len(visitors) == 0 {
		s.leave(v, r, 0)
		return
	}
	who, known, err := s.hintedVisitor(v, r, visitors)
	switch {
	case err != nil:
		s.WriteFailure(v.HTTP, "read the session of a client", err)
	case known:
		s.endSessionOf(v, r, visitors, who)
	default:
		s.showEndSession(v, r, visitors, fasthttp.StatusOK)
	}
}

// confirmEndSession handles the form of the page that asks the person.
func (s *service) confirmEndSession(v *visit.Visit) {
	r, visitors, ok := s.readLogout(v)
	if !ok {
		return
	}
	id, err := strconv.ParseInt(v.Field(fieldAccount), 10, 64)
	who, found := visit.FindVisitor(visitors, id)
	switch {
	case !v.HTTP.IsPost():
		visit.Redirect(v.HTTP, pages.PathEndSession+"?"+r.query)
	case len(visitors) == 0: // a double click
		s.leave(v, r, 0)
	case !v.CheckForm(v.Bind("end session " + r.query)):
		s.showEndSession(v, r, visitors, fasthttp.StatusForbidden,
			pages.Problem{Text: visit.TextStaleForm})
	case err != nil || !found:
		s.showEndSession(v, r, visitors, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("accounts.choose_one")})
	default:
		s.endSessionOf(v, r, visitors, who)
	}
}

// readLogout reads the logout request, and the accounts of the browser. When something is wrong, it
// responds and returns false.
func (s *service) readLogout(v *visit.Visit) (*logoutRequest, []visit.Visitor, bool) {
	v.Secret = s.BrowserSecret(v.HTTP)
	params, ok := endpoint.ParseParameters(v.HTTP.URI().QueryString())
	if !ok {
		s.RefusePage(v, texts.Of("message.malformed"), texts.Of("message.start_again"))
		return nil, nil, false
	}
	request, fault := oauth.ParseLogoutRequest(params)
	if fault != nil {
		s.refuseRequest(v, fault)
		return nil, nil, false
	}
	r := &logoutRequest{LogoutRequest: request, query: queryOf(params, oauth.LogoutParameters)}
	if err := s.readLogoutClient(v, r); err != nil {
		s.WriteFailure(v.HTTP, "read a client", err)
		return nil, nil, false
	}
	if fault := r.CheckClient(r.client); fault != nil {
		s.refuseRequest(v, fault)
		return nil, nil, false
	}
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return nil, nil, false
	}
	return r, visitors, true
}

// readLogoutClient finds the client that asks: the one of client_id, or the only one that the
// id_token_hint was issued to. A hint of another client counts as none.
func (s *service) readLogoutClient(v *visit.Visit, r *logoutRequest) error {
	id := r.ClientID
	if hint, ok := s.openHint(r.IDTokenHint); ok {
		if id == "" {
			id = hint.client
		}
		if hint.client == id {
			r.hint = hint
		}
	}
	if id == "" {
		return nil
	}
	client, err := s.tokens.Client(v.Ctx, oauth.StoredClientID(id))
	if errors.Is(err, oauth.ErrNotFound) {
		return nil
	}
	r.client = client
	return err
}

// hintedVisitor returns the account that id_token_hint names, if its session is the one that the
// id_token was issued in. Then nobody has to be asked.
func (s *service) hintedVisitor(v *visit.Visit, r *logoutRequest, visitors []visit.Visitor) (
	who visit.Visitor, known bool, err error) {
	if r.hint == nil || r.client == nil {
		return visit.Visitor{}, false, nil
	}
	who, known = visit.FindVisitor(visitors, r.hint.user)
	if known {
		known, err = s.people.KnowsSession(v.Ctx, who.Session, r.client.ID, r.hint.sid)
	}
	return who, known, err
}

func (s *service) showEndSession(v *visit.Visit, r *logoutRequest, visitors []visit.Visitor,
	status int, problems ...pages.Problem) {
	p := pages.EndSession{Accounts: visit.AccountsOf(meant(r, visitors)),
		Action:    pages.PathEndSessionConfirm + "?" + r.query,
		FormToken: v.Bind("end session " + r.query).NewFormToken(v.Now), Problems: problems}
	if r.client != nil {
		p.Client = r.client.NameBeforeConsent(r.RedirectURI)
	}
	s.WritePageTo(v.HTTP, status, p, r.RedirectURI)
}

// meant returns the account that logout_hint or id_token_hint means, or else all.
func meant(r *logoutRequest, visitors []visit.Visitor) []visit.Visitor {
	for _, who := range visitors {
		hinted := r.hint != nil && r.hint.user == who.User.ID
		named := r.LogoutHint != "" && slices.Contains([]string{strings.ToLower(who.User.Email),
			who.User.Phone, strconv.FormatInt(who.User.ID, 10)}, strings.ToLower(r.LogoutHint))
		if hinted || named {
			return []visit.Visitor{who}
		}
	}
	return visitors
}

// endSessionOf ends the session of one account in this browser.
func (s *service) endSessionOf(v *visit.Visit, r *logoutRequest, visitors []visit.Visitor,
	who visit.Visitor) {
	if err := s.people.SignOut(v.Ctx, who.Token); err != nil {
		s.WriteFailure(v.HTTP, "sign out", err)
		return
	}
	rest := slices.DeleteFunc(visitors, func(other visit.Visitor) bool {
		return other.User.ID == who.User.ID
	})
	if len(rest) > 0 {
		s.KeepSessions(v, rest)
	} else {
		s.DropSessions(v)
		s.RenewBrowserSecret(v.HTTP)
	}
	s.leave(v, r, who.User.ID)
}

// leave sends the browser back to the client, or says that the person is signed out. Anybody can
// register a client where the operator allows it: only a person who has consented to one is sent
// there. user is whose session has ended; 0 = not known.
func (s *service) leave(v *visit.Visit, r *logoutRequest, user int64) {
	returns := r.RedirectURI != ""
	if returns && r.client.Options.SelfRegistered {
		consent, err := s.people.Consent(v.Ctx, user, r.client.ID)
		if err != nil {
			s.WriteFailure(v.HTTP, "read a consent", err)
			return
		}
		returns = !consent.Granted.IsZero()
	}
	if returns {
		visit.Redirect(v.HTTP, r.RedirectURL())
		return
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusOK, pages.Message{Title: texts.Of("logout.done"),
		Text: texts.Of("logout.ended")})
}
