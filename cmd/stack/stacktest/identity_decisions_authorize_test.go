package stacktest_test

import (
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
		{"`iss`", func(r *row) {
			c, u, b := r.client(), r.person(), r.browser()
			b.consented(c, u) // checks iss; refusal does too
			b.authorize(c, "scope", "root").refusal("invalid_scope")
			o := r.send("GET", r.URL+"/.well-known/oauth-authorization-server", "").object(r.t, 200)
			if o["authorization_response_iss_parameter_supported"] != true || o["issuer"] != r.URL {
				r.t.Errorf("got %v, want support for iss", o)
			}
		}},
		{"disabled", disabled},
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
			b.open("GET", fresh.Path, nil).shows(200, "/login")
			consent := b.signIn(b.authorize(c, "prompt", "login consent"), one)
			b.send(consent, "decision", "allow").code()
			b.open("GET", "/oauth/authorize?"+consent.query, nil).shows(200, "/login")
			b.send(consent, "decision", "allow").shows(403, "/consent")
			b.authorize(c, "prompt", "consent", "skip_account_chooser", "true").shows(200, "/consent")
			b.signIn(b.authorize(c, "prompt", "login consent"), one).shows(200, "/consent")
			b.send(b.signIn(b.authorize(c, "prompt", "login"), two), "decision", "allow").code()
			both := b.authorize(c)
			if both.shows(200, "/accounts"); !strings.Contains(both.Body, one.Email) ||
				!strings.Contains(both.Body, two.Email) {
				r.t.Errorf("got %s, want both accounts", both.Body)
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
					"allow").code(uri)
				b.authorize(p, "skip_account_chooser", "true").shows(200, "/accounts")
				b.send(b.authorize(p), "account", strconv.FormatInt(u.ID, 10)).shows(200, "/consent")
				b.authorize(p, "prompt", "none").refusal("consent_required", uri)
			}
			web := r.client(public, redirecting("https://spa.example/cb"))
			b.send(b.send(b.authorize(web), "account", strconv.FormatInt(u.ID, 10)), "decision",
				"allow").code(web.RedirectURIs[0])
			b.authorize(web, "skip_account_chooser", "true").code(web.RedirectURIs[0])
		}},
		{"`detail-user` without approval", func(r *row) {
			c, b := r.client(func(c *oauth.Client) { c.DetailApproved = false }), r.browser()
			tokens := r.token(redemption(c, b.consented(c, r.person(), "scope",
				"detail-user"))...).tokens(r.t)
			r.profile(tokens.access, "/api/user/details").denied(r.t, 403, "unapproved_scope")
			o := r.NewOperator(r.t)
			o.Do(200, "POST", "/clients/"+c.ID+"/approve", "")
			r.profile(tokens.access, "/api/user/details").object(r.t, 200)
			o.Do(200, "POST", "/clients/"+c.ID+"/unapprove", "")
			r.profile(tokens.access, "/api/user/details").denied(r.t, 403, "unapproved_scope")
		}},
	})
}

// disabled checks that disabled users and clients are refused everywhere immediately.
func disabled(r *row) {
	o, c, u, b := r.NewOperator(r.t), r.client(), r.person(), r.browser()
	b.consented(c, u)
	tokens := r.issue(c, u, oauth.UserScopes)
	code := r.code(c, u, time.Now(), nil)
	user := "/users/" + strconv.FormatInt(u.ID, 10)
	r.profile(tokens.access).object(r.t, 200)
	o.Do(200, "POST", user+"/disable", "")
	r.profile(tokens.access).invalid(r.t)
	r.profile(tokens.access, "/api/user/details").invalid(r.t)
	r.token(redemption(c, code)...).FailsAs(r.t, 400, "invalid_grant")
	r.token(renewal(c, tokens.refresh)...).FailsAs(r.t, 400, "invalid_grant")
	b.authorize(c).shows(200, "/login")
	b.signIn(b.authorize(c), u).shows(403, "/login")
	o.Do(200, "POST", user+"/enable", "")
	r.profile(tokens.access).object(r.t, 200)
	tokens = r.token(renewal(c, tokens.refresh)...).tokens(r.t)

	own := ownToken(c)
	machine := r.token(own...).object(r.t, 200)["access_token"].(string)
	o.Do(200, "POST", "/clients/"+c.ID+"/disable", "")
	r.profile(tokens.access).invalid(r.t)
	r.profile(machine).invalid(r.t)
	r.token(own...).FailsAs(r.t, 401, "invalid_client")
	r.token(renewal(c, tokens.refresh)...).FailsAs(r.t, 401, "invalid_client")
	b.authorize(c).showsError()
	o.Do(200, "POST", "/clients/"+c.ID+"/enable", "")
	r.profile(tokens.access).object(r.t, 200)
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
			o, mail := r.NewOperator(r.t), strings.ToLower(r.address())
			made := o.Do(201, "POST", "/users",
				`{"name":"Rosa","email":"`+mail+`","password":"`+stacktest.Password+`"}`).Object(r.t)
			u, err := r.Store.User(r.t.Context(), int64(made["id"].(float64)))
			if err != nil || !strings.HasPrefix(u.PasswordHash, "$argon2id$") {
				r.t.Errorf("got %v, want a password hashed with argon2id", err)
			}
			r.browser().consented(r.client(), &account.User{Email: mail})
		}},
		{"a password reset ends sessions, refresh families and access tokens", func(r *row) {
			o, c, u, b := r.NewOperator(r.t), r.client(), r.person(), r.browser()
			tokens := r.token(redemption(c, b.consented(c, u))...).tokens(r.t)
			code := r.code(c, u, time.Now(), nil)
			b.authorize(c, "skip_account_chooser", "true").code()
			o.Do(204, "POST", "/users/"+strconv.FormatInt(u.ID, 10)+"/reset-password",
				`{"password":"another horse battery"}`)
			r.profile(tokens.access).invalid(r.t)
			r.token(renewal(c, tokens.refresh)...).FailsAs(r.t, 400, "invalid_grant")
			r.token(redemption(c, code)...).FailsAs(r.t, 400, "invalid_grant")
			login := b.authorize(c, "skip_account_chooser", "true")
			b.signIn(login, u).shows(422, "/login")
			b.send(login, "email", u.Email, "password", "another horse battery").code()
		}},
	})
}
