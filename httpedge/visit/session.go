package visit

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/httpedge/pages"
)

const (
	maxSessions  = 5                     // accounts that one browser is signed in to
	maxKnown     = 2 * maxSessions       // marks of known accounts: each by email address and number
	maxCookie    = 128                   // bytes of a cookie value
	secretMaxAge = 180 * 24 * time.Hour  // of the cookie that forms are bound to
	knownMaxAge  = oauth.BrowserLifetime // of the cookie that marks a browser as known
	pageDeadline = 15 * time.Second      // of a request for a page
)

// cookieNames are the names of the cookies. Under https, a prefix keeps other hosts and paths from
// setting them.
type cookieNames struct {
	session string // session tokens, newest first, separated by dots
	known   string // marks of known accounts, likewise
	secret  string // 256 random bits that forms are bound to
	flash   string // what the next page shows once, encrypted
	code    string // token of the challenge that asks for a code
	factor  string // token of the sign-in that waits for a second factor
	trusted string // tokens of browsers that need no second factor, as mark~tag like known
	with    string // token of a connection that waits until the person has signed in
	// language is the tag of the language that the person has chosen
	language string
	again    string // a form that has to be sent again, sealed
	secure   bool
}

func newCookieNames(issuer string) cookieNames {
	prefix, secure := "", strings.HasPrefix(issuer, "https://")
	if secure {
		prefix = "__Host-"
	}
	return cookieNames{session: prefix + "gatehouse", known: prefix + "gatehouse-known",
		secret: prefix + "gatehouse-form",
		flash:  prefix + "gatehouse-flash",
		code:   prefix + "gatehouse-code", factor: prefix + "gatehouse-factor", with: prefix + "gatehouse-with",
		trusted: prefix + "gatehouse-trusted", language: prefix + "gatehouse-language",
		again: prefix + "gatehouse-again", secure: secure}
}

