package visit

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// choiceLifetime is the time from choosing an account, or signing in, to consent.
const choiceLifetime = 10 * time.Minute

// The parameters that carry what belongs to a pending request from page to page, sealed.
const (
	ParamChoice = "chosen" // the user that continues
	ParamProof  = "proof"  // the sign-in for a request with prompt=login or max_age
)

// Pending is an authorization request in progress. It travels in the URLs of the pages and is
// checked again on each.
type Pending struct {
	Request *oauth.AuthorizationRequest
	Client  *oauth.Client
	Query   string        // its parameters, encoded
	Reaches []oauth.Reach // what the resources that it asks for mean to people
	// Unread says that the document which describes the client was not read, since nobody has signed
	// in. The browser must not be redirected to the client then.
	Unread bool
	// Changed says that the document has other redirect URIs or keys than people have consented to.
	Changed bool
	// Known says that the person has consented to the client. The browser is redirected to a client
	// that registered itself only then: anybody can make one (RFC 9700 section 4.11.2).
	Known bool
	// Denied says that the person has just refused to let the client in.
	Denied bool
	// HintedUser is the user whom the request's id_token_hint names; 0 = it has none.
	HintedUser int64
	// proof stands for the session that was signed in for this request, if the request may need
	// that; 0 = none.
	// Only a sign-in gives one: the time of a sign-in would also let a thief of the session pass, who
	// has begun a request before.
	proof int64
}

// IsFresh reports whether a session was signed in for this request, and no code was issued for that
// sign-in before.
func (p *Pending) IsFresh(session *account.Session) bool {
	return p.proof != 0 && p.proof == proofOf(session) && !session.Used.Equal(session.SignedIn)
}

// Outdates reports whether a consent does not count, since the client has changed.
func (p *Pending) Outdates(consent account.Consent) bool {
	return p.Client.Options.MetadataURL != "" &&
		(p.Changed || consent.Granted.UnixMilli() < p.Client.Options.MetadataChanged)
}

// Knows reports whether a consent counts.
func (p *Pending) Knows(consent account.Consent) bool {
	return !consent.Granted.IsZero() && !p.Outdates(consent)
}

// Prove notes that a session has just been signed in for this request.
func (p *Pending) Prove(session *account.Session) {
	if p.Request.Reauthenticates() {
		p.proof = proofOf(session)
	}
}

// proofOf returns 64 bits of the hash of a session's token.
func proofOf(session *account.Session) int64 {
	return int64(binary.BigEndian.Uint64(session.Hash[:]))
}

// Refuse sends the browser to the client with an error.
func (s *Site) Refuse(v *Visit, fault *oauth.Error) {
	s.ClientFailed(v, v.Pending.Request.ClientID, fault)
	s.Respond(v, v.Pending.Request.ErrorResponse(fault, s.issuer))
}

// ClientFailed says that an authorization request, which names a client, has failed.
func (s *Site) ClientFailed(v *Visit, clientID string, fault *oauth.Error) {
	s.failed(v.HTTP, "authorize", clientID, fault)
}

// Respond sends the browser to the client with a response, in the response mode of the request.
func (s *Site) Respond(v *Visit, params []oauth.Parameter) {
	request := v.Pending.Request
	if v.Pending.Unread || v.Pending.Client.IsUnverified() && !v.Pending.Known {
		s.stay(v, params)
		return
	}
	if request.ResponseMode != oauth.FormPost {
		Redirect(v.HTTP, request.ResponseURL(params))
		return
	}
	body, err := pages.FormPost{Client: v.ClientName(), Action: request.RedirectURI,
		Fields: params}.Render(s.viewOf(v.HTTP))
	if err != nil { // the query says it as well
		s.failures.Log("write a form", err, endpoint.Attributes(v.HTTP)...)
		Redirect(v.HTTP, request.ResponseURL(params))
		return
	}
	s.sendPage(v.HTTP, fasthttp.StatusOK, body, "")
	v.HTTP.Response.Header.Set(fasthttp.HeaderContentSecurityPolicy, s.formPostPolicy())
}

// stay shows a page in place of a redirect to a client that the person does not know. Who has just
// refused it may follow a link.
func (s *Site) stay(v *Visit, params []oauth.Parameter) {
	switch oauth.Code(endpoint.Value(params, "error")) {
	case oauth.TemporarilyUnavailable:
		s.WriteMessage(v.HTTP, fasthttp.StatusServiceUnavailable, ourFault("message.wait_and_start"))
		return
	case oauth.ServerError:
		s.WriteMessage(v.HTTP, fasthttp.StatusInternalServerError, ourFault("message.wait_and_start"))
		return
	}
	if !v.Pending.Denied {
		s.WriteMessage(v.HTTP, fasthttp.StatusBadRequest, pages.Message{
			Title: texts.Of("message.cannot"), Text: texts.Of("message.not_known_yet"),
			Advice:    texts.Of("message.sign_in_first"),
			Technical: endpoint.Value(params, "error_description")})
		return
	}
	client := v.Pending.Client
	m := pages.Message{Title: texts.Of("message.denied"),
		Text:   texts.Of("message.denied_here", "client", client.Name),
		Advice: texts.Of("connect.close")}
	if host := client.HostBeforeConsent(v.Pending.Request.RedirectURI); host != "" {
		m.Text = texts.Of("message.denied_host", "host", host, "client", client.Name)
	}
	if v.Pending.Request.ResponseMode != oauth.FormPost { // it would come by a form
		m.Advice = texts.Of("message.go_back_trust")
		m.Return = v.Pending.Request.ResponseURL(params)
		m.ReturnTo = v.Pending.Request.Destination()
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusOK, m)
}

