package signin_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/cmd/stack/stacktest"
)

// TestTokensAreNotMixedUp sends each kind of JWT, and a code, where another is expected.
func TestTokensAreNotMixedUp(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, func(c *oauth.Client) { c.Options.JWTAccessTokens = true })
	other := st.NewOpenIDClient(t, nil)
	u := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	tokens := st.Redeem(t, c, b.Allow(askedOpenID(c), rosa).Code(t, st)).Object(t)
	idToken, access := tokens["id_token"].(string), tokens["access_token"].(string)
	var claims map[string]any
	verify(t, st, idToken, "JWT", &claims)
	logout, err := st.Tokens.Sign("RS256", "logout+jwt", claims)
	stacktest.Must(t, err)
	code := b.Authorize(askedOpenID(c, "prompt", "none")).Code(t, st)
	for what, text := range map[string]string{"id_token": idToken, "logout token": logout, "code": code,
		"refresh token": tokens["refresh_token"].(string)} {
		for _, path := range []string{"/api/user", "/oauth/userinfo"} {
			if a := st.Get(t, path, "Authorization", "Bearer "+text); a.Status != 401 {
				t.Errorf("%s at %s: got %d %s, want 401", what, path, a.Status, a.Body)
			}
		}
	}
	for what, text := range map[string]string{"id_token": idToken, "logout token": logout, "code": code} {
		if said := st.Introspect(t, c, text); said["active"] != false {
			t.Errorf("%s: got %v from introspection, want no active token", what, said)
		}
	}
	for what, text := range map[string]string{"access token": access, "logout token": logout, "code": code} {
		b.Authorize(askedOpenID(c, "prompt", "none", "id_token_hint", text)).FailsWith(t, st,
			"invalid_request")
		if p := b.LogOut("client_id", c.ID, "id_token_hint", text); p.Status != 200 ||
			!strings.Contains(p.Body, rosa) {
			t.Errorf("%s as a hint: got %d %s, want the page that asks", what, p.Status, p.Body)
		}
	}
	for what, text := range map[string]string{"id_token": idToken, "access token": access} {
		if a := st.Redeem(t, c, text); a.Object(t)["error"] != "invalid_grant" {
			t.Errorf("%s as a code: got %d %s, want invalid_grant", what, a.Status, a.Body)
		}
	}
	st.Redeem(t, other, code).FailsAs(t, 400, "invalid_grant")
	if a := st.Redeem(t, c, code); a.Status != 200 {
		t.Errorf("got %d %s after another client has sent the code, want tokens", a.Status, a.Body)
	}
	isSignedIn(b, c, true)
	if claims["sub"] != fmt.Sprint(u.ID) {
		t.Errorf("got %v, want Rosa", claims)
	}
}

// TestNonceAndStateStayWithTheirRequest begins two requests in one browser and finishes them in the
// other order. Nonce and state of one never come with the code of the other, and a code that is
// used again, or asked for by a replayed form, brings no second id_token.
func TestNonceAndStateStayWithTheirRequest(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewOpenIDClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Allow(askedOpenID(c), rosa).Code(t, st)
	consent := func(name string) stacktest.Page {
		return b.Authorize(askedOpenID(c, "prompt", "consent", "nonce", "n-"+name, "state", name))
	}
	first, second := consent("first"), consent("second")
	for _, row := range []struct {
		name string
		page stacktest.Page
	}{{"second", second}, {"first", first}} {
		said := b.Send(row.page, "decision", "allow")
		if row.name == "first" { // the consent has changed since the form was shown
			said.Shows(t, 403, "/consent")
			said = b.Send(said, "decision", "allow")
		}
		at, err := url.Parse(said.Location)
		if err != nil || at.Query().Get("state") != row.name {
			t.Fatalf("got %s, want the state %q", said.Location, row.name)
		}
		code := at.Query().Get("code")
		var claims map[string]any
		verify(t, st, redeemed(t, st, c, code, "id_token"), "JWT", &claims)
		if claims["nonce"] != "n-"+row.name {
			t.Errorf("got nonce %v with the state %q", claims["nonce"], row.name)
		}
		st.Redeem(t, c, code).FailsAs(t, 400, "invalid_grant")
		again, err := url.Parse(b.Send(row.page, "decision", "allow").Location)
		if err == nil && again.Query().Get("code") != "" && again.Query().Get("code") != code {
			t.Errorf("got another code for a form that was sent again: %s", again)
		}
	}
}

