package token_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// openID makes a Service the issuer https://id.example with a client that may have all scopes of
// OpenID Connect.
func openID(t testing.TB, options oauth.ClientOptions, approved bool) *fixture {
	t.Helper()
	f := start(t, newStore(t), func(c *token.Config) { c.Issuer = "https://id.example" })
	if options.IDTokenAlg == "" {
		options.IDTokenAlg = "ES256" // an RSA key takes a second under the race detector
	}
	f.client, f.secret = f.register(t, oauth.Client{
		Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"},
		Scopes: oauth.OpenIDScopes | oauth.UserScopes, DetailApproved: approved, Options: options,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant,
	})
	return f
}

var grantDetails = oauth.GrantDetails{
	AuthTime: 1_700_000_000, AMR: []string{"pwd"}, SID: "s1", Nonce: "n1",
}

// put replaces user 7, as another process does.
func (f *fixture) put(u account.User) {
	f.store.changeUser(func(known *account.User) {
		u.ServiceID, u.Version, u.Epoch = known.ServiceID, known.Version, known.Epoch
		*known = u
	})
}

// codeFor returns a new authorization code of user 7 for scopes.
func (f *fixture) codeFor(t testing.TB, scopes oauth.Scopes) string {
	t.Helper()
	code, fault := f.IssueCode(t.Context(), oauth.AuthorizationCode{
		ClientID: f.client.ID, UserID: 7, RedirectURI: "https://shop.example/cb", Scopes: scopes,
		Details: grantDetails, Epochs: f.store.epochs(),
	}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

// idToken checks the signature of the response's id_token and its at_hash, and returns all other
// claims.
func (f *fixture) idToken(t testing.TB, r *oauth.TokenResponse) map[string]any {
	t.Helper()
	var claims map[string]any
	if _, err := f.Verify(r.IDToken, token.IDTokenTyp, &claims); err != nil {
		t.Fatalf("%q: %v", r.IDToken, err)
	}
	hash := sha256.Sum256([]byte(r.AccessToken))
	if want := base64.RawURLEncoding.EncodeToString(hash[:16]); claims["at_hash"] != want {
		t.Errorf("got at_hash %v, want %s", claims["at_hash"], want)
	}
	delete(claims, "at_hash")
	return claims
}

// wantClaims compares claims by their JSON.
func wantClaims(t testing.TB, what string, got, want map[string]any) {
	t.Helper()
	gotText, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	wantText, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(gotText) != string(wantText) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, gotText, wantText)
	}
}

func TestIDToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openID(t, oauth.ClientOptions{}, false)
		first := f.mustToken(t, f.codeRequest(f.codeFor(t, oauth.OpenID|oauth.ViewUser)))
		issued := time.Now().Unix()
		want := map[string]any{
			"iss": "https://id.example", "sub": "7", "aud": f.client.ID, "azp": f.client.ID,
			"iat": issued, "exp": issued + 3600, "auth_time": grantDetails.AuthTime, "nonce": "n1",
			"amr": []string{"pwd"}, "acr": "1", "sid": "s1",
		}
		wantClaims(t, "code", f.idToken(t, first), want)

		time.Sleep(10 * time.Minute)
		second := f.mustToken(t, f.refreshRequest(first.RefreshToken))
		delete(want, "nonce")
		want["iat"], want["exp"] = issued+600, issued+4200
		wantClaims(t, "refresh", f.idToken(t, second), want)

		narrow := f.refreshRequest(second.RefreshToken)
		narrow.Scope = "view-user"
		if got := f.mustToken(t, narrow); got.IDToken != "" {
			t.Errorf("got %s for a refresh without openid, want no id_token", got.IDToken)
		}
	})
}

// person has a value for each claim.
var person = account.User{
	ID: 7, Name: "Ann Miller", Email: "ann@example.com", Phone: "+491701234567", Username: "ann",
	Gender: "female", Address: "1 <Road>\nTown", DateOfBirth: "1990-02-03",
	ProfilePicture: "https://pictures.example/a?b&c", Updated: time.Unix(1_600_000_000, 0),
}

