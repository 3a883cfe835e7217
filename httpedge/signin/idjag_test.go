package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// withIDJAG turns the draft on.
func withIDJAG(c *stack.Config) { c.Identity.Drafts = []string{oauth.IDJAGDraft} }

// idJAG is a service with a person who has signed in with a provider, and a client that the provider
// may send on behalf of people.
type idJAG struct {
	stacktest.Reachable
	t      *testing.T
	up     *upstream
	client stacktest.Client
	person *account.User
}

func newIDJAG(t *testing.T, options ...stacktest.Option) *idJAG {
	t.Helper()
	f := &idJAG{Reachable: stacktest.NewReachable(t, append(options, withIDJAG)...), t: t,
		up: newUpstream(t, ofAda())}
	f.up.offer(f.IdentityStack, "acme", nil)
	f.client = f.newClient(func(*oauth.Client) {})
	b := f.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
	var err error
	if f.person, err = f.Store.UserByConnection(t.Context(), f.up.URL, "ada-1"); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *idJAG) newClient(change func(*oauth.Client)) stacktest.Client {
	return f.NewOpenIDClient(f.t, func(c *oauth.Client) {
		c.Grants |= oauth.JWTBearerGrant
		c.Options.IDJAG.Issuers = []string{f.up.URL}
		change(c)
	})
}

// claims are those of an ID-JAG for the client; more are name, value, …, and nil leaves one out.
func (f *idJAG) claims(more ...any) map[string]any {
	now := time.Now().Unix()
	claims := map[string]any{"iss": f.up.URL, "sub": "ada-1", "aud": f.Tokens.Issuer(),
		"client_id": f.client.ID, "jti": rand.Text(), "iat": now, "exp": now + 300,
		"scope": "openid profile offline_access server-operations notes.read"}
	for i := 0; i < len(more); i += 2 {
		if claims[more[i].(string)] = more[i+1]; more[i+1] == nil {
			delete(claims, more[i].(string))
		}
	}
	return claims
}

func (f *idJAG) sign(claims map[string]any) string {
	return stacktest.SignJWT(f.t, jose.ES256, f.up.key, claims,
		(&jose.SignerOptions{}).WithHeader("kid", "k1").WithType("oauth-id-jag+jwt"))
}

// send asks for a token.
func (f *idJAG) send(assertion string, more ...string) stacktest.Response {
	f.t.Helper()
	return f.PostToken(f.t, stacktest.Values(append([]string{"grant_type", jwtBearer, "client_id",
		f.client.ID, "client_secret", f.client.Secret, "assertion", assertion}, more...)...))
}

