package stacktest_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
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
	"gatehouse/providers/sqlstore/pgtest"
)

// at returns the browser, with its cookies, at another server of the same service.
func (b *browser) at(other *row) *browser {
	return &browser{&row{other.IdentityStack, b.t, b.caller},
		&lab.Browser{Base: other.URL, Client: b.Browser.Client}}
}

// once sends one request and follows no redirect.
func (b *browser) once(method, target string, form url.Values) (status int, to string) {
	b.t.Helper()
	p, err := b.Do(context.Background(), method, target, form)
	if err != nil {
		b.t.Error(err)
		return 0, ""
	}
	return p.Status, p.To
}

// TestConsentFormWorksOnce sends one consent form many times at once, to two servers. There is one code:
// further clicks get the response of the first, or are refused.
func TestConsentFormWorksOnce(t *testing.T) {
	database := pgtest.Migrated(t)
	here, there := server(t, database), server(t, database)
	u := here.person()
	for range 4 {
		b, c := here.browser(), here.client()
		action, form := b.signIn(b.authorize(c), u).Form(t)
		form.Set("decision", "allow")
		var codes sync.Map
		var clicks sync.WaitGroup
		for i := range 12 {
			b := b
			if i%2 == 1 {
				b = b.at(there)
			}
			clicks.Go(func() {
				status, to := b.once("POST", action, form)
				if strings.Contains(to, "code=") {
					codes.Store(to, true)
				} else if status != 403 {
					t.Errorf("got %d to %q, want the form refused", status, to)
				}
			})
		}
		clicks.Wait()
		got := 0
		codes.Range(func(any, any) bool { got++; return true })
		if got != 1 {
			t.Errorf("got %d codes for one form, want 1", got)
		}
	}
}

// TestSignInCountsOnce uses one sign-in for prompt=login at two servers.
func TestSignInCountsOnce(t *testing.T) {
	database := pgtest.Migrated(t)
	here, there := server(t, database), server(t, database)
	c, u, b := here.client(), here.person(), here.browser()
	b.consented(c, u)
	login := b.authorize(c, "prompt", "login")
	action, form := login.Form(t)
	form.Set("email", u.Email)
	form.Set("password", stacktest.Password)
	status, next := b.once("POST", action, form)
	if status != 303 || !strings.HasPrefix(next, "/oauth/authorize?") {
		t.Fatalf("got %d to %q, want the request to go on", status, next)
	}
	var codes atomic.Int64
	var tabs sync.WaitGroup
	for i := range 8 {
		b := b
		if i%2 == 1 {
			b = b.at(there)
		}
		tabs.Go(func() {
			if _, to := b.once("GET", next, nil); strings.Contains(to, "code=") {
				codes.Add(1)
			} else if !strings.HasPrefix(to, "/login?") {
				t.Errorf("got a redirect to %q, want the sign-in", to)
			}
		})
	}
	tabs.Wait()
	if got := codes.Load(); got != 1 {
		t.Errorf("got %d codes for one sign-in, want 1", got)
	}
}

// TestStolenSessionIsNotFresh has a browser with a stolen session cookie ask with prompt=login. It
// began the request before the owner signed in, and has proof of another account's sign-in for it.
func TestStolenSessionIsNotFresh(t *testing.T) {
	r := &row{stacktest.NewIdentity(t), t, ""}
	c, u, eve := r.client(), r.person(), r.person()
	b, thief := r.browser(), r.browser()
	login := thief.authorize(c, "prompt", "login")
	login.shows(200, "/login")
	b.consented(c, u)
	own := thief.signIn(login, eve)
	own.shows(200, "/consent")
	for _, cookie := range b.Browser.Client.Jar.Cookies(nil) {
		if cookie.Name == "gatehouse" {
			thief.Browser.Client.Jar.SetCookies(nil, []*http.Cookie{cookie})
		}
	}
	if got := thief.authorize(c, "skip_account_chooser", "true").code(); got == "" {
		t.Fatal("got no code with the stolen cookie, want one")
	}
	asked := c.Request("prompt", "login").Encode()
	proved, err := url.ParseQuery(own.query)
	if err != nil || proved.Get("proof") == "" {
		t.Fatalf("got %q, error %v, want proof of the sign-in", own.query, err)
	}
	for name, query := range map[string]string{
		"a request begun before": login.query, "no proof": asked,
		"proof of another sign-in": asked + "&proof=" + proved.Get("proof"),
	} {
		thief.open("GET", "/oauth/authorize?"+query, nil).shows(200, "/login")
		chooser := thief.open("GET", "/accounts?"+query, nil)
		next := thief.send(chooser, "account", strconv.FormatInt(u.ID, 10))
		if next.path != "/login" {
			t.Errorf("%s: got %s, want the sign-in", name, next.path)
		}
	}
}

// TestParallelTabsWithPromptLogin has two tabs of one browser ask for a sign-in each.
func TestParallelTabsWithPromptLogin(t *testing.T) {
	r := &row{stacktest.NewIdentity(t), t, ""}
	c, u, b := r.client(), r.person(), r.browser()
	first, second := b.authorize(c, "prompt", "login"), b.authorize(c, "prompt", "login", "scope",
		"view-user detail-user")
	b.send(b.signIn(first, u), "decision", "allow").code()
	again := b.signIn(second, u) // its form is from before the browser's first sign-in
	again.shows(403, "/login")
	consent := b.send(again, "email", u.Email, "password", stacktest.Password)
	consent.shows(200, "/consent")
	b.send(consent, "decision", "allow").code()
}

// slowAccounts is a store of accounts that holds up the consents of one user.
type slowAccounts struct {
	account.Store
	user    atomic.Int64
	reached chan struct{} // gets an element for each consent that waits
	free    chan struct{} // closed to let them go on
}

func (s *slowAccounts) GrantConsent(ctx context.Context, c *account.Consent,
	before time.Time) error {
	if c.UserID == s.user.Load() {
		s.reached <- struct{}{}
		<-s.free
	}
	return s.Store.GrantConsent(ctx, c, before)
}

// TestChangesDelayNoOtherUser holds up writes of one user while another gives consent.
func TestChangesDelayNoOtherUser(t *testing.T) {
	slow := &slowAccounts{reached: make(chan struct{}, 8), free: make(chan struct{})}
	r := &row{stacktest.NewIdentity(t, func(c *stack.Config) {
		c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
			slow.Store = s
			return s, slow
		}
	}), t, ""}
	busy, other := r.person(), r.person()
	slow.user.Store(busy.ID)
	var ended sync.WaitGroup
	for range 3 {
		b := r.browser()
		action, form := b.signIn(b.authorize(r.client()), busy).Form(t)
		form.Set("decision", "allow")
		ended.Go(func() {
			if _, to := b.once("POST", action, form); !strings.Contains(to, "code=") {
				t.Errorf("got a redirect to %q, want a code", to)
			}
		})
	}
	for range 3 {
		<-slow.reached // all at once: they do not wait for each other either
	}
	r.browser().consented(r.client(), other)
	_, err := r.People.UpdateUser(t.Context(), other.ID, func(u *account.User) error {
		u.Bio = "b"
		return nil
	}, time.Now())
	if err != nil {
		t.Errorf("change a profile: got %v, want none", err)
	}
	close(slow.free)
	ended.Wait()
}
