package signin_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

const (
	tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeOfIDToken = "urn:ietf:params:oauth:token-type:id_token"
	typeOfIDJAG   = "urn:ietf:params:oauth:token-type:id-jag"
)

// company is the gatehouse of a company and a client that gets ID-JAGs there for another service.
type company struct {
	stacktest.Reachable
	client  stacktest.Client
	user    *account.User
	browser *stacktest.Browser
	tokens  map[string]any // that the user has let the client have
}

const otherService = "https://app.example"

func newCompany(t *testing.T, audience string) *company {
	t.Helper()
	f := &company{Reachable: stacktest.NewReachable(t, withIDJAG)}
	f.client = f.newClient(t, audience, nil)
	f.user = f.NewUser(t, "Rosa", rosa)
	f.browser = f.NewBrowser(t)
	f.tokens = f.letIn(t, f.browser, f.client)
	return f
}

func (f *company) newClient(t *testing.T, audience string, change func(*oauth.Client)) stacktest.Client {
	t.Helper()
	return f.NewOpenIDClient(t, func(c *oauth.Client) {
		c.Grants |= oauth.TokenExchangeGrant
		if c.Options.IDJAG.Audiences = []string{audience}; change != nil {
			change(c)
		}
	})
}

// letIn signs the user in and returns the tokens of a client.
func (f *company) letIn(t *testing.T, b *stacktest.Browser, c stacktest.Client) map[string]any {
	t.Helper()
	page := b.Allow(c.Request("scope", "openid email offline_access"), rosa)
	return f.Redeem(t, c, page.Code(t, f.IdentityStack)).Object(t)
}

// ask asks for an ID-JAG with an id_token; more overrides the form, and "" leaves a parameter out.
func (f *company) ask(t *testing.T, c stacktest.Client, idToken any, audience string, more ...string) stacktest.Response {
	t.Helper()
	form := stacktest.Values("grant_type", tokenExchange, "client_id", c.ID, "client_secret", c.Secret,
		"requested_token_type", typeOfIDJAG, "subject_token", idToken.(string),
		"subject_token_type", typeOfIDToken, "audience", audience)
	for i := 0; i < len(more); i += 2 {
		if form.Del(more[i]); more[i+1] != "" {
			form[more[i]] = strings.Split(more[i+1], " ")
		}
		if more[i] == "scope" {
			form.Set("scope", more[i+1])
		}
	}
	return f.PostToken(t, form)
}

