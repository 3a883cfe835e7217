package visit

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	replayWindow = 2 * time.Second // after the first response
	maxReplays   = 4096            // results in memory
)

// replays repeats the response to a form that is sent again, as by a double click: the browser may
// have dropped the first response with its cookies. Its methods may be called by many goroutines.
type replays struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*formResult
}

func newReplays() *replays { return &replays{all: make(map[[sha256.Size]byte]*formResult)} }

// formResult is the response to a form. Its fields are set when done is closed.
type formResult struct {
	done    chan struct{}
	to      string    // target of the redirect; "" = the response was none
	cookies [][]byte  // that the response set
	secrets [2]string // of the browser, before and after the form
}

// begin returns the result of an earlier form with that key, and false. Otherwise it returns a new
// result, and true; the caller must then call end. It returns nil when too many are in memory.
func (a *replays) begin(key [sha256.Size]byte) (*formResult, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, ok := a.all[key]; ok {
		return before, false
	}
	if len(a.all) == maxReplays {
		return nil, true
	}
	first := &formResult{done: make(chan struct{})}
	a.all[key] = first
	return first, true
}

// end releases the requests that wait for first, and forgets it after keep; at once when the form
// led to no redirect.
func (a *replays) end(key [sha256.Size]byte, first *formResult, keep time.Duration) {
	forget := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.all, key)
	}
	if first.to == "" || keep == 0 {
		forget()
	} else {
		time.AfterFunc(keep, forget)
	}
	close(first.done)
}

// Replay wraps a handler of forms: for 2 s, the same form of the same browser gets the response of
// the first one.
func (s *Site) Replay(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return s.replayFor(replayWindow, handle)
}

// Coalesce is Replay for forms that sign in: only requests that arrive while the first is in
// progress share its response. Afterwards a repeated form must not yield a session.
func (s *Site) Coalesce(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return s.replayFor(0, handle)
}

func (s *Site) replayFor(keep time.Duration,
	handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		secret := string(ctx.Request.Header.Cookie(s.cookies.secret))
		if !ctx.IsPost() || !isBrowserSecret(secret) || isCrossSite(ctx) {
			handle(ctx)
			return
		}
		key := formKey(ctx)
		answer, isFirst := s.replays.begin(key)
		switch {
		case answer == nil:
			handle(ctx)
		case isFirst:
			defer s.replays.end(key, answer, keep)
			handle(ctx)
			s.keepResult(ctx, answer, secret)
		case !answer.repeat(ctx, secret):
			handle(ctx)
		}
	}
}

// formKey identifies a form by its target and body. The browser is checked by its secrets.
func formKey(ctx *fasthttp.RequestCtx) [sha256.Size]byte {
	h := sha256.New()
	h.Write(ctx.RequestURI())
	h.Write([]byte{0})
	h.Write(ctx.PostBody())
	return [sha256.Size]byte(h.Sum(nil))
}

// keepResult stores the response to the form.
func (s *Site) keepResult(ctx *fasthttp.RequestCtx, answer *formResult, secret string) {
	if ctx.Response.StatusCode() != fasthttp.StatusSeeOther || isAgain(ctx) {
		return
	}
	answer.to, answer.secrets = string(ctx.Response.Header.Peek(fasthttp.HeaderLocation)),
		[2]string{secret, secret}
	for name, cookie := range ctx.Response.Header.Cookies() {
		answer.cookies = append(answer.cookies, append([]byte(nil), cookie...))
		if string(name) == s.cookies.secret {
			var c fasthttp.Cookie
			if err := c.ParseBytes(cookie); err == nil {
				answer.secrets[1] = string(c.Value())
			}
		}
	}
}

// repeat waits for the first response and sends it again. It returns false when that was no
// redirect, or for another browser.
func (a *formResult) repeat(ctx *fasthttp.RequestCtx, secret string) bool {
	wait := time.NewTimer(pageDeadline)
	defer wait.Stop()
	select {
	case <-a.done:
	case <-wait.C:
		return false
	}
	if a.to == "" || !a.belongsTo(secret) {
		return false
	}
	for _, cookie := range a.cookies {
		var c fasthttp.Cookie
		if err := c.ParseBytes(cookie); err != nil {
			return false
		}
		ctx.Response.Header.SetCookie(&c)
	}
	Redirect(ctx, a.to)
	return true
}

// belongsTo reports whether the browser with that secret sent the form, in constant time.
func (a *formResult) belongsTo(secret string) bool {
	before := subtle.ConstantTimeCompare([]byte(secret), []byte(a.secrets[0]))
	after := subtle.ConstantTimeCompare([]byte(secret), []byte(a.secrets[1]))
	return before|after == 1
}
