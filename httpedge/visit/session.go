package visit

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

// BrowserSecret returns what this browser's forms are bound to, and gives it one if it has none.
func (s *Site) BrowserSecret(ctx *fasthttp.RequestCtx) string {
	if secret := string(ctx.Request.Header.Cookie(s.cookies.secret)); isBrowserSecret(secret) {
		return secret
	}
	return s.RenewBrowserSecret(ctx)
}

// RenewBrowserSecret ends all forms that this browser shows.
func (s *Site) RenewBrowserSecret(ctx *fasthttp.RequestCtx) string {
	secret := newBrowserSecret()
	s.cookies.write(ctx, s.cookies.secret, []string{secret}, secretMaxAge)
	return secret
}

// Visitor is somebody who is signed in with this browser.
type Visitor struct {
	Token   string
	Session *account.Session
	User    *account.User
}

// Account returns what pages show of the account.
func (v Visitor) Account() pages.Account {
	address := v.User.Email
	if address == "" {
		address = v.User.Phone
	}
	return pages.Account{ID: v.User.ID, Name: v.User.Name, Address: address}
}

// AccountsOf returns what pages show of the accounts.
func AccountsOf(visitors []Visitor) []pages.Account {
	var all []pages.Account
	for _, v := range visitors {
		all = append(all, v.Account())
	}
	return all
}

// Visitors returns who is signed in with this browser, the newest first, each account once.
func (s *Site) Visitors(v *Visit) ([]Visitor, error) {
	var all []Visitor
	for _, token := range s.cookies.read(v.HTTP, s.cookies.session, maxSessions) {
		session, user, err := s.people.Session(v.Ctx, token, v.Now)
		if errors.Is(err, account.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, twice := VisitorWith(all, user.ID); !twice {
			all = append(all, Visitor{token, session, user})
		}
	}
	return all, nil
}

// VisitorWith returns the one with that account.
func VisitorWith(all []Visitor, userID int64) (Visitor, bool) {
	for _, v := range all {
		if v.User.ID == userID {
			return v, true
		}
	}
	return Visitor{}, false
}

// KeepSessions writes the session cookie. It lasts as long as the longest session does.
func (s *Site) KeepSessions(v *Visit, visitors []Visitor) {
	var tokens []string
	var last time.Duration
	for _, who := range visitors {
		tokens = append(tokens, who.Token)
		last = max(last, who.Session.Expires.Sub(v.Now))
	}
	s.cookies.write(v.HTTP, s.cookies.session, tokens, last)
}

// DropSessions removes the session cookie.
func (s *Site) DropSessions(v *Visit) { s.cookies.write(v.HTTP, s.cookies.session, nil, 0) }

// Join adds a new session to those of the browser. Its account's former session here ends, and the oldest if they become
// too many.
func (s *Site) Join(v *Visit, newcomer Visitor) error {
	before, err := s.Visitors(v)
	if err != nil {
		return err
	}
	all := []Visitor{newcomer}
	for _, who := range before {
		if who.User.ID != newcomer.User.ID && len(all) < maxSessions {
			all = append(all, who)
			continue
		}
		if err := s.people.SignOut(v.Ctx, who.Token); err != nil {
			return err
		}
	}
	s.KeepSessions(v, all)
	return nil
}

// A browser keeps a mark for each account that has signed in with it. So that the right one can be found, and nobody
// else learns whose it is, it is kept as mark~tag, where the tag is a MAC of the e-mail address under the mark.
func tagOf(mark, email string) string {
	m := hmac.New(sha256.New, []byte(mark))
	m.Write([]byte(strings.ToLower(email)))
	return base64url.EncodeToString(m.Sum(nil)[:9])
}

// KnownMark returns this browser's mark for the account with that address; "" = none.
func (s *Site) KnownMark(ctx *fasthttp.RequestCtx, email string) string {
	for _, kept := range s.cookies.read(ctx, s.cookies.known, maxSessions) {
		if mark, tag, _ := strings.Cut(kept, "~"); tag == tagOf(mark, email) {
			return mark
		}
	}
	return ""
}

// KeepKnown puts a new mark before the others, in the place of the same account's former one.
func (s *Site) KeepKnown(ctx *fasthttp.RequestCtx, email, mark string) {
	all := []string{mark + "~" + tagOf(mark, email)}
	for _, kept := range s.cookies.read(ctx, s.cookies.known, maxSessions) {
		if mark, tag, _ := strings.Cut(kept, "~"); len(all) < maxSessions && tag != tagOf(mark, email) {
			all = append(all, kept)
		}
	}
	s.cookies.write(ctx, s.cookies.known, all, knownMaxAge)
}

// DropKnown removes this browser's mark for the account with that address.
func (s *Site) DropKnown(ctx *fasthttp.RequestCtx, email string) {
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
