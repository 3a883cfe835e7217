package stacktest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

const formType = "application/x-www-form-urlencoded"

// row tests one row of a document on a running service.
type row struct {
	*stacktest.IdentityStack
	t      *testing.T
	caller string // the address of its requests, by which the service counts failures
}

// rowTest is a row's name and test.
type rowTest struct {
	name  string
	check func(*row)
}

// rows tests every row on SQLite and on PostgreSQL. Rows share a service for each database, so each
// row creates its own clients and users.
func rows(t *testing.T, all []rowTest, options ...stacktest.Option) {
	for name, database := range map[string]func() stacktest.Option{
		"SQLite": func() stacktest.Option {
			return stacktest.Database(sqlitetest.URL(t))
		},
		"PostgreSQL": func() stacktest.Option {
			return stacktest.Database(pgtest.Migrated(t), pgtest.KeyFile(t))
		},
	} {
		if name == "SQLite" && stacktest.Nodes(t) > 1 {
			continue // nodes share PostgreSQL
		}
		t.Run(name, func(t *testing.T) {
			standard := []stacktest.Option{database(), stacktest.BehindProxy}
			st := stacktest.NewIdentity(t, append(standard, options...)...)
			for i, test := range all {
				t.Run(test.name, func(t *testing.T) {
					test.check(&row{st, t, fmt.Sprintf("198.51.100.%d", i+1)})
				})
			}
		})
	}
}

// send sends a request; headers alternate names and values.
func (r *row) send(method, target, body string, headers ...string) reply {
	r.t.Helper()
	return reply{Response: r.Send(r.t, method, target, body, append(headers, "X-Forwarded-For", r.caller)...)}
}

// post sends a form to a path; form alternates names and values.
func (r *row) post(path string, form []string, headers ...string) reply {
	r.t.Helper()
	return r.send("POST", r.URL+path, stacktest.Values(form...).Encode(),
		append([]string{"Content-Type", formType}, headers...)...)
}

func (r *row) token(form ...string) reply {
	r.t.Helper()
	return r.post("/oauth/token", form)
}

// profile requests /api/user or another path.
func (r *row) profile(token string, path ...string) reply {
	r.t.Helper()
	return r.send("GET", r.URL+append(path, "/api/user")[0], "", "Authorization", "Bearer "+token)
}

// client registers a confidential client that is approved for detailed profiles.
func (r *row) client(change ...func(*oauth.Client)) stacktest.Client {
	r.t.Helper()
	return r.NewClient(r.t, func(c *oauth.Client) {
		c.DetailApproved = true
		for _, f := range change {
			f(c)
		}
	})
}

func public(c *oauth.Client) { c.Public = true }

func operator(c *oauth.Client) {
	c.Operator, c.Scopes, c.Grants, c.RedirectURIs = true, oauth.ServerOperations,
		oauth.ClientCredentialsGrant, nil
}

// address returns a unique e-mail address.
func (r *row) address() string { return oauth.NewClientSecret()[5:15] + "@example.com" }

// user creates a user who cannot sign in.
func (r *row) user(change ...func(*account.User)) *account.User {
	r.t.Helper()
	u := &account.User{Name: "Rosa", Email: r.address(), Created: time.Now(), Updated: time.Now()}
	for _, f := range change {
		f(u)
	}
	stacktest.Must(r.t, r.Store.CreateUser(r.t.Context(), u))
	return u
}

// person creates a user who can sign in with stacktest.Password.
func (r *row) person() *account.User {
	r.t.Helper()
	return r.NewUser(r.t, "Rosa", strings.ToLower(r.address()))
}

// code issues a code at a time, as the browser flow does. change may be nil.
func (r *row) code(c stacktest.Client, u *account.User, at time.Time,
	change func(*oauth.AuthorizationCode)) string {
	r.t.Helper()
	current, err := r.Store.User(r.t.Context(), u.ID)
	stacktest.Must(r.t, err)
	code := oauth.AuthorizationCode{ClientID: c.ID, UserID: u.ID,
		Epochs: oauth.Epochs{User: current.Epoch}, RedirectURI: stacktest.RedirectURI,
		Scopes: oauth.UserScopes, CodeChallenge: stacktest.Challenge()}
	if change != nil {
		change(&code)
	}
	plain, fault := r.Tokens.IssueCode(r.t.Context(), code, at)
	if fault != nil {
		r.t.Fatal(fault)
	}
	return plain
}

