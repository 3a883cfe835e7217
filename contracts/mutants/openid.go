package mutants

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

const (
	discovery         = "GET /.well-known/openid-configuration"
	protectedResource = "GET /.well-known/oauth-protected-resource"
	jwks              = "GET /oauth/jwks"
	userInfo          = "GET /oauth/userinfo"
	userInfoByPost    = "POST /oauth/userinfo"
	logout            = "GET /oauth/logout"
	logoutByPost      = "POST /oauth/logout"
	authorizeByPost   = "POST /oauth/authorize"
	deviceCodes       = "POST /oauth/device_authorization"
	registration      = "POST /oauth/register"
)

// openIDMutants returns mutants of all that OpenID Connect, devices and resources added.
func openIDMutants() []Mutant {
	all := append(discoveryMutants(), idTokenMutants()...)
	all = append(append(all, userInfoMutants()...), browserMutants()...)
	return slices.Concat(all, deviceMutants(), resourceMutants(), registrationMutants())
}

func discoveryMutants() []Mutant {
	all := []Mutant{
		spoiled(discovery, 200, "userinfo is elsewhere",
			set("userinfo_endpoint", "https://id.example/userinfo")),
		spoiled(discovery, 200, "the issuer ends with a slash", set("issuer", "https://id.example/")),
		spoiled(discovery, 200, "id_tokens may be unsigned",
			set("id_token_signing_alg_values_supported", []string{"none"})),
		spoiled(discovery, 200, "RS256 is not offered",
			set("id_token_signing_alg_values_supported", []string{"ES256"})),
		spoiled(discovery, 200, "request_uri is promised", set("request_uri_parameter_supported", true)),
		spoiled(discovery, 200, "request_uri is not excluded", drop("request_uri_parameter_supported")),
		spoiled(discovery, 200, "tokens are given in the browser",
			set("response_types_supported", []string{"code", "id_token"})),
		spoiled(discovery, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
		spoiled(discovery, 200, "it may not be kept", header("Cache-Control", "no-store")),
		spoiled(discovery, 200, "devices are always offered",
			add("device_authorization_endpoint", "https://id.example/oauth/device_authorization")),
		spoiled(protectedResource, 200, "the server is another",
			set("authorization_servers", []string{"https://other.example/x"})),
		spoiled(protectedResource, 200, "the resource has a path",
			set("resource", "https://id.example/api")),
		spoiled(protectedResource, 200, "web pages may not read it",
			without("Access-Control-Allow-Origin")),
		spoiled(protectedResource, 200, "there is one member more", extra("")),
		spoiled(protectedResource, 200, "tokens are taken in the query",
			set("bearer_methods_supported", []string{"query"})),
		spoiled(jwks, 200, "there are no keys", set("keys", []any{})),
		spoiled(jwks, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
		spoiled(jwks, 200, "it may not be kept", header("Cache-Control", "no-store")),
		spoiled(jwks, 200, "private parts are shown", set("keys.*.n", nil)),
		spoiled(jwks, 200, "keys have an unknown member", extra("keys.*")),
		spoiled(jwks, 200, "there is one member more", extra("")),
		spoiled(jwks, 200, "keys encrypt", set("keys.*.use", "enc")),
		spoiled(jwks, 200, "all keys have one id", set("keys.*.kid", thumbprint)),
		spoiled(jwks, 200, "RSA keys are short", set("keys.*.n", "AQAB")),
	}
	for _, member := range []string{"userinfo_endpoint", "jwks_uri", "end_session_endpoint",
		"subject_types_supported", "id_token_signing_alg_values_supported", "claims_supported",
		"scopes_supported", "backchannel_logout_supported", "device_authorization_endpoint"} {
		all = append(all, spoiled(discovery, 200, member+" is missing", drop(member)).of(member))
	}
	for _, member := range []string{"kty", "alg", "kid", "n", "e", "crv", "x", "y"} {
		all = append(all, spoiled(jwks, 200, member+" is missing", drop("keys.*."+member)))
	}
	for _, member := range []string{"resource", "authorization_servers", "scopes_supported",
		"bearer_methods_supported"} {
		all = append(all, spoiled(protectedResource, 200, member+" is missing", drop(member)))
	}
	return all
}

const thumbprint = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

// forged is a change that signs id_tokens with a key of nobody, after claims changed them.
func forged(claims func(map[string]any)) change {
	return reissued(claims, func(payload []byte) (string, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return "", err
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
		if err != nil {
			return "", err
		}
		signed, err := signer.Sign(payload)
		if err != nil {
			return "", err
		}
		return signed.CompactSerialize()
	})
}

// unsigned is a change that makes id_tokens without a signature.
func unsigned(payload []byte) (string, error) {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(payload) + ".AA", nil
}

// reissued is a change that replaces id_tokens.
func reissued(claims func(map[string]any), sign func([]byte) (string, error)) change {
	return func(a *response) {
		a.object("", func(o map[string]any) {
			text, _ := o["id_token"].(string)
			parts := strings.Split(text, ".")
			if len(parts) != 3 {
				return
			}
			payload, err := base64.RawURLEncoding.DecodeString(parts[1])
			var all map[string]any
			if err != nil || json.Unmarshal(payload, &all) != nil {
				return
			}
			claims(all)
			payload, err = json.Marshal(all)
			if err != nil {
				panic(err) // parsed JSON can be written
			}
			if o["id_token"], err = sign(payload); err != nil {
				panic(err) // the key is new
			}
		})
	}
}

func idTokenMutants() []Mutant {
	same := func(map[string]any) {}
	return []Mutant{
		spoiled(token, 200, "id_token is missing", drop("id_token")).of("id_token"),
		spoiled(token, 200, "id_token is null", null("id_token")).of("id_token"),
		spoiled(token, 200, "id_token is no JWT", set("id_token", "gtat_0")).of("id_token"),
		spoiled(token, 200, "id_token is called idToken",
			rename("id_token", "idToken")).of("id_token"),
		spoiled(token, 200, "id_token is signed by nobody", reissued(same, unsigned)).of("id_token"),
		spoiled(token, 200, "id_token is signed by another", forged(same)).of("id_token"),
		spoiled(token, 200, "id_token is for another access token", func(a *response) {
			a.object("", func(o map[string]any) {
				if access, ok := o["access_token"].(string); ok && o["id_token"] != nil {
					o["access_token"] = access + "x"
				}
			})
		}).of("id_token"),
		spoiled(token, 200, "every response has an id_token", func(a *response) {
			a.object("", func(o map[string]any) {
				if o["id_token"] == nil {
					o["id_token"] = "a.b.c"
				}
			})
		}),
	}
}

func userInfoMutants() []Mutant {
	var all []Mutant
	for _, o := range []string{userInfo, userInfoByPost} {
		all = append(all,
			spoiled(o, 200, "sub is a number", set("sub", 17)),
			spoiled(o, 200, "claims are nested", func(a *response) {
				a.object("", func(o map[string]any) {
					if o["name"] != nil {
						o["profile"] = o["name"]
						delete(o, "name")
					}
				})
			}),
			spoiled(o, 200, "it may be kept", header("Cache-Control", "max-age=60")),
			spoiled(o, 200, "web pages may not read it", without("Access-Control-Allow-Origin")),
			spoiled(o, 200, "the limit is that of details", header("X-RateLimit-Limit", "50")),
			spoiled(o, 200, "the quota is gone", without("X-RateLimit-Remaining")),
			spoiled(o, 401, "the challenge is gone", without("WWW-Authenticate")),
			spoiled(o, 401, "the challenge is bare", header("WWW-Authenticate", "Bearer")),
			spoiled(o, 401, "the metadata is not named", header("WWW-Authenticate",
				`Bearer realm="gatehouse"`)),
			spoiled(o, 401, "web pages may not read why", without("Access-Control-Allow-Origin")),
			spoiled(o, 401, "the status is 403", status(403)),
			spoiled(o, 403, "any scope is good", instead(200, map[string]any{"sub": "1"})),
			spoiled(o, 429, "Retry-After is gone", without("Retry-After")),
			spoiled(o, 503, "the status of too much to do is 500", status(500)))
		for _, member := range []string{"sub", "name", "preferred_username", "picture", "gender",
			"birthdate", "updated_at", "email", "email_verified", "phone_number",
			"phone_number_verified", "address"} {
			all = append(all, spoiled(o, 200, member+" is missing", drop(member)).of(member))
		}
	}
	return append(all,
		spoiled(userInfo, 200, "there is one member more", extra("")),
		spoiled(userInfo, 200, "sub is that of another", set("sub", "4711")),
		spoiled(userInfo, 200, "updated_at is in milliseconds",
			calculated("updated_at", func(n float64) float64 { return n * 1000 })).of("updated_at"),
		spoiled(userInfo, 200, "email_verified is a string", text("email_verified")).of("email_verified"),
		spoiled(userInfo, 200, "address is a string",
			set("address", "12 St James's Square, London")).of("formatted"),
		spoiled(userInfo, 200, "what is not known is null", func(a *response) {
			a.object("", func(o map[string]any) {
				for _, name := range []string{"email", "birthdate"} {
					if _, ok := o[name]; !ok {
						o[name] = nil
					}
				}
			})
		}),
		spoiled(userInfoByPost, 400, "two tokens are good", instead(200, map[string]any{"sub": "1"})),
		spoiled(userInfoByPost, 400, "errors have one member more", extra("")),
		asked(userInfoByPost, "the form is not read",
			func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }))
}

func browserMutants() []Mutant {
	all := []Mutant{
		asked(authorize, "max_age is not read", func(r *http.Request) { unquery(r, "max_age") }),
		asked(authorize, "response_mode is not read",
			func(r *http.Request) { unquery(r, "response_mode") }),
		asked(authorize, "id_token_hint is not read",
			func(r *http.Request) { unquery(r, "id_token_hint") }),
		asked(authorize, "request is not read", func(r *http.Request) { unquery(r, "request") }),
		asked(authorize, "request_uri is not read", func(r *http.Request) { unquery(r, "request_uri") }),
		asked(authorize, "resource is not read", func(r *http.Request) { unquery(r, "resource") }),
		spoiled(authorize, 200, "the form may run any script",
			header("Content-Security-Policy", "script-src 'unsafe-inline'")),
		spoiled(authorize, 200, "the form may be kept", without("Cache-Control")),
		spoiled(authorizeByPost, 303, "the status is 307", status(307)),
		spoiled(authorizeByPost, 303, "parameters are lost", header("Location", "/oauth/authorize")),
		spoiled(authorizeByPost, 400, "the page is JSON", header("Content-Type", "application/json")),
		spoiled(logout, 302, "state is lost", func(a *response) {
			location, _, _ := strings.Cut(a.header.Get("Location"), "?")
			a.header.Set("Location", location)
		}),
		spoiled(logout, 302, "the return is to another host", func(a *response) {
			a.header.Set("Location", strings.Replace(a.header.Get("Location"), "app.example",
				"evil.example", 1))
		}),
		spoiled(logout, 302, "the return may be kept", without("Cache-Control")),
		spoiled(logout, 200, "nobody is asked", func(a *response) {
			a.status = 302
			a.header.Set("Location", "https://app.example/bye")
		}),
		spoiled(logout, 400, "any return is good", func(a *response) {
			a.status = 302
			a.header.Set("Location", a.request.URL.Query().Get("post_logout_redirect_uri"))
		}),
		spoiled(logout, 400, "the status of error pages is 200", status(200)),
		asked(logout, "id_token_hint is not read",
			func(r *http.Request) { unquery(r, "id_token_hint") }),
		asked(logout, "the return is not read",
			func(r *http.Request) { unquery(r, "post_logout_redirect_uri") }),
		spoiled(logoutByPost, 303, "the status is 307", status(307)),
		spoiled(logoutByPost, 303, "parameters are lost", header("Location", "/oauth/logout")),
		spoiled(logoutByPost, 400, "the status of error pages is 200", status(200)),
	}
	for _, o := range []string{authorizeByPost, logoutByPost} {
		all = append(all,
			spoiled(o, 303, "Location is gone", without("Location")),
			spoiled(o, 303, "redirects may be kept", without("Cache-Control")),
			spoiled(o, 400, "error pages may be framed", without("Content-Security-Policy")))
	}
	for _, code := range []string{"interaction_required", "account_selection_required",
		"request_not_supported", "request_uri_not_supported", "invalid_target"} {
		all = append(all, spoiled(authorize, 302, code+" is called invalid_request",
			parameter(func(q url.Values) {
				if q.Get("error") == code {
					q.Set("error", "invalid_request")
				}
			})).of(code))
	}
	return all
}

func deviceMutants() []Mutant {
	all := []Mutant{
		spoiled(deviceCodes, 200, "user codes have vowels", set("user_code", "AEIO-AEIO")),
		spoiled(deviceCodes, 200, "user codes have no dash", set("user_code", "BCDFGHJK")),
		spoiled(deviceCodes, 200, "the page is that of another user code",
			set("verification_uri_complete", "https://id.example/device?user_code=BCDF-GHJK")),
		spoiled(deviceCodes, 200, "expires_in is in minutes", set("expires_in", 10)),
		spoiled(deviceCodes, 200, "interval is a string", text("interval")),
		spoiled(deviceCodes, 200, "there is one member more", extra("")),
		spoiled(deviceCodes, 200, "codes may be kept", without("Cache-Control")),
		spoiled(deviceCodes, 200, "the status is 201", status(201)),
		spoiled(deviceCodes, 400, "any client gets codes",
			when(coded("unauthorized_client"), instead(200, map[string]any{}))),
		spoiled(deviceCodes, 400, "any scope is good",
			when(coded("invalid_scope"), instead(200, map[string]any{}))),
		spoiled(deviceCodes, 401, "unknown clients are invalid requests", status(400)),
		spoiled(deviceCodes, 401, "the challenge is gone", without("WWW-Authenticate")),
		spoiled(deviceCodes, 429, "Retry-After is gone", without("Retry-After")),
		spoiled(deviceCodes, 503, "Retry-After is gone", without("Retry-After")),
		spoiled(deviceCodes, 503, "the status of too much to do is 500", status(500)),
		asked(deviceCodes, "HTTP Basic is not read",
			func(r *http.Request) { r.Header.Del("Authorization") }),
	}
	for _, member := range []string{"device_code", "user_code", "verification_uri",
		"verification_uri_complete", "expires_in", "interval"} {
		all = append(all, spoiled(deviceCodes, 200, member+" is missing", drop(member)))
	}
	for _, code := range []string{"authorization_pending", "slow_down", "access_denied",
		"expired_token", "invalid_target"} {
		all = append(all,
			spoiled(token, 400, code+" is called invalid_grant",
				when(coded(code), set("error", "invalid_grant"))).of(code),
			spoiled(token, 400, code+" gets tokens", when(coded(code), instead(200, issued))).of(code))
	}
	return append(all, spoiled(token, 200, "devices get nothing",
		when(func(a *response) bool { return a.form.Has("device_code") },
			instead(400, map[string]any{"error": "invalid_grant"}))))
}

func registrationMutants() []Mutant {
	all := []Mutant{
		spoiled(registration, 201, "the status is 200", status(200)),
		spoiled(registration, 201, "secrets may be kept", without("Cache-Control")),
		spoiled(registration, 201, "there is one member more", extra("")),
		spoiled(registration, 201, "client_id is a number", set("client_id", 7)),
		spoiled(registration, 201, "all scopes are registered",
			set("scope", "view-user detail-user server-operations")),
		spoiled(registration, 201, "all grants are registered",
			set("grant_types", []string{"authorization_code", "client_credentials"})),
		spoiled(registration, 201, "tokens are given in the browser",
			set("response_types", []string{"token"})),
		spoiled(registration, 201, "redirect URIs are added",
			set("redirect_uris", []string{"https://app.example/callback", "https://evil.example/"})),
		spoiled(registration, 201, "public clients get a secret",
			add("client_secret", "gtcs_kso76eK7EMqVnH4gYGgtmpzIsbL4BVnAKrTo3Ob2ehn4aaTZe")),
		spoiled(registration, 201, "id_tokens are unsigned",
			set("id_token_signed_response_alg", "none")),
		spoiled(registration, 400, "any redirect URI is good",
			when(coded("invalid_redirect_uri"), instead(201, map[string]any{}))),
		spoiled(registration, 400, "any metadata are good",
			when(coded("invalid_client_metadata"), instead(201, map[string]any{}))),
		spoiled(registration, 401, "the status of a missing token is 403", status(403)),
		spoiled(registration, 401, "the challenge is gone", without("WWW-Authenticate")),
		spoiled(registration, 429, "Retry-After is gone", without("Retry-After")),
		spoiled(registration, 503, "Retry-After is gone", without("Retry-After")),
		spoiled(registration, 503, "the status of too much to do is 500", status(500)),
		asked(registration, "the token is not read",
			func(r *http.Request) { r.Header.Del("Authorization") }),
	}
	for _, member := range []string{"client_id", "client_id_issued_at", "client_secret",
		"client_secret_expires_at", "client_name", "client_uri", "redirect_uris", "grant_types",
		"response_types", "token_endpoint_auth_method", "scope", "jwks", "jwks_uri",
		"post_logout_redirect_uris", "id_token_signed_response_alg"} {
		all = append(all,
			spoiled(registration, 201, member+" is missing", drop(member)).of(`"`+member+`"`))
	}
	for _, code := range []string{"invalid_redirect_uri", "invalid_client_metadata"} {
		all = append(all, spoiled(registration, 400, code+" is called invalid_request",
			when(coded(code), set("error", "invalid_request"))).of(code))
	}
	for _, o := range []string{discovery, metadata} {
		all = append(all, spoiled(o, 200, "registration is elsewhere",
			when(func(a *response) bool { return strings.Contains(string(a.body), "/oauth/register") },
				set("registration_endpoint", "https://id.example/register"))))
	}
	return all
}

func resourceMutants() []Mutant {
	all := []Mutant{
		spoiled(introspect, 200, "aud is missing", drop("aud")).of(`"aud"`),
		spoiled(introspect, 200, "aud is a string",
			set("aud", "https://notes.example/v1")).of(`"aud"`),
		spoiled(introspect, 200, "aud is the client", set("aud", []string{"x"})).of(`"aud"`),
		spoiled(introspect, 200, "every token has an audience", func(a *response) {
			a.object("", func(o map[string]any) {
				if o["active"] == true && o["aud"] == nil {
					o["aud"] = []string{"https://id.example"}
				}
			})
		}),
		spoiled("GET /api/user", 401, "tokens for others are good",
			instead(200, map[string]any{"id": 1, "name": "Ada"})),
	}
	for _, o := range []string{token, revoke, introspect, deviceCodes} {
		all = append(all, spoiled(o, 200, "assertions are not read",
			when(func(a *response) bool { return a.form.Has("client_assertion") },
				instead(401, map[string]any{"error": "invalid_client"}))))
	}
	return append(all, spoiled(token, 401, "any assertion is good",
		when(func(a *response) bool { return a.form.Has("client_assertion") },
			instead(200, issued))))
}
