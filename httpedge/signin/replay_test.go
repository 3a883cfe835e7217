package signin_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab"
	"gatehouse/providers/sqlstore"
)

// pairs is a store of accounts that holds a form up until a second one is under way.
type pairs struct {
	account.Store
	st    *stacktest.IdentityStack
	holds atomic.Bool // the next read
}

// newPairs starts a service on such a store.
func newPairs(t *testing.T) (stacktest.Reachable, *pairs) {
	t.Helper()
	p, mail := &pairs{}, stacktest.NewMailbox()
	p.st = stacktest.NewIdentity(t, mail.Deliver, func(c *stack.Config) {
		c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
			p.Store = s
			return s, p
		}
	})
	return stacktest.Reachable{IdentityStack: p.st, Mail: mail}, p
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

// clicker is a browser whose forms are sent twice at once.
type clicker struct {
	*stacktest.Browser
	pairs *pairs // holds them up
}

// TestDoubleClickIsReplayed sends forms twice at once, with the cookies of the first time, as a
// browser does that drops the first response.
func TestDoubleClickIsReplayed(t *testing.T) {
	st, pairs := newPairs(t)
	b := clicker{st.NewBrowser(t), pairs}
	p := b.Get("/register")
	b.twice(p, "/register/verify", "name", "Ida", "email", ida, "password", stacktest.NewPassword)
	code := st.Mail.Next(t, ida).Code
	if n := st.Mail.Count(); n != 0 {
		t.Errorf("got %d more messages, want one", n)
	}
	b.Send(b.Get("/register/verify"), "code", code).Shows(t, 200, "/me")
	b.twice(b.Get("/me/password"), "/me", "current_password", stacktest.NewPassword, "new_password",
		stacktest.Password)
	b.Get("/me").Shows(t, 200, "/me")
	b.twice(b.Get("/me/phone"), "/me/confirm/verify", "channel", "email")
	b.twice(b.Get("/me/confirm/verify?for=phone"), "/me/phone", "code", st.Mail.Next(t, ida).Code)
	b.twice(b.Get("/me/phone"), "/me/phone/verify", "phone_number", idaPhone)
	b.twice(b.Get("/me/phone/verify"), "/me", "code", st.Mail.Next(t, idaPhone).Code)
	b.twice(b.Get("/me/sessions"), "/me/sessions", "all", "true")
	c := st.NewClient(t, nil)
	other := clicker{st.NewBrowser(t), pairs}
	_, sent := other.sendTwice(other.SignIn(c.Request(), ida), []string{"decision", "allow"})
	for _, p := range sent {
		if p.Status != http.StatusSeeOther || !strings.Contains(p.Location, "code=") {
			t.Errorf("consent: got %d to %q, want a code both times", p.Status, p.Location)
		}
	}
	b.twice(b.Get("/me/apps"), "/me/apps", "client_id", c.ID)
	b.twice(b.Get("/me/delete"), "/me/deleted", "confirm", "delete")
}

// TestSecondClickAfterTheCodeContinues sends the right code again with the cookies that the first
// response set.
func TestSecondClickAfterTheCodeContinues(t *testing.T) {
	st := stacktest.NewReachable(t)
	c := st.NewClient(t, nil)
	for start, want := range map[string]string{"/register": "/me",
		"/register?" + c.Request().Encode(): "/consent"} {
		b, email := st.NewBrowser(t), want[1:]+"@example.com"
		p := b.Register(start, email)
		code := st.Mail.Next(t, email).Code
		b.Send(p, "code", code).Shows(t, 200, want)
		b.Send(p, "code", code).Shows(t, 200, want)
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
		{"/register", "/me", []string{"name", "Ida", "password", stacktest.NewPassword}, nil},
		{"/register?" + c.Request().Encode(), "/consent", []string{"name", "Oda", "password",
			stacktest.NewPassword},
			nil},
		{"/register/phone", "/me", nil, []string{"name", "Ida"}},
		{"/reset", "/me", nil, []string{"password", stacktest.NewPassword}},
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
			b := clicker{st.NewBrowser(t), pairs}
			p := b.Send(b.Get(test.start), append(test.fields, field, to)...)
			both = b.twiceTheCode(p, test.want,
				append(test.entered, "code", st.Mail.Next(t, to).Code)...)
		}
		if !both {
			t.Errorf("%s: got one response of two that led on, each time", test.start)
		}
	}
}

// twiceTheCode sends a form with a code two times at once with the same cookies, and reports
// whether both answers led on. One must have; the sessions must be the same.
func (b clicker) twiceTheCode(p stacktest.Page, want string, changes ...string) bool {
	b.T.Helper()
	led := 0
	sessions := map[string]bool{}
	both, got := b.sendTwice(p, changes)
	for i, one := range both {
		if got[i].Status != http.StatusSeeOther {
			continue
		}
		led++
		sessions[one.Cookies()["gatehouse"]] = true
		one.Get(got[i].Location).Shows(b.T, 200, want)
	}
	if led == 0 || len(sessions) != 1 || sessions[""] {
		b.T.Errorf("got %d answers that led on, with %d sessions, want one session", led,
			len(sessions))
	}
	return led == 2
}

// TestReplayIsBoundToTheBrowser sends the form that was right again, right after, with the secret
// of another browser.
func TestReplayIsBoundToTheBrowser(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	p := b.Register("/register", ida)
	action, fields := p.Form(t)
	fields.Set("code", st.Mail.Next(t, ida).Code)
	if p := b.Once("POST", action, fields); p.Status != http.StatusSeeOther {
		t.Fatalf("got %d, want 303", p.Status)
	}
	other := st.NewBrowser(t)
	other.Get("/register")
	if p := other.Once("POST", action, fields); p.Status == http.StatusSeeOther &&
		p.Location == "/me" || other.Cookies()["gatehouse"] != "" {
		t.Errorf("got %d to %s and a session, want none", p.Status, p.Location)
	}
}

// twice sends a form two times at once with the same cookies and follows the second response.
func (b clicker) twice(p stacktest.Page, want string, changes ...string) {
	b.T.Helper()
	both, got := b.sendTwice(p, changes)
	for i, one := range both {
		if got[i].Status != http.StatusSeeOther {
			b.T.Errorf("%s: got %d: %s, want 303 both times", got[i].Path, got[i].Status,
				got[i].Body)
			continue
		}
		one.Get(got[i].Location).Shows(b.T, 200, want)
	}
	b.Browser.Browser = both[1].Browser
}

// sendTwice sends a form two times at once with the same cookies. Each response goes to a browser
// of its own.
func (b clicker) sendTwice(p stacktest.Page, changes []string) (both [2]*stacktest.Browser,
	got [2]stacktest.Page) {
	b.T.Helper()
	action, fields := p.Form(b.T)
	fields = lab.Form{Fields: fields}.With(changes...)
	b.pairs.holds.Store(true)
	defer b.pairs.holds.Store(false)
	var all sync.WaitGroup
	for i := range both {
		both[i] = &stacktest.Browser{Browser: b.Copy(), T: b.T, Stack: b.Stack}
		all.Go(func() { got[i] = both[i].Once("POST", action, fields) })
	}
	all.Wait()
	return both, got
}
