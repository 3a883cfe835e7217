package signin_test

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
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

func TestRegisterByEmail(t *testing.T) {
	st := stacktest.NewReachable(t)
	c := st.NewClient(t, nil)
	b := st.NewBrowser(t)
	p := b.Register("/register?"+c.Request().Encode(), " "+ida+" ")
	code := st.Mail.Next(t, ida)
	if code.Kind != account.RegisterCode || code.Channel != account.Email ||
		!strings.Contains(p.Body, ida) || strings.Contains(p.Body, code.Code) {
		t.Fatalf("got %+v and %s, want a code in the message alone", code, p.Body)
	}
	if _, err := st.Store.UserByEmail(t.Context(), ida); err == nil {
		t.Error("got an account before the code")
	}
	b.Send(p, "code", stacktest.WrongCode(code.Code)).Shows(t, 422, "/register/verify")
	p = b.Send(p, "code", code.Code[:3]+" "+code.Code[3:])
	p.Shows(t, 200, "/consent")
	gets := b.Send(p, "decision", "allow").Code(t, st.IdentityStack)
	if a := st.Redeem(t, c, gets); a.Status != 200 {
		t.Errorf("got %d %s, want tokens", a.Status, a.Body)
	}
	u, err := st.Store.UserByEmail(t.Context(), strings.ToUpper(ida))
	if err != nil || u.Name != "Ida" || u.Email != ida || u.Phone != "" {
		t.Errorf("got %+v, %v, want the account", u, err)
	}
	if b.Cookies()["gatehouse-code"] != "" || b.Cookies()["gatehouse-known"] == "" {
		t.Errorf("got cookies %v, want no challenge and a mark of the account", b.Cookies())
	}
	other := st.NewBrowser(t)
	p = other.Get("/login")
	other.Send(p, "email", strings.ToLower(ida), "password", stacktest.NewPassword).Shows(t, 200,
		"/me")
}

// TestRegistrationHidesExistingAccounts compares all that a browser is told.
func TestRegistrationHidesExistingAccounts(t *testing.T) {
	st := stacktest.NewReachable(t)
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
			b := st.NewBrowser(t)
			var said strings.Builder
			tell := func(p stacktest.Page) stacktest.Page {
				said.WriteString(strconv.Itoa(p.Status) + p.Path +
					strings.ReplaceAll(plain(p), email, "EMAIL") + "\n")
				return p
			}
			_, fields := tell(b.Get(path)).Form(t)
			fields.Set("name", "Ida")
			fields.Set("email", email)
			fields.Set("password", stacktest.NewPassword)
			first := b.Once("POST", path, fields)
			tell(first)
			p := tell(b.Get(first.Location))
			_, fields = p.Form(t)
			for range 3 {
				fields.Set("code", "123456")
				fields.Set("password", stacktest.NewPassword)
				tell(b.Once("POST", path+"/verify", fields))
			}
			told = append(told, said.String())
		}
		if told[0] != told[1] {
			t.Errorf("%s: got\n%s\nfor an address with an account and\n%s\nfor one without", path,
				told[0], told[1])
		}
		for to, kind := range map[string]account.Kind{flow.has: flow.toHas,
			flow.hasNot: flow.toHasNot} {
			if m := st.Mail.Next(t, to); m.Kind != kind || (m.Code != "") != kind.HasCode() {
				t.Errorf("got %+v, want %s", m, kind)
			}
		}
	}
}

// plain is a page without what is new with each showing.
func plain(p stacktest.Page) string {
	body := p.Body
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
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Ida", ida)
	b := st.NewBrowser(t)
	p := b.Register("/register", ida)
	if m := st.Mail.Next(t, ida); m.Code != "" || m.Kind != account.AccountExists {
		t.Fatalf("got %+v, want no code", m)
	}
	for _, code := range []string{"000000", " ", "0"} {
		b.Send(p, "code", code).Shows(t, 422, "/register/verify")
	}
	if b.Cookies()["gatehouse"] != "" {
		t.Error("got a session")
	}
}

