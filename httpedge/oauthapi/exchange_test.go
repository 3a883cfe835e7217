package oauthapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
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
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	crmAPI        = "https://crm.example"
)

// agents is a chain of clients: an app, to whose tokens a person has consented, the API for notes,
// which calls the one for mail in that person's name, and that, which calls a CRM.
type agents struct {
	*stacktest.IdentityStack
	operator         *stacktest.Operator
	app, notes, mail stacktest.Client
	stranger         stacktest.Client // with a rule, but without a resource that it serves
	api              stacktest.Client // introspects
	browser          *stacktest.Browser
	consent          stacktest.Page // that the person has seen
	user             *account.User
	person           string // path of the user in the admin API
}

// newAgents starts a service with the chain.
func newAgents(t *testing.T) *agents {
	t.Helper()
	g := &agents{IdentityStack: stacktest.NewIdentity(t)}
	g.operator, g.api = newResources(t, g.IdentityStack)
	g.operator.Do(201, http.MethodPost, "/resources", `{"uri":"`+crmAPI+`","scopes":["list","delete"]}`)
	exchanger := func(serves string, rules ...oauth.ExchangeRule) stacktest.Client {
		return g.NewClient(t, func(c *oauth.Client) {
			c.Grants = oauth.TokenExchangeGrant
			if c.Options.Exchange = rules; serves != "" {
				c.Options.Serves = []string{serves}
			}
		})
	}
	toMail := oauth.ExchangeRule{From: notesAPI, To: mailAPI, Scopes: []string{"read"}}
	g.notes = exchanger(notesAPI, toMail,
		oauth.ExchangeRule{From: notesAPI, To: crmAPI, Scopes: []string{"list", "delete"}})
	g.mail = exchanger(mailAPI, oauth.ExchangeRule{From: mailAPI, To: crmAPI, Scopes: []string{"list"}})
	g.stranger = exchanger("", toMail)
	g.app = g.NewOpenIDClient(t, nil)
	g.user = g.NewUser(t, "Rosa", rosa)
	g.person = "/users/" + strconv.FormatInt(g.user.ID, 10)
	g.browser = g.NewBrowser(t)
	g.consent = g.browser.SignIn(g.request(), rosa)
	g.browser.Send(g.consent, "decision", "allow").Code(t, g.IdentityStack)
	return g
}

// request asks for access to the API of notes for the app.
func (g *agents) request(more ...string) url.Values {
	return at(g.app.Request(append(more, "scope", "openid view-user read")...), notesAPI)
}

// subject returns new tokens that a person allows the app to have for the API of notes.
func (g *agents) subject(t *testing.T) map[string]any {
	t.Helper()
	code := g.browser.Authorize(g.request("prompt", "none")).Code(t, g.IdentityStack)
	return g.Redeem(t, g.app, code).Object(t)
}

// end revokes a token of a client.
func (g *agents) end(t *testing.T, c stacktest.Client, token any) {
	t.Helper()
	form := stacktest.Values("client_id", c.ID, "client_secret", c.Secret, "token", token.(string))
	if a := g.Send(t, "POST", g.URL+"/oauth/revoke", form.Encode(), "Content-Type",
		"application/x-www-form-urlencoded"); a.Status != 200 {
		t.Fatalf("got %d %s, want the token revoked", a.Status, a.Body)
	}
}

