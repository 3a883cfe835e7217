package stacktest_test

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// marked holds values that occur nowhere else.
type marked struct {
	*row
	all map[string]string // names by value
}

func (m *marked) mark(what, value string) string {
	m.t.Helper()
	if len(value) < 6 {
		m.t.Fatalf("got %s of %d characters, want a longer one", what, len(value))
	}
	m.all[value] = what
	return value
}

// TestSecretsAreNotLogged checks that no secret or personal value is in the log or the metrics,
// whether it is right or wrong.
func TestSecretsAreNotLogged(t *testing.T) {
	rows(t, []rowTest{{"everything", func(r *row) {
		m := &marked{r, map[string]string{}}
		c, u, password := m.setUp()
		m.browse(c, u, password)
		tokens := m.exchange(c, u)
		m.misuse(c, u, tokens)
		stacktest.Must(r.t, r.Store.Close())
		m.misuse(c, u, tokens) // now every request fails, which is logged
		m.signIn(c, u)
		m.search()
	}}})
}

// setUp creates a client and a user by the admin API, changes them and provokes conflicts.
func (m *marked) setUp() (stacktest.Client, *account.User, string) {
	o := m.NewOperator(m.t)
	m.mark("operator's token", o.Token)
	record := o.Do(201, "POST", "/clients", m.json("name", "Marked Atlas", "scopes",
		[]string{"view-user", "detail-user"}, "grants", []string{"authorization_code", "refresh_token",
			"client_credentials"}, "redirect_uris", []string{m.mark("redirect URI",
			"https://marked-app.example/cb?marked=1")})).Object(m.t)
	c := stacktest.Client{Secret: m.mark("client secret", record["client_secret"].(string))}
	var err error
	if c.Client, err = m.Tokens.Client(m.t.Context(), record["client_id"].(string)); err != nil {
		m.t.Fatal(err)
	}
	o.Do(200, "POST", "/clients/"+c.ID+"/approve", "")
	m.mark("second secret", o.Do(201, "POST", "/clients/"+c.ID+"/secrets", "").Object(m.t)["client_secret"].(string))
	o.Do(409, "POST", "/clients/"+c.ID+"/secrets", "")

	password := m.mark("password", "marked horse battery staple")
	fields := []any{"name", m.mark("name", "Markedrosa Example"), "email",
		m.mark("e-mail address", strings.ToLower(m.address())),
		"phone_number", m.mark("phone", phoneNumber()), "address", m.mark("address", "4711 Marked Road"),
		"bio", m.mark("bio", "marked-biography"),
		"place_of_birth", m.mark("place of birth",
			"Markedville"), "date_of_birth", m.mark("date of birth", "1971-07-11"), "password", password}
	made := o.Do(201, "POST", "/users", m.json(fields...)).Object(m.t)
	u, err := m.People.User(m.t.Context(), int64(made["id"].(float64)))
	stacktest.Must(m.t, err)
	m.mark("password's hash", u.PasswordHash)
	m.mark("service_id", u.ServiceID)
	o.Do(409, "POST", "/users", m.json(fields...))
	other := o.Do(201, "POST", "/users", m.json("name", "Other", "phone_number",
		m.mark("other phone", phoneNumber()))).Object(m.t)
	user := "/users/" + strconv.FormatInt(int64(other["id"].(float64)), 10)
	o.Do(409, "PATCH", user, m.json("phone_number", u.Phone))
	o.Do(400, "PATCH", user, m.json("email", m.mark("bad address", "marked-nowhere"), "phone_number",
		m.mark("bad phone", "marked-555")))
	o.Do(400, "POST", user+"/reset-password", m.json("password", m.mark("bad password", "markd1")))
	o.Do(400, "POST", "/users", `{"`+m.mark("bad JSON", "marked-json"))
	return c, u, password
}

func (m *marked) json(pairs ...any) string {
	members := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		members[pairs[i].(string)] = pairs[i+1]
	}
	text, err := json.Marshal(members)
	stacktest.Must(m.t, err)
	return string(text)
}

// browse uses the pages.
func (m *marked) browse(c stacktest.Client, u *account.User, password string) {
	b, state := m.browser(), m.mark("state", "marked-state-4711")
	m.mark("challenge", stacktest.Challenge())
	login := b.authorize(c, "state", state, "scope", "view-user detail-user")
	_, form := login.Form(m.t)
	m.mark("form token", form.Get("form_token"))
	b.send(login, "email", m.mark("unknown address", "marked-nobody@example.com"), "password",
		m.mark("wrong password", "marked-wrong-1"))
	consent := b.send(login, "email", u.Email, "password", password)
	_, form = consent.Form(m.t)
	m.mark("consent's form token", form.Get("form_token"))
	_, code, _ := strings.Cut(b.send(consent, "decision", "allow").Location, "code=")
	code, _, _ = strings.Cut(code, "&")
	m.mark("code of a browser", code)
	for _, cookie := range b.Browser.Client.Jar.Cookies(nil) {
		m.mark("cookie "+cookie.Name, cookie.Value)
	}
	b.authorize(c, "redirect_uri", m.mark("wrong redirect URI", "https://marked-evil.example/"))
	b.open("GET", "/accounts", nil, "Cookie", "gatehouse="+m.mark("wrong cookie",
		"marked-cookie-4711"))
	b.open("GET", "/logout?"+m.mark("query", "marked-query"), nil)
}