// TestClaimsByScope reads userinfo and the id_token for each set of scopes.
func TestClaimsByScope(t *testing.T) {
	profile := map[string]any{
		"name": "Ann Miller", "preferred_username": "ann", "gender": "female",
		"picture": "https://pictures.example/a?b&c", "updated_at": 1_600_000_000,
	}
	email := map[string]any{"email": "ann@example.com", "email_verified": true}
	phone := map[string]any{"phone_number": "+491701234567", "phone_number_verified": true}
	address := map[string]any{"address": map[string]any{"formatted": "1 <Road>\nTown"}}
	birthdate := map[string]any{"birthdate": "1990-02-03"}
	for _, approved := range []bool{false, true} {
		f := openID(t, oauth.ClientOptions{ClaimsInIDToken: true}, approved)
		f.put(person)
		for scopes := range oauth.OpenIDScopes + 1 {
			if scopes.Contains(oauth.UserScopes) || !scopes.Contains(oauth.OpenID) ||
				!oauth.OpenIDScopes.Contains(scopes) {
				continue
			}
			want := map[string]any{"sub": "7"}
			for _, group := range []struct {
				released bool
				claims   map[string]any
			}{
				{scopes.Contains(oauth.Profile), profile},
				{scopes.Contains(oauth.Profile) && approved, birthdate},
				{scopes.Contains(oauth.Email), email},
				{scopes.Contains(oauth.Phone) && approved, phone},
				{scopes.Contains(oauth.Address) && approved, address},
			} {
				if group.released {
					maps.Copy(want, group.claims)
				}
			}
			response := f.mustToken(t, f.codeRequest(f.codeFor(t, scopes)))
			what := scopes.String() + ", approved: " + strconv.FormatBool(approved)
			var got map[string]any
			for range 2 { // the second one is kept from the first
				info := f.Admit(response.AccessToken, token.UserInfo, time.Now())
				if err := json.Unmarshal(info.Profile, &got); err != nil {
					t.Fatalf("%s: %s: %v", what, info.Profile, err)
				}
				wantClaims(t, what+", userinfo", got, want)
			}
			claims := f.idToken(t, response)
			for _, name := range []string{"iss", "aud", "azp", "exp", "iat", "auth_time", "nonce",
				"amr", "acr", "sid"} {
				delete(claims, name)
			}
			wantClaims(t, what+", id_token", claims, want)
		}
	}
}

// TestFullSigningQueueConsumesNothing refuses an id_token for lack of room.
func TestFullSigningQueueConsumesNothing(t *testing.T) {
	f := openID(t, oauth.ClientOptions{}, false)
	first := f.mustToken(t, f.codeRequest(f.codeFor(t, oauth.OpenID)))
	code := f.codeFor(t, oauth.OpenID)
	release := f.FillSigner(f.client)
	for range 2 {
		f.wantFault(t, "code", f.codeRequest(code), oauth.TemporarilyUnavailable)
		f.wantFault(t, "refresh", f.refreshRequest(first.RefreshToken), oauth.TemporarilyUnavailable)
	}
	f.mustToken(t, f.codeRequest(f.codeFor(t, oauth.ViewUser))) // it needs no signature
	if _, err := f.Sign("ES256", "JWT", said{}); err != nil {
		t.Errorf("one client fills the queue of all: %v", err)
	}
	release()
	if got := f.mustToken(t, f.codeRequest(code)); got.IDToken == "" {
		t.Error("the code has no id_token")
	}
	if got := f.mustToken(t, f.refreshRequest(first.RefreshToken)); got.IDToken == "" {
		t.Error("the refresh token has no id_token")
	}
	f.wantFault(t, "used code", f.codeRequest(code), oauth.InvalidGrant)
	if got := f.Reserved(); got != 0 {
		t.Errorf("got %d reservations that nobody uses, want none", got)
	}
}

// TestReusedCodeNeedsNoSignature ends a family also while the signing queue is full.
func TestReusedCodeNeedsNoSignature(t *testing.T) {
	f := openID(t, oauth.ClientOptions{}, false)
	code := f.codeFor(t, oauth.OpenID|oauth.ViewUser)
	first := f.mustToken(t, f.codeRequest(code))
	defer f.FillSigner(f.client)()
	f.wantFault(t, "reused", f.codeRequest(code), oauth.InvalidGrant)
	f.wantVerdict(t, "after reuse", first.AccessToken, token.TokenInvalid)
}

// TestStrangersLeaveRoomForSignatures has clients that registered themselves reserve all signatures
// that they may. A client of an operator gets its own; one more of theirs does not.
func TestStrangersLeaveRoomForSignatures(t *testing.T) {
	f := openID(t, oauth.ClientOptions{}, false)
	stranger := func(i int) *oauth.Client {
		return &oauth.Client{ID: fmt.Sprint("stranger ", i),
			Options: oauth.ClientOptions{SelfRegistered: true}}
	}
	for i := range 4 {
		defer f.FillSigner(stranger(i))()
	}
	before := f.Reserved()
	if f.FillSigner(stranger(4)); f.Reserved() != before {
		t.Error("got room for a fifth client that registered itself, want all in use")
	}
	if got := f.mustToken(t, f.codeRequest(f.codeFor(t, oauth.OpenID))); got.IDToken == "" {
		t.Error("got no id_token for a client of an operator")
	}
}