// formPostPolicy returns the policy of a page with a form that sends itself. It does not restrict
// where forms lead: Chromium would apply that to the redirects of the client as well, which nobody
// knows here. The page has no other form, and no text of others but in escaped attributes.
func (s *Site) formPostPolicy() string {
	return "default-src 'none'; style-src " + s.view.StyleSource() + "; script-src " +
		pages.SubmitSource + "; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// RefuseFailure redirects to the client with an error of the service: temporarily_unavailable when
// the same request may succeed later, else server_error (RFC 6749 section 4.1.2.1).
func (s *Site) RefuseFailure(v *Visit, step string, err error) {
	s.failures.Log(step, err, endpoint.Attributes(v.HTTP)...)
	fault := &oauth.Error{Code: oauth.TemporarilyUnavailable,
		Description: "The service could not do this just now. Try again in a few seconds."}
	if endpoint.Failure(err).Unexpected {
		fault = &oauth.Error{Code: oauth.ServerError, Description: endpoint.ErrPanic.Message}
	}
	s.Refuse(v, fault)
}

// Path returns the path of a page, with the pending request, or the user code of a device, in its
// query.
func (v *Visit) Path(page string) string {
	switch {
	case v.Pending == nil && v.console:
		return page + "?" + ToConsole
	case v.Pending == nil && v.Device != "":
		return page + "?" + v.Device
	case v.Pending == nil:
		return page
	case v.Pending.proof == 0:
		return page + "?" + v.Pending.Query
	}
	return page + "?" + v.Pending.Query + v.sealed(ParamProof, v.Pending.proof)
}

// PathWith is Path with one more parameter, whose name and value need no escape.
func (v *Visit) PathWith(page, name, value string) string {
	return AddParameter(v.Path(page), name, value)
}

// AddParameter returns path, which may have a query, with a parameter. Name and value need no escape.
func AddParameter(path, name, value string) string {
	separator := "?"
	if strings.Contains(path, separator) {
		separator = "&"
	}
	return path + separator + name + "=" + value
}

// paramUserCode is the parameter with the user code of a device (RFC 8628 section 3.3.1).
const paramUserCode = "user_code"

// OpenDevice notes that the visit leads on to the page for devices or to the console, if its URL says
// so, and returns the user code that it names; "" = none.
func (v *Visit) OpenDevice() (userCode string) {
	args := v.HTTP.QueryArgs()
	v.console = string(args.Peek(paramTo)) == "console"
	if args.Has(paramUserCode) {
		userCode, _ = oauth.ParseUserCode(string(args.Peek(paramUserCode)))
		v.Device = paramUserCode + "=" + userCode
	}
	return userCode
}

// ToConsole is the query of pages of the flow that lead on to the console.
const ToConsole = paramTo + "=console"

const paramTo = "to"

// Home returns the path that a visit without a pending request leads on to.
func (v *Visit) Home() string {
	if v.console {
		return pages.PathConsole
	}
	if v.Device != "" {
		return v.Path(pages.PathDevice)
	}
	return pages.PathMe
}

// PathChosen is Path with the user that continues the pending request, if there is one.
func (v *Visit) PathChosen(page string, userID int64) string {
	if v.Pending == nil {
		return v.Path(page)
	}
	return v.Path(page) + v.sealed(ParamChoice, userID)
}

// sealed returns a parameter with a number that only this browser can send, for this request.
func (v *Visit) sealed(name string, number int64) string {
	payload := binary.BigEndian.AppendUint64(nil, uint64(number))
	return "&" + name + "=" + v.Bind(name).Seal(payload, v.Now)
}

// open returns the number in a sealed parameter; 0 = there is none, or not a valid one.
func (v *Visit) open(name string) int64 {
	sealed := string(v.HTTP.QueryArgs().Peek(name))
	payload, _, ok := v.Bind(name).Open(sealed, 8, choiceLifetime, v.Now)
	if !ok {
		return 0
	}
	return int64(binary.BigEndian.Uint64(payload))
}

// OpenPending reads what the URL of the request says of the pending request besides its parameters.
func (v *Visit) OpenPending() {
	if v.Pending != nil {
		v.Chosen, v.Pending.proof = v.open(ParamChoice), v.open(ParamProof)
	}
}

// ClientID returns the id of the client of the pending request; "" = there is none.
func (v *Visit) ClientID() string {
	if v.Pending == nil || v.Pending.Client == nil {
		return ""
	}
	return v.Pending.Client.ID
}

// ClientName returns what pages call the client of the pending request; "" = there is none.
func (v *Visit) ClientName() string {
	if v.Pending == nil {
		return ""
	}
	return v.Pending.Client.NameBeforeConsent(v.Pending.Request.RedirectURI)
}