// read returns at most limit values of a cookie. They share no memory with the request.
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
func (c *cookieNames) write(ctx *fasthttp.RequestCtx, name string, values []string,
	maxAge time.Duration) {
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

// BrowserSecret returns the secret that forms of this browser are bound to, and sets a new one if
// it has none.
func (s *Site) BrowserSecret(ctx *fasthttp.RequestCtx) string {
	if secret := string(ctx.Request.Header.Cookie(s.cookies.secret)); isBrowserSecret(secret) {
		return secret
	}
	return s.RenewBrowserSecret(ctx)
}

// RenewBrowserSecret sets a new secret. Forms shown before expire.
func (s *Site) RenewBrowserSecret(ctx *fasthttp.RequestCtx) string {
	secret := newBrowserSecret()
	s.cookies.write(ctx, s.cookies.secret, []string{secret}, secretMaxAge)
	return secret
}

// Visitor is an account that is signed in with this browser.
type Visitor struct {
	Token   string
	Session *account.Session
	User    *account.User
}

// Account returns the account for display.
func (v Visitor) Account() pages.Account {
	return pages.Account{ID: v.User.ID, Name: v.User.Name, Address: cmp.Or(v.User.Email, v.User.Phone)}
}

// AccountsOf returns the accounts for display.
func AccountsOf(visitors []Visitor) []pages.Account {
	var all []pages.Account
	for _, v := range visitors {
		all = append(all, v.Account())
	}
	return all
}

// Visitors returns the accounts that are signed in with this browser, each once, the newest session
// first.
func (s *Site) Visitors(v *Visit) ([]Visitor, error) {
	var all []Visitor
	if s.people == nil { // the service has no accounts
		return nil, nil
	}
	for _, token := range s.cookies.read(v.HTTP, s.cookies.session, maxSessions) {
		session, user, err := s.people.Session(v.Ctx, token, v.Now)
		if errors.Is(err, account.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, known := FindVisitor(all, user.ID); !known {
			all = append(all, Visitor{token, session, user})
		}
	}
	if len(all) > 0 {
		setAccountLanguage(v.HTTP, all[0].User.Language)
	}
	return all, nil
}

// FindVisitor returns the visitor with that account.
func FindVisitor(all []Visitor, userID int64) (Visitor, bool) {
	for _, v := range all {
		if v.User.ID == userID {
			return v, true
		}
	}
	return Visitor{}, false
}

// KeepSessions sets the session cookie. It lasts as long as the longest session.
func (s *Site) KeepSessions(v *Visit, visitors []Visitor) {
	var tokens []string
	var last time.Duration
	for _, who := range visitors {
		tokens = append(tokens, who.Token)
		last = max(last, who.Session.Expires.Sub(v.Now))
	}
	s.cookies.write(v.HTTP, s.cookies.session, tokens, last)
}

// DropSessions deletes the session cookie.
func (s *Site) DropSessions(v *Visit) { s.cookies.write(v.HTTP, s.cookies.session, nil, 0) }

// Join adds a new session to the browser. It ends the account's earlier session in this browser,
// and the oldest one beyond the limit.
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

// tagOf returns the MAC of an email address or phone number under a mark. A browser keeps a mark
// for each account that has signed in with it, as mark~tag: the tag finds the account's mark
// without revealing whose it is.
func tagOf(mark, address string) string {
	m := hmac.New(sha256.New, []byte(mark))
	if phone, err := account.ParsePhone(address); err == nil {
		address = account.PhoneKey(phone)
	}
	m.Write([]byte(strings.ToLower(strings.TrimSpace(address))))
	return base64url.EncodeToString(m.Sum(nil)[:9])
}

// KnownMark returns this browser's mark for the account with that address or number; "" = none.
func (s *Site) KnownMark(ctx *fasthttp.RequestCtx, address string) string {
	return s.markOf(ctx, s.cookies.known, address)
}

// markOf returns the mark for the account with that address or number in a cookie; "" = none.
func (s *Site) markOf(ctx *fasthttp.RequestCtx, cookie, address string) string {
	for _, kept := range s.cookies.read(ctx, cookie, maxKnown) {
		if mark, tag, _ := strings.Cut(kept, "~"); tag == tagOf(mark, address) {
			return mark
		}
	}
	return ""
}

// Browser returns the browser, which may be known to the account with that address or number.
func (s *Site) Browser(v *Visit, address string) people.Browser {
	return people.Browser{Caller: s.Caller(v), Known: s.KnownMark(v.HTTP, address),
		Device: DeviceOf(string(v.HTTP.UserAgent())), App: v.ClientID(), AppName: v.ClientName(),
		Place:  s.PlaceOf(s.Caller(v)),
		Second: s.SecondStep(v, address)}
}

// SecondStep returns what the browser has for the second step of a sign-in to the account with that
// address or number.
func (s *Site) SecondStep(v *Visit, address string) people.SecondStep {
	step := people.SecondStep{Secret: v.Secret,
		Trusted: s.markOf(v.HTTP, s.cookies.trusted, address)}
	if v.Pending != nil {
		step.Always = v.Pending.Request.StepsUp(v.Pending.Client)
	}
	return step
}

// FactorToken returns the token of the sign-in of this browser that waits for a second factor; "" =
// none.
func (s *Site) FactorToken(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Request.Header.Cookie(s.cookies.factor))
}

// GoToFactor redirects to the page that asks for the second factor.
func (s *Site) GoToFactor(v *Visit, token string) {
	s.cookies.write(v.HTTP, s.cookies.factor, []string{token}, account.FactorLifetime)
	Redirect(v.HTTP, v.Path(pages.PathLoginFactor))
}

// DropFactor removes the sign-in that waits from the browser's cookie.
func (s *Site) DropFactor(ctx *fasthttp.RequestCtx) {
	s.cookies.write(ctx, s.cookies.factor, nil, 0)
}

// KeepKnown stores a mark for addresses of an account, of which "" is none, in place of those that
// it had.
func (s *Site) KeepKnown(ctx *fasthttp.RequestCtx, mark string, addresses ...string) {
	s.keepMark(ctx, s.cookies.known, mark, knownMaxAge, addresses)
}

// KeepTrusted stores the token of a trusted browser for addresses of an account, as KeepKnown does.
func (s *Site) KeepTrusted(ctx *fasthttp.RequestCtx, token string, addresses ...string) {
	s.keepMark(ctx, s.cookies.trusted, token, account.TrustLifetime, addresses)
}

func (s *Site) keepMark(ctx *fasthttp.RequestCtx, cookie, mark string, lasts time.Duration,
	addresses []string) {
	var all []string
	for _, address := range addresses {
		if address != "" {
			all = append(all, mark+"~"+tagOf(mark, address))
		}
	}
	for _, kept := range s.cookies.read(ctx, cookie, maxKnown) {
		mark, tag, _ := strings.Cut(kept, "~")
		replaced := slices.ContainsFunc(addresses, func(address string) bool {
			return tag == tagOf(mark, address)
		})
		if len(all) < maxKnown && !replaced {
			all = append(all, kept)
		}
	}
	s.cookies.write(ctx, cookie, all, lasts)
}

// DropKnown removes this browser's mark for the account with that address or number.
func (s *Site) DropKnown(ctx *fasthttp.RequestCtx, address string) {
	var all []string
	for _, kept := range s.cookies.read(ctx, s.cookies.known, maxKnown) {
		if mark, tag, _ := strings.Cut(kept, "~"); tag != tagOf(mark, address) {
			all = append(all, kept)
		}
	}
	lasts := knownMaxAge
	if all == nil {
		lasts = 0
	}
	s.cookies.write(ctx, s.cookies.known, all, lasts)
}
