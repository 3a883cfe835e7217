package signin_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// TestInvitation: the link of an invitation makes the account of its address, once, with its groups.
// GET shows, POST acts.
func TestInvitation(t *testing.T) {
	st := stacktest.NewReachable(t, func(c *stack.Config) { c.Identity.Accounts = account.InvitedAccounts })
	o := st.NewOperator(t)
	o.Do(201, "POST", "/groups", `{"name":"sales"}`)
	o.Do(404, "POST", "/invitations", `{"email":"ada@example.com","groups":["none"]}`)
	o.Do(400, "POST", "/invitations", `{"email":"ada@example.com","groups":["gatehouse-operators"]}`).
		Refused(t, "invalid_request", "groups")
	o.Do(400, "POST", "/invitations", `{"email":"ada"}`).Refused(t, "invalid_request", "email")
	o.Do(400, "POST", "/invitations", `{}`).Refused(t, "invalid_request", "email")
	invite := func() string {
		t.Helper()
		o.Do(201, "POST", "/invitations", `{"email":"ada@example.com","name":"Ada L.","groups":["sales"]}`)
		m := st.Mail.Notice(t, ada, account.InvitationSent)
		path, ok := strings.CutPrefix(m.Link, st.URL)
		if !ok || !strings.HasPrefix(path, "/invitation?token=") {
			t.Fatalf("got %+v, want a link", m)
		}
		return path
	}
	first := invite()
	b := st.NewBrowser(t)
	if p := b.Get("/register"); p.Status != 403 {
		t.Errorf("/register: got %d, want 403", p.Status)
	}
	if p := b.Get("/login"); strings.Contains(p.Body, `href="/register"`) {
		t.Error("/login: got a link to register, want none")
	}
	b.Get(first).Says(t, "ada@example.com", "Ada L.")
	link := invite()
	if p := b.Get(first); p.Status != 410 {
		t.Errorf("a link that was replaced: got %d, want 410", p.Status)
	}
	for range 2 {
		b.Get(link).Shows(t, 200, "/invitation") // it only shows
	}
	p := b.Send(b.Get(link), "name", "Ada", "password", "short")
	p.Shows(t, 422, "/invitation")
	b.Send(p, "name", "Ada", "password", stacktest.NewPassword).Shows(t, 200, "/me")
	if p := b.Get(link); p.Status != 410 {
		t.Errorf("a link that was used: got %d, want 410", p.Status)
	}
	u, err := st.Store.UserByEmail(t.Context(), ada)
	if err != nil || u.Name != "Ada" || u.Groups != "sales" || u.PasswordHash == "" {
		t.Fatalf("got %+v and error %v, want Ada in sales", u, err)
	}
	o.Do(409, "POST", "/invitations", `{"email":"ADA@example.com"}`).Refused(t, "conflict")
	o.Do(201, "POST", "/invitations", `{"email":"`+ida+`"}`)
	link = linkOf(t, st, st.Mail.Notice(t, ida, account.InvitationSent))
	got := o.Do(200, "GET", "/invitations", "").Object(t)["invitations"].([]any)
	if len(got) != 1 {
		t.Fatalf("got %v, want the one of Ida", got)
	}
	id := got[0].(map[string]any)["id"].(string)
	o.Do(204, "DELETE", "/invitations/"+id, "")
	o.Do(404, "DELETE", "/invitations/"+id, "")
	if p := b.Get(link); p.Status != 410 {
		t.Errorf("a link that an operator has ended: got %d, want 410", p.Status)
	}
}