// TestTokenForIDJAG gets tokens for a person who has signed in with the provider once.
func TestTokenForIDJAG(t *testing.T) {
	f := newIDJAG(t)
	mcp := oauth.Resource{URI: "https://notes.example/mcp", Scopes: []string{"notes.write", "notes.read"}}
	if _, err := f.Tokens.CreateResource(t.Context(), mcp, time.Now()); err != nil {
		t.Fatal(err)
	}
	jwt := f.sign(f.claims())
	got := f.send(jwt).Object(t)
	if got["scope"] != "openid profile" || got["refresh_token"] != nil || got["id_token"] != nil {
		t.Fatalf("got %v, want the scopes that the client may have, and an access token alone", got)
	}
	bearer := "Bearer " + got["access_token"].(string)
	info := f.Get(t, "/oauth/userinfo", "Authorization", bearer).Object(t)
	if info["sub"] != strconv.FormatInt(f.person.ID, 10) || info["name"] != "Ada Upstream" {
		t.Errorf("got %v, want the person", info)
	}
	f.send(jwt).FailsAs(t, 400, "invalid_grant") // and the first token stays
	f.Get(t, "/oauth/userinfo", "Authorization", bearer).Object(t)

	for _, row := range []struct {
		name         string
		claims       []any
		form         []string
		scope, fault string
		aud          string
	}{
		{"resource", []any{"resource", mcp.URI}, nil, "openid profile notes.read", "", mcp.URI},
		{"list of resources", []any{"resource", []string{mcp.URI}, "scope", "notes.read"}, nil, "notes.read", "", mcp.URI},
		{"fewer scopes", nil, []string{"scope", "openid"}, "openid", "", ""},
		{"fewer scopes of a resource", []any{"resource", mcp.URI, "scope", "openid notes.write notes.read"},
			[]string{"scope", "notes.write"}, "notes.write", "", mcp.URI},
		{"one audience in a list", []any{"aud", []string{f.Tokens.Issuer()}}, nil, "openid profile", "", ""},
		{"more scopes", nil, []string{"scope", "openid email"}, "", "invalid_scope", ""},
		{"more scopes of a resource", []any{"resource", mcp.URI}, []string{"scope", "notes.write"}, "", "invalid_scope", ""},
		{"another resource in the request", nil, []string{"resource", mcp.URI}, "", "invalid_target", ""},
		{"unknown resource", []any{"resource", "https://other.example"}, nil, "", "invalid_target", ""},
		{"resource alone", []any{"resource", mcp.URI, "scope", nil}, nil, "", "", mcp.URI},
		{"no scope", []any{"scope", nil}, nil, "", "invalid_scope", ""},
		{"no scope that the resource has", []any{"resource", mcp.URI, "scope", "notes.none"}, nil, "", "invalid_scope", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := f.send(f.sign(f.claims(row.claims...)), row.form...)
			if row.fault != "" {
				a.FailsAs(t, 400, row.fault)
				return
			}
			got := a.Object(t)
			if got["scope"] != row.scope {
				t.Errorf("got %v, want the scope %q", got, row.scope)
			}
			about := f.Introspect(t, f.client, got["access_token"])
			aud, _ := about["aud"].([]any)
			if about["active"] != true || row.aud != "" && (len(aud) == 0 || aud[0] != row.aud) {
				t.Errorf("got %v, want a token for %q", about, row.aud)
			}
		})
	}

	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		about := f.Get(t, path).Object(t)
		if profiles, _ := about["authorization_grant_profiles_supported"].([]any); len(profiles) != 1 ||
			profiles[0] != "urn:ietf:params:oauth:grant-profile:id-jag" ||
			!slices.Contains(about["grant_types_supported"].([]any), any(jwtBearer)) {
			t.Errorf("got %v, want the grant and its profile", about)
		}
	}
	events, err := f.Store.Events(t.Context(), audit.Filter{UserID: f.person.ID, Limit: 20})
	if err != nil || !slices.ContainsFunc(events, func(e audit.Event) bool {
		return e.Action == audit.Authorized && e.Target == f.client.ID && e.Data["provider"] == f.up.URL
	}) {
		t.Errorf("got %+v and error %v, want an event", events, err)
	}
	err = f.Tokens.RevokeAll(t.Context(), &oauth.Revoke{Consent: &oauth.Grant{UserID: f.person.ID, ClientID: f.client.ID}})
	if about := f.Introspect(t, f.client, got["access_token"]); err != nil || about["active"] != false {
		t.Errorf("got %v and error %v, want the token to end with the family", about, err)
	}
}

