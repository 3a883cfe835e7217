// Package visit is what the handlers of pages share: who is signed in with the browser, the authorization request that
// it is on the way with, forms that nobody else can make or send again, and how pages are shown.
package visit

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// Config is what a Site is made of.
type Config struct {
	People *people.Service
	Issuer string // the base URL that clients know, without a slash at the end
	Log    *slog.Logger
	Caller func(*fasthttp.RequestCtx) netip.Addr // the address of who sends a request, or the zero Addr
}

// Site is what all pages share. Make it with New. Its methods may be called by many goroutines.
type Site struct {
	people  *people.Service
	issuer  string
	log     *slog.Logger
	caller  func(*fasthttp.RequestCtx) netip.Addr
	cookies cookieNames
	spent   *spent // tokens of forms that can be sent once
	answers *answers
}

// New makes a Site.
func New(config Config) *Site {
	return &Site{
		people: config.People, issuer: config.Issuer, log: config.Log, caller: config.Caller,
		cookies: newCookieNames(config.Issuer), spent: newSpent(time.Now()), answers: newAnswers(),
	}
}

// Caller returns the address of who sends the request, or the zero Addr.
func (s *Site) Caller(v *Visit) netip.Addr { return s.caller(v.HTTP) }

const fieldFormToken = "form_token"

// MaxSecretText bounds what is taken for an e-mail address, a password or a code, in bytes.
const MaxSecretText = 1024

// TextStaleForm is what people are told whose form cannot be taken.
const TextStaleForm = "This form was open for too long, or was opened elsewhere in this browser. Please try again."

// Visit is one request of a browser for a page.
type Visit struct {
	HTTP    *fasthttp.RequestCtx
	Ctx     context.Context // ends at pageDeadline
	Now     time.Time
	Pending *Pending // nil = no client asked for this page
	Choice  Choice   // zero = none, or none that can be believed
	Secret  string   // of the browser
	Form    []oauth.Parameter
}

// Handle makes a handler of one that needs a visit. It lets no form pass that comes from another site.
func (s *Site) Handle(handle func(*Visit)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		deadline, cancel := context.WithTimeout(context.Background(), pageDeadline)
		defer cancel()
		v := &Visit{HTTP: ctx, Ctx: deadline, Now: time.Now()}
		if !ctx.IsPost() || s.readPage(v) {
			handle(v)
		}
	}
}

// readPage reads the form of a page, or answers what is wrong with it.
func (s *Site) readPage(v *Visit) bool {
	if crossSite(v.HTTP) {
		s.WriteMessage(v.HTTP, fasthttp.StatusForbidden, pages.Message{Title: "This form came from another site",
			Text: "For your safety nothing was done.", Fault: "Another site tried to act in your name, or your browser hides where you are.",
			Advice: "Go back to the application and start again."})
		return false
	}
	var ok bool
	if v.Form, ok = endpoint.ParseParameters(v.HTTP.PostBody()); !ok || !endpoint.IsForm(v.HTTP) {
		s.RefusePage(v, "The form cannot be read.", "Go back, load the page again and send it once more.")
		return false
	}
	return true
}

// RefusePage answers 400 with a page.
func (s *Site) RefusePage(v *Visit, text, advice string) {
	s.WriteMessage(v.HTTP, fasthttp.StatusBadRequest, pages.Message{Title: "This request cannot be served", Text: text, Advice: advice})
}

// Bind returns the binding of a purpose to this browser and to the pending request.
func (v *Visit) Bind(purpose string) Binding {
	if v.Pending == nil {
		return Binding{v.Secret, purpose, ""}
	}
	return Binding{v.Secret, purpose, v.Pending.Query}
}

// Field returns the value of the one field of the form with that name; "" when there is none, or more than one.
func (v *Visit) Field(name string) string { return endpoint.Value(v.Form, name) }

// Shown returns what was entered in a field, to be shown again; "" for what is too long to be meant.
func (v *Visit) Shown(field string) string {
	if text := v.Field(field); len(text) <= MaxSecretText {
		return text
	}
	return ""
}

// CheckForm reports whether the form that was sent was made for that binding.
func (v *Visit) CheckForm(form Binding) bool {
	return form.checkFormToken(v.Field(fieldFormToken), v.Now)
}

// SpendForm is CheckForm for forms that can be sent once.
func (s *Site) SpendForm(v *Visit, form Binding) bool {
	return form.spendFormToken(s.spent, v.Field(fieldFormToken), v.Now)
}

// Offered makes a handler of one for people who can be reached by channel. Without a messenger there is no such page.
func (s *Site) Offered(channel account.Channel, handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !s.people.Channels().Has(channel) {
			s.ShowProblem(ctx, endpoint.ErrNotFound)
			return
		}
		handle(ctx)
	}
}
