package stacktest_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

func redirecting(uris ...string) func(*oauth.Client) {
	return func(c *oauth.Client) { c.RedirectURIs = uris }
}

func TestDecisionsOfAuthorizationEndpoint(t *testing.T) {
	rows(t, []rowTest{
		{"redirect URIs that can be registered", func(r *row) {
			o := r.operator()
			for uri, kinds := range map[string]string{
				"https://app.example/cb":          "confidential public",
				"https://app.example:8443/cb?x=1": "confidential public",
				"http://127.0.0.1/cb":             "confidential public",
				"http://[::1]:8080/cb":            "confidential public",
				"http://localhost:3000/cb":        "confidential public",
				"com.example.app:/cb":             "public", "myapp:/cb": "", "http://app.example/cb": "",
				"http://127.0.0.2/cb": "", "http://localhost.evil.example/": "",
				"https://app.example/cb#part": "", "https://user:pass@app.example/cb": "",
				"https://*.example/cb": "", "javascript:alert(1)": "", "data:text/html,x": "",
				"//app.example/cb": "", "/cb": "", "https:///cb": "", "https://app.example/a b": "", "": "",
			} {
				for _, kind := range []string{"confidential", "public"} {
					body, err := json.Marshal(map[string]any{"name": "Atlas", "public": kind == "public",
						"redirect_uris": []string{uri}})
					if err != nil {
						r.t.Fatal(err)
					}
					if a, want := o.does(0, "POST", "/clients", string(body)), map[bool]int{true: 201,
						false: 400}[strings.Contains(kinds, kind)]; a.status != want {
						r.t.Errorf("%s for a %s client: got %d %s, want %d", uri, kind, a.status, a.body, want)
					}
				}
			}
		}},
		{"authorize: unknown client, bad redirect_uri", func(r *row) {
			c, b := r.client(), r.browser()
			b.authorize(c, "client_id", "00000000-0000-4000-8000-000000000000").showsError()
			b.authorize(c, "client_id", "").showsError()
			for _, uri := range []string{"", "https://evil.example/", stacktest.RedirectURI + "/",
				strings.ToUpper(stacktest.RedirectURI), "https://app.example:443/callback?tenant=1",
				"https://app.example/callback?tenant=%31", "https://app.example/x/../callback?tenant=1"} {
				b.authorize(c, "redirect_uri", uri).showsError()
			}
			exact := r.client(public, redirecting("http://127.0.0.1:4000/cb", "http://[::1]/cb",
				"http://localhost:4000/cb"))
			b.authorize(exact, "redirect_uri", "http://127.0.0.1:4001/cb").showsError()
			loose := r.client(public, redirecting("http://127.0.0.1:4000/cb", "http://[::1]/cb",
				"http://localhost:4000/cb"),
				func(c *oauth.Client) { c.LoopbackAnyPort = true })
			for _, uri := range []string{"http://127.0.0.1:4000/cb", "http://127.0.0.1:4001/cb",
				"http://[::1]:51004/cb"} {
				b.authorize(loose, "redirect_uri", uri).shows(200, "/login")
			}
			for _, uri := range []string{"http://localhost:4001/cb", "http://127.0.0.1:4001/other",
				"http://127.0.0.1:4001/cb?x=1", "https://127.0.0.1:4001/cb",
				"http://127.0.0.1:4001@evil.example/cb"} {
				b.authorize(loose, "redirect_uri", uri).showsError()
			}
		}},
		{"`iss`", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			b.consented(c, u) // checks iss; refusal does too
			b.authorize(c, "scope", "root").refusal("invalid_scope")
			o := r.send("GET", r.URL+"/.well-known/oauth-authorization-server", "").object(r.t, 200)
			if o["authorization_response_iss_parameter_supported"] != true || o["issuer"] != r.URL {
				r.t.Errorf("got %v, want support for iss", o)
			}
		}},
		{"authorize: other errors", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			b.authorize(c, "response_type", "").refusal("invalid_request")
			b.authorize(c, "code_challenge_method", "plain").refusal("invalid_request")
			b.authorize(c, "code_challenge_method", "").refusal("invalid_request")
			b.authorize(c, "prompt", "select").refusal("invalid_request")
			b.open("GET", "/oauth/authorize?"+authorizationQuery(c)+"&scope=view-user",
				nil).refusal("invalid_request")
			b.authorize(r.client(public), "code_challenge", "", "code_challenge_method",
				"").refusal("invalid_request")
			b.authorize(r.client(func(c *oauth.Client) { c.Grants = oauth.ClientCredentialsGrant })).refusal("unauthorized_client")
			b.authorize(c, "response_type", "token").refusal("unsupported_response_type")
			b.authorize(c, "scope", "server-operations").refusal("invalid_scope")
			b.authorize(r.client(func(c *oauth.Client) { c.Scopes = oauth.ViewUser }), "scope",
				"detail-user").refusal("invalid_scope")
			b.authorize(c, "prompt", "none").refusal("login_required")
			b.send(b.signIn(b.authorize(c), u), "decision", "deny").refusal("access_denied")
			b.authorize(c, "prompt", "none").refusal("consent_required")
		}},
		{"disabled", disabled},
		{"`state`", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			b.consented(c, u)
			for _, state := range []string{"plain", "a b+c%20&code=x#y", "ü€😀", `"><script>`,
				strings.Repeat("z", 2000)} {
				p := b.authorize(c, "state", state, "skip_account_chooser", "true")
				if q := p.returned(); q.Get("state") != state || q.Get("code") == "" {
					r.t.Errorf("got state %q, want %q", q.Get("state"), state)
				}
				if _, sent, _ := strings.Cut(p.to, "state="); strings.ContainsAny(sent, " +\"<>#") {
					r.t.Errorf("got %q, want it percent-encoded", sent)
				}
			}
			if q := b.authorize(c, "state", "", "skip_account_chooser", "true").returned(); q.Has("state") {
				r.t.Errorf("got %v, want no state", q)
			}
			for _, state := range []string{"\r\nSet-Cookie: a=b", "\x00", "\x1f", "\x7f"} {
				if q := b.authorize(c, "state", state).returned(); q.Get("error") != "invalid_request" {
					r.t.Errorf("got %v for %q, want invalid_request", q, state)
				}
			}
		}},
		{"redirects", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			login := b.authorize(c)
			consent := b.signIn(login, u)
			done := b.send(consent, "decision", "allow")
			for _, test := range []struct {
				page  page
				first int
			}{{login, 302}, {consent, 303}, {done, 303}, {b.authorize(c, "prompt", "none"), 302}} {
				for i, status := range test.page.hops {
					if want := []int{test.first, 302}[min(i, 1)]; status != want {
						r.t.Errorf("got %d at hop %d to %s, want %d", status, i, test.page.path, want)
					}
				}
				if len(test.page.hops) == 0 {
					r.t.Errorf("got no redirect to %s", test.page.path)
				}
			}
			if !strings.HasPrefix(done.to, "https://app.example/callback?tenant=1&code=") {
				r.t.Errorf("got %s, want the query of the redirect URI kept", done.to)
			}
			bare := r.client(redirecting("https://app.example/bare"))
			if p := b.authorize(bare, "scope", "root"); !strings.HasPrefix(p.to,
				"https://app.example/bare?error=") {
				r.t.Errorf("got %s, want a new query", p.to)
			}
		}},
		{"scope omitted at authorize", func(r *row) {
			c, b := r.client(), r.browser()
			code := b.consented(c, r.person(), "scope", "")
			if o := r.token(redemption(c, code)...).object(r.t, 200); o["scope"] != "view-user" {
				r.t.Errorf("got scope %v, want the default scopes in the response", o["scope"])
			}
			b.authorize(r.client(func(c *oauth.Client) { c.Scopes = oauth.DetailUser }), "scope",
				"").refusal("invalid_scope")
		}},
		{"account chooser", func(r *row) {
			c, one, two, b := r.client(), r.person(), r.person(), r.browser()
			b.consented(c, one)
			chooser := b.authorize(c)
			chooser.shows(200, "/accounts")
			b.send(chooser, "account", strconv.FormatInt(one.ID, 10)).code()
			b.authorize(c, "skip_account_chooser", "true").code()
			b.authorize(c, "skip_account_chooser", "false").shows(200, "/accounts")
			fresh := b.signIn(b.authorize(c, "prompt", "login"), one)
			fresh.code()
			// A code needs a new sign-in.
			b.open("GET", fresh.path+"?"+fresh.query, nil).shows(200, "/login")
			consent := b.signIn(b.authorize(c, "prompt", "login consent"), one)
			b.send(consent, "decision", "allow").code()
			b.open("GET", "/oauth/authorize?"+consent.query, nil).shows(200, "/login")
			b.send(consent, "decision", "allow").shows(403, "/consent")
			b.authorize(c, "prompt", "consent", "skip_account_chooser", "true").shows(200, "/consent")
			b.signIn(b.authorize(c, "prompt", "login consent"), one).shows(200, "/consent")
			b.send(b.signIn(b.authorize(c, "prompt", "login"), two), "decision", "allow").code()
			both := b.authorize(c)
			if both.shows(200, "/accounts"); !strings.Contains(both.body, one.Email) ||
				!strings.Contains(both.body, two.Email) {
				r.t.Errorf("got %s, want both accounts", both.body)
			}
			code := b.send(both, "account", strconv.FormatInt(one.ID, 10)).code()
			if o := r.profile(r.token(redemption(c, code)...).tokens(r.t).access).object(r.t,
				200); o["id"] != float64(one.ID) {
				r.t.Errorf("got %v, want the chosen account", o)
			}
		}},
		{"consent", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			b.consented(c, u)
			b.authorize(c, "skip_account_chooser", "true").code()
			wider := b.authorize(c, "skip_account_chooser", "true", "scope", "view-user detail-user")
			wider.shows(200, "/consent")
			b.send(wider, "decision", "allow").code()
			b.authorize(c, "skip_account_chooser", "true", "scope", "detail-user").code()
			other := r.client()
			consent := b.send(b.authorize(other), "account", strconv.FormatInt(u.ID, 10))
			consent.shows(200, "/consent")
			for _, uri := range []string{"http://127.0.0.1:4000/cb", "http://[::1]:4000/cb",
				"http://localhost:4000/cb", "com.example.app:/cb"} {
				p := r.client(public, redirecting(uri))
				b.send(b.send(b.authorize(p), "account", strconv.FormatInt(u.ID, 10)), "decision",
					"allow").code()
				b.authorize(p, "skip_account_chooser", "true").shows(200, "/accounts")
				b.send(b.authorize(p), "account", strconv.FormatInt(u.ID, 10)).shows(200, "/consent")
				b.authorize(p, "prompt", "none").refusal("consent_required")
			}
			web := r.client(public, redirecting("https://spa.example/cb"))
			b.send(b.send(b.authorize(web), "account", strconv.FormatInt(u.ID, 10)), "decision",
				"allow").code()
			b.authorize(web, "skip_account_chooser", "true").code()
		}},
		{"`detail-user` without approval", func(r *row) {
			c, b := r.client(func(c *oauth.Client) { c.DetailApproved = false }), r.browser()
			tokens := r.token(redemption(c, b.consented(c, r.person(), "scope",
				"detail-user"))...).tokens(r.t)
			r.profile(tokens.access, "/api/user/details").denied(r.t, 403, "unapproved_scope")
			o := r.operator()
			o.does(200, "POST", "/clients/"+c.ID+"/approve", "")
			r.profile(tokens.access, "/api/user/details").object(r.t, 200)
			o.does(200, "POST", "/clients/"+c.ID+"/unapprove", "")
			r.profile(tokens.access, "/api/user/details").denied(r.t, 403, "unapproved_scope")
		}},
		{"page headers", pageHeaders},
	})
}

