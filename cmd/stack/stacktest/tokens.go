package stacktest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
)

// Credentials returns the form that makes a token for c alone: name, value, name, value….
func (c Client) Credentials(more ...string) []string {
	return append([]string{"grant_type", "client_credentials", "client_id", c.ID, "client_secret",
		c.Secret}, more...)
}

// Basic returns the header Authorization of HTTP Basic.
func Basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// NewCode issues a code of a user without a browser.
func (st *IdentityStack) NewCode(t *testing.T, c Client, userID int64, scopes oauth.Scopes) string {
	t.Helper()
	user, err := st.Store.User(t.Context(), userID)
	if err != nil {
		t.Fatal(err)
	}
	code, fault := st.Tokens.IssueCode(t.Context(),
		oauth.AuthorizationCode{ClientID: c.ID, UserID: userID, Epochs: oauth.Epochs{User: user.Epoch},
			RedirectURI: RedirectURI, Scopes: scopes, CodeChallenge: Challenge()}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

// NewToken returns an access and a refresh token of the user.
func (st *IdentityStack) NewToken(t *testing.T, c Client, userID int64,
	scopes oauth.Scopes) (access, refresh string) {
	t.Helper()
	a := st.Redeem(t, c, st.NewCode(t, c, userID, scopes))
	o := a.Object(t)
	access, _ = o["access_token"].(string)
	refresh, _ = o["refresh_token"].(string)
	if a.Status != 200 || access == "" || refresh == "" {
		t.Fatalf("got %d %s, want two tokens", a.Status, a.Body)
	}
	return access, refresh
}

// Introspect returns what the introspection endpoint says to api about a token.
func (st *IdentityStack) Introspect(t *testing.T, api Client, token any) map[string]any {
	t.Helper()
	text, _ := token.(string)
	form := Values("client_id", api.ID, "client_secret", api.Secret, "token", text)
	return st.Send(t, "POST", st.URL+"/oauth/introspect", form.Encode(), "Content-Type",
		"application/x-www-form-urlencoded").Object(t)
}

// PostToken posts a form to the token endpoint.
func (st *IdentityStack) PostToken(t *testing.T, form url.Values, headers ...string) Response {
	t.Helper()
	return st.Send(t, "POST", st.URL+"/oauth/token", form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// Redeem exchanges a code and returns the response.
func (st *IdentityStack) Redeem(t *testing.T, c Client, code string) Response {
	t.Helper()
	return st.PostToken(t, Values("grant_type", "authorization_code", "code", code, "redirect_uri",
		RedirectURI,
		"client_id", c.ID, "client_secret", c.Secret, "code_verifier", Verifier))
}

// Verifier is the code_verifier of each Request.
const Verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// Challenge is the code_challenge of Verifier.
func Challenge() string { return ChallengeOf(Verifier) }

// ChallengeOf is the code_challenge of a verifier.
func ChallengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Values returns a form or query of name, value, name, value…; it omits empty values.
func Values(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Add(pairs[i], pairs[i+1])
		}
	}
	return q
}

// Request returns the query of an ordinary authorization request; more overrides it.
func (c Client) Request(more ...string) url.Values {
	q := Values("response_type", "code", "client_id", c.ID, "redirect_uri", slices.Concat(c.RedirectURIs, []string{RedirectURI})[0],
		"scope", "view-user",
		"state", "s t&ä", "code_challenge", Challenge(), "code_challenge_method", "S256")
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
		if more[i+1] == "" {
			q.Del(more[i])
		}
	}
	return q
}

// NewOpenIDClient registers a client for all scopes that a user can grant. change may be nil.
func (st *IdentityStack) NewOpenIDClient(t *testing.T, change func(*oauth.Client)) Client {
	t.Helper()
	return st.NewClient(t, func(c *oauth.Client) {
		c.Scopes = oauth.GrantableScopes
		if change != nil {
			change(c)
		}
	})
}

// Assertion returns an assertion of a client (RFC 7523) under the key id "k".
func Assertion(t *testing.T, key *rsa.PrivateKey, clientID, audience string) string {
	t.Helper()
	return SignJWT(t, jose.RS256, key, map[string]any{"iss": clientID, "sub": clientID,
		"jti": rand.Text(), "aud": audience, "iat": time.Now().Unix(), "exp": time.Now().Unix() + 60},
		(&jose.SignerOptions{}).WithHeader("kid", "k"))
}

// SignJWT returns a JWT that says claims.
func SignJWT(t *testing.T, alg jose.SignatureAlgorithm, key, claims any,
	options *jose.SignerOptions) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