func TestInvalidRegistrations(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	for _, c := range []struct {
		name, email, password string
		want                  []string
	}{
		{"", "", "", []string{"Enter your name.", "Enter your email address.",
			"at least 10 characters"}},
		{"Ida", "ida", stacktest.NewPassword, []string{"This is not an email address."}},
		{"Ida", ida, "password12", []string{"too common"}},
		{"Harbours", ida, stacktest.NewPassword, []string{"must not contain the name"}},
		{"<script>\x00", ida, stacktest.NewPassword,
			[]string{"Remove the control characters."}},
		{"Ida", "\xff", stacktest.NewPassword, []string{"This is not an email address."}},
		{strings.Repeat("x", 5000), strings.Repeat("y", 5000), strings.Repeat("z", 20000),
			[]string{"at most 200 characters", "at most 254 characters"}},
	} {
		p := b.Send(b.Get("/register"), "name", c.name, "email", c.email, "password", c.password)
		p.Shows(t, 422, "/register")
		for _, want := range c.want {
			if !strings.Contains(p.Body, want) {
				t.Errorf("%.20q, %.20q: got %s, want %q", c.name, c.email, p.Body, want)
			}
		}
		if strings.Contains(p.Body, "<script>") || c.password != "" &&
			strings.Contains(p.Body, c.password) || strings.Contains(p.Body, "xxxxx") {
			t.Errorf("%.20q: got what was entered on the page", c.name)
		}
	}
	if n := st.Mail.Count(); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}

func TestPhoneRegistersAndSignsIn(t *testing.T) {
	st := stacktest.NewReachable(t)
	c := st.NewClient(t, nil)
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/register/phone?"+c.Request().Encode()), "phone_number", "+1 (415) 555-0123")
	p.Shows(t, 200, "/register/phone/verify")
	code := st.Mail.Next(t, idaPhone)
	if code.Kind != account.PhoneCode || code.Channel != account.SMS {
		t.Errorf("got %+v, want a code by text message", code)
	}
	p = b.Send(p, "code", code.Code)
	p.Shows(t, 200, "/register/phone/verify")
	p.Says(t, "What is your name?")
	p = b.Send(p, "name", " ") // the code is not asked for once more
	p.Shows(t, 422, "/register/phone/verify")
	p.Says(t, "Enter your name.", "What is your name?")
	b.Send(p, "name", "Ida").Shows(t, 200, "/consent")
	u, err := st.Store.UserByPhone(t.Context(), idaPhone)
	if err != nil || u.Name != "Ida" || u.Email != "" || u.PasswordHash != "" {
		t.Fatalf("got %+v, %v, want an account by phone", u, err)
	}

	again := st.NewBrowser(t)
	p = again.Send(again.Get("/register/phone"), "phone_number", "0014155550123")
	p = again.Send(p, "code", st.Mail.Next(t, idaPhone).Code)
	p.Shows(t, 200, "/me")
	if !strings.Contains(p.Body, idaPhone[1:]) {
		t.Errorf("got %s, want the same account", p.Body)
	}
	b.Send(b.Get("/register/phone"), "phone_number", "415 555").Shows(t, 422, "/register/phone")
	b.Send(b.Get("/register/phone"), "phone_number", "").Shows(t, 422, "/register/phone")
	b.Send(b.Get("/register/phone"), "phone_number", "\xff<b>"+strings.Repeat("1", 3000)).Shows(t,
		422, "/register/phone")
}

func TestResetByCode(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Harbour Master", ida)
	before := st.NewBrowser(t)
	before.Send(before.Get("/login"), "email", ida, "password", stacktest.Password).Shows(t, 200,
		"/me")

	b := st.NewBrowser(t)
	p := b.Send(b.Get("/reset"), "email", strings.ToLower(ida))
	p.Shows(t, 200, "/reset/verify")
	code := st.Mail.Next(t, ida)
	if code.Kind != account.ResetCode {
		t.Errorf("got %+v, want a code", code)
	}
	// A weak password costs no try, however often, and neither does one that only this account must
	// not have.
	for range 6 {
		b.Send(p, "code", code.Code, "password", "short").Shows(t, 422, "/reset/verify")
		b.Send(p, "code", code.Code, "password", "safe harbour 17").Shows(t, 422, "/reset/verify")
	}
	b.Send(p, "code", code.Code, "password", stacktest.NewPassword+" 2").Shows(t, 422,
		"/reset/verify")
	b.Send(p, "code", code.Code, "password", "quiet tidal lamps").Shows(t, 200, "/me")
	if got := before.Get("/accounts"); strings.Contains(got.Body, ida) {
		t.Error("got the old session alive after a reset")
	}
	in := st.NewBrowser(t)
	in.Send(in.Get("/login"), "email", ida, "password", stacktest.Password).Shows(t, 422, "/login")
	in.Send(in.Get("/login"), "email", ida, "password", "quiet tidal lamps").Shows(t, 200, "/me")

	b.Send(b.Get("/reset"), "email", "nobody@example.com").Shows(t, 200, "/reset/verify")
	if m := st.Mail.Next(t, "nobody@example.com"); m.Kind != account.NoAccount || m.Code != "" {
		t.Errorf("got %+v, want to be told that there is no account", m)
	}
}

