package httpedge

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/httpedge/pages"
)

const (
	maxSessions  = 5                    // accounts that one browser is signed in to
	maxCookie    = 128                  // bytes of one value in a cookie
	secretMaxAge = 180 * 24 * time.Hour // of the cookie that forms are bound to
	knownMaxAge  = 365 * 24 * time.Hour // of the cookie that marks a browser as known
	pageDeadline = 15 * time.Second     // for everything that a page waits for
)

// cookieNames are the names of our cookies. Under https they have a prefix that keeps other hosts and paths from setting
// them.
type cookieNames struct {
	session string // tokens of sessions, the newest first, with dots between
	known   string // marks of accounts that have signed in here, likewise
	secret  string // 256 random bits that forms are bound to
	code    string // token of the challenge that asks for a code
	secure  bool
}

func newCookieNames(issuer string) cookieNames {
	prefix, secure := "", strings.HasPrefix(issuer, "https://")
	if secure {
		prefix = "__Host-"
	}
	return cookieNames{session: prefix + "gatehouse", known: prefix + "gatehouse-known", secret: prefix + "gatehouse-form",
		code: prefix + "gatehouse-code", secure: secure}
}

// read returns the values in a cookie, at most limit. It shares no memory with the request.
func (c *cookieNames) read(ctx *fasthttp.RequestCtx, name string, limit int) []string {
	var values []string
	for v := range strings.SplitSeq(string(ctx.Request.Header.Cookie(name)), ".") {
		if len(values) < limit && len(v) <= maxCookie && isEvery(v, "-_~") {
			values = append(values, v)
		}
	}
	return values
}

// write sets a cookie for maxAge; 0 deletes it.
func (c *cookieNames) write(ctx *fasthttp.RequestCtx, name string, values []string, maxAge time.Duration) {
	var cookie fasthttp.Cookie
	cookie.SetKey(name)
	cookie.SetValue(strings.Join(values, "."))
	cookie.SetPath("/")
	cookie.SetHTTPOnly(true)
	cookie.SetSecure(c.secure)
	cookie.SetSameSite(fasthttp.CookieSameSiteLaxMode)
	if seconds := int(maxAge / time.Second); seconds > 0 {
		cookie.SetMaxAge(seconds)
	} else {
		cookie.SetExpire(fasthttp.CookieExpireDelete)
	}
	ctx.Response.Header.SetCookie(&cookie)
}

// browserSecret returns what this browser's forms are bound to, and gives it one if it has none.
func (s *Server) browserSecret(ctx *fasthttp.RequestCtx) string {
	if secret := string(ctx.Request.Header.Cookie(s.cookies.secret)); isBrowserSecret(secret) {
		return secret
	}
	return s.renewBrowserSecret(ctx)
}

// renewBrowserSecret ends all forms that this browser shows.
func (s *Server) renewBrowserSecret(ctx *fasthttp.RequestCtx) string {
	secret := newBrowserSecret()
	s.cookies.write(ctx, s.cookies.secret, []string{secret}, secretMaxAge)
	return secret
}

// visitor is somebody who is signed in with this browser.
type visitor struct {
	token   string
	session *account.Session
	user    *account.User
}

func (v visitor) account() pages.Account {
	address := v.user.Email
	if address == "" {
		address = v.user.Phone
	}
	return pages.Account{ID: v.user.ID, Name: v.user.Name, Address: address}
}

func accountsOf(visitors []visitor) []pages.Account {
	var all []pages.Account
	for _, v := range visitors {
		all = append(all, v.account())
	}
	return all
}

// visitors returns who is signed in with this browser, the newest first, each account once.
func (s *Server) visitors(v *visit) ([]visitor, error) {
	var all []visitor
	for _, token := range s.cookies.read(v.http, s.cookies.session, maxSessions) {
		session, user, err := s.config.Identity.Session(v.ctx, token, v.now)
		if errors.Is(err, account.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, twice := visitorWith(all, user.ID); !twice {
			all = append(all, visitor{token, session, user})
		}
	}
	return all, nil
}

func visitorWith(all []visitor, userID int64) (visitor, bool) {
	for _, v := range all {
		if v.user.ID == userID {
			return v, true
		}
	}
	return visitor{}, false
}

// keepSessions writes the session cookie. It lasts as long as the longest session does.
func (s *Server) keepSessions(v *visit, visitors []visitor) {
	var tokens []string
	var last time.Duration
	for _, who := range visitors {
		tokens = append(tokens, who.token)
		last = max(last, who.session.Expires.Sub(v.now))
	}
	s.cookies.write(v.http, s.cookies.session, tokens, last)
}

// join adds a new session to those of the browser. Its account's former session here ends, and the oldest if they become
// too many.
func (s *Server) join(v *visit, newcomer visitor) error {
	before, err := s.visitors(v)
	if err != nil {
		return err
	}
	all := []visitor{newcomer}
	for _, who := range before {
		if who.user.ID != newcomer.user.ID && len(all) < maxSessions {
			all = append(all, who)
			continue
		}
		if err := s.config.Identity.SignOut(v.ctx, who.token); err != nil {
			return err
		}
	}
	s.keepSessions(v, all)
	return nil
}

// A browser keeps a mark for each account that has signed in with it. So that the right one can be found, and nobody
// else learns whose it is, it is kept as mark~tag, where the tag is a MAC of the e-mail address under the mark.
func tagOf(mark, email string) string {
	m := hmac.New(sha256.New, []byte(mark))
	m.Write([]byte(strings.ToLower(email)))
	return base64url.EncodeToString(m.Sum(nil)[:9])
}

// knownMark returns this browser's mark for the account with that address; "" = none.
func (s *Server) knownMark(ctx *fasthttp.RequestCtx, email string) string {
	for _, kept := range s.cookies.read(ctx, s.cookies.known, maxSessions) {
		if mark, tag, _ := strings.Cut(kept, "~"); tag == tagOf(mark, email) {
			return mark
		}
	}
	return ""
}

// keepKnown puts a new mark before the others, in the place of the same account's former one.
func (s *Server) keepKnown(ctx *fasthttp.RequestCtx, email, mark string) {
	all := []string{mark + "~" + tagOf(mark, email)}
	for _, kept := range s.cookies.read(ctx, s.cookies.known, maxSessions) {
		if mark, tag, _ := strings.Cut(kept, "~"); len(all) < maxSessions && tag != tagOf(mark, email) {
			all = append(all, kept)
		}
	}
	s.cookies.write(ctx, s.cookies.known, all, knownMaxAge)
}

// dropKnown removes this browser's mark for the account with that address.
func (s *Server) dropKnown(ctx *fasthttp.RequestCtx, email string) {
	var all []string
	for _, kept := range s.cookies.read(ctx, s.cookies.known, maxSessions) {
		if mark, tag, _ := strings.Cut(kept, "~"); tag != tagOf(mark, email) {
			all = append(all, kept)
		}
	}
	lasts := knownMaxAge
	if all == nil {
		lasts = 0
	}
	s.cookies.write(ctx, s.cookies.known, all, lasts)
}
