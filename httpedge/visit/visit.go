// Package visit holds what the handlers of pages share: the accounts signed in with the browser,
// the authorization request in progress, forms that cannot be forged or replayed, the page that
// asks for a code, and rendering.
package visit

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// Config configures a Site.
type Config struct {
	People *people.Service
	Keys   func() []oauth.Key // for oauth.FormKeys, the current one first
	Issuer string             // base URL of the service, without a trailing slash
	View   *pages.View        // of the brand
	// Failures logs requests that fail.
	Failures *endpoint.Failures
	Caller   func(*fasthttp.RequestCtx) netip.Addr // address of the client, or zero
	// Place returns the rough place of an address from local data, "" if it is not known. Optional.
	Place func(netip.Addr) string
	// ClientFailed is told that a request at an endpoint failed with an OAuth error, and which client
	// it names.
	ClientFailed func(ctx *fasthttp.RequestCtx, endpoint, clientID string, fault *oauth.Error)
}

// Site holds what all pages share. Make it with New. Its methods may be called by many goroutines.
type Site struct {
	people   *people.Service
	keys     func() []oauth.Key // for oauth.FormKeys
	issuer   string
	view     *pages.View
	failures *endpoint.Failures
	caller   func(*fasthttp.RequestCtx) netip.Addr
	failed   func(ctx *fasthttp.RequestCtx, endpoint, clientID string, fault *oauth.Error)
	place    func(netip.Addr) string
	cookies  cookieNames
	replays  *replays
}

// New returns a Site.
func New(config Config) *Site {
	return &Site{
		people: config.People, keys: config.Keys, issuer: config.Issuer, view: config.View,
		failures: config.Failures,
		caller:   config.Caller, failed: config.ClientFailed, place: config.Place,
		cookies: newCookieNames(config.Issuer),
		replays: newReplays(),
	}
}

// ServiceName returns the name of the service.
func (s *Site) ServiceName() string { return s.view.Name() }

// Caller returns the address of the client, or the zero Addr.
func (s *Site) Caller(v *Visit) netip.Addr { return s.caller(v.HTTP) }

// PlaceOf returns the rough place of an address from local data; "" = it is not known. Nobody is asked.
func (s *Site) PlaceOf(addr netip.Addr) string {
	if s.place == nil || !addr.IsValid() {
		return ""
	}
	return s.place(addr)
}

const fieldFormToken = "form_token"

// MaxSecretText limits an entered email address, password or code, in bytes.
const MaxSecretText = 1024

// TextStaleForm is the text for a form whose token is not valid.
var TextStaleForm = texts.Of("wrong.stale")

// Visit is one request for a page.
type Visit struct {
	HTTP    *fasthttp.RequestCtx
	Ctx     context.Context // ends at pageDeadline; has the source of events (package audit)
	Now     time.Time
	Pending *Pending          // nil = no client sent the browser
	Device  string            // query that leads on to the page for devices; "" = the visit is not for it
	Chosen  int64             // the user that continues the pending request; 0 = not chosen
	Secret  string            // of the browser
	Form    []oauth.Parameter // also of a page that is shown again, without secrets

	keys func() []oauth.Key // of Site
}

// Handle returns a handler that parses the form and calls handle. It refuses forms that other sites
// send.
func (s *Site) Handle(handle func(*Visit)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		deadline, cancel := context.WithTimeout(context.Background(), pageDeadline)
		defer cancel()
		v := &Visit{HTTP: ctx, Now: time.Now(), keys: s.keys,
			Ctx: audit.WithSource(deadline, audit.Source{
				Actor:     audit.Actor{Kind: audit.User},
				RequestID: endpoint.RequestID(ctx), Caller: s.caller(ctx),
				Browser: DeviceOf(string(ctx.UserAgent())), Language: s.viewOf(ctx).Language().Tag,
			}),
		}
		if !ctx.IsPost() {
			v.Form = s.openRetry(ctx, v.Now)
		} else { // which may cause a message
			source := audit.SourceOf(v.Ctx)
			source.Place = s.PlaceOf(source.Caller)
			v.Ctx = audit.WithSource(v.Ctx, source)
		}
		if !ctx.IsPost() || s.readPage(v) && !s.choseLanguage(v) {
			handle(v)
		}
	}
}

// By makes a signed-in user the actor of the events of this visit.
func (v *Visit) By(userID int64) {
	v.Ctx = audit.WithActor(v.Ctx, audit.Actor{Kind: audit.User,
		ID: strconv.FormatInt(userID, 10)})
}

// readPage parses the form. When it is not valid, it responds and returns false.
func (s *Site) readPage(v *Visit) bool {
	if isCrossSite(v.HTTP) {
		s.WriteMessage(v.HTTP, fasthttp.StatusForbidden,
			pages.Message{Title: texts.Of("message.other_site"),
				Text:   texts.Of("message.other_site_text"),
				Fault:  texts.Of("message.other_site_fault"),
				Advice: texts.Of("message.start_again")})
		return false
	}
	var ok bool
	if v.Form, ok = endpoint.ParseParameters(v.HTTP.PostBody()); !ok || !endpoint.IsForm(v.HTTP) {
		s.RefusePage(v, texts.Of("message.form_unread"), texts.Of("message.send_again"))
		return false
	}
	return true
}

// RefusePage responds with 400 and a page.
func (s *Site) RefusePage(v *Visit, text, advice texts.Text) {
	s.WriteMessage(v.HTTP, fasthttp.StatusBadRequest,
		pages.Message{Title: texts.Of("message.cannot"), Text: text, Advice: advice})
}

// Bind returns the binding of a purpose to this browser and the pending request.
func (v *Visit) Bind(purpose string) Binding {
	if v.Pending == nil {
		return Binding{v.keys, v.Secret, purpose, ""}
	}
	return Binding{v.keys, v.Secret, purpose, v.Pending.Query}
}

// Field returns the value of a field of the form; "" when it is missing or repeated.
func (v *Visit) Field(name string) string { return endpoint.Value(v.Form, name) }

// Shown returns the value of a field, to be shown again; "" when it is too long.
func (v *Visit) Shown(field string) string {
	if text := v.Field(field); len(text) <= MaxSecretText {
		return text
	}
	return ""
}

// CheckForm reports whether the token of the form is valid for that binding.
func (v *Visit) CheckForm(form Binding) bool {
	return form.checkFormToken(v.Field(fieldFormToken), v.Now)
}

// Offered wraps the handler of a page that needs a messenger for channel. Without one, the page
// does not exist.
func (s *Site) Offered(channel account.Channel,
	handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !s.people.Channels().Has(channel) {
			s.ShowProblem(ctx, endpoint.ErrNotFound)
			return
		}
		handle(ctx)
	}
}