// exchange returns the form with which a client exchanges a token.
func exchange(c stacktest.Client, token any, resource string, more ...string) url.Values {
	form := stacktest.Values(append([]string{"grant_type", exchangeGrant, "client_id", c.ID,
		"client_secret", c.Secret, "subject_token", token.(string),
		"subject_token_type", oauth.AccessTokenType, "resource", resource}, more...)...)
	return form
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// TestDelegationChain has three clients use a token one after the other, opaque or as JWTs.
func TestDelegationChain(t *testing.T) {
	g := newAgents(t)
	for _, format := range []string{"opaque", "jwt"} {
		for _, c := range []stacktest.Client{g.app, g.notes, g.mail} {
			g.operator.Do(200, http.MethodPatch, "/clients/"+c.ID, `{"access_token_format":"`+format+`"}`)
		}
		first := g.subject(t)
		about := g.Introspect(t, g.api, first["access_token"])
		second := g.PostToken(t, exchange(g.notes, first["access_token"], mailAPI)).Object(t)
		if second["issued_token_type"] != oauth.AccessTokenType || second["token_type"] != "Bearer" ||
			second["scope"] != "read" || second["refresh_token"] != nil || second["id_token"] != nil {
			t.Errorf("%s: got %v, want an access token alone", format, second)
		}
		said := g.Introspect(t, g.api, second["access_token"])
		if said["sub"] != about["sub"] || said["client_id"] != g.notes.ID || said["scope"] != "read" ||
			audience(said) != `["`+mailAPI+`"]` || said["auth_time"] != about["auth_time"] ||
			said["exp"].(float64) > about["exp"].(float64) || jsonOf(said["act"]) != `{"sub":"`+g.notes.ID+`"}` {
			t.Errorf("%s: got %v, want the person of %v and the actor", format, said, about)
		}
		third := g.PostToken(t, exchange(g.mail, second["access_token"], crmAPI, "scope", "list")).Object(t)
		want := `{"act":{"sub":"` + g.notes.ID + `"},"sub":"` + g.mail.ID + `"}`
		if said := g.Introspect(t, g.api, third["access_token"]); jsonOf(said["act"]) != want ||
			said["scope"] != "list" || third["scope"] != nil {
			t.Errorf("%s: got %v for %v, want the actors %s", format, said, third, want)
		}
		token := third["access_token"].(string)
		if format == "jwt" {
			claims := opened(t, g.IdentityStack, token)
			if claims.Actor.ClientID != g.mail.ID || claims.Actor.Before.ClientID != g.notes.ID ||
				claims.Actor.Before.Before != nil || claims.Audience != crmAPI || claims.ClientID != g.mail.ID ||
				claims.ACR != "1" || claims.Subject != about["sub"] {
				t.Errorf("got claims %+v, want the actors %s", claims, want)
			}
		}
		if a := g.Send(t, http.MethodGet, g.URL+"/api/user", "", "Authorization", "Bearer "+token); a.Status != 401 {
			t.Errorf("%s: got %d %s for a token of others, want 401", format, a.Status, a.Body)
		}
	}
}

// TestExchangeIsRecorded exchanges a token often. The trail has who did it, and where it leads, once for
// each server.
func TestExchangeIsRecorded(t *testing.T) {
	g := newAgents(t)
	token := g.subject(t)["access_token"]
	for range 3 * stacktest.Nodes(t) {
		g.PostToken(t, exchange(g.notes, token, mailAPI)).Object(t)
	}
	next := g.PostToken(t, exchange(g.notes, token, mailAPI)).Object(t)["access_token"]
	g.PostToken(t, exchange(g.mail, next, crmAPI)).Object(t)
	g.PostToken(t, exchange(g.mail, next, notesAPI)).FailsAs(t, 400, "invalid_target")
	events, err := g.Store.Events(t.Context(), audit.Filter{UserID: g.user.ID, Action: audit.Authorized, Limit: 50})
	stacktest.Must(t, err)
	got := map[string]int{}
	for _, e := range events {
		if e.Data["from"] != nil {
			got[e.Target+jsonOf(e.Data)]++
		}
		if e.Data["from"] != nil && e.Actor != (audit.Actor{Kind: audit.Client, ID: e.Target}) {
			t.Errorf("got %+v, want the client as actor", e)
		}
	}
	first := g.notes.ID + `{"audience":"` + mailAPI + `","client":"` + g.app.ID + `","from":"` + notesAPI + `","scopes":["read"]}`
	second := g.mail.ID + `{"audience":"` + crmAPI + `","client":"` + g.notes.ID + `","from":"` + mailAPI + `","scopes":["list"]}`
	if n := got[first]; n < 1 || n > stacktest.Nodes(t) || got[second] != 1 || len(got) != 2 {
		t.Errorf("got %v, want %s and %s", got, first, second)
	}
}

// TestConsentNamesWhatIsExchanged looks at the page of the app, whose tokens others exchange.
func TestConsentNamesWhatIsExchanged(t *testing.T) {
	g := newAgents(t)
	g.consent.Says(t, "The services that it uses in your name will also be able to:",
		"<li>use <bdi>mail.example</bdi> in your name, with the permission “<bdi>read</bdi>”</li>",
		"<li>use <bdi>crm.example</bdi> in your name, with the permission “<bdi>list</bdi>” and “<bdi>delete</bdi>”</li>")
	g.operator.Do(200, http.MethodPost, "/clients/"+g.notes.ID+"/disable", "")
	if p := g.browser.Authorize(g.request("prompt", "consent")); p.Status != 200 ||
		strings.Contains(p.Body, "mail.example") || !strings.Contains(p.Body, "notes.example") {
		t.Errorf("got %d %s, want the API alone", p.Status, p.Body)
	}
}

// TestExchangeIsRefused tries to get more by an exchange than the rules and the subject token give.
func TestExchangeIsRefused(t *testing.T) {
	g := newAgents(t)
	token := g.subject(t)["access_token"].(string)
	own := g.NewClient(t, func(c *oauth.Client) {
		c.Grants, c.Options.Resources = oauth.ClientCredentialsGrant, []string{notesAPI}
	})
	userless := g.PostToken(t, at(stacktest.Values("grant_type", "client_credentials", "client_id", own.ID,
		"client_secret", own.Secret), notesAPI)).Object(t)["access_token"].(string)
	revoked := g.subject(t)["access_token"].(string)
	g.end(t, g.app, revoked)
	g.operator.Do(200, http.MethodPatch, "/clients/"+g.app.ID, `{"access_token_format":"jwt"}`)
	signed := g.subject(t)["access_token"].(string)
	revokedJWT := g.subject(t)["access_token"].(string)
	g.end(t, g.app, revokedJWT)
	plain := stacktest.Values("grant_type", exchangeGrant, "client_id", g.notes.ID, "client_secret", g.notes.Secret)
	with := func(form url.Values, name string, values ...string) url.Values {
		if form[name] = values; values == nil {
			delete(form, name)
		}
		return form
	}
	mail := func(token string) url.Values { return exchange(g.notes, token, mailAPI) }
	second := g.PostToken(t, mail(token)).Object(t)["access_token"]
	for name, row := range map[string]struct {
		form url.Values
		code string
	}{
		"no parameters":                {plain, "invalid_request"},
		"no token type":                {with(mail(token), "subject_token_type"), "invalid_request"},
		"an id_token":                  {with(mail(token), "subject_token_type", "urn:ietf:params:oauth:token-type:id_token"), "invalid_request"},
		"a refresh token is asked for": {with(mail(token), "requested_token_type", "urn:ietf:params:oauth:token-type:refresh_token"), "invalid_request"},
		"an actor":                     {with(mail(token), "actor_token", token), "invalid_request"},
		"the type of an actor":         {with(mail(token), "actor_token_type", oauth.AccessTokenType), "invalid_request"},
		"two subject tokens":           {with(mail(token), "subject_token", token, token), "invalid_request"},
		"garbage":                      {mail("gtat_" + strings.Repeat("A", 500)), "invalid_request"},
		"a JWT of another":             {mail(signed[:len(signed)-8] + "AAAAAAAA"), "invalid_request"},
		"a part of a JWT":              {mail(opened(t, g.IdentityStack, signed).Sealed), "invalid_request"},
		"revoked":                      {mail(revoked), "invalid_request"},
		"a revoked JWT":                {mail(revokedJWT), "invalid_request"},
		"a token without a user":       {mail(userless), "invalid_request"},
		"a stranger's token":           {exchange(g.stranger, token, mailAPI), "invalid_request"},
		"a stranger's JWT":             {exchange(g.stranger, signed, mailAPI), "invalid_request"},
		"a token for another's API":    {exchange(g.mail, token, crmAPI), "invalid_request"},
		"no target":                    {with(mail(token), "resource"), "invalid_target"},
		"two targets":                  {with(mail(token), "resource", mailAPI, crmAPI), "invalid_target"},
		"a target and an audience":     {with(mail(token), "audience", crmAPI), "invalid_target"},
		"an unknown target":            {exchange(g.notes, token, "https://evil.example"), "invalid_target"},
		"this service":                 {exchange(g.notes, token, g.Tokens.Issuer()), "invalid_target"},
		"the same resource":            {exchange(g.notes, token, notesAPI), "invalid_target"},
		"a scope of the subject token": {with(mail(token), "scope", "view-user"), "invalid_scope"},
		"a scope that the API lacks":   {with(mail(token), "scope", "read write"), "invalid_scope"},
		"a scope that the rule lacks":  {exchange(g.mail, second, crmAPI, "scope", "list delete"), "invalid_scope"},
		"a malformed scope":            {with(mail(token), "scope", "read  read"), "invalid_scope"},
		"a client without the grant":   {exchange(g.api, token, mailAPI), "unauthorized_client"},
		"an app without the grant":     {exchange(g.app, token, mailAPI), "unauthorized_client"},
	} {
		t.Run(name, func(t *testing.T) { g.PostToken(t, row.form).FailsAs(t, 400, row.code) })
	}
	for member, values := range map[string][2]string{"require_second_factor": {"true", "false"},
		"require_groups": {`["staff"]`, "[]"}} {
		if member == "require_groups" {
			g.operator.Do(201, http.MethodPost, "/groups", `{"name":"staff"}`)
		}
		g.operator.Do(200, http.MethodPatch, "/clients/"+g.notes.ID, `{"`+member+`":`+values[0]+`}`)
		g.PostToken(t, mail(token)).FailsAs(t, 400, "invalid_request")
		g.operator.Do(200, http.MethodPatch, "/clients/"+g.notes.ID, `{"`+member+`":`+values[1]+`}`)
	}
	wrong := with(mail(token), "client_secret", g.mail.Secret)
	g.PostToken(t, wrong).FailsAs(t, 401, "invalid_client")
	for _, form := range []url.Values{mail(token), mail(signed), with(mail(token), "audience", mailAPI+"/"),
		with(with(mail(token), "audience", mailAPI), "resource"),
		with(mail(token), "requested_token_type", oauth.AccessTokenType)} {
		if a := g.PostToken(t, form); a.Status != 200 {
			t.Errorf("got %d %s for %v, want a token", a.Status, a.Body, form)
		}
	}
	g.PostToken(t, exchange(g.mail, second, crmAPI)).Object(t)
	g.operator.Do(204, http.MethodDelete, "/resources/1", "") // that second comes from
	g.PostToken(t, exchange(g.mail, second, crmAPI)).FailsAs(t, 400, "invalid_request")
}

// TestExchangedTokenEnds ends each thing that an exchanged token depends on. With several nodes, each
// request goes to another one.
func TestExchangedTokenEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, g *agents, tokens [3]map[string]any){
		"the family": func(t *testing.T, g *agents, tokens [3]map[string]any) {
			g.end(t, g.app, tokens[0]["refresh_token"])
		},
		"the first token": func(t *testing.T, g *agents, tokens [3]map[string]any) {
			g.end(t, g.app, tokens[0]["access_token"])
		},
		"the token between": func(t *testing.T, g *agents, tokens [3]map[string]any) {
			g.end(t, g.notes, tokens[1]["access_token"])
		},
		"itself": func(t *testing.T, g *agents, tokens [3]map[string]any) {
			g.end(t, g.mail, tokens[2]["access_token"])
		},
		"the session": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.browser.Send(g.browser.Get("/logout"))
		},
		"the consent": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.browser.SendTo(g.browser.Get("/me/apps"), "/me/apps", "client_id", g.app.ID)
		},
		"the tokens of the person": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodPost, g.person+"/revoke-tokens", "")
		},
		"the person": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(200, http.MethodPost, g.person+"/disable", "")
		},
		"the app": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(200, http.MethodPost, "/clients/"+g.app.ID+"/disable", "")
		},
		"the client between": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(200, http.MethodPost, "/clients/"+g.notes.ID+"/disable", "")
		},
		"the last client": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodDelete, "/clients/"+g.mail.ID, "")
		},
		"the first resource": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodDelete, "/resources/1", "")
		},
		"the resource between": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodDelete, "/resources/2", "")
		},
		"the last resource": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodDelete, "/resources/3", "")
		},
		"the group of the app": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodDelete, "/groups/app/members"+g.person[len("/users"):], "")
		},
		"the group of the client between": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodDelete, "/groups/notes/members"+g.person[len("/users"):], "")
		},
		"the group of the last client": func(t *testing.T, g *agents, _ [3]map[string]any) {
			g.operator.Do(204, http.MethodDelete, "/groups/mail/members"+g.person[len("/users"):], "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newAgents(t)
			for group, c := range map[string]stacktest.Client{"app": g.app, "notes": g.notes, "mail": g.mail} {
				g.operator.Do(201, http.MethodPost, "/groups", `{"name":"`+group+`"}`)
				g.operator.Do(204, http.MethodPut, "/groups/"+group+"/members"+g.person[len("/users"):], "")
				g.operator.Do(200, http.MethodPatch, "/clients/"+c.ID, `{"require_groups":["`+group+`"]}`)
			}
			tokens := [3]map[string]any{g.subject(t)}
			tokens[1] = g.PostToken(t, exchange(g.notes, tokens[0]["access_token"], mailAPI)).Object(t)
			tokens[2] = g.PostToken(t, exchange(g.mail, tokens[1]["access_token"], crmAPI)).Object(t)
			for range 3 { // at each node
				if said := g.Introspect(t, g.api, tokens[2]["access_token"]); said["active"] != true {
					t.Fatalf("got %v before, want it active", said)
				}
			}
			end(t, g, tokens)
			for range 3 {
				if said := g.Introspect(t, g.api, tokens[2]["access_token"]); said["active"] != false || len(said) != 1 {
					t.Errorf("got %v after, want it inactive", said)
				}
			}
		})
	}
}