// TestCodeIsSingleUse sends the right code many times at once: there is one session, to which those
// lead that came while it was made.
func TestCodeIsSingleUse(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	p := b.Register("/register", ida)
	action, fields := p.Form(t)
	fields.Set("code", st.Mail.Next(t, ida).Code)
	cookies := b.Cookies()
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
	replay := st.NewBrowser(t)
	var old []*http.Cookie
	for name, value := range cookies {
		old = append(old, &http.Cookie{Name: name, Value: value})
	}
	replay.Client.Jar.SetCookies(nil, old)
	again := replay.Open("POST", action, fields)
	if again.Status != 422 || !strings.Contains(again.Body, "no longer valid") ||
		replay.Cookies()["gatehouse"] != "" {
		t.Errorf("got %d %s, want the form back and no session", again.Status, again.Body)
	}
}

func TestWrongCodesInvalidateTheCode(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	p := b.Register("/register", ida)
	code := st.Mail.Next(t, ida).Code
	for i := range 5 {
		p = b.Send(p, "code", stacktest.WrongCode(code))
		p.Shows(t, 422, "/register/verify")
		if !strings.Contains(p.Body, "not the code") {
			t.Errorf("guess %d: got %s", i+1, p.Body)
		}
	}
	p = b.Send(p, "code", code)
	p.Shows(t, 422, "/register/verify")
	p.Says(t, "no longer valid")
	b.Send(p, "code", "").Shows(t, 422, "/register/verify")
	b.Send(p, "code", strings.Repeat("1", 5000)).Shows(t, 422, "/register/verify")
}

