package httpedge_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

const (
	ida      = "Ida@example.com"
	idaPhone = "+14155550123"
	newWord  = "seven small harbours"
)

// reachable is a stack whose messages go to a mailbox.
type reachable struct {
	*stacktest.IdentityStack
	mail *stacktest.Mailbox
}

func newReachable(t *testing.T, options ...stacktest.Option) reachable {
	t.Helper()
	mail := stacktest.NewMailbox()
	return reachable{
		stacktest.NewIdentity(t, append([]stacktest.Option{mail.Deliver}, options...)...), mail,
	}
}

// register sends the registration form and returns what follows, which is the page for the code.
func (b *browser) register(path, email string) page {
	b.t.Helper()
	p := b.send(b.get(path), "name", "Ida", "email", email, "password", newWord)
	p.shows(b.t, 200, "/register/verify")
	return p
}

// wrong returns 6 digits that are not the code.
func wrong(code string) string {
	if code == "123456" {
		return "654321"
	}
	return "123456"
}

func TestRegisterByEmail(t *testing.T) {
	st := newReachable(t)
	c := st.NewClient(t, nil)
	b := newBrowser(t, st.IdentityStack)
	p := b.register("/register?"+asked(c).Encode(), " "+ida+" ")
	code := st.mail.Next(t, ida)
	if code.Kind != account.RegisterCode || code.Channel != account.Email ||
		!strings.Contains(p.body, ida) || strings.Contains(p.body, code.Code) {
		t.Fatalf("got %+v and %s, want a code in the message alone", code, p.body)
	}
	if _, err := st.Store.UserByEmail(t.Context(), ida); err == nil {
		t.Error("got an account before the code")
	}
	b.send(p, "code", wrong(code.Code)).shows(t, 422, "/register/verify")
	p = b.send(p, "code", code.Code[:3]+" "+code.Code[3:])
	p.shows(t, 200, "/consent")
	gets := b.send(p, "decision", "allow").gets(t, st.IdentityStack)
	if a := redeem(t, st.IdentityStack, c, gets); a.status != 200 {
		t.Errorf("got %d %s, want tokens", a.status, a.body)
	}
	u, err := st.Store.UserByEmail(t.Context(), strings.ToUpper(ida))
	if err != nil || u.Name != "Ida" || u.Email != ida || u.Phone != "" {
		t.Errorf("got %+v, %v, want the account", u, err)
	}
	if b.cookies()["gatehouse-code"] != "" || b.cookies()["gatehouse-known"] == "" {
		t.Errorf("got cookies %v, want no challenge and a mark of the account", b.cookies())
	}
	other := newBrowser(t, st.IdentityStack)
	p = other.get("/login")
	other.send(p, "email", strings.ToLower(ida), "password", newWord).shows(t, 200, "/me")
}

// TestRegistrationHidesExistingAccounts compares all that a browser is told.
func TestRegistrationHidesExistingAccounts(t *testing.T) {
	st := newReachable(t)
	for _, flow := range []struct {
		path, has, hasNot string
		toHas, toHasNot   account.Kind
	}{
		{"/register", ida, "Oda@example.com", account.AccountExists, account.RegisterCode},
		{"/reset", "Ada@example.com", "Una@example.com", account.ResetCode, account.NoAccount},
	} {
		path := flow.path
		st.NewUser(t, "Somebody", flow.has)
		var told []string
		for _, email := range []string{flow.has, flow.hasNot} {
			b := newBrowser(t, st.IdentityStack)
			var said strings.Builder
			tell := func(p page) page {
				said.WriteString(strconv.Itoa(p.status) + p.path +
					strings.ReplaceAll(plain(p), email, "EMAIL") + "\n")
				return p
			}
			_, fields := tell(b.get(path)).form(t)
			fields.Set("name", "Ida")
			fields.Set("email", email)
			fields.Set("password", newWord)
			first := b.once("POST", path, fields)
			tell(first)
			p := tell(b.get(first.location))
			_, fields = p.form(t)
			for range 3 {
				fields.Set("code", "123456")
				fields.Set("password", newWord)
				tell(b.once("POST", path+"/verify", fields))
			}
			told = append(told, said.String())
		}
		if told[0] != told[1] {
			t.Errorf("%s: got\n%s\nfor an address with an account and\n%s\nfor one without", path,
				told[0], told[1])
		}
		for to, kind := range map[string]account.Kind{flow.has: flow.toHas,
			flow.hasNot: flow.toHasNot} {
			if m := st.mail.Next(t, to); m.Kind != kind || (m.Code != "") != kind.HasCode() {
				t.Errorf("got %+v, want %s", m, kind)
			}
		}
	}
}

