package coverage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// idToken reads the keys and the metadata of the service, as a client does, and checks an id_token
// with them (OpenID Connect Core section 3.1.3.7).
func idToken(e *Exchange) error {
	text, ok := e.object()["id_token"].(string)
	if !ok {
		return nil
	}
	keys, err := keysOf(e.Ask(http.MethodGet, own().keys[0], http.Header{}, nil))
	if err != nil {
		return err
	}
	signed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		return fmt.Errorf("got an id_token that is no signed JWT: %w", err)
	}
	var claims object
	if err := signed.Claims(keys, &claims); err != nil {
		return fmt.Errorf("got an id_token that no key of the key set has signed: %w", err)
	}
	issuer, _ := e.issuer()
	access, _ := e.object()["access_token"].(string)
	sum := sha256.Sum256([]byte(access))
	about, known := e.introspect(access)
	exp, _ := number(claims, "exp")
	iat, _ := number(claims, "iat")
	authTime, hasAuthTime := number(claims, "auth_time")
	now := float64(e.Received.Unix())
	switch {
	case claims["iss"] != issuer:
		return fmt.Errorf("got an id_token of %v, want %v", claims["iss"], issuer)
	case known && (claims["aud"] != about["client_id"] || claims["sub"] != about["sub"]):
		return fmt.Errorf("got an id_token for %v about %v, want %v and %v", claims["aud"],
			claims["sub"], about["client_id"], about["sub"])
	case claims["at_hash"] != base64.RawURLEncoding.EncodeToString(sum[:16]):
		return errors.New("got an id_token for another access token")
	case exp-iat != accessLifetime.Seconds() || iat > now+1 || iat < now-60:
		return fmt.Errorf("got an id_token from %v to %v, want one from now on, for an hour", iat, exp)
	case hasAuthTime && (authTime > now+1 || authTime < now-leeway.Seconds()):
		return fmt.Errorf("got auth_time %v, want the time of the sign-in", authTime)
	case claims["nonce"] != nil && e.Form.Get("grant_type") == "refresh_token":
		return fmt.Errorf("got nonce %v of a refresh, want one for a code only", claims["nonce"])
	}
	return e.signedIn(claims)
}

// signedIn compares the claims of an id_token with the authorization that the state made.
func (e *Exchange) signedIn(claims object) error {
	code, ok := e.Values["code"]
	if !ok || e.Form.Get("code") != code {
		return nil
	}
	for _, name := range []string{"nonce", "sid", "auth_time"} {
		want, known := e.Values[name]
		if known && fmt.Sprint(want) == "" {
			want = nil
		}
		if n, ok := want.(int64); ok {
			want = float64(n)
		}
		if known && claims[name] != want {
			return fmt.Errorf("got %s %v, want %v of the authorization", name, claims[name], want)
		}
	}
	return nil
}

// issuer asks the service for its name.
func (e *Exchange) issuer() (string, bool) {
	issuer, ok := e.Ask(http.MethodGet, own().metadata[0], http.Header{}, nil).object()["issuer"]
	text, isText := issuer.(string)
	return text, ok && isText
}

// keysOf returns a key set.
func keysOf(e *Exchange) (*jose.JSONWebKeySet, error) {
	set := new(jose.JSONWebKeySet)
	for _, k := range list(e.object()["keys"]) {
		var key jose.JSONWebKey
		text, err := json.Marshal(k)
		if err == nil {
			err = key.UnmarshalJSON(text)
		}
		if err != nil {
			return nil, fmt.Errorf("got a key that cannot be read: %w", err)
		}
		set.Keys = append(set.Keys, key)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("got no keys")
	}
	return set, nil
}

func publicKeys(e *Exchange) error {
	if e.Method == http.MethodHead {
		return nil
	}
	if e.Status != http.StatusOK {
		return nil
	}
	set, err := keysOf(e)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, key := range set.Keys {
		if !key.IsPublic() || seen[key.KeyID] {
			return fmt.Errorf("got the key %s, want different public keys", key.KeyID)
		}
		seen[key.KeyID] = true
	}
	return nil
}

// sameSubject compares userinfo with the profile of the same token, if it may read one.
func sameSubject(e *Exchange) error {
	sub, ok := e.object()["sub"].(string)
	if !ok {
		return nil
	}
	got := e.profile(own().profiles[0], e.Request.Get("Authorization"))
	id, ok := number(got.object(), "id")
	if got.Status == http.StatusOK && (!ok || strconv.FormatFloat(id, 'f', -1, 64) != sub) {
		return fmt.Errorf("got sub %s of the user %v", sub, got.object()["id"])
	}
	updated, ok := number(e.object(), "updated_at")
	if now := float64(e.Received.Unix()); ok && math.Abs(now-updated) > leeway.Seconds() {
		return fmt.Errorf("got updated_at %v, want the time of the user's last change", updated)
	}
	return nil
}

func namesMetadata(e *Exchange) error {
	challenge := e.Header.Get("WWW-Authenticate")
	want := map[int]string{http.StatusBadRequest: "invalid_request",
		http.StatusForbidden: "insufficient_scope"}[e.Status]
	scheme, token, _ := strings.Cut(strings.TrimSpace(e.Request.Get("Authorization")), " ")
	if e.Status == http.StatusUnauthorized && (strings.EqualFold(scheme, "Bearer") && token != "" ||
		e.Method == http.MethodPost && e.Form.Has("access_token")) { // RFC 6750 sections 2.2 and 3.1
		want = "invalid_token"
		if e.object()["error"] == "insufficient_user_authentication" { // RFC 9470 section 3
			want = "insufficient_user_authentication"
		}
	}
	switch {
	case want == "" && e.Status != http.StatusUnauthorized:
		return nil
	case !strings.Contains(challenge, `resource_metadata="`):
		return fmt.Errorf("got the challenge %s, want resource_metadata in it", challenge)
	case want != "" && !strings.Contains(challenge, `error="`+want+`"`):
		return fmt.Errorf("got the challenge %s, want %s in it", challenge, want)
	}
	return nil
}

// deviceTimes also compares the addresses of the page.
func deviceTimes(e *Exchange) error {
	o := e.object()
	expires, ok := number(o, "expires_in")
	if !ok {
		return nil
	}
	interval, _ := number(o, "interval")
	if expires != (10*time.Minute).Seconds() || interval != 5 {
		return fmt.Errorf("got expires_in %v and interval %v, want 600 and 5", expires, interval)
	}
	page, _ := o["verification_uri"].(string)
	issuer, known := e.issuer()
	if known && !strings.HasPrefix(page, issuer+"/") {
		return fmt.Errorf("got verification_uri %s, want a page of %s", page, issuer)
	}
	code, _ := o["user_code"].(string)
	if o["verification_uri_complete"] != page+"?user_code="+url.QueryEscape(code) {
		return fmt.Errorf("got %v, want the page with the code", o["verification_uri_complete"])
	}
	return nil
}