// TestIDJAGBetweenServices gets an ID-JAG at the gatehouse of a company, and a token for it at another.
func TestIDJAGBetweenServices(t *testing.T) {
	app := stacktest.NewReachable(t, withIDJAG)
	const there = "agent-of-the-company" // the client's id at the other service
	f := newCompany(t, app.URL+" "+there)
	agent := app.NewOpenIDClient(t, func(c *oauth.Client) {
		c.ID, c.Grants = there, c.Grants|oauth.JWTBearerGrant
		c.Options.IDJAG.Issuers = []string{f.URL}
	})
	provider := &oauth.Provider{ID: "company", Kind: oauth.OpenIDProvider, Issuer: f.URL,
		ClientID: "gate", Secret: "s3cret", Label: "Company"}
	if _, _, err := app.Tokens.PutProvider(t.Context(), provider, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	person := &account.User{Name: "Rosa", Credentials: account.Credentials{Connections: []account.Connection{
		{Issuer: f.URL, Subject: strconv.FormatInt(f.user.ID, 10), Created: time.Now()}}}}
	stacktest.Must(t, app.Store.CreateUser(t.Context(), person))
	redeem := func(assertion any) stacktest.Response {
		return app.PostToken(t, stacktest.Values("grant_type", jwtBearer, "client_id", agent.ID,
			"client_secret", agent.Secret, "assertion", assertion.(string)))
	}
	jag := f.ask(t, f.client, f.tokens["id_token"], app.URL, "scope", "openid profile").Object(t)
	if jag["token_type"] != "N_A" || jag["issued_token_type"] != typeOfIDJAG ||
		jag["expires_in"] != 300.0 || jag["refresh_token"] != nil || jag["id_token"] != nil {
		t.Errorf("got %v, want an ID-JAG for 5 minutes, and nothing else", jag)
	}
	events, err := f.Store.Events(t.Context(), audit.Filter{UserID: f.user.ID, Action: audit.Authorized, Limit: 9})
	if err != nil || len(events) != 2 || events[1].Target != f.client.ID || // the first is the code
		events[1].Actor != (audit.Actor{Kind: audit.Client, ID: f.client.ID}) || events[1].Details != nil ||
		!maps.Equal(events[1].Data, audit.Data{"audience": app.URL}) {
		t.Errorf("got %+v and error %v, want the ID-JAG on record", events, err)
	}
	got := redeem(jag["access_token"]).Object(t)
	info := app.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+got["access_token"].(string)).Object(t)
	if info["sub"] != strconv.FormatInt(person.ID, 10) || got["scope"] != "openid profile" {
		t.Errorf("got %v with scope %v, want the person at the other service", info, got["scope"])
	}
	redeem(jag["access_token"]).FailsAs(t, 400, "invalid_grant") // it was used
	if a := f.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+jag["access_token"].(string)); a.Status != 401 {
		t.Errorf("got %d %s, want an ID-JAG to open nothing", a.Status, a.Body)
	}

	jag = f.ask(t, f.client, f.tokens["refresh_token"], app.URL, "scope", "openid", "subject_token_type",
		"urn:ietf:params:oauth:token-type:refresh_token", "resource", "https://a.example https://b.example").Object(t)
	var claims struct {
		Email, Iss string
		Resource   []string
	}
	if _, err := f.Tokens.Verify(jag["access_token"].(string), "oauth-id-jag+jwt", &claims); err != nil ||
		claims.Email != rosa || len(claims.Resource) != 2 {
		t.Errorf("got %+v and error %v, want the address and both resources", claims, err)
	}
	redeem(jag["access_token"]).FailsAs(t, 400, "invalid_target") // no such resources there
	narrow := f.newClient(t, app.URL, nil)
	page := f.NewBrowser(t).Allow(narrow.Request("scope", "openid"), rosa)
	jag = f.ask(t, narrow, f.Redeem(t, narrow, page.Code(t, f.IdentityStack)).Object(t)["id_token"], app.URL).Object(t)
	claims.Email = ""
	if _, err := f.Tokens.Verify(jag["access_token"].(string), "oauth-id-jag+jwt", &claims); err != nil || claims.Email != "" {
		t.Errorf("got %+v and error %v, want no address without the scope", claims, err)
	}
	refresh := f.tokens["refresh_token"].(string)
	for range 2 { // it was not used up
		got := f.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", f.client.ID,
			"client_secret", f.client.Secret, "refresh_token", refresh)).Object(t)
		refresh = got["refresh_token"].(string)
	}
	f.ask(t, f.client, f.tokens["refresh_token"], app.URL, "subject_token_type",
		"urn:ietf:params:oauth:token-type:refresh_token").FailsAs(t, 400, "invalid_request") // it is outdated
	about := f.Get(t, "/.well-known/oauth-authorization-server").Object(t)
	if types, _ := about["identity_chaining_requested_token_types_supported"].([]any); len(types) != 1 || types[0] != typeOfIDJAG {
		t.Errorf("got %v, want the type of ID-JAGs", types)
	}
}