// redemption returns the form that redeems a code; more overrides it.
func redemption(c stacktest.Client, code string, more ...string) []string {
	return overridden([]string{"grant_type", "authorization_code", "client_id", c.ID, "client_secret",
		c.Secret, "code", code,
		"redirect_uri", stacktest.RedirectURI, "code_verifier", stacktest.Verifier}, more)
}

// renewal returns the form that uses a refresh token; more overrides it.
func renewal(c stacktest.Client, refresh string, more ...string) []string {
	return overridden([]string{"grant_type", "refresh_token", "client_id", c.ID, "client_secret",
		c.Secret, "refresh_token", refresh}, more)
}

// ownToken returns the form of a client_credentials grant; more overrides it.
func ownToken(c stacktest.Client, more ...string) []string {
	return overridden([]string{"grant_type", "client_credentials", "client_id", c.ID, "client_secret",
		c.Secret}, more)
}

func overridden(form, more []string) []string {
	for i := 0; i < len(more); i += 2 {
		at := slices.Index(form, more[i])
		if at < 0 {
			form = append(form, more[i], more[i+1])
			continue
		}
		form[at+1] = more[i+1]
	}
	return form
}

// pair is an access token with its refresh token.
type pair struct{ access, refresh string }

// tokens returns the two tokens of a token response.
func (r reply) tokens(t *testing.T) pair {
	t.Helper()
	o := r.object(t, 200)
	access, _ := o["access_token"].(string)
	refresh, _ := o["refresh_token"].(string)
	if !strings.HasPrefix(access, "gtat_") || !strings.HasPrefix(refresh, "gtrt_") {
		t.Fatalf("got %s, want an access and a refresh token", r.Body)
	}
	return pair{access, refresh}
}

// issue issues tokens for scopes of a user.
func (r *row) issue(c stacktest.Client, u *account.User, scopes oauth.Scopes) pair {
	r.t.Helper()
	code := r.code(c, u, time.Now(), func(code *oauth.AuthorizationCode) { code.Scopes = scopes })
	return r.token(redemption(c, code)...).tokens(r.t)
}

// issueAt issues tokens at a time.
func (r *row) issueAt(at time.Time, form []string) *oauth.TokenResponse {
	r.t.Helper()
	var params []oauth.Parameter
	for i := 0; i < len(form); i += 2 {
		params = append(params, oauth.Parameter{Name: form[i], Value: form[i+1]})
	}
	request, fault := oauth.ParseTokenRequest(params, "")
	if fault != nil {
		r.t.Fatal(fault)
	}
	response, fault := r.Tokens.Token(r.t.Context(), request, at)
	if fault != nil {
		r.t.Fatal(fault)
	}
	return response
}

// object checks the status and returns the members of a JSON body.
func (r reply) object(t *testing.T, status int) map[string]any {
	t.Helper()
	if r.Status != status {
		t.Fatalf("got %d %s, want %d", r.Status, r.Body, status)
	}
	return r.Object(t)
}

// members checks the status and that a JSON body has these members and no others.
func (r reply) members(t *testing.T, status int, names ...string) map[string]any {
	t.Helper()
	o := r.object(t, status)
	for _, name := range names {
		if _, ok := o[name]; !ok || len(o) != len(names) {
			t.Fatalf("got %s, want the members %v", r.Body, names)
		}
	}
	return o
}

// denied checks an error of a profile endpoint.
func (r reply) denied(t *testing.T, status int, code string) {
	t.Helper()
	if o := r.members(t, status, "error", "error_description", "message"); o["error"] != code ||
		o["error_description"] == "" || o["message"] == "" {
		t.Errorf("got %d %s, want %d %s", r.Status, r.Body, status, code)
	}
}

// invalid checks the response to an invalid or revoked token.
func (r reply) invalid(t *testing.T) {
	t.Helper()
	if o := r.members(t, 401, "message"); o["message"] == "" {
		t.Errorf("got %s, want a message", r.Body)
	}
}
