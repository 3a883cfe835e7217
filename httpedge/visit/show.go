package visit

import (
	"errors"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

var contentTypeHTML = []byte("text/html; charset=utf-8")

// setPageHeaders sets the headers of pages and redirects. allowed are the sources of what the page
// consists of. redirectURI is the client's, to which a form on the page may lead: Chromium applies
// form-action to redirects as well. "" = none.
func setPageHeaders(ctx *fasthttp.RequestCtx, allowed, redirectURI string) {
	h := &ctx.Response.Header
	endpoint.SetNoStore(h)
	h.Set(fasthttp.HeaderReferrerPolicy, "no-referrer")
	h.Set(fasthttp.HeaderXFrameOptions, "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set(fasthttp.HeaderContentSecurityPolicy, "default-src 'none'; "+allowed+
		"form-action 'self'"+formTarget(redirectURI)+"; base-uri 'none'; frame-ancestors 'none'")
}

// formTarget returns the source expression of a redirect URI, after a space. When a
// Content-Security-Policy cannot express its origin, such as an IPv6 address, it is the scheme
// alone.
func formTarget(redirectURI string) string {
	if redirectURI == "" {
		return ""
	}
	scheme, _, ok := strings.Cut(redirectURI, ":")
	if !ok || !isEvery(scheme, "+-.") {
		return ""
	}
	u, err := url.Parse(redirectURI)
	if err != nil || u.Host == "" || !isEvery(u.Host, "-.:") || scheme != "http" &&
		scheme != "https" {
		return " " + scheme + ":"
	}
	return " " + scheme + "://" + u.Host
}

// isEvery reports whether s is not empty and consists of letters, digits and others.
func isEvery(s, others string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte(others, c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// Redirect redirects the browser: with 303 after a form, so that it sends GET, else with 302 (RFC
// 9700 section 4.12).
func Redirect(ctx *fasthttp.RequestCtx, location string) {
	setPageHeaders(ctx, "", "")
	ctx.SetStatusCode(fasthttp.StatusFound)
	if ctx.IsPost() {
		ctx.SetStatusCode(fasthttp.StatusSeeOther)
	}
	ctx.Response.Header.Set(fasthttp.HeaderLocation, location)
}

// Show responds with a page of the flow. When rendering fails, it redirects to the client with an
// error.
func (s *Site) Show(v *Visit, status int, p pages.Page) {
	if v.Pending == nil {
		s.WritePage(v.HTTP, status, p)
		return
	}
	if s.again(v.HTTP, status, p) {
		return
	}
	status, p = asSent(v.HTTP, status, p)
	body, err := p.Render(s.viewOf(v.HTTP))
	if err != nil {
		s.RefuseFailure(v, "write a page", err)
		return
	}
	s.sendPageWith(v.HTTP, status, body, scriptsOf(p), v.Pending.Request.RedirectURI)
}

// WritePage responds with a page whose forms do not lead to a client.
func (s *Site) WritePage(ctx *fasthttp.RequestCtx, status int, p pages.Page) {
	s.WritePageTo(ctx, status, p, "")
}

// WritePageTo responds with a page whose forms may lead to a client's redirect URI.
func (s *Site) WritePageTo(ctx *fasthttp.RequestCtx, status int, p pages.Page,
	redirectURI string) {
	if s.again(ctx, status, p) {
		return
	}
	status, p = asSent(ctx, status, p)
	body, err := p.Render(s.viewOf(ctx))
	if err != nil {
		s.failures.Log("write a page", err, endpoint.Attributes(ctx)...)
		endpoint.WriteError(ctx, endpoint.JSON, endpoint.ErrPanic)
		return
	}
	s.sendPageWith(ctx, status, body, scriptsOf(p), redirectURI)
}

func (s *Site) sendPage(ctx *fasthttp.RequestCtx, status int, body []byte, redirectURI string) {
	s.sendPageWith(ctx, status, body, "", redirectURI)
}

// scriptsOf returns what lets the own script of a page run, after the source of the script of all
// pages; "" = it has none.
func scriptsOf(p pages.Page) string {
	if scripted, ok := p.(interface{ Scripted() bool }); ok && scripted.Scripted() {
		return " " + pages.PasskeySource + "; connect-src 'self'"
	}
	return ""
}

// sendPageWith is sendPage with the result of scriptsOf.
func (s *Site) sendPageWith(ctx *fasthttp.RequestCtx, status int, body []byte,
	scripts, redirectURI string) {
	setPageHeaders(ctx, "style-src "+s.view.StyleSource()+"; script-src "+pages.ScriptSource+scripts+
		"; img-src 'self'; ", redirectURI)
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(contentTypeHTML)
	ctx.Response.Header.Set(fasthttp.HeaderContentLanguage, s.viewOf(ctx).Language().Tag)
	ctx.Response.Header.Set(fasthttp.HeaderVary, "Accept-Language, Cookie")
	ctx.Response.SetBodyRaw(body)
}

// WriteMessage responds with a page that says what happened. With an error status, it adds the
// request's id.
func (s *Site) WriteMessage(ctx *fasthttp.RequestCtx, status int, m pages.Message) {
	if status >= fasthttp.StatusBadRequest {
		m.Reference = endpoint.RequestID(ctx)
	}
	s.WritePage(ctx, status, m)
}

// LogFailure logs an error of the service after which the page goes on without something.
func (s *Site) LogFailure(v *Visit, step string, err error) {
	s.failures.Log(step, err, endpoint.Attributes(v.HTTP)...)
}

// WriteFailure responds with a page about an error of the service, and logs it unless the service
// is only busy.
func (s *Site) WriteFailure(ctx *fasthttp.RequestCtx, step string, err error) {
	if !errors.Is(err, account.ErrBusy) {
		s.failures.Log(step, err, endpoint.Attributes(ctx)...)
	}
	problem := endpoint.Failure(err)
	endpoint.SetRetryAfter(&ctx.Response.Header, &problem)
	s.WriteMessage(ctx, problem.Status, ourFault("message.reload"))
}

// ourFault returns the message about an error of the service, with the advice of that key.
func ourFault(advice string) pages.Message {
	return pages.Message{
		Title: texts.Of("message.try_again"), Text: texts.Of("message.failed"),
		Fault: texts.Of("message.our_fault"), Advice: texts.Of(advice),
	}
}

// ShowProblem responds with a page about a problem that the server found before any handler.
func (s *Site) ShowProblem(ctx *fasthttp.RequestCtx, p *endpoint.Problem) {
	message, ok := problemWords[p.Code]
	if !ok {
		message = pages.Message{Title: texts.Of("message.cannot"), Text: texts.Literal(p.Message)}
	}
	s.WriteMessage(ctx, p.Status, message)
}

// problemWords are the messages of problems, by code.
var problemWords = map[string]pages.Message{
	endpoint.ErrNotFound.Code: {Title: texts.Of("message.no_page"),
		Text: texts.Of("message.no_address"), Advice: texts.Of("message.check_address")},
	endpoint.ErrMethodNotAllowed.Code: {Title: texts.Of("message.wrong_method"),
		Text: texts.Of("message.wrong_method_text"), Advice: texts.Of("message.wrong_method_advice")},
	endpoint.ErrBodyTooLarge.Code: {Title: texts.Of("message.large_form"),
		Text: texts.Of("message.large_form_text"), Advice: texts.Of("message.large_form_advice")},
}
