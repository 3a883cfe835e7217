package mutants

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

const (
	metadata          = "GET /.well-known/oauth-authorization-server"
	discovery         = "GET /.well-known/openid-configuration"
	protectedResource = "GET /.well-known/oauth-protected-resource"
	jwks              = "GET /oauth/jwks"
	userInfo          = "GET /oauth/userinfo"
	userInfoByPost    = "POST /oauth/userinfo"
	deviceCodes       = "POST /oauth/device_authorization"
	registration      = "POST /oauth/register"
)

// discoveryMutants returns mutants of what the service says about itself.
func discoveryMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{metadata, discovery} {
		all = append(all,
			spoiled(o, 200, "the issuer ends with a slash", changedText("issuer",
				func(s string) string { return s + "/" })),
			spoiled(o, 200, "registration is elsewhere", set("registration_endpoint",
				"https://id.example/register")).of("/oauth/register"))
	}
	for _, o := range []string{metadata, discovery, jwks} {
		all = append(all, spoiled(o, 200, "it may not be kept", header("Cache-Control", "no-store")))
	}
	for _, name := range []string{"authorization", "token", "revocation", "introspection"} {
		all = append(all, spoiled(metadata, 200, "the "+name+" endpoint is on another host",
			set(name+"_endpoint", "https://other.example/oauth/"+name)))
	}
	return slices.Concat(all,
		wrong(metadata, 200, "token_endpoint", map[string]any{
			"has another path": "https://id.example/token"}),
		wrong(metadata, 200, "code_challenge_methods_supported", map[string]any{
			"has plain challenges": []string{"plain", "S256"}}),
		wrong(metadata, 200, "grant_types_supported", map[string]any{
			"has no refresh tokens": []string{"authorization_code", "client_credentials"},
			"has passwords": []string{"authorization_code", "refresh_token", "client_credentials",
				"password"}}),
		wrong(metadata, 200, "response_types_supported", map[string]any{
			"has tokens in redirects": []string{"code", "token"}}),
		wrong(metadata, 200, "scopes_supported", map[string]any{
			"has no openid": []string{"view-user", "detail-user"}}),
		wrong(discovery, 200, "userinfo_endpoint", map[string]any{
			"has another path": "https://id.example/userinfo"}),
		wrong(discovery, 200, "id_token_signing_alg_values_supported", map[string]any{
			"has none": []string{"none"}, "has no RS256": []string{"ES256"}}),
		wrong(discovery, 200, "response_types_supported", map[string]any{
			"has tokens in redirects": []string{"code", "id_token"}}),
		wrong(protectedResource, 200, "authorization_servers", map[string]any{
			"has another server": []string{"https://other.example/x"}}),
		wrong(protectedResource, 200, "resource", map[string]any{
			"has a path": "https://id.example/api"}),
		wrong(protectedResource, 200, "bearer_methods_supported", map[string]any{
			"has the query": []string{"query"}}),
		wrong(jwks, 200, "keys", map[string]any{"is empty": []any{}}),
		wrong(jwks, 200, "keys.*.kid", map[string]any{"is the same for all": thumbprint}),
		wrong(jwks, 200, "keys.*.n", map[string]any{"is short": "AQAB"}))
}

const thumbprint = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

// forged signs an id_token with a key of nobody.
func forged(payload string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		return "", err
	}
	claims, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// unsigned makes an id_token without a signature.
func unsigned(payload string) (string, error) {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + payload + ".AA", nil
}

// reissued makes id_tokens anew from their payload.
func reissued(sign func(payload string) (string, error)) change {
	return changedText("id_token", func(text string) string {
		signed, err := sign(strings.Split(text, ".")[1])
		if err != nil {
			panic(err) // the key is new
		}
		return signed
	})
}

func idTokenMutants() []Mutant {
	var all []Mutant
	for name, f := range map[string]change{
		"no JWT": set("id_token", "gtat_0"), "signed by nobody": reissued(unsigned),
		"signed by another": reissued(forged),
		"for another access token": func(a *response) {
			a.object("", func(o map[string]any) {
				if access, ok := o["access_token"].(string); ok && o["id_token"] != nil {
					o["access_token"] = access + "x"
				}
			})
		},
	} {
		all = append(all, spoiled(token, 200, "id_token is "+name, f).of("id_token"))
	}
	return all
}

func userInfoMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{userInfo, userInfoByPost} {
		all = append(all,
			spoiled(o, 200, "the limit is that of details", header("X-RateLimit-Limit", "50")),
			spoiled(o, 401, "the challenge is bare", header("WWW-Authenticate", "Bearer")),
			spoiled(o, 401, "the metadata is not named", header("WWW-Authenticate",
				`Bearer realm="gatehouse"`)))
	}
	return append(all,
		spoiled(userInfo, 200, "sub is that of another", set("sub", "4711")),
		spoiled(userInfo, 200, "updated_at is in milliseconds",
			calculated("updated_at", times(1000))).of("updated_at"),
		spoiled(userInfoByPost, 400, "two tokens are good", instead(200, map[string]any{"sub": "1"})),
		asked(userInfoByPost, "the form is not read",
			func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }))
}

// clientMutants returns mutants of devices, registrations and audiences.
func clientMutants() []Mutant {
	all := slices.Concat(
		wrong(deviceCodes, 200, "user_code", map[string]any{"has vowels": "AEIO-AEIO",
			"has no dash": "BCDFGHJK"}),
		wrong(deviceCodes, 200, "verification_uri_complete", map[string]any{
			"has another code": "https://id.example/device?user_code=BCDF-GHJK"}),
		wrong(deviceCodes, 200, "expires_in", map[string]any{"is in minutes": 10}),
		wrong(registration, 201, "scope", map[string]any{
			"has all": "view-user detail-user server-operations"}),
		wrong(registration, 201, "grant_types", map[string]any{
			"has all": []string{"authorization_code", "client_credentials"}}),
		wrong(registration, 201, "response_types", map[string]any{
			"has tokens": []string{"token"}}),
		wrong(registration, 201, "redirect_uris", map[string]any{
			"has more": []string{"https://app.example/callback", "https://evil.example/"}}),
		wrong(registration, 201, "id_token_signed_response_alg", map[string]any{"is none": "none"}),
		wrong(introspect, 200, "aud", map[string]any{"is the client": []string{"x"},
			"is a string": "https://notes.example/v1"}))
	for _, o := range []string{token, revoke, introspect, deviceCodes} {
		all = append(all, spoiled(o, 200, "assertions are not read",
			when(has("client_assertion"), instead(401, map[string]any{"error": "invalid_client"}))))
	}
	return append(all, asked(deviceCodes, "HTTP Basic is not read", unauthorized),
		asked(registration, "the token is not read", unauthorized),
		spoiled(registration, 201, "jwks is missing", drop("jwks")).of(`"jwks"`))
}