// TestIDJAGsThatAreRefused has one reason in each row.
func TestIDJAGsThatAreRefused(t *testing.T) {
	f := newIDJAG(t)
	wrong, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stacktest.Must(t, err)
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	stacktest.Must(t, err)
	now, own := time.Now().Unix(), f.Tokens.Issuer()
	public, err := x509.MarshalPKIXPublicKey(&f.up.key.PublicKey)
	stacktest.Must(t, err)
	as := func(alg jose.SignatureAlgorithm, key any, kid, typ string) string {
		return stacktest.SignJWT(t, alg, key, f.claims(),
			(&jose.SignerOptions{}).WithHeader("kid", kid).WithType(jose.ContentType(typ)))
	}
	text, err := json.Marshal(f.claims())
	stacktest.Must(t, err)
	url64 := base64.RawURLEncoding.EncodeToString
	unsigned := url64([]byte(`{"alg":"none","typ":"oauth-id-jag+jwt"}`)) + "." + url64(text) + "."
	good := f.sign(f.claims())
	for name, assertion := range map[string]string{
		"another audience":            f.sign(f.claims("aud", "https://other.example")),
		"token endpoint as audience":  f.sign(f.claims("aud", own+"/oauth/token")),
		"two audiences":               f.sign(f.claims("aud", []string{own, "https://other.example"})),
		"no audience":                 f.sign(f.claims("aud", nil)),
		"expired":                     f.sign(f.claims("exp", now)),
		"no exp":                      f.sign(f.claims("exp", nil)),
		"for two hours":               f.sign(f.claims("exp", now+7200)),
		"not before":                  f.sign(f.claims("nbf", now+60)),
		"issued later":                f.sign(f.claims("iat", now+60)),
		"no iat":                      f.sign(f.claims("iat", nil)),
		"another client":              f.sign(f.claims("client_id", "shop")),
		"no client":                   f.sign(f.claims("client_id", nil)),
		"unknown issuer":              f.sign(f.claims("iss", "https://evil.example")),
		"issuer with slash":           f.sign(f.claims("iss", f.up.URL+"/")),
		"no jti":                      f.sign(f.claims("jti", nil)),
		"long jti":                    f.sign(f.claims("jti", strings.Repeat("j", 257))),
		"no subject":                  f.sign(f.claims("sub", nil)),
		"long subject":                f.sign(f.claims("sub", strings.Repeat("s", 256))),
		"NUL in the subject":          f.sign(f.claims("sub", "ada-1\x00")),
		"unlinked person":             f.sign(f.claims("sub", "bob-1")),
		"person by address":           f.sign(f.claims("sub", ada, "email", ada)),
		"scope that is a list":        f.sign(f.claims("scope", []string{"openid"})),
		"id_token":                    as(jose.ES256, f.up.key, "k1", "JWT"),
		"access token":                as(jose.ES256, f.up.key, "k1", "at+jwt"),
		"client assertion":            as(jose.ES256, f.up.key, "k1", "client-authentication+jwt"),
		"foreign key":                 as(jose.ES256, wrong, "k1", "oauth-id-jag+jwt"),
		"unknown key":                 as(jose.ES256, f.up.key, "k2", "oauth-id-jag+jwt"),
		"another algorithm":           as(jose.RS256, small, "k1", "oauth-id-jag+jwt"),
		"HS256 with the public key":   as(jose.HS256, public, "k1", "oauth-id-jag+jwt"),
		"none":                        unsigned,
		"signature of another":        good[:strings.LastIndexByte(good, '.')] + f.sign(f.claims())[strings.LastIndexByte(f.sign(f.claims()), '.'):],
		"no JWT":                      "x",
		"too long":                    f.sign(f.claims("email", strings.Repeat("e", 9000))),
		"assertion of another format": "PHNhbWw+",
	} {
		t.Run(name, func(t *testing.T) { f.send(assertion).FailsAs(t, 400, "invalid_grant") })
	}
	f.send("").FailsAs(t, 400, "invalid_request")
	refused := func(what, code string, status int, change func(*oauth.Client)) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			client := f.client
			defer func() { f.client = client }()
			f.client = f.newClient(change)
			f.send(f.sign(f.claims())).FailsAs(t, status, code)
		})
	}
	refused("another grant", "unauthorized_client", 400, func(c *oauth.Client) { c.Grants &^= oauth.JWTBearerGrant })
	refused("undeclared issuer", "invalid_grant", 400, func(c *oauth.Client) { c.Options.IDJAG.Issuers = []string{"https://other.example"} })
	refused("closed group", "invalid_grant", 400, func(c *oauth.Client) { c.Options.RequireGroups = []string{"staff"} })
	refused("wrong secret", "invalid_client", 401, func(c *oauth.Client) { c.Secrets[0].Hash = oauth.HashOf("x") })
	client := f.client
	f.client = f.newClient(func(c *oauth.Client) { c.Options.IDJAG.Issuers = []string{f.up.URL, own} })
	if a := f.send(f.sign(f.claims("iss", own))); !strings.Contains(a.Body, "is this service") {
		t.Errorf("got %d %s, want no assertion of the service itself", a.Status, a.Body)
	}
	f.client = client
	if f.send(good).Status != 200 {
		t.Error("a refusal has used up an assertion")
	}

	f.up.offer(f.IdentityStack, "acme", func(p *oauth.Provider) { p.Disabled = true })
	f.send(f.sign(f.claims())).FailsAs(t, 400, "invalid_grant")
	f.up.offer(f.IdentityStack, "acme", nil)
	stacktest.Must(t, f.People.DisableUser(t.Context(), f.person.ID, time.Now()))
	f.send(f.sign(f.claims())).FailsAs(t, 400, "invalid_grant")
	logged := f.Log.String()
	for _, secret := range []string{"ada-1", good} {
		if strings.Contains(logged, secret) {
			t.Errorf("got %q in the log", secret)
		}
	}
}

