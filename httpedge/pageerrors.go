package httpedge

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/httpedge/pages"
)

// isPage reports whether path is one of those that people see, or below one's own account.
func isPage(path []byte) bool {
	switch string(path) {
	case pathLogin, pathAccounts, pathConsent, pathLogout, pathRegister, pathRegisterVerify, pathRegisterResend,
		pathPhone, pathPhoneVerify, pathPhoneResend, pathReset, pathResetVerify, pathResetResend:
		return true
	}
	return isPersonal(path)
}

// isForPeople reports whether an error that comes before any handler is told on a page: at the paths of pages, and where
// browsers begin if that is what they like better.
func isForPeople(ctx *fasthttp.RequestCtx) bool {
	path := ctx.URI().PathOriginal()
	return isPage(path) || string(path) == pathAuthorize && prefersPage(ctx)
}

// showNotFound answers 404 with a page.
func (s *Server) showNotFound(ctx *fasthttp.RequestCtx) {
	s.writeMessage(ctx, fasthttp.StatusNotFound, pages.Message{Title: "There is no page here",
		Text: "This address leads to nothing that the service has.", Advice: "Check the address, or go back to where you came from and start again."})
}

// showMethodNotAllowed answers 405 with a page.
func (s *Server) showMethodNotAllowed(ctx *fasthttp.RequestCtx) {
	s.writeMessage(ctx, fasthttp.StatusMethodNotAllowed, pages.Message{Title: "This page cannot be used like that",
		Text: "It was asked for in a way that it has no answer to. Nothing was done.", Advice: "Open the page by its address, or go back to where you came from and start again."})
}

// showTooLarge answers 413 with a page.
func (s *Server) showTooLarge(ctx *fasthttp.RequestCtx) {
	s.writeMessage(ctx, fasthttp.StatusRequestEntityTooLarge, pages.Message{Title: "This form is too large",
		Text: "A form can hold 64 KiB. Nothing was done.", Advice: "Go back, enter less and send the form once more."})
}

// prefersPage reports whether the request would rather have HTML than JSON (RFC 9110 section 12.5.1), as those of browsers do.
func prefersPage(ctx *fasthttp.RequestCtx) bool {
	accept := string(bytes.Join(ctx.Request.Header.PeekAll(fasthttp.HeaderAccept), []byte(",")))
	return weight(accept, "text", "html") > weight(accept, "application", "json")
}

// weight returns how much a media type is wanted, from 0 to 1, by the narrowest range that it falls under.
func weight(accept, kind, subtype string) float64 {
	narrowest, found := 0, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		width := 0
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case kind + "/" + subtype:
			width = 3
		case kind + "/*":
			width = 2
		case "*/*":
			width = 1
		}
		if width > narrowest {
			narrowest, found = width, quality(params)
		}
	}
	return found
}

// quality returns the weight among the parameters of a media range: 1 when there is none, 0 when it is malformed.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, text, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(text, 64); err == nil && q >= 0 && q <= 1 {
			return q
		}
		return 0
	}
	return 1
}
