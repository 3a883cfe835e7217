package httpedge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore"
)

// pairs is a store of accounts that holds a form up until a second one is under way.
type pairs struct {
	account.Store
	st    *stacktest.IdentityStack
	holds atomic.Bool // the next read
}

// newPairs starts a service on such a store.
func newPairs(t *testing.T) (reachable, *pairs) {
	t.Helper()
	p, mail := &pairs{}, stacktest.NewMailbox()
	p.st = stacktest.NewIdentity(t, mail.Deliver, func(c *stack.Config) {
		c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
			p.Store = s
			return s, p
		}
	})
	return reachable{p.st, mail}, p
}

// hold waits until two requests are under way or ctx has ended.
func (p *pairs) hold(ctx context.Context) {
	if !p.holds.CompareAndSwap(true, false) {
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && p.underWay() < 2 {
		<-tick.C
	}
}

func (p *pairs) underWay() (requests float64) {
	families, err := p.st.Metrics.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() == "gatehouse_http_requests_in_flight" {
			requests = f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return requests
}

func (p *pairs) User(ctx context.Context, id int64) (*account.User, error) {
	p.hold(ctx)
	return p.Store.User(ctx, id)
}

func (p *pairs) UserByEmail(ctx context.Context, email string) (*account.User, error) {
	p.hold(ctx)
	return p.Store.UserByEmail(ctx, email)
}

func (p *pairs) CountTry(ctx context.Context, c *account.Challenge, now time.Time) error {
	p.hold(ctx)
	return p.Store.CountTry(ctx, c, now)
}

// TestDoubleClickIsReplayed sends forms twice at once, with the cookies of the first time, as a
// browser does that drops the first response.
func TestDoubleClickIsReplayed(t *testing.T) {
	st, pairs := newPairs(t)
	b := newBrowser(t, st.IdentityStack)
	b.pairs = pairs
	p := b.get("/register")
	b.twice(p, "/register/verify", "name", "Ida", "email", ida, "password", newWord)
	code := st.mail.Next(t, ida).Code
	if n := st.mail.Count(); n != 0 {
		t.Errorf("got %d more messages, want one", n)
	}
	b.send(b.get("/register/verify"), "code", code).shows(t, 200, "/me")
	b.twice(b.get("/me/password"), "/me", "current_password", newWord, "new_password",
		stacktest.Password)
	b.get("/me").shows(t, 200, "/me")
	b.twice(b.get("/me/phone"), "/me/phone/verify", "phone_number", idaPhone, "current_password",
		stacktest.Password)
	b.twice(b.get("/me/phone/verify"), "/me", "code", st.mail.Next(t, idaPhone).Code)
	b.twice(b.get("/me/delete"), "/me/deleted", "confirm", "delete", "current_password",
		stacktest.Password)
}

// TestSecondClickAfterTheCodeContinues sends the right code again with the cookies that the first
// response set.
func TestSecondClickAfterTheCodeContinues(t *testing.T) {
	st := newReachable(t)
	c := st.NewClient(t, nil)
	for start, want := range map[string]string{"/register": "/me",
		"/register?" + asked(c).Encode(): "/consent"} {
		b, email := newBrowser(t, st.IdentityStack), want[1:]+"@example.com"
		p := b.register(start, email)
		code := st.mail.Next(t, email).Code
		b.send(p, "code", code).shows(t, 200, want)
		b.send(p, "code", code).shows(t, 200, want)
	}
}

// TestDoubleClickOnTheCodeSignsInOnce sends the code of each way to sign in two times at once,
// until the second one is handled while the first one still is. Both then lead on, to one session.
// The first one waits for the second, so the first round nearly always does.
func TestDoubleClickOnTheCodeSignsInOnce(t *testing.T) {
	st, pairs := newPairs(t)
	c := st.NewClient(t, nil)
	for n, test := range []struct {
		start, want string
		fields      []string // and the address or number
		entered     []string // and the code
	}{
		{"/register", "/me", []string{"name", "Ida", "password", newWord}, nil},
		{"/register?" + asked(c).Encode(), "/consent", []string{"name", "Oda", "password", newWord},
			nil},
		{"/register/phone", "/me", nil, []string{"name", "Ida"}},
		{"/reset", "/me", nil, []string{"password", newWord}},
	} {
		both := false
		for round := 0; round < 20 && !both; round++ {
			field, to := "email", fmt.Sprintf("ida%d-%d@example.com", n, round)
			if test.start == "/register/phone" {
				field, to = "phone_number", fmt.Sprintf("+14155550%d%d", n, 10+round)
			}
			if test.start == "/reset" {
				st.NewUser(t, "Ida", to)
			}
			b := newBrowser(t, st.IdentityStack)
			b.pairs = pairs
			p := b.send(b.get(test.start), append(test.fields, field, to)...)
			both = b.twiceTheCode(p, test.want,
				append(test.entered, "code", st.mail.Next(t, to).Code)...)
		}
		if !both {
			t.Errorf("%s: got one response of two that led on, each time", test.start)
		}
	}
}

// twiceTheCode sends a form with a code two times at once with the same cookies, and reports
// whether both answers led on. One must have; the sessions must be the same.
func (b *browser) twiceTheCode(p page, want string, changes ...string) bool {
	b.t.Helper()
	led := 0
	sessions := map[string]bool{}
	both, got := b.sendTwice(p, changes)
	for i, one := range both {
		if got[i].status != http.StatusSeeOther {
			continue
		}
		led++
		sessions[one.cookies()["gatehouse"]] = true
		one.get(got[i].location).shows(b.t, 200, want)
	}
	if led == 0 || len(sessions) != 1 || sessions[""] {
		b.t.Errorf("got %d answers that led on, with %d sessions, want one session", led,
			len(sessions))
	}
	return led == 2
}

// TestReplayIsBoundToTheBrowser sends the form that was right again, right after, with the secret
// of another browser.
func TestReplayIsBoundToTheBrowser(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	p := b.register("/register", ida)
	action, fields := p.form(t)
	fields.Set("code", st.mail.Next(t, ida).Code)
	if p := b.once("POST", action, fields); p.status != http.StatusSeeOther {
		t.Fatalf("got %d, want 303", p.status)
	}
	other := newBrowser(t, st.IdentityStack)
	other.get("/register")
	if p := other.once("POST", action, fields); p.status == http.StatusSeeOther &&
		p.location == "/me" || other.cookies()["gatehouse"] != "" {
		t.Errorf("got %d to %s and a session, want none", p.status, p.location)
	}
}

// twice sends a form two times at once with the same cookies and follows the second response.
func (b *browser) twice(p page, want string, changes ...string) {
	b.t.Helper()
	both, got := b.sendTwice(p, changes)
	for i, one := range both {
		if got[i].status != http.StatusSeeOther {
			b.t.Errorf("%s: got %d: %s, want 303 both times", got[i].path, got[i].status,
				got[i].body)
			continue
		}
		one.get(got[i].location).shows(b.t, 200, want)
	}
	at, err := url.Parse(b.st.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	b.jar.SetCookies(at, both[1].jar.Cookies(at))
}

// sendTwice sends a form two times at once with the same cookies. Each response goes to a browser
// of its own.
func (b *browser) sendTwice(p page, changes []string) (both [2]*browser, got [2]page) {
	b.t.Helper()
	action, fields := p.form(b.t)
	fields = changed(fields, changes)
	at, err := url.Parse(b.st.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	before := b.jar.Cookies(at)
	if b.pairs != nil {
		b.pairs.holds.Store(true)
		defer b.pairs.holds.Store(false)
	}
	var all sync.WaitGroup
	for i := range both {
		jar, err := cookiejar.New(nil)
		if err != nil {
			b.t.Fatal(err)
		}
		jar.SetCookies(at, before)
		client := *b.client
		client.Jar = jar
		both[i] = &browser{t: b.t, st: b.st, client: &client, jar: jar}
		all.Go(func() { got[i] = both[i].once("POST", action, fields) })
	}
	all.Wait()
	return both, got
}