// TestAlgorithmOfHintIsNotChosenByItsSender makes hints with what everybody knows: the public keys.
func TestAlgorithmOfHintIsNotChosenByItsSender(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newLeavingClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	var claims map[string]any
	hint := redeemed(t, st, c, b.Allow(askedOpenID(c), rosa).Code(t, st), "id_token")
	verify(t, st, hint, "JWT", &claims)
	var set jose.JSONWebKeySet
	text := st.Tokens.JWKS()
	stacktest.Must(t, json.Unmarshal(text, &set))
	public := set.Keys[0]
	der, err := x509.MarshalPKIXPublicKey(public.Key)
	stacktest.Must(t, err)
	jwk, err := public.MarshalJSON()
	stacktest.Must(t, err)
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	stacktest.Must(t, err)
	forge := func(alg jose.SignatureAlgorithm, key any) string {
		t.Helper()
		return stacktest.SignJWT(t, alg, key, claims,
			(&jose.SignerOptions{EmbedJWK: alg == jose.RS256}).WithType("JWT").
				WithHeader("kid", public.KeyID))
	}
	_, payload, _ := strings.Cut(hint, ".")
	payload, _, _ = strings.Cut(payload, ".")
	for what, forged := range map[string]string{
		"HS256 with the key":          forge(jose.HS256, der),
		"HS256 with the JWK":          forge(jose.HS256, jwk),
		"HS256 with the client's":     forge(jose.HS256, []byte(c.Secret)),
		"RS256 with an embedded key":  forge(jose.RS256, own),
		"PS256":                       forge(jose.PS256, own),
		"none":                        "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + payload + ".",
		"none with another spelling":  "eyJhbGciOiJOb05lIiwidHlwIjoiSldUIn0." + payload + ".",
		"ES256 under the kid of RSA":  mixedAlgorithm(t, st, public.KeyID, claims),
		"the signature of another":    swapSignature(hint, forge(jose.RS256, own)),
		"a JWT with white space":      " " + hint,
		"a JWT with another spelling": hint + "=",
	} {
		b.Authorize(askedOpenID(c, "prompt", "none", "id_token_hint", forged)).FailsWith(t, st,
			"invalid_request")
		if p := b.LogOut("client_id", c.ID, "id_token_hint", forged); !strings.Contains(p.Body, rosa) {
			t.Errorf("%s: got %d %s, want the page that asks", what, p.Status, p.Body)
		}
	}
	b.LogOut("id_token_hint", hint)
	isSignedIn(b, c, false)
}

// mixedAlgorithm returns a JWT that a key of the service has signed with ES256, under another kid.
func mixedAlgorithm(t *testing.T, st *stacktest.IdentityStack, kid string, claims any) string {
	t.Helper()
	jwt, err := st.Tokens.Sign("ES256", "JWT", claims)
	stacktest.Must(t, err)
	_, rest, _ := strings.Cut(jwt, ".")
	header, err := json.Marshal(map[string]string{"alg": "ES256", "kid": kid, "typ": "JWT"})
	stacktest.Must(t, err)
	return base64.RawURLEncoding.EncodeToString(header) + "." + rest
}

// swapSignature returns a JWT with the signature of another.
func swapSignature(jwt, other string) string {
	return jwt[:strings.LastIndexByte(jwt, '.')] + other[strings.LastIndexByte(other, '.'):]
}

// TestLogoutWithExpiredHint signs out with an id_token that has expired. The same is no proof of
// anything else.
func TestLogoutWithExpiredHint(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newLeavingClient(t, st)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	var claims token.IDToken
	hint := redeemed(t, st, c, b.Allow(askedOpenID(c), rosa).Code(t, st), "id_token")
	verify(t, st, hint, token.IDTokenTyp, &claims)
	expired := func(change func(*token.IDToken)) string {
		t.Helper()
		said := claims
		said.Issued, said.Expires = time.Now().Unix()-7200, time.Now().Unix()-3600
		if change != nil {
			change(&said)
		}
		jwt, err := st.Tokens.Sign("RS256", token.IDTokenTyp, said)
		stacktest.Must(t, err)
		return jwt
	}
	for what, change := range map[string]func(*token.IDToken){
		"another issuer":  func(id *token.IDToken) { id.Issuer = "https://other.example" },
		"another client":  func(id *token.IDToken) { id.Audience = newLeavingClient(t, st).ID },
		"another session": func(id *token.IDToken) { id.SID = "x" },
		"no session":      func(id *token.IDToken) { id.SID = "" },
	} {
		if p := b.LogOut("client_id", c.ID, "id_token_hint", expired(change)); p.Status != 200 ||
			!strings.Contains(p.Body, rosa) {
			t.Errorf("%s: got %d %s, want the page that asks", what, p.Status, p.Body)
		}
	}
	isSignedIn(b, c, true)
	b.Authorize(askedOpenID(c, "prompt", "none", "id_token_hint", expired(nil))).Code(t, st)
	p := b.LogOut("id_token_hint", expired(nil), "post_logout_redirect_uri", afterLogout)
	if p.Location != afterLogout {
		t.Errorf("got %d to %q, want a redirect to the client", p.Status, p.Location)
	}
	isSignedIn(b, c, false)
}