func TestCodesAreLimitedPerRecipient(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Oda", "oda@example.com")
	for _, email := range []string{ida, "oda@example.com"} {
		b := st.NewBrowser(t)
		p := b.Register("/register", email)
		st.Mail.Next(t, email)
		p.Says(t, "You can ask for a new code in ")
		soon := b.SendTo(p, "/register/resend")
		soon.Shows(t, 200, "/register/verify")
		soon.Says(t, `<p class="notice" role="status">You can ask for a new code in `)
		// by who loads the response again
		b.Get("/register/resend").Shows(t, 200, "/register/verify")
		for _, path := range []string{"/register", "/reset"} { // whatever it is for
			p := b.Send(b.Get(path), "name", "Ida", "email", email, "password",
				stacktest.NewPassword)
			p.Shows(t, 429, path)
			seconds, err := strconv.Atoi(p.Header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 30 ||
				!strings.Contains(p.Body, "in "+strconv.Itoa(seconds)+" second") {
				t.Errorf("got Retry-After %q and %s, want up to 30 seconds in both",
					p.Header.Get("Retry-After"), p.Body)
			}
		}
	}
	if n := st.Mail.Count(); n != 0 {
		t.Errorf("got %d more messages, want none", n)
	}
}

func TestExpiredCodeIsReplaced(t *testing.T) {
	st := stacktest.NewReachable(t)
	c := st.NewClient(t, nil)
	b := st.NewBrowser(t)
	st.PlantChallenge(t, b, func(c *account.Challenge) { c.Expires = c.Sent })
	p := b.Get("/register/verify?" + c.Request().Encode())
	p.Shows(t, 200, "/register/verify")
	action, fields := p.Form(t)
	fields.Set("code", "246810")
	p = b.Open("POST", action, fields)
	p.Shows(t, 422, "/register/verify")
	if !strings.Contains(p.Body, "Ask for a new one") {
		t.Errorf("got %s", p.Body)
	}
	p = b.SendTo(p, "/register/resend")
	p.Shows(t, 200, "/register/verify")
	if !strings.Contains(p.Body, "We sent a new code") {
		t.Errorf("got %s, want that a code was sent", p.Body)
	}
	code := st.Mail.Next(t, ida).Code
	b.Send(p, "code", code).Shows(t, 200, "/consent")
}

func TestChallengeIsForOnePurpose(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	st.PlantChallenge(t, b, func(*account.Challenge) {})
	for path, start := range map[string]string{"/reset/verify": "/reset",
		"/register/phone/verify": "/register/phone"} {
		b.Get(path).Shows(t, 200, start)
		b.Open("POST", path, stacktest.Values("code", "246810", "password", stacktest.NewPassword,
			"name", "Ida")).Shows(t, 422, start)
	}
	st.PlantChallenge(t, b, func(c *account.Challenge) { c.Address, c.Ends = "o@example.com", time.Now() })
	b.Get("/register/verify").Shows(t, 200, "/register")
	fresh := st.NewBrowser(t)
	fresh.Get("/register/verify").Shows(t, 200, "/register")
	fresh.Open("POST", "/register/verify", stacktest.Values("code", "246810")).Shows(t, 422,
		"/register")
	fresh.Open("POST", "/register/resend", stacktest.Values("x", "y")).Shows(t, 422,
		"/register")
	if n := st.Mail.Count(); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}

// TestForgedCodeFormsAreRefused plays what an attacker's page or another form's token can send.
func TestForgedCodeFormsAreRefused(t *testing.T) {
	st := stacktest.NewReachable(t)
	mallory := st.NewBrowser(t)
	for path, fields := range map[string]url.Values{
		"/register": stacktest.Values("name", "Ida", "email", ida, "password",
			stacktest.NewPassword),
		"/register/phone": stacktest.Values("phone_number", idaPhone),
		"/reset":          stacktest.Values("email", ida),
	} {
		b := st.NewBrowser(t)
		b.Get(path)
		_, hers := mallory.Get(path).Form(t)
		_, other := b.Get("/login").Form(t)
		for name, token := range map[string]string{"no token": "",
			"another browser's": hers.Get("form_token"),
			"another form's":    other.Get("form_token")} {
			fields.Set("form_token", token)
			if p := b.Once("POST", path, fields); p.Status != 403 ||
				b.Cookies()["gatehouse-code"] != "" {
				t.Errorf("%s, %s: got %d, want 403 and nothing begun", path, name, p.Status)
			}
		}
		fields.Del("form_token")
		b.Open("POST", path, fields, "Sec-Fetch-Site", "cross-site").Shows(t, 403, path)
	}

	b := st.NewBrowser(t)
	st.PlantChallenge(t, b, func(*account.Challenge) {})
	mine := b.Get("/register/verify")
	action, fields := mine.Form(t)
	fields.Set("code", "246810")
	resend := mine.FormTo(t, "/register/resend").Fields
	st.PlantChallenge(t, mallory, func(c *account.Challenge) { c.Address = "m@example.com" })
	_, hers := mallory.Get("/register/verify").Form(t)
	for name, token := range map[string]string{"no token": "",
		"another browser's": hers.Get("form_token"), "the other form's": resend.Get("form_token")} {
		forged := stacktest.Values("code", "246810", "form_token", token)
		if p := b.Once("POST", action, forged); p.Status != 403 || b.Cookies()["gatehouse"] != "" {
			t.Errorf("%s: got %d, want 403 and no session", name, p.Status)
		}
	}
	b.Once("POST", "/register/resend", stacktest.Values("form_token",
		fields.Get("form_token"))).Shows(t, 403, "/register/resend")
	b.Open("POST", action, fields, "Sec-Fetch-Site", "same-site").Shows(t, 403, "/register/verify")
	// A cookie that another host has tossed in asks for a challenge that this form was not made
	// for.
	token := st.PlantChallenge(t, b, func(c *account.Challenge) { c.Address = "toss@example.com" })
	if p := b.Once("POST", action, fields); p.Status != 403 || b.Cookies()["gatehouse"] != "" ||
		token == "" {
		t.Errorf("got %d with a tossed cookie, want 403 and no session", p.Status)
	}
	if n := st.Mail.Count(); n != 0 {
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
		b := st.NewBrowser(t)
		login := b.Get("/login").Body
		for email, list := range paths {
			offered := email && has.Email || !email && has.SMS
			for _, path := range list {
				if p := b.Once("POST", path, url.Values{}); (p.Status != 404) != offered {
					t.Errorf("%v: POST %s: got %d", has, path, p.Status)
				}
			}
			if strings.Contains(login, `"`+list[0]+`"`) != offered {
				t.Errorf("%v: got %s, want a link to %s only if it is there", has, login, list[0])
			}
		}
	}
}

func TestDisabledAccountCannotSignIn(t *testing.T) {
	st := stacktest.NewReachable(t)
	u := &account.User{Name: "Ida", Phone: idaPhone, Disabled: true}
	stacktest.Must(t, st.Store.CreateUser(t.Context(), u))
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/register/phone"), "phone_number", idaPhone)
	p = b.Send(p, "code", st.Mail.Next(t, idaPhone).Code)
	p.Shows(t, 403, "/register/phone/verify")
	if b.Cookies()["gatehouse"] != "" {
		t.Error("got a session")
	}
}