// TestIDJAGIsNotIssued has one reason in each row.
func TestIDJAGIsNotIssued(t *testing.T) {
	f := newCompany(t, otherService)
	b := f.NewBrowser(t)
	stranger := f.newClient(t, otherService, nil)
	theirs := f.letIn(t, b, stranger)
	rules := f.NewOpenIDClient(t, func(c *oauth.Client) {
		c.Grants |= oauth.TokenExchangeGrant
		c.Options.Exchange = []oauth.ExchangeRule{{From: "https://a.example", To: "https://b.example"}}
	})
	idToken := f.tokens["id_token"].(string)
	said := map[string]any{"iss": f.URL, "aud": f.client.ID, "sub": strconv.FormatInt(f.user.ID, 10),
		"iat": time.Now().Unix(), "exp": time.Now().Unix() + 60}
	forge := func(typ, claim string, value any) string {
		claims := maps.Clone(said)
		claims[claim] = value
		jwt, err := f.Tokens.Sign("RS256", typ, claims)
		stacktest.Must(t, err)
		return jwt
	}
	for _, row := range []struct {
		name   string
		client stacktest.Client
		code   string
		form   []string
	}{
		{"foreign audience", f.client, "invalid_target", []string{"audience", "https://other.example"}},
		{"audience with a slash", f.client, "invalid_target", []string{"audience", otherService + "/"}},
		{"two audiences", f.client, "invalid_target", []string{"audience", otherService + " https://other.example"}},
		{"no audience", f.client, "invalid_target", []string{"audience", ""}},
		{"wrong resource", f.client, "invalid_target", []string{"resource", "x"}},
		{"wrong scope", f.client, "invalid_scope", []string{"scope", `a"b`}},
		{"client with rules alone", rules, "invalid_target", nil},
		{"id_token of another client", f.client, "invalid_request", []string{"subject_token", theirs["id_token"].(string)}},
		{"refresh token of another client", f.client, "invalid_request", []string{"subject_token", theirs["refresh_token"].(string),
			"subject_token_type", "urn:ietf:params:oauth:token-type:refresh_token"}},
		{"access token", f.client, "invalid_request", []string{"subject_token", f.tokens["access_token"].(string)}},
		{"access token by its type", f.client, "invalid_request", []string{"subject_token", f.tokens["access_token"].(string),
			"subject_token_type", "urn:ietf:params:oauth:token-type:access_token"}},
		{"changed signature", f.client, "invalid_request", []string{"subject_token", idToken[:len(idToken)-8] + "AAAAAAAA"}},
		{"expired", f.client, "invalid_request", []string{"subject_token", forge("JWT", "exp", time.Now().Unix())}},
		{"from before the user's tokens were revoked", f.client, "invalid_request", []string{"subject_token", forge("JWT", "iat", f.user.Epoch/1e6-1)}},
		{"another issuer", f.client, "invalid_request", []string{"subject_token", forge("JWT", "iss", "https://other.example")}},
		{"another audience", f.client, "invalid_request", []string{"subject_token", forge("JWT", "aud", stranger.ID)}},
		{"ID-JAG", f.client, "invalid_request", []string{"subject_token", forge("oauth-id-jag+jwt", "iss", f.URL)}},
		{"logout token", f.client, "invalid_request", []string{"subject_token", forge("logout+jwt", "iss", f.URL)}},
		{"no subject", f.client, "invalid_request", []string{"subject_token", ""}},
		{"actor", f.client, "invalid_request", []string{"actor_token", "x"}},
		{"access token that an id_token is to give", f.client, "invalid_request", []string{"requested_token_type", ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f.ask(t, row.client, idToken, otherService, row.form...).FailsAs(t, 400, row.code)
		})
	}
	f.ask(t, f.client, idToken, otherService, "client_secret", "wrong").FailsAs(t, 401, "invalid_client")
	for name, value := range map[string]string{"resource": "x", "scope": `a"b`} {
		a := f.ask(t, f.client, idToken, otherService, name, value)
		if !strings.Contains(a.Body, "of the other service") {
			t.Errorf("%s: got %s, want a hint about the other service", name, a.Body)
		}
	}
	f.ask(t, f.client, idToken, otherService).Object(t)
	f.ask(t, f.client, forge("JWT", "iss", f.URL), otherService).Object(t)
	for name, change := range map[string]func(*oauth.Client){
		"groups":        func(c *oauth.Client) { c.Options.IDJAG.Groups = []string{"staff"} },
		"group of apps": func(c *oauth.Client) { c.Options.RequireGroups = []string{"staff"} },
		"second factor": func(c *oauth.Client) { c.Options.RequireSecondFactor = true },
	} {
		t.Run(name, func(t *testing.T) {
			c := f.newClient(t, otherService, nil)
			tokens := f.letIn(t, f.NewBrowser(t), c)
			f.ask(t, c, tokens["id_token"], otherService).Object(t)
			if _, err := f.Tokens.UpdateClient(t.Context(), c.ID, func(c *oauth.Client) error {
				change(c)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			f.ask(t, c, tokens["id_token"], otherService).FailsAs(t, 400, "invalid_request")
		})
	}
	for name, end := range map[string]func(c stacktest.Client, b *stacktest.Browser) error{
		"session": func(c stacktest.Client, b *stacktest.Browser) error {
			page := b.Get("/logout")
			b.Send(page)
			return nil
		},
		"consent": func(c stacktest.Client, _ *stacktest.Browser) error {
			return f.Tokens.RevokeAll(t.Context(), &oauth.Revoke{Consent: &oauth.Grant{UserID: f.user.ID, ClientID: c.ID}})
		},
	} {
		t.Run("ended "+name, func(t *testing.T) {
			c, b := f.newClient(t, otherService, nil), f.NewBrowser(t)
			tokens := f.letIn(t, b, c)
			stacktest.Must(t, end(c, b))
			f.ask(t, c, tokens["id_token"], otherService).FailsAs(t, 400, "invalid_request")
			a := f.ask(t, c, tokens["refresh_token"], otherService, "subject_token_type",
				"urn:ietf:params:oauth:token-type:refresh_token")
			if want := map[string]int{"session": 200, "consent": 400}[name]; a.Status != want {
				t.Errorf("got %d %s for a refresh token with offline_access, want %d", a.Status, a.Body, want)
			}
		})
	}
	stacktest.Must(t, f.People.DisableUser(t.Context(), f.user.ID, time.Now()))
	f.ask(t, stranger, theirs["id_token"], otherService).FailsAs(t, 400, "invalid_request")
	f.ask(t, f.client, forge("JWT", "iss", f.URL), otherService).FailsAs(t, 400, "invalid_request")
	off := stacktest.NewIdentity(t)
	c := off.NewClient(t, func(c *oauth.Client) {
		c.Grants |= oauth.TokenExchangeGrant
		c.Options.IDJAG.Audiences = []string{otherService}
	})
	off.PostToken(t, stacktest.Values("grant_type", tokenExchange, "client_id", c.ID, "client_secret", c.Secret,
		"requested_token_type", typeOfIDJAG, "subject_token", "x", "subject_token_type", typeOfIDToken,
		"audience", otherService)).FailsAs(t, 400, "invalid_request")
}