// exchange uses every grant.
func (m *marked) exchange(c stacktest.Client, u *account.User) pair {
	m.mark("verifier", stacktest.Verifier)
	code := m.mark("code", m.code(c, u, time.Now(), func(code *oauth.AuthorizationCode) {
		code.RedirectURI = c.RedirectURIs[0]
	}))
	form := redemption(c, code, "redirect_uri", c.RedirectURIs[0])
	tokens := m.token(form...).tokens(m.t)
	m.token(renewal(c, tokens.refresh)...).tokens(m.t)
	next := m.token(renewal(c, tokens.refresh)...).tokens(m.t)
	for _, p := range []pair{tokens, next} {
		m.mark("access token", p.access)
		m.mark("refresh token", p.refresh)
	}
	m.profile(next.access).object(m.t, 200)
	m.profile(next.access, "/api/user/details").object(m.t, 200)
	m.mark("own token", m.token(ownToken(c)...).object(m.t, 200)["access_token"].(string))
	return next
}

// misuse sends wrong values in every place.
func (m *marked) misuse(c stacktest.Client, u *account.User, tokens pair) {
	junk := m.mark("junk", "marked-junk-4711")
	for _, form := range [][]string{ownToken(c, "client_secret", junk), ownToken(c, "client_id", junk),
		ownToken(c, "grant_type", junk), ownToken(c, "scope", junk), redemption(c, junk),
		redemption(c, oauth.NewAuthorizationCode(), "redirect_uri", junk), renewal(c, junk), renewal(c,
			m.mark("unknown refresh token", oauth.NewRefreshToken())), ownToken(c), {junk, junk}} {
		m.token(form...)
		m.post("/oauth/revoke", append(form, "token", tokens.access+junk))
		m.post("/oauth/introspect", append(form, "token", tokens.access))
	}
	m.post("/oauth/token", nil, "Authorization", m.mark("Basic header", stacktest.Basic(c.ID, "marked-basic")))
	m.send("POST", m.URL+"/oauth/token?"+junk, m.json("client_secret", c.Secret), "Content-Type",
		"application/json")
	for _, authorization := range []string{"Bearer " + junk, "Bearer " + tokens.refresh, junk,
		"Bearer " + tokens.access + "é"} {
		m.send("GET", m.URL+"/api/user?access_token="+tokens.access, "", "Authorization", authorization)
		m.send("GET", m.AdminURL+"/admin/v1/users/"+junk, "", "Authorization", authorization)
	}
	m.send("GET", m.URL+"/"+junk+"/"+url.PathEscape(u.Email), "", "User-Agent", junk, "Referer",
		"https://"+junk+".example", "X-Request-Id", strings.Repeat(junk, 20))
	m.mark("caller", m.caller)
}

// signIn uses pages that need the store.
func (m *marked) signIn(c stacktest.Client, u *account.User) {
	b := m.browser()
	b.open("GET", "/oauth/authorize?"+c.Request().Encode(), nil, "Cookie",
		"gatehouse="+m.mark("session", account.NewSecret()))
	b.open("GET", "/me", nil, "Cookie", "gatehouse="+m.mark("session of an account",
		account.NewSecret()))
	b.send(b.open("GET", "/login", nil), "email", u.Email, "password",
		m.mark("late password", "marked-late-password"))
}

// search looks for every marked value in the logs and the metrics.
func (m *marked) search() {
	m.t.Helper()
	metrics := m.MetricsText(m.t)
	families, err := m.Metrics.Gather()
	stacktest.Must(m.t, err)
	for _, family := range families {
		metrics += family.String()
	}
	texts := map[string]string{"log": m.Log.String(), "metrics": metrics}
	for where, text := range texts {
		if len(text) < 100 {
			m.t.Errorf("got a %s of %d bytes, want a longer one", where, len(text))
		}
		for value, what := range m.all {
			for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
				if at := strings.Index(text, form); at >= 0 {
					m.t.Errorf("got the %s in the %s: …%s", what, where,
						text[max(0, at-120):min(len(text), at+len(form)+40)])
					break
				}
			}
		}
		if at := strings.Index(strings.ToLower(text), "marked"); at >= 0 {
			m.t.Errorf("got a mark in the %s: …%s", where, text[max(0, at-120):min(len(text), at+60)])
		}
	}
}
