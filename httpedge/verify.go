package httpedge

import (
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

// What people are told about codes.
const (
	textWrongCode   = "This is not the code that we sent. Check it and try again."
	textExpiredCode = "This code is no longer good: it has expired, was used or was tried too often. Ask for a new one."
	textCodeGone    = "This code is no longer good. Please start again."
	textCodeSent    = "We sent a new code. Only the new one works now."
)

// justNow is how long after a sign-in a form that was sent before leads on.
const justNow = 10 * time.Second

// paramSent says on the page for a code that another one was sent just now.
const paramSent = "sent"

// codeFlow is one of the ways to sign in that end with a code.
type codeFlow struct {
	kind    pages.VerifyKind
	purpose account.Purpose
	channel account.Channel
	start   string // path of the page that begins it
	path    string // of the page that asks for the code
	resend  string // of the form for another code
	// restart shows the page that begins it.
	restart func(s *Server, v *visit, status int, problems ...pages.Problem)
	// confirm takes the form of the page that asks for the code.
	confirm func(s *Server, v *visit, token, code string, by actors.Visitor) (*actors.SignedIn, error)
}

// offered makes a handler of one for people who can be reached by channel. Without a messenger there is no such page.
func (s *Server) offered(channel account.Channel, handle func(*visit)) fasthttp.RequestHandler {
	serve := s.flow(handle)
	return func(ctx *fasthttp.RequestCtx) {
		if !s.config.Identity.Channels().Has(channel) {
			s.showNotFound(ctx)
			return
		}
		serve(ctx)
	}
}

// pathIf returns the path of a page that people need channel for, or "" when it is not offered.
func (s *Server) pathIf(v *visit, channel account.Channel, page string) string {
	if !s.config.Identity.Channels().Has(channel) {
		return ""
	}
	return v.path(page)
}

// codeToken returns the token of the challenge that this browser is to answer; "" = none.
func (s *Server) codeToken(ctx *fasthttp.RequestCtx) string {
	if token := string(ctx.Request.Header.Cookie(s.cookies.code)); account.LooksLikeSecret(token) {
		return token
	}
	return ""
}

// keepCode makes the browser keep the token of a challenge, in the place of another.
func (s *Server) keepCode(ctx *fasthttp.RequestCtx, token string) {
	s.cookies.write(ctx, s.cookies.code, []string{token}, account.ChallengeLifetime)
}

func (s *Server) dropCode(ctx *fasthttp.RequestCtx) { s.cookies.write(ctx, s.cookies.code, nil, 0) }

// begun goes on to the page for the code, or shows the page before with what is wrong.
func (s *Server) begun(v *visit, f *codeFlow, token string, err error) {
	switch problems := problemsOf(err); {
	case err == nil:
		s.keepCode(v.http, token)
		redirect(v.http, v.path(f.path))
	case problems != nil:
		f.restart(s, v, fasthttp.StatusUnprocessableEntity, problems...)
	default:
		if text := throttledCode(v.http, err); text != "" {
			f.restart(s, v, fasthttp.StatusTooManyRequests, pages.Problem{Text: text})
			return
		}
		s.writeFailure(v.http, "send a code", err)
	}
}

// throttledCode says when a code may be asked for, and sets Retry-After; "" when err is no *actors.ThrottledError.
func throttledCode(ctx *fasthttp.RequestCtx, err error) string {
	if wait := setRetryAfter(ctx, err); wait != "" {
		return "Too many codes were asked for. You can ask for another in " + wait + "."
	}
	return ""
}

// setRetryAfter returns how long people have to wait, in words, and sets Retry-After; "" when err is no *actors.ThrottledError.
func setRetryAfter(ctx *fasthttp.RequestCtx, err error) string {
	var throttled *actors.ThrottledError
	if !errors.As(err, &throttled) {
		return ""
	}
	seconds := wholeSeconds(throttled.RetryAfter)
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(seconds, 10))
	return pages.Verify{Wait: int(seconds)}.WaitText()
}

// verify shows the page that asks for f's code, and takes the code.
func (s *Server) verify(f *codeFlow) func(*visit) {
	return func(v *visit) {
		token, c, ok := s.challenge(v, f)
		if !ok {
			return
		}
		if !v.http.IsPost() {
			notice := ""
			if v.http.QueryArgs().Has(paramSent) && v.now.Sub(c.Sent) < account.SendInterval {
				notice = textCodeSent
			}
			s.showVerify(v, f, token, c, fasthttp.StatusOK, notice)
			return
		}
		if !v.verifyForm(f.path, token).checkFormToken(value(v.form, fieldFormToken), v.now) {
			s.showVerify(v, f, token, c, fasthttp.StatusForbidden, "", pages.Problem{Text: textStaleForm})
			return
		}
		s.confirmCode(v, f, token, c)
	}
}

// challenge returns what the browser's token asks for. When that is nothing of f's, it goes back to where f begins, and returns
// false.
func (s *Server) challenge(v *visit, f *codeFlow) (string, *account.Challenge, bool) {
	token := s.codeToken(v.http)
	c, err := s.config.Identity.Challenge(v.ctx, token, v.now)
	switch {
	case err == nil && c.Purpose == f.purpose:
		return token, c, true
	case err != nil && !errors.Is(err, actors.ErrCodeExpired):
		s.writeFailure(v.http, "read a challenge", err)
	case v.http.IsPost() && f.purpose != account.ForChange && s.welcomed(v):
	case v.http.IsPost():
		f.restart(s, v, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: textCodeGone})
	default:
		redirect(v.http, v.path(f.start))
	}
	return "", nil, false
}