// TestInvitationByProvider: the verified address of a provider accepts the invitation of that address,
// with its groups, also if the provider creates no accounts. No other address does.
func TestInvitationByProvider(t *testing.T) {
	const others = 403
	for _, accounts := range []account.Accounts{account.InvitedAccounts, account.OpenAccounts,
		account.OperatorAccounts} {
		t.Run(string(accounts), func(t *testing.T) {
			st := stacktest.NewReachable(t, func(c *stack.Config) { c.Identity.Accounts = accounts })
			o := st.NewOperator(t)
			o.Do(201, "POST", "/groups", `{"name":"sales"}`)
			o.Do(201, "POST", "/groups", `{"name":"staff"}`)
			up := newUpstream(t, ofAda())
			up.set(func(u *upstream) { u.claims["groups"] = []string{"Staff"} })
			up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) {
				p.CreateAccounts, p.Groups = false, map[string]string{"Staff": "staff"}
			})
			if accounts == account.OperatorAccounts { // one from before the setting
				st.Alter(t, `INSERT INTO invitations VALUES ('i1', x'`+strings.Repeat("01", 32)+
					`', 'ada@example.com', 'ada@example.com', '', '', 0, 9999999999999)`)
				b := st.NewBrowser(t)
				comeBack(t, b, b.Get("/login")).Shows(t, others, "/login/with/acme/callback")
				return
			}
			o.Do(201, "POST", "/invitations", `{"email":"Ada@example.com","name":"Ada L.","groups":["sales"]}`)
			link := linkOf(t, st, st.Mail.Notice(t, "Ada@example.com", account.InvitationSent))
			for _, lie := range []map[string]any{{"email": "eve@example.com"}, {"email_verified": false},
				{"email": "eve@example.com", "email_verified": false}} {
				up.set(func(u *upstream) {
					u.lie = func(claims map[string]any) {
						for name, value := range lie {
							claims[name] = value
						}
					}
				})
				b := st.NewBrowser(t)
				comeBack(t, b, b.Get(link)).Shows(t, others, "/login/with/acme/callback")
			}
			up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) { p.CreateAccounts, p.TrustEmail = false, false })
			b := st.NewBrowser(t)
			if p := b.Get(link); startLink.MatchString(p.Body) {
				t.Errorf("got %s, want no provider that is not trusted", p.Body)
			}
			comeBack(t, b, b.Get("/login")).Shows(t, others, "/login/with/acme/callback")
			up.set(func(u *upstream) { u.lie = nil })
			up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) {
				p.CreateAccounts, p.Groups = false, map[string]string{"Staff": "staff"}
			})
			p := b.Get(link)
			p.Says(t, "Continue with <bdi>Acme</bdi>")
			comeBack(t, b, p).Shows(t, 200, "/me")
			u, err := st.Store.UserByEmail(t.Context(), ada)
			if err != nil || u.Name != "Ada L." || u.Given != "sales" || u.Groups != "sales staff" ||
				len(u.Credentials.Connections) != 1 {
				t.Errorf("got %+v and error %v, want Ada in sales and staff", u, err)
			}
			b.Get(link).Shows(t, 410, "/invitation")
			fresh := st.NewBrowser(t)
			comeBack(t, fresh, fresh.Get("/login")).Shows(t, 200, "/me")
		})
	}
}

// TestPhonesOfNobodyGetNoAccount: with invited accounts, a code to a number of nobody makes none.
func TestPhonesOfNobodyGetNoAccount(t *testing.T) {
	st := stacktest.NewReachable(t, func(c *stack.Config) { c.Identity.Accounts = account.OperatorAccounts })
	o := st.NewOperator(t)
	o.Do(400, "POST", "/invitations", `{"email":"ada@example.com"}`).Refused(t, "invalid_request", "email")
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/register/phone"), "phone_number", idaPhone)
	if p = b.Send(p, "code", st.Mail.Next(t, idaPhone).Code, "name", "Ida"); p.Status != 403 {
		t.Errorf("got %d, want 403", p.Status)
	}
	if u, err := st.Store.UserByPhone(t.Context(), idaPhone); err == nil {
		t.Errorf("got %+v, want no account", u)
	}
}

// TestAccountWithoutPassword: an operator creates an account with an address alone. A code to the
// address sets the first password.
func TestAccountWithoutPassword(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewOperator(t).Do(201, "POST", "/users", `{"name":"Ada","email":"ada@example.com"}`)
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/reset"), "email", ada)
	b.Send(p, "code", st.Mail.Next(t, ada).Code, "password", stacktest.NewPassword).Shows(t, 200, "/me")
}

// TestOutsiders: who is in none of the groups of an app sees why there is no access, and the app is
// told when the person goes back.
func TestOutsiders(t *testing.T) {
	st := stacktest.NewReachable(t)
	o := st.NewOperator(t)
	u := st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, nil)
	o.Do(200, "PATCH", "/clients/"+c.ID, `{"require_groups":["sales"]}`)
	b := st.NewBrowser(t)
	q := c.Request("state", "s1")
	p := b.SignIn(q, ada)
	if p.Status != 403 {
		t.Fatalf("got %d %s, want 403", p.Status, p.Body)
	}
	p.Says(t, "You have no access to "+c.Name, "Back to the app", ada)
	_, rest, _ := strings.Cut(p.Body, `<a class="button plain" href="`)
	href, _, _ := strings.Cut(rest, `"`)
	back := b.Once("GET", strings.ReplaceAll(href, "&amp;", "&"), nil)
	if to := back.Location; !strings.Contains(to, "error=access_denied") {
		t.Errorf("got %d to %s, want access_denied", back.Status, to)
	}
	q.Set("prompt", "none")
	silent := b.Once("GET", "/oauth/authorize?"+q.Encode(), nil)
	if to := silent.Location; !strings.Contains(to, "error=") || strings.Contains(to, "code=") {
		t.Errorf("prompt=none: got %d to %s, want an error", silent.Status, to)
	}
	q.Del("prompt")
	o.Do(201, "POST", "/groups", `{"name":"sales"}`)
	o.Do(204, "PUT", fmt.Sprintf("/groups/sales/members/%d", u.ID), "")
	st.NewBrowser(t).SignIn(q, ada).Shows(t, 200, "/consent")
}