// TestExchangeShortensLife exchanges tokens that end before a new one would, and one that has expired.
func TestExchangeShortensLife(t *testing.T) {
	g := newAgents(t)
	now := time.Now().Unix()
	subject := func(expires int64) string {
		said := oauth.AccessToken{ClientID: g.app.ID, UserID: g.user.ID, Scopes: oauth.ViewUser, Issued: now - 60,
			Expires: expires, AuthTime: now - 60, TwoFactors: true}
		said.SetTargets(oauth.Targets{{Resource: 1, Scopes: 1}})
		return g.Seal(t, said)
	}
	got := g.PostToken(t, exchange(g.notes, subject(now+600), mailAPI)).Object(t)
	if lasts, _ := got["expires_in"].(float64); lasts < 540 || lasts > 600 {
		t.Errorf("got %v, want a token for as long as the subject token", got)
	}
	if said := g.Introspect(t, g.api, got["access_token"]); said["exp"] != float64(now+600) || said["acr"] != "2" {
		t.Errorf("got %v, want the end and the factors of the subject token", said)
	}
	g.PostToken(t, exchange(g.notes, subject(now-1), mailAPI)).FailsAs(t, 400, "invalid_request")
}

// TestExchangesAreCounted exchanges a token again and again, until it comes from too many exchanges,
// and uses up a client's quota.
func TestExchangesAreCounted(t *testing.T) {
	g := newAgents(t)
	back := g.NewClient(t, func(c *oauth.Client) {
		c.Grants, c.Options.Serves = oauth.TokenExchangeGrant, []string{notesAPI, mailAPI}
		c.Options.Exchange = []oauth.ExchangeRule{{From: notesAPI, To: mailAPI}, {From: mailAPI, To: notesAPI}}
	})
	token := g.subject(t)["access_token"]
	for i := range oauth.MostExchanges {
		to := []string{mailAPI, notesAPI}[i%2]
		a := g.PostToken(t, exchange(back, token, to))
		if a.Status != 200 {
			t.Fatalf("exchange %d: got %d %s, want a token", i, a.Status, a.Body)
		}
		if token = a.Object(t)["access_token"]; len(token.(string)) > oauth.MaxExchangedToken {
			t.Errorf("got a token of %d bytes", len(token.(string)))
		}
	}
	g.PostToken(t, exchange(back, token, mailAPI)).FailsAs(t, 400, "invalid_request")
	g.operator.Do(200, http.MethodPatch, "/clients/"+g.notes.ID, `{"tokens_per_minute":1}`)
	token, limited := g.subject(t)["access_token"], 0
	for range 2 * stacktest.Nodes(t) {
		if a := g.PostToken(t, exchange(g.notes, token, mailAPI)); a.Status == 429 {
			limited++
		}
	}
	if limited == 0 {
		t.Error("got no refusal, want one by the quota")
	}
}
