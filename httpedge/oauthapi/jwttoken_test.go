package oauthapi_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// opened checks an access token with the service's public keys and returns its claims.
func opened(t *testing.T, st *stacktest.IdentityStack, token string) oauth.JWTAccessToken {
	t.Helper()
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatalf("got %v, want a JWT", err)
	}
	if typ := signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType]; typ != "at+jwt" {
		t.Errorf("got type %v, want at+jwt", typ)
	}
	var set jose.JSONWebKeySet
	stacktest.Must(t, json.Unmarshal(st.Tokens.JWKS(), &set))
	payload, err := signed.Verify(set)
	stacktest.Must(t, err)
	var claims oauth.JWTAccessToken
	stacktest.Must(t, json.Unmarshal(payload, &claims))
	return claims
}

func TestAccessTokenAsJWT(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.JWTAccessTokens = true })
	u := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	a := st.Redeem(t, c, b.Send(b.SignIn(c.Request(), rosa), "decision", "allow").Code(t, st))
	if a.Status != 200 {
		t.Fatalf("got %d %s, want tokens", a.Status, a.Body)
	}
	jwt, refresh := a.Object(t)["access_token"].(string), a.Object(t)["refresh_token"].(string)
	claims := opened(t, st, jwt)
	if claims.Issuer != st.URL || claims.Audience != st.URL || claims.ClientID != c.ID ||
		claims.Subject != strconv.FormatInt(u.ID, 10) || claims.Scope != "view-user" ||
		claims.Expires-claims.Issued != 3600 {
		t.Errorf("got claims %+v, want those of Rosa's token", claims)
	}
	if _, ok := oauth.ParseTokenID(claims.ID); !ok {
		t.Errorf("got jti %q, want the token's id", claims.ID)
	}
	profile := func(token string) stacktest.Response {
		return st.Get(t, "/api/user", "Authorization", "Bearer "+token)
	}
	for left := 99; left >= 97; left-- {
		a := profile(jwt)
		got, err := strconv.Atoi(a.Header.Get("X-RateLimit-Remaining"))
		// One node of several need not know yet what the others have admitted.
		if a.Status != 200 || err != nil || got < left || got > left && stacktest.Nodes(t) == 1 {
			t.Errorf("got %d with %d left, error %v, want 200 with %d", a.Status, got, err, left)
		}
	}
	head, rest, _ := strings.Cut(jwt, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	other := opened(t, st, st.PostToken(t,
		stacktest.Values(c.Credentials()...)).Object(t)["access_token"].(string))
	if other.Subject != c.ID || other.ID == claims.ID {
		t.Errorf("got claims %+v, want those of the client's own token", other)
	}
	introspect := func(token string) map[string]any {
		return st.Send(t, "POST", st.URL+"/oauth/introspect",
			stacktest.Values("token", token, "client_id", c.ID, "client_secret", c.Secret).Encode(),
			"Content-Type", "application/x-www-form-urlencoded").Object(t)
	}
	_, part, _ := strings.Cut(claims.Sealed, "_")
	for what, token := range map[string]string{
		"what it carries": claims.Sealed, "the same as an opaque token": "gtat_" + part,
		"its jti": claims.ID, "its jti as a token": "gtat_" + claims.ID,
		"another signature": head + "." + payload + "." + strings.Repeat("A", len(signature)),
		"no signature":      "eyJhbGciOiJub25lIn0." + payload + ".",
		"too long":          jwt + strings.Repeat("A", 4096),
		"id_token's type":   idTokenWith(t, st, claims),
	} {
		if a := profile(token); a.Status != 401 {
			t.Errorf("%s: got %d, want 401", what, a.Status)
		}
		if o := introspect(token); o["active"] != false {
			t.Errorf("%s: got %v, want no active token", what, o)
		}
		st.Send(t, "POST", st.URL+"/oauth/revoke",
			stacktest.Values("token", token, "client_id", c.ID, "client_secret", c.Secret).Encode(),
			"Content-Type", "application/x-www-form-urlencoded")
	}
	if o := introspect(jwt); o["active"] != true || o["scope"] != "view-user" {
		t.Errorf("got %v from introspection, want an active token", o)
	}
	refreshed := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "refresh_token",
		refresh, "client_id", c.ID, "client_secret", c.Secret)).Object(t)["access_token"].(string)
	if next := opened(t, st, refreshed); next.Subject != claims.Subject || next.ID == claims.ID {
		t.Errorf("got claims %+v, want those of Rosa's next token", next)
	}
	st.Send(t, "POST", st.URL+"/oauth/revoke",
		stacktest.Values("token", jwt, "client_id", c.ID, "client_secret", c.Secret).Encode(),
		"Content-Type", "application/x-www-form-urlencoded")
	if a := profile(jwt); a.Status != 401 {
		t.Errorf("got %d after its revocation, want 401", a.Status)
	}
	if o := introspect(jwt); o["active"] != false {
		t.Errorf("got %v from introspection after the revocation, want no active token", o)
	}
	if a := profile(refreshed); a.Status != 200 {
		t.Errorf("got %d for the next token, want 200", a.Status)
	}
}

// idTokenWith returns a JWT of the service with these claims and the type of id_tokens.
func idTokenWith(t *testing.T, st *stacktest.IdentityStack, claims oauth.JWTAccessToken) string {
	t.Helper()
	jwt, err := st.Tokens.Sign("RS256", "JWT", claims)
	stacktest.Must(t, err)
	return jwt
}