// TestWrongIDJAGsAreThrottled charges the client that sends wrong ones, and no other.
func TestWrongIDJAGsAreThrottled(t *testing.T) {
	f := newIDJAG(t)
	wrong, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stacktest.Must(t, err)
	key := f.up.key
	f.up.key = wrong
	assertion := f.sign(f.claims())
	f.up.key = key
	throttled := false
	for range 30 * stacktest.Nodes(t) { // each node counts its own
		throttled = throttled || f.send(assertion).Status == 429
	}
	if !throttled {
		t.Error("got no 429 for many wrong assertions")
	}
	f.client = f.newClient(func(*oauth.Client) {})
	if a := f.send(f.sign(f.claims())); a.Status != 200 {
		t.Errorf("got %d %s for another client, want a token", a.Status, a.Body)
	}
}

// TestIDJAGIsOff has neither grant nor metadata without the draft.
func TestIDJAGIsOff(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Grants |= oauth.JWTBearerGrant
		c.Options.IDJAG.Issuers = []string{"https://idp.example"}
	})
	a := st.PostToken(t, stacktest.Values("grant_type", tokenExchange, "client_id", c.ID, "client_secret",
		c.Secret, "requested_token_type", typeOfIDJAG))
	a.FailsAs(t, 400, "invalid_request")
	if !strings.Contains(a.Body, "requested_token_type is not supported") {
		t.Errorf("got %s, want no word of the draft", a.Body)
	}
	st.PostToken(t, stacktest.Values("grant_type", jwtBearer, "client_id", c.ID, "client_secret",
		c.Secret, "assertion", "x")).FailsAs(t, 400, "unsupported_grant_type")
	about := st.Get(t, "/.well-known/oauth-authorization-server")
	if strings.Contains(about.Body, "jwt-bearer") || strings.Contains(about.Body, "grant_profiles") {
		t.Errorf("got %s, want no such grant", about.Body)
	}
}

// TestIssuerOfIDJAGIsAway goes on with the keys that are known.
func TestIssuerOfIDJAGIsAway(t *testing.T) {
	f := newIDJAG(t)
	f.up.set(func(u *upstream) { u.status = 503 })
	f.send(f.sign(f.claims())).Object(t)
	away := newUpstream(t, nil)
	away.offer(f.IdentityStack, "away", nil)
	away.set(func(u *upstream) { u.status = 503 })
	f.client = f.newClient(func(c *oauth.Client) { c.Options.IDJAG.Issuers = []string{away.URL} })
	f.send(f.sign(f.claims("iss", away.URL))).FailsAs(t, 503, "temporarily_unavailable")
}