// plain is a page without what is new with each showing.
func plain(p page) string {
	body := p.body
	for _, mark := range []string{`name="form_token" value="`} {
		for {
			before, rest, found := strings.Cut(body, mark)
			if !found {
				break
			}
			_, after, _ := strings.Cut(rest, `"`)
			body = before + after
		}
	}
	return strings.NewReplacer("29 seconds", "N", "30 seconds", "N", "28 seconds", "N",
		"27 seconds", "N").Replace(body)
}

// TestDecoyChallengeHasNoCode tries what might fit.
func TestDecoyChallengeHasNoCode(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Ida", ida)
	b := newBrowser(t, st.IdentityStack)
	p := b.register("/register", ida)
	if m := st.mail.Next(t, ida); m.Code != "" || m.Kind != account.AccountExists {
		t.Fatalf("got %+v, want no code", m)
	}
	for _, code := range []string{"000000", " ", "0"} {
		b.send(p, "code", code).shows(t, 422, "/register/verify")
	}
	if b.cookies()["gatehouse"] != "" {
		t.Error("got a session")
	}
}

func TestInvalidRegistrations(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	for _, c := range []struct {
		name, email, password string
		want                  []string
	}{
		{"", "", "", []string{"Enter your name.", "Enter your email address.",
			"at least 10 characters"}},
		{"Ida", "ida", newWord, []string{"This is not an email address."}},
		{"Ida", ida, "password12", []string{"too common"}},
		{"Harbours", ida, newWord, []string{"must not contain the name"}},
		{"<script>\x00", ida, newWord, []string{"The name must not contain control characters."}},
		{"Ida", "\xff", newWord, []string{"This is not an email address."}},
		{strings.Repeat("x", 5000), strings.Repeat("y", 5000), strings.Repeat("z", 20000),
			[]string{"at most 200 characters", "at most 254 characters"}},
	} {
		p := b.send(b.get("/register"), "name", c.name, "email", c.email, "password", c.password)
		p.shows(t, 422, "/register")
		for _, want := range c.want {
			if !strings.Contains(p.body, want) {
				t.Errorf("%.20q, %.20q: got %s, want %q", c.name, c.email, p.body, want)
			}
		}
		if strings.Contains(p.body, "<script>") || c.password != "" &&
			strings.Contains(p.body, c.password) || strings.Contains(p.body, "xxxxx") {
			t.Errorf("%.20q: got what was entered on the page", c.name)
		}
	}
	if n := st.mail.Count(); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}

func TestPhoneRegistersAndSignsIn(t *testing.T) {
	st := newReachable(t)
	c := st.NewClient(t, nil)
	b := newBrowser(t, st.IdentityStack)
	p := b.send(b.get("/register/phone?"+asked(c).Encode()), "phone_number", "+1 (415) 555-0123")
	p.shows(t, 200, "/register/phone/verify")
	code := st.mail.Next(t, idaPhone)
	if code.Kind != account.PhoneCode || code.Channel != account.SMS {
		t.Errorf("got %+v, want a code by text message", code)
	}
	p = b.send(p, "code", code.Code)
	p.shows(t, 422, "/register/phone/verify")
	if !strings.Contains(p.body, "Enter your name.") {
		t.Errorf("got %s, want to be asked for a name", p.body)
	}
	b.send(p, "code", code.Code, "name", "Ida").shows(t, 200, "/consent")
	u, err := st.Store.UserByPhone(t.Context(), idaPhone)
	if err != nil || u.Name != "Ida" || u.Email != "" || u.PasswordHash != "" {
		t.Fatalf("got %+v, %v, want an account by phone", u, err)
	}

	again := newBrowser(t, st.IdentityStack)
	p = again.send(again.get("/register/phone"), "phone_number", "0014155550123")
	p = again.send(p, "code", st.mail.Next(t, idaPhone).Code)
	p.shows(t, 200, "/me")
	if !strings.Contains(p.body, idaPhone[1:]) {
		t.Errorf("got %s, want the same account", p.body)
	}
	b.send(b.get("/register/phone"), "phone_number", "415 555").shows(t, 422, "/register/phone")
	b.send(b.get("/register/phone"), "phone_number", "").shows(t, 422, "/register/phone")
	b.send(b.get("/register/phone"), "phone_number", "\xff<b>"+strings.Repeat("1", 3000)).shows(t,
		422, "/register/phone")
}