// TestDeviceGrantEndsWithSession signs out of the browser in which devices were allowed.
func TestDeviceGrantEndsWithSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := newDeviceClient(t, st, func(c *oauth.Client) { c.Scopes = oauth.GrantableScopes })
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
	devices := map[string]map[string]any{}
	for _, scope := range []string{"openid view-user", "openid view-user offline_access", "view-user"} {
		code, userCode := beginDevice(t, st, c, scope)
		b.Send(b.Send(b.Get("/device"), "user_code", userCode), "decision", "allow")
		devices[scope] = poll(t, st, c, code).Object(t)
	}
	waiting, userCode := beginDevice(t, st, c, "openid view-user")
	b.Send(b.Send(b.Get("/device"), "user_code", userCode), "decision", "allow")
	b.Send(b.Get("/logout"))
	for scope, tokens := range devices {
		want := scope != "openid view-user"
		access, _ := tokens["access_token"].(string)
		if a := st.Get(t, "/api/user", "Authorization", "Bearer "+access); (a.Status == 200) != want {
			t.Errorf("%s: got %d after the session has ended, want admitted %t", scope, a.Status, want)
		}
		refresh, _ := tokens["refresh_token"].(string)
		if a := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id", c.ID,
			"refresh_token", refresh)); (a.Status == 200) != want {
			t.Errorf("%s: got %d %s, want refreshed %t", scope, a.Status, a.Body, want)
		}
	}
	poll(t, st, c, waiting).FailsAs(t, 400, "invalid_grant")
}

// TestMetadataClientWithKeys has a client that is a URL authenticate with the keys of its document.
func TestMetadataClientWithKeys(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	stacktest.Must(t, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
	stacktest.Must(t, err)
	const redirect, keysURL = "https://agent.example/cb", "https://agent.example/jwks"
	document := func(keys string) string {
		return strings.Replace(agentDocument(redirect), `"none"`, `"private_key_jwt",`+keys, 1)
	}
	for what, keys := range map[string]string{
		"jwks": `"jwks":` + string(set), "jwks_uri": `"jwks_uri":"` + keysURL + `"`,
	} {
		d := &documents{texts: map[string]string{agentURL: document(keys), keysURL: string(set)}}
		st := stacktest.NewIdentity(t, withDocuments(d))
		st.NewUser(t, "Rosa", rosa)
		b := st.NewBrowser(t)
		back, err := url.Parse(b.Allow(askedByAgent(redirect), rosa).Location)
		if err != nil || back.Query().Get("code") == "" {
			t.Fatalf("%s: got %v, %v, want a code", what, back, err)
		}
		form := stacktest.Values("grant_type", "authorization_code", "code",
			back.Query().Get("code"),
			"redirect_uri", redirect, "code_verifier", stacktest.Verifier, "client_id", agentURL)
		st.PostToken(t, form).FailsAs(t, 401, "invalid_client") // without its key
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", stacktest.Assertion(t, key, agentURL, "https://other.example"))
		st.PostToken(t, form).FailsAs(t, 401, "invalid_client")
		form.Set("client_assertion", stacktest.Assertion(t, key, agentURL, st.URL))
		if a := st.PostToken(t, form); a.Status != 200 {
			t.Errorf("%s: got %d %s with the key of the document, want tokens", what, a.Status, a.Body)
		}
		st.PostToken(t, form).FailsAs(t, 401, "invalid_client") // a replay
	}
}

// TestLookalikeHostIsNotHidden opens clients whose host looks like that of another.
func TestLookalikeHostIsNotHidden(t *testing.T) {
	for address, shown := range map[string]string{
		"https://agent.example.evil.example/client.json": "agent.example.evil.example",
		"https://xn--gent-43d.example/client.json":       "xn--gent-43d.example",
		"https://evil.example/agent.example":             "evil.example",
		"https://\u0430gent.example/client.json":         "", // a Cyrillic letter
		"https://agent%2Eexample/client.json":            "",
		"https://agent.example\\@evil.example/c":         "",
		"https://agent.example@evil.example/c":           "",
		"https://evil.example/c#agent.example":           "",
		"https://AGENT.example/client.json":              "",
		"https://evil.example/x/../agent.example":        "",
	} {
		text, err := json.Marshal(map[string]any{"client_id": address, "client_name": "Agent",
			"client_uri": "https://agent.example/", "redirect_uris": []string{"https://evil.example/cb"}})
		stacktest.Must(t, err)
		st := stacktest.NewIdentity(t, withDocuments(&documents{texts: map[string]string{
			address: string(text)}}))
		user := st.NewUser(t, "Rosa", rosa)
		b := st.NewBrowser(t)
		b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
		ask := askedByAgent("https://evil.example/cb")
		ask.Set("client_id", address)
		p := b.Authorize(ask)
		if shown == "" {
			p.Shows(t, 400, "/oauth/authorize")
			continue
		}
		p = b.Send(p, "account", stacktest.ChooserValue(user.ID))
		if p.Shows(t, 200, "/consent"); !strings.Contains(p.Body, shown) ||
			strings.Contains(p.Body, `href="https://agent.example/"`) {
			t.Errorf("%s: got %s, want the host %s and no link to another", address, p.Body, shown)
		}
	}
}