// disabled checks that disabled users and clients are refused everywhere immediately.
func disabled(r *row) {
	o, c, u, b := r.operator(), r.client(), r.person(), r.browser()
	b.consented(c, u)
	tokens := r.issue(c, u, oauth.UserScopes)
	code := r.code(c, u, time.Now(), nil)
	user := "/users/" + strconv.FormatInt(u.ID, 10)
	r.profile(tokens.access).object(r.t, 200)
	o.does(200, "POST", user+"/disable", "")
	r.profile(tokens.access).invalid(r.t)
	r.profile(tokens.access, "/api/user/details").invalid(r.t)
	r.token(redemption(c, code)...).fails(r.t, 400, "invalid_grant")
	r.token(renewal(c, tokens.refresh)...).fails(r.t, 400, "invalid_grant")
	b.authorize(c).shows(200, "/login")
	b.signIn(b.authorize(c), u).shows(422, "/login")
	o.does(200, "POST", user+"/enable", "")
	r.profile(tokens.access).object(r.t, 200)
	tokens = r.token(renewal(c, tokens.refresh)...).tokens(r.t)

	own := ownToken(c)
	machine := r.token(own...).object(r.t, 200)["access_token"].(string)
	o.does(200, "POST", "/clients/"+c.ID+"/disable", "")
	r.profile(tokens.access).invalid(r.t)
	r.profile(machine).invalid(r.t)
	r.token(own...).fails(r.t, 401, "invalid_client")
	r.token(renewal(c, tokens.refresh)...).fails(r.t, 401, "invalid_client")
	b.authorize(c).showsError()
	o.does(200, "POST", "/clients/"+c.ID+"/enable", "")
	r.profile(tokens.access).object(r.t, 200)
}