// welcomed goes on with who has signed in with this browser just now, such as by the first click of a double one; false = nobody.
func (s *Server) welcomed(v *visit) bool {
	visitors, err := s.visitors(v)
	switch {
	case err != nil:
		s.writeFailure(v.http, "read sessions", err)
	case len(visitors) == 0 || v.now.Sub(visitors[0].session.SignedIn) >= justNow:
		return false
	case v.pending == nil:
		redirect(v.http, pathMe)
	default:
		redirect(v.http, v.pathChosen(pathAuthorize, newChoice(visitors[0].user.ID, false)))
	}
	return true
}

func (s *Server) confirmCode(v *visit, f *codeFlow, token string, c *account.Challenge) {
	code := value(v.form, "code")
	if code == "" || len(code) > maxSecretText {
		s.showVerify(v, f, token, c, fasthttp.StatusUnprocessableEntity, "", pages.Problem{Field: "code", Text: "Enter the code from our message."})
		return
	}
	in, err := f.confirm(s, v, token, code, actors.Visitor{
		Caller: s.clients.caller(v.http), Device: device(string(v.http.UserAgent())), Known: s.knownMark(v.http, c.Address),
	})
	switch {
	case err == nil:
		s.dropCode(v.http)
		s.welcome(v, c.Address, in)
	case errors.Is(err, account.ErrTaken):
		s.dropCode(v.http)
		s.showLogin(v, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: "This address has got an account in the meantime. Sign in to it."})
	case errors.Is(err, actors.ErrDisabled):
		s.dropCode(v.http)
		s.writeMessage(v.http, fasthttp.StatusForbidden, pages.Message{Title: "This account is disabled",
			Text: "Nobody can sign in to it at the moment.", Advice: "Ask the people who run this service."})
	default:
		s.refuseCode(v, f, token, c, err)
	}
}

// refuseCode shows the page again after a code that did not lead on.
func (s *Server) refuseCode(v *visit, f *codeFlow, token string, c *account.Challenge, err error) {
	again := func(status int, problems ...pages.Problem) { s.showVerify(v, f, token, c, status, "", problems...) }
	problems := problemsOf(err)
	wait := setRetryAfter(v.http, err)
	switch {
	case problems != nil:
		again(fasthttp.StatusUnprocessableEntity, problems...)
	case wait != "":
		again(fasthttp.StatusTooManyRequests, pages.Problem{Field: "code", Text: "Too many wrong codes were entered. Try again in " + wait + "."})
	case errors.Is(err, actors.ErrWrongCode):
		again(fasthttp.StatusUnprocessableEntity, pages.Problem{Field: "code", Text: textWrongCode})
	case !errors.Is(err, actors.ErrCodeExpired):
		s.writeFailure(v.http, "check a code", err)
	default:
		if token, c, ok := s.challenge(v, f); ok {
			s.showVerify(v, f, token, c, fasthttp.StatusUnprocessableEntity, "", pages.Problem{Field: "code", Text: textExpiredCode})
		}
	}
}

// resendCode takes the form that asks for another code.
func (s *Server) resendCode(f *codeFlow) func(*visit) {
	return func(v *visit) {
		if !v.http.IsPost() {
			redirect(v.http, v.path(f.path)) // by who loads again what the form has answered
			return
		}
		token, c, ok := s.challenge(v, f)
		if !ok {
			return
		}
		if !v.verifyForm(f.resend, token).checkFormToken(value(v.form, fieldFormToken), v.now) {
			s.showVerify(v, f, token, c, fasthttp.StatusForbidden, "", pages.Problem{Text: textStaleForm})
			return
		}
		err := s.config.Identity.Resend(v.ctx, token, s.clients.caller(v.http), v.now)
		switch {
		case err == nil:
			redirect(v.http, v.pathSent(f.path))
		case errors.Is(err, actors.ErrCodeExpired):
			f.restart(s, v, fasthttp.StatusUnprocessableEntity, pages.Problem{Text: textCodeGone})
		default:
			if text := throttledCode(v.http, err); text != "" {
				s.showVerify(v, f, token, c, fasthttp.StatusTooManyRequests, "", pages.Problem{Text: text})
				return
			}
			s.writeFailure(v.http, "send a code", err)
		}
	}
}

// pathSent is path with paramSent.
func (v *visit) pathSent(page string) string {
	if v.pending == nil {
		return page + "?" + paramSent + "=1"
	}
	return v.path(page) + "&" + paramSent + "=1"
}

// verifyForm binds a form also to the challenge, so that it ends with it.
func (v *visit) verifyForm(path, token string) binding { return v.bind(path + " " + token) }

func (s *Server) showVerify(v *visit, f *codeFlow, token string, c *account.Challenge, status int, notice string, problems ...pages.Problem) {
	p := pages.Verify{
		Kind: f.kind, Client: v.clientName(), Action: v.path(f.path), FormToken: v.verifyForm(f.path, token).newFormToken(v.now),
		Resend: v.path(f.resend), ResendToken: v.verifyForm(f.resend, token).newFormToken(v.now),
		Address: c.Address, Name: v.shown("name"), Back: v.path(f.start), Notice: notice, Problems: problems,
	}
	if wait := c.Again.Sub(v.now); wait > 0 {
		p.Wait = int(wholeSeconds(wait))
	}
	s.show(v, status, p)
}