func TestResetByCode(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Harbour Master", ida)
	before := newBrowser(t, st.IdentityStack)
	before.send(before.get("/login"), "email", ida, "password", stacktest.Password).shows(t, 200,
		"/me")

	b := newBrowser(t, st.IdentityStack)
	p := b.send(b.get("/reset"), "email", strings.ToLower(ida))
	p.shows(t, 200, "/reset/verify")
	code := st.mail.Next(t, ida)
	if code.Kind != account.ResetCode {
		t.Errorf("got %+v, want a code", code)
	}
	// A weak password costs no try, however often, and neither does one that only this account must
	// not have.
	for range 6 {
		b.send(p, "code", code.Code, "password", "short").shows(t, 422, "/reset/verify")
		b.send(p, "code", code.Code, "password", "safe harbour 17").shows(t, 422, "/reset/verify")
	}
	b.send(p, "code", code.Code, "password", newWord+" 2").shows(t, 422, "/reset/verify")
	b.send(p, "code", code.Code, "password", "quiet tidal lamps").shows(t, 200, "/me")
	if got := before.get("/accounts"); strings.Contains(got.body, ida) {
		t.Error("got the old session alive after a reset")
	}
	in := newBrowser(t, st.IdentityStack)
	in.send(in.get("/login"), "email", ida, "password", stacktest.Password).shows(t, 422, "/login")
	in.send(in.get("/login"), "email", ida, "password", "quiet tidal lamps").shows(t, 200, "/me")

	b.send(b.get("/reset"), "email", "nobody@example.com").shows(t, 200, "/reset/verify")
	if m := st.mail.Next(t, "nobody@example.com"); m.Kind != account.NoAccount || m.Code != "" {
		t.Errorf("got %+v, want to be told that there is no account", m)
	}
}

// TestCodeIsSingleUse sends the right code many times at once: there is one session, to which those
// lead that came while it was made.
func TestCodeIsSingleUse(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	p := b.register("/register", ida)
	action, fields := p.form(t)
	fields.Set("code", st.mail.Next(t, ida).Code)
	cookies := b.cookies()
	sessions := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			req, err := http.NewRequestWithContext(context.Background(), "POST", st.URL+action,
				strings.NewReader(fields.Encode()))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for name, value := range cookies {
				req.AddCookie(&http.Cookie{Name: name, Value: value})
			}
			res, err := st.Client.Transport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case res.StatusCode == 303:
				for _, c := range res.Cookies() {
					if c.Name == "gatehouse" {
						sessions[c.Value] = true
					}
				}
			case res.StatusCode != 422 && res.StatusCode != 429:
				t.Errorf("got %d, want 303, 422 or 429", res.StatusCode)
			}
		})
	}
	all.Wait()
	if len(sessions) != 1 {
		t.Errorf("got %d sessions, want 1", len(sessions))
	}
	// The same form again, with the cookies of then, does nothing.
	replay := newBrowser(t, st.IdentityStack)
	u, err := url.Parse(st.URL)
	if err != nil {
		t.Fatal(err)
	}
	var old []*http.Cookie
	for name, value := range cookies {
		old = append(old, &http.Cookie{Name: name, Value: value})
	}
	replay.jar.SetCookies(u, old)
	again := replay.once("POST", action, fields)
	if again.status != 422 || !strings.Contains(again.body, "no longer valid") ||
		replay.cookies()["gatehouse"] != "" {
		t.Errorf("got %d %s, want the form back and no session", again.status, again.body)
	}
}

func TestWrongCodesInvalidateTheCode(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	p := b.register("/register", ida)
	code := st.mail.Next(t, ida).Code
	for i := range 5 {
		p = b.send(p, "code", wrong(code))
		p.shows(t, 422, "/register/verify")
		if !strings.Contains(p.body, "not the code") {
			t.Errorf("guess %d: got %s", i+1, p.body)
		}
	}
	p = b.send(p, "code", code)
	p.shows(t, 422, "/register/verify")
	p.says(t, "no longer valid")
	b.send(p, "code", "").shows(t, 422, "/register/verify")
	b.send(p, "code", strings.Repeat("1", 5000)).shows(t, 422, "/register/verify")
}

