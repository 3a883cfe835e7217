package visit

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	twiceWithin = 2 * time.Second // after the first answer
	maxAnswers  = 4096            // that are remembered
)

// answers lets a form that is sent twice, by a double click, lead where it led first: of the first answer, cookies included, the browser
// may have taken nothing. Its methods may be called by many goroutines.
type answers struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*formAnswer
}

func newAnswers() *answers { return &answers{all: make(map[[sha256.Size]byte]*formAnswer)} }

// formAnswer is what became of a form. Its fields are set when done is closed.
type formAnswer struct {
	done    chan struct{}
	to      string    // where it led; "" = nowhere
	cookies [][]byte  // as they were set
	secrets [2]string // of the browser: before, and after
}

// begin returns the answer to the form with that key, and false; or a new one, and true, for which end has to be called. It returns nil
// when there is no room.
func (a *answers) begin(key [sha256.Size]byte) (*formAnswer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, ok := a.all[key]; ok {
		return before, false
	}
	if len(a.all) == maxAnswers {
		return nil, true
	}
	first := &formAnswer{done: make(chan struct{})}
	a.all[key] = first
	return first, true
}

// end lets those who wait for first go on, and forgets it after keep: at once if it led nowhere.
func (a *answers) end(key [sha256.Size]byte, first *formAnswer, keep time.Duration) {
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

// Once makes a handler of forms that answers one form of one browser once.
func (s *Site) Once(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return s.onceFor(twiceWithin, handle)
}

// Together is Once for forms that sign in: what comes while the first is answered leads where that does, but after it nobody gets a
// session by what was sent before.
func (s *Site) Together(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return s.onceFor(0, handle)
}

func (s *Site) onceFor(keep time.Duration, handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		secret := string(ctx.Request.Header.Cookie(s.cookies.secret))
		if !ctx.IsPost() || !isBrowserSecret(secret) || crossSite(ctx) {
			handle(ctx)
			return
		}
		key := formKey(ctx)
		answer, isFirst := s.answers.begin(key)
		switch {
		case answer == nil:
			handle(ctx)
		case isFirst:
			defer s.answers.end(key, answer, keep)
			handle(ctx)
			s.keepAnswer(ctx, answer, secret)
		case !answer.repeat(ctx, secret):
			handle(ctx)
		}
	}
}

// formKey stands for a form as it was sent. That it came from the same browser, the secrets say.
func formKey(ctx *fasthttp.RequestCtx) [sha256.Size]byte {
	h := sha256.New()
	h.Write(ctx.RequestURI())
	h.Write([]byte{0})
	h.Write(ctx.PostBody())
	return [sha256.Size]byte(h.Sum(nil))
}

// keepAnswer notes where the form led.
func (s *Site) keepAnswer(ctx *fasthttp.RequestCtx, answer *formAnswer, secret string) {
	if ctx.Response.StatusCode() != fasthttp.StatusSeeOther {
		return
	}
	answer.to, answer.secrets = string(ctx.Response.Header.Peek(fasthttp.HeaderLocation)), [2]string{secret, secret}
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

// repeat waits for the first answer and gives it again; false says that it led nowhere, or was another browser's.
func (a *formAnswer) repeat(ctx *fasthttp.RequestCtx, secret string) bool {
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

// belongsTo reports whether the browser with that secret sent the form. It takes the same time for every wrong one.
func (a *formAnswer) belongsTo(secret string) bool {
	before := subtle.ConstantTimeCompare([]byte(secret), []byte(a.secrets[0]))
	after := subtle.ConstantTimeCompare([]byte(secret), []byte(a.secrets[1]))
	return before|after == 1
}