func pageHeaders(r *row) {
	c, u, b := r.client(), r.person(), r.browser()
	login := b.authorize(c)
	consent := b.signIn(login, u)
	done := b.send(consent, "decision", "deny")
	for _, p := range []page{login, consent, done, b.authorize(c), b.authorize(c, "client_id", "x"),
		b.open("GET", "/logout", nil)} {
		p.has(r.t, "X-Content-Type-Options", "nosniff", "Referrer-Policy", "no-referrer", "Cache-Control",
			"no-store")
		policy := p.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'",
			"form-action 'self'"} {
			if !strings.Contains(policy, want) {
				r.t.Errorf("%s: got policy %q, want %s in it", p.path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			r.t.Errorf("%s: got policy %q, want it strict", p.path, policy)
		}
	}
	for _, p := range []page{login, consent} {
		if policy := p.header.Get("Content-Security-Policy"); !strings.Contains(policy,
			"form-action 'self' https://app.example;") {
			r.t.Errorf("%s: got policy %q, want the client's origin as a target", p.path, policy)
		}
	}
	fresh := r.browser()
	again := fresh.authorize(c)
	action, fields := again.form()
	fields.Set("email", u.Email)
	fields.Set("password", stacktest.Password)
	for _, site := range []string{"cross-site", "same-site"} {
		if p := fresh.open("POST", action, fields, "Sec-Fetch-Site", site, "Origin",
			r.URL); p.status != 403 {
			r.t.Errorf("got %d for a form that is %s, want 403", p.status, site)
		}
	}
	fresh.open("POST", action, fields, "Sec-Fetch-Site", "same-origin", "Origin", "null").shows(200,
		"/consent")
}

func TestDecisionsOfConfiguredAuthorizationEndpoint(t *testing.T) {
	rows(t, []rowTest{
		{"scope omitted at authorize, no default set", func(r *row) {
			r.browser().authorize(r.client(), "scope", "").refusal("invalid_scope")
		}},
		{"account chooser, another name", func(r *row) {
			c, b := r.client(), r.browser()
			b.consented(c, r.person())
			b.authorize(c, "bypass", "true").code()
			b.authorize(c, "skip_account_chooser", "true").shows(200, "/accounts")
		}},
	}, func(c *stack.Config) {
		c.Identity.DefaultScopes, c.Identity.SkipChooserParameter = 0, "bypass"
	})
}

// TestDecisionsAboutUsers has users that an operator creates.
func TestDecisionsAboutUsers(t *testing.T) {
	rows(t, []rowTest{
		{"passwords", func(r *row) {
			o, mail := r.operator(), strings.ToLower(r.address())
			made := o.does(201, "POST", "/users",
				`{"name":"Rosa","email":"`+mail+`","password":"`+stacktest.Password+`"}`).object(r.t, 201)
			u, err := r.Store.User(r.t.Context(), int64(made["id"].(float64)))
			if err != nil || !strings.HasPrefix(u.PasswordHash, "$argon2id$") {
				r.t.Errorf("got %v, want a password hashed with argon2id", err)
			}
			r.browser().consented(r.client(), &account.User{Email: mail})
		}},
		{"a password reset ends sessions, refresh families and access tokens", func(r *row) {
			o, c, u, b := r.operator(), r.client(), r.person(), r.browser()
			tokens := r.token(redemption(c, b.consented(c, u))...).tokens(r.t)
			code := r.code(c, u, time.Now(), nil)
			b.authorize(c, "skip_account_chooser", "true").code()
			o.does(204, "POST", "/users/"+strconv.FormatInt(u.ID, 10)+"/reset-password",
				`{"password":"another horse battery"}`)
			r.profile(tokens.access).invalid(r.t)
			r.token(renewal(c, tokens.refresh)...).fails(r.t, 400, "invalid_grant")
			r.token(redemption(c, code)...).fails(r.t, 400, "invalid_grant")
			login := b.authorize(c, "skip_account_chooser", "true")
			b.signIn(login, u).shows(422, "/login")
			b.send(login, "email", u.Email, "password", "another horse battery").code()
		}},
	})
}