func TestCodesAreLimitedPerRecipient(t *testing.T) {
	st := newReachable(t)
	st.NewUser(t, "Oda", "oda@example.com")
	for _, email := range []string{ida, "oda@example.com"} {
		b := newBrowser(t, st.IdentityStack)
		p := b.register("/register", email)
		st.mail.Next(t, email)
		p.says(t, "You can ask for a new code in ")
		b.sendTo(p, "/register/resend").shows(t, 429, "/register/resend")
		// by who loads the response again
		b.get("/register/resend").shows(t, 200, "/register/verify")
		for _, path := range []string{"/register", "/reset"} { // whatever it is for
			p := b.send(b.get(path), "name", "Ida", "email", email, "password", newWord)
			p.shows(t, 429, path)
			seconds, err := strconv.Atoi(p.header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 30 ||
				!strings.Contains(p.body, "in "+strconv.Itoa(seconds)+" second") {
				t.Errorf("got Retry-After %q and %s, want up to 30 seconds in both",
					p.header.Get("Retry-After"), p.body)
			}
		}
	}
	if n := st.mail.Count(); n != 0 {
		t.Errorf("got %d more messages, want none", n)
	}
}

// planted keeps a challenge in the store, as if it had been begun a while ago, and gives the
// browser its token.
func (st reachable) planted(t *testing.T, b *browser, change func(*account.Challenge)) string {
	t.Helper()
	hash := st.Hasher.Hash("246810")
	token, at := account.NewSecret(), time.Now().Add(-time.Minute)
	c := &account.Challenge{Hash: oauth.HashOf(token), Purpose: account.ForRegistration,
		Channel: account.Email, Address: ida, Name: "Ida",
		PasswordHash: hash, Message: account.RegisterCode, Ends: at.Add(account.ChallengeLifetime)}
	c.Renew(hash, at)
	change(c)
	if _, err := st.Store.CreateChallenge(t.Context(), c, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(st.URL)
	if err != nil {
		t.Fatal(err)
	}
	b.jar.SetCookies(u, []*http.Cookie{{Name: "gatehouse-code", Value: token}})
	return token
}

func TestExpiredCodeIsReplaced(t *testing.T) {
	st := newReachable(t)
	c := st.NewClient(t, nil)
	b := newBrowser(t, st.IdentityStack)
	st.planted(t, b, func(c *account.Challenge) { c.Expires = c.Sent })
	p := b.get("/register/verify?" + asked(c).Encode())
	p.shows(t, 200, "/register/verify")
	action, fields := p.form(t)
	fields.Set("code", "246810")
	p = b.open("POST", action, fields)
	p.shows(t, 422, "/register/verify")
	if !strings.Contains(p.body, "Ask for a new one") {
		t.Errorf("got %s", p.body)
	}
	p = b.sendTo(p, "/register/resend")
	p.shows(t, 200, "/register/verify")
	if !strings.Contains(p.body, "We sent a new code") {
		t.Errorf("got %s, want that a code was sent", p.body)
	}
	code := st.mail.Next(t, ida).Code
	b.send(p, "code", code).shows(t, 200, "/consent")
}

func TestChallengeIsForOnePurpose(t *testing.T) {
	st := newReachable(t)
	b := newBrowser(t, st.IdentityStack)
	st.planted(t, b, func(*account.Challenge) {})
	for path, start := range map[string]string{"/reset/verify": "/reset",
		"/register/phone/verify": "/register/phone"} {
		b.get(path).shows(t, 200, start)
		b.open("POST", path, query("code", "246810", "password", newWord, "name", "Ida")).shows(t,
			422, path)
	}
	st.planted(t, b, func(c *account.Challenge) { c.Address, c.Ends = "o@example.com", time.Now() })
	b.get("/register/verify").shows(t, 200, "/register")
	fresh := newBrowser(t, st.IdentityStack)
	fresh.get("/register/verify").shows(t, 200, "/register")
	fresh.open("POST", "/register/verify", query("code", "246810")).shows(t, 422,
		"/register/verify")
	fresh.open("POST", "/register/resend", query("x", "y")).shows(t, 422, "/register/resend")
	if n := st.mail.Count(); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}

// TestForgedCodeFormsAreRefused plays what an attacker's page or another form's token can send.
func TestForgedCodeFormsAreRefused(t *testing.T) {
	st := newReachable(t)
	mallory := newBrowser(t, st.IdentityStack)
	for path, fields := range map[string]url.Values{
		"/register":       query("name", "Ida", "email", ida, "password", newWord),
		"/register/phone": query("phone_number", idaPhone),
		"/reset":          query("email", ida),
	} {
		b := newBrowser(t, st.IdentityStack)
		b.get(path)
		_, hers := mallory.get(path).form(t)
		_, other := b.get("/login").form(t)
		for name, token := range map[string]string{"no token": "",
			"another browser's": hers.Get("form_token"),
			"another form's":    other.Get("form_token")} {
			fields.Set("form_token", token)
			if p := b.once("POST", path, fields); p.status != 403 ||
				b.cookies()["gatehouse-code"] != "" {
				t.Errorf("%s, %s: got %d, want 403 and nothing begun", path, name, p.status)
			}
		}
		fields.Del("form_token")
		b.open("POST", path, fields, "Sec-Fetch-Site", "cross-site").shows(t, 403, path)
	}

	b := newBrowser(t, st.IdentityStack)
	st.planted(t, b, func(*account.Challenge) {})
	mine := b.get("/register/verify")
	action, fields := mine.form(t)
	fields.Set("code", "246810")
	resend := mine.formTo(t, "/register/resend").fields
	st.planted(t, mallory, func(c *account.Challenge) { c.Address = "m@example.com" })
	_, hers := mallory.get("/register/verify").form(t)
	for name, token := range map[string]string{"no token": "",
		"another browser's": hers.Get("form_token"), "the other form's": resend.Get("form_token")} {
		forged := query("code", "246810", "form_token", token)
		if p := b.once("POST", action, forged); p.status != 403 || b.cookies()["gatehouse"] != "" {
			t.Errorf("%s: got %d, want 403 and no session", name, p.status)
		}
	}
	b.once("POST", "/register/resend", query("form_token", fields.Get("form_token"))).shows(t, 403,
		"/register/resend")
	b.open("POST", action, fields, "Sec-Fetch-Site", "same-site").shows(t, 403, "/register/verify")
	// A cookie that another host has tossed in asks for a challenge that this form was not made
	// for.
	token := st.planted(t, b, func(c *account.Challenge) { c.Address = "toss@example.com" })
	if p := b.once("POST", action, fields); p.status != 403 || b.cookies()["gatehouse"] != "" ||
		token == "" {
		t.Errorf("got %d with a tossed cookie, want 403 and no session", p.status)
	}
	if n := st.mail.Count(); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}

// TestPagesWithoutMessengerDoNotExist to register or reset with.
func TestPagesWithoutMessengerDoNotExist(t *testing.T) {
	paths := map[bool][]string{ // by whether they are for email
		true: {"/register", "/register/verify", "/register/resend", "/reset", "/reset/verify",
			"/reset/resend", "/login/code", "/login/verify", "/login/resend"},
		false: {"/register/phone", "/register/phone/verify", "/register/phone/resend"},
	}
	for _, has := range []account.Channels{{}, {SMS: true}, {Email: true}} {
		st := stacktest.NewIdentity(t, func(c *stack.Config) {
			c.Identity.Sender, c.Identity.Channels = stacktest.NewMailbox(), has
		})
		b := newBrowser(t, st)
		login := b.get("/login").body
		for email, list := range paths {
			offered := email && has.Email || !email && has.SMS
			for _, path := range list {
				if p := b.once("POST", path, url.Values{}); (p.status != 404) != offered {
					t.Errorf("%v: POST %s: got %d", has, path, p.status)
				}
			}
			if strings.Contains(login, `"`+list[0]+`"`) != offered {
				t.Errorf("%v: got %s, want a link to %s only if it is there", has, login, list[0])
			}
		}
	}
}

func TestDisabledAccountCannotSignIn(t *testing.T) {
	st := newReachable(t)
	u := &account.User{Name: "Ida", Phone: idaPhone, Disabled: true}
	if err := st.Store.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, st.IdentityStack)
	p := b.send(b.get("/register/phone"), "phone_number", idaPhone)
	p = b.send(p, "code", st.mail.Next(t, idaPhone).Code)
	p.shows(t, 403, "/register/phone/verify")
	if b.cookies()["gatehouse"] != "" {
		t.Error("got a session")
	}
}
