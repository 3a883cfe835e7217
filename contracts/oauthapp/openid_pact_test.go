//go:build pact

package oauthapp_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pact-foundation/pact-go/v2/matchers"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// exchange is an interaction of the application, and how the application makes its request.
type exchange struct {
	name     string
	given    []state
	request  pacttest.Request
	response pacttest.Response
	app      func(string) *oauthapp.App // nil = newApp
	call     func(context.Context, *oauthapp.App) error
	code     string // of the *Error that the call returns, when the status is an error
}

// run runs each exchange as an interaction of p.
func run(t *testing.T, p *pacttest.Pact, all []exchange) {
	t.Helper()
	for _, e := range all {
		p.Test(t, pacttest.Interaction{Name: e.name, Given: e.given, Request: e.request,
			Response: e.response}, func(t *testing.T, base string) {
			app := newApp
			if e.app != nil {
				app = e.app
			}
			err := e.call(t.Context(), app(base))
			if e.response.Status >= 400 {
				wantError(t, err, e.response.Status, e.code)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func get(path string) pacttest.Request {
	return pacttest.Request{Method: "GET", Path: path,
		Header: map[string]any{"Accept": "application/json"}}
}

// published returns the headers of a document for everybody.
func published() map[string]any {
	return header("Cache-Control", "public, max-age=3600", "Access-Control-Allow-Origin", "*")
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// thumbprint is a key's ID (RFC 7638).
const thumbprint = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

// modulus is that of an RSA key: the example of RFC 7517 appendix A.1.
const modulus = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"

func discovery(t *testing.T, p *pacttest.Pact) {
	endpoint := func(path string) any {
		return pacttest.Pattern("https://id.example"+path, "^https?://[^/?#]+"+path+"$")
	}
	document := object{
		"issuer":                        endpoint(""),
		"authorization_endpoint":        endpoint("/oauth/authorize"),
		"token_endpoint":                endpoint("/oauth/token"),
		"revocation_endpoint":           endpoint("/oauth/revoke"),
		"introspection_endpoint":        endpoint("/oauth/introspect"),
		"userinfo_endpoint":             endpoint("/oauth/userinfo"),
		"jwks_uri":                      endpoint("/oauth/jwks"),
		"end_session_endpoint":          endpoint("/oauth/logout"),
		"device_authorization_endpoint": endpoint("/oauth/device_authorization"),
		"scopes_supported": pacttest.Having("openid", "profile", "email", "phone", "address",
			"offline_access", "groups", "view-user", "detail-user"),
		"response_types_supported": []string{"code"},
		"response_modes_supported": pacttest.Having("query", "form_post"),
		"grant_types_supported": pacttest.Having("authorization_code", "refresh_token",
			"client_credentials", deviceGrant, exchangeGrant),
		"code_challenge_methods_supported": []string{"S256"},
		"prompt_values_supported":          pacttest.Having("none", "login", "consent", "select_account"),
		"token_endpoint_auth_methods_supported": pacttest.Having("client_secret_basic",
			"client_secret_post", "none", "private_key_jwt"),
		"revocation_endpoint_auth_methods_supported": pacttest.Having("client_secret_basic",
			"client_secret_post", "none", "private_key_jwt"),
		"introspection_endpoint_auth_methods_supported": pacttest.Having("client_secret_basic",
			"client_secret_post", "private_key_jwt"),
		"token_endpoint_auth_signing_alg_values_supported":         pacttest.Having("RS256", "ES256"),
		"revocation_endpoint_auth_signing_alg_values_supported":    pacttest.Having("RS256", "ES256"),
		"introspection_endpoint_auth_signing_alg_values_supported": pacttest.Having("RS256", "ES256"),
		"subject_types_supported":                                  []string{"public"},
		"id_token_signing_alg_values_supported":                    pacttest.Having("RS256", "ES256"),
		"acr_values_supported":                                     []string{"1", "2"},
		"claim_types_supported":                                    []string{"normal"},
		"ui_locales_supported":                                     pacttest.Having("en"),
		"claims_supported": pacttest.Having("iss", "sub", "aud", "exp", "iat", "auth_time",
			"nonce", "acr", "amr", "azp", "sid", "at_hash", "name", "preferred_username", "picture",
			"gender", "birthdate", "updated_at", "email", "email_verified", "phone_number",
			"phone_number_verified", "address", "groups"),
		"claims_parameter_supported":                     false,
		"request_parameter_supported":                    false,
		"request_uri_parameter_supported":                false,
		"backchannel_logout_supported":                   true,
		"backchannel_logout_session_supported":           true,
		"authorization_response_iss_parameter_supported": true,
	}
	discover := func(ctx context.Context, a *oauthapp.App) error {
		got, err := a.Discover(ctx)
		if err == nil && (got.Issuer != a.Issuer || got.RequestURI ||
			len(got.Algorithms) == 0) {
			t.Errorf("got %+v, want that of %s", got, a.Issuer)
		}
		return err
	}
	without := func(document object) any {
		closed := object{}
		for name, value := range document {
			closed[name] = sample(value)
		}
		for name, only := range map[string]string{ // the document says which values there are
			"code_challenge_methods_supported": "S256", "subject_types_supported": "public",
			"id_token_signing_alg_values_supported": "RS256", "claim_types_supported": "normal",
			"token_endpoint_auth_signing_alg_values_supported":         "RS256",
			"revocation_endpoint_auth_signing_alg_values_supported":    "RS256",
			"introspection_endpoint_auth_signing_alg_values_supported": "RS256",
			"acr_values_supported":                                     "1", "claims_supported": "iss", "grant_types_supported": deviceGrant,
			"introspection_endpoint_auth_methods_supported": "client_secret_post",
			"revocation_endpoint_auth_methods_supported":    "client_secret_post",
			"token_endpoint_auth_methods_supported":         "client_secret_post",
			"prompt_values_supported":                       "none", "response_modes_supported": "query",
			"response_types_supported": "code", "scopes_supported": "openid",
		} {
			if _, ok := closed[name]; ok {
				closed[name] = pacttest.List(1, 50, only)
			}
		}
		return pacttest.OnlyKeys(closed)
	}
	metadata := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.Metadata(ctx)
		return err
	}
	const path = "/.well-known/openid-configuration"
	const old = "/.well-known/oauth-authorization-server"
	ok := func(json any) pacttest.Response {
		return pacttest.Response{Status: 200, Header: published(), JSON: json}
	}
	rsaKey := object{"kty": "RSA", "use": "sig", "alg": "RS256",
		"kid": pacttest.Pattern(thumbprint, "^[-_0-9A-Za-z]{43}$"),
		"n":   pacttest.Pattern(modulus, "^[-_0-9A-Za-z]{342}$"), "e": "AQAB"}
	ecKey := object{"kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256",
		"kid": pacttest.Pattern(thumbprint, "^[-_0-9A-Za-z]{43}$"),
		"x":   pacttest.Pattern("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "^[-_0-9A-Za-z]{43}$"),
		"y":   pacttest.Pattern("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", "^[-_0-9A-Za-z]{43}$")}
	keys := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.Keys(ctx)
		return err
	}
	only := func(key object) any {
		closed := object{}
		for name, value := range key {
			closed[name] = sample(value)
		}
		return pacttest.OnlyKeys(closed)
	}
	run(t, p, []exchange{
		{name: "a discovery", request: get(path), response: ok(document), call: discover},
		{name: "a discovery, with only documented members", request: get(path),
			response: ok(without(document)), call: discover},
		{name: "a request for the metadata, all of it", request: get(old), response: ok(document),
			call: metadata},
		{name: "a request for the metadata, with only documented members", request: get(old),
			response: ok(without(document)), call: metadata},
		{name: "a request for the keys", request: get("/oauth/jwks"),
			response: ok(object{"keys": []any{rsaKey, ecKey}}), call: keys},
		{name: "a request for the keys, with only documented members", request: get("/oauth/jwks"),
			response: ok(pacttest.OnlyKeys(object{"keys": []any{only(rsaKey), only(ecKey)}})), call: keys},
		{name: "a request for the description of the APIs",
			request: get("/.well-known/oauth-protected-resource"),
			response: ok(object{"resource": endpoint(""), "authorization_servers": []any{endpoint("")},
				"scopes_supported":         pacttest.Having("view-user", "openid"),
				"bearer_methods_supported": []string{"header"}}),
			call: func(ctx context.Context, a *oauthapp.App) error {
				got, err := a.ProtectedResource(ctx)
				if err == nil && !slices.Equal(got.Servers, []string{a.Issuer}) {
					t.Errorf("got %+v, want tokens of %s", got, a.Issuer)
				}
				return err
			}},
		{name: "a request for the description of the APIs, with only documented members",
			request: get("/.well-known/oauth-protected-resource"),
			response: ok(pacttest.OnlyKeys(object{"resource": pacttest.Any("https://id.example"),
				"authorization_servers":    []any{pacttest.Any("https://id.example")},
				"scopes_supported":         pacttest.Having("view-user"),
				"bearer_methods_supported": pacttest.Having("header")})),
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.ProtectedResource(ctx)
				return err
			}},
	})
}

// sample returns an expectation with less to it, for interactions that limit names of members.
func sample(value any) any {
	switch v := value.(type) {
	case string:
		return pacttest.Any(v)
	case matchers.Matcher, []string:
		return pacttest.List(1, 50, "x")
	case object:
		if example, ok := v["value"].(string); ok {
			return pacttest.Any(example)
		}
	}
	return value
}

// jwt matches a signed JWT.
var jwt = pacttest.Pattern(exampleJWT, `^[-_0-9A-Za-z]+\.[-_0-9A-Za-z]+\.[-_0-9A-Za-z]+$`)

const exampleJWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxNyJ9.c2lnbmF0dXJl"

func idTokens(t *testing.T, p *pacttest.Pact) {
	withCode := []string{"grant_type", "authorization_code", "code", code, "redirect_uri",
		redirectURI}
	withToken := []string{"grant_type", "refresh_token", "refresh_token", refreshToken}
	const scope = "openid profile email"
	client := confidential("scope", scope)
	aCode := given("an authorization code", "code", code, "scope", scope, "nonce", "n-0S6_WzA2Mj")
	want := func(tokens *oauthapp.Tokens, err error) error {
		if err == nil && tokens.IDToken != exampleJWT {
			t.Errorf("got the id_token %q, want it", tokens.IDToken)
		}
		return err
	}
	redeem := func(ctx context.Context, a *oauthapp.App) error {
		return want(a.Exchange(ctx, code, ""))
	}
	members := object{"id_token": jwt}
	maps.Copy(members, withRefresh)
	withScope := object{"scope": scope}
	maps.Copy(withScope, members)
	closed := object{"access_token": pacttest.Any(accessToken), "token_type": pacttest.Any("Bearer"),
		"expires_in": pacttest.Any(3600), "refresh_token": pacttest.Any(newRefresh),
		"id_token": pacttest.Any(exampleJWT)}
	ok := func(json any) pacttest.Response {
		return pacttest.Response{Status: 200, Header: notStored(), JSON: json}
	}
	run(t, p, []exchange{
		{name: "an exchange of a code for an id_token", given: []state{client, aCode},
			request: post("/oauth/token", signed(withCode...)), response: ok(issued(members)),
			call: redeem},
		{name: "an exchange of a code for an id_token by ES256",
			given:   []state{confidential("scope", scope, "id_token_alg", "ES256"), aCode},
			request: post("/oauth/token", signed(withCode...)), response: ok(issued(members)),
			call: redeem},
		{name: "an exchange of a code for an id_token, with only documented members",
			given:   []state{client, aCode},
			request: post("/oauth/token", signed(withCode...)), response: ok(pacttest.OnlyKeys(closed)),
			call: redeem},
		{name: "a refresh for an id_token", given: []state{client,
			given("a refresh token", "refresh_token", refreshToken, "scope", scope)},
			request: post("/oauth/token", signed(withToken...)), response: ok(issued(withScope)),
			call: func(ctx context.Context, a *oauthapp.App) error {
				return want(a.Refresh(ctx, refreshToken, ""))
			}},
	})
}

// allClaims are the claims of a complete profile.
var allClaims = object{
	"sub": pacttest.Pattern("17", "^[1-9][0-9]*$"), "name": "Ada Lovelace",
	"preferred_username": "ada", "picture": "https://example.com/ada.png", "gender": "female",
	"birthdate": "1990-12-10", "updated_at": pacttest.Integer(1790000000),
	"email": "ada@example.com", "email_verified": true, "phone_number": "+12025550123",
	"phone_number_verified": true,
	"address":               object{"formatted": "12 St James's Square, London"},
}

const (
	userInfoPath = "/oauth/userinfo"
	allOpenID    = "openid profile email phone address"
)

func userInfos(t *testing.T, p *pacttest.Pact) {
	client := confidential("scope", allOpenID)
	token := given("an access token", "access_token", accessToken, "scope", allOpenID)
	complete := given("a user with every profile field set", everything...)
	only := func(names ...string) any {
		closed := object{"sub": pacttest.Any("17")}
		for _, name := range names {
			closed[name] = allClaims[name]
		}
		return pacttest.OnlyKeys(closed)
	}
	sub := object{"sub": allClaims["sub"]}
	ask := func(ctx context.Context, a *oauthapp.App) error {
		got, quota, err := a.UserInfo(ctx, accessToken)
		if err == nil && (got.Subject != "17" || quota.Limit != 100) {
			t.Errorf("got %+v, %+v, want the claims of 17 and the quota", got, quota)
		}
		return err
	}
	formed := func(ctx context.Context, a *oauthapp.App) error {
		_, _, err := a.UserInfoByForm(ctx, accessToken)
		return err
	}
	posted := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.Do(ctx, oauthapp.Request{Method: "POST", Path: userInfoPath,
			Header: map[string]string{"Authorization": "Bearer " + accessToken}})
		return err
	}
	byForm := pacttest.Request{Method: "POST", Path: userInfoPath, Form: form("access_token", accessToken),
		Header: map[string]any{"Accept": "application/json"}}
	byHeader := pacttest.Request{Method: "POST", Path: userInfoPath,
		Header: map[string]any{"Accept": "application/json", "Authorization": theToken}}
	const anyOrigin = "Access-Control-Allow-Origin"
	// A header with commas is several values, and each must match. A relation looks at the whole.
	challenge := func(text string) any {
		parts := []string{`resource_metadata="https?://[^/"]+/\.well-known/oauth-protected-resource"`}
		for part := range strings.SplitSeq(text, ", ") {
			parts = append(parts, regexp.QuoteMeta(part))
		}
		return pacttest.Matching(text+`, resource_metadata="https://id.example/.well-known/oauth-protected-resource"`,
			"^("+strings.Join(parts, "|")+")$")
	}
	for _, r := range []struct {
		how     string
		request pacttest.Request
		call    func(context.Context, *oauthapp.App) error
	}{
		{"", getProfile(userInfoPath, theToken), ask},
		{" by a form", byForm, formed},
		{" by POST", byHeader, posted},
	} {
		ok := func(json any) pacttest.Response {
			return pacttest.Response{Status: 200, JSON: json,
				Header: counted("100", "99", anyOrigin, "*")}
		}
		fails := func(name string, given []state, status int, code string,
			h map[string]any, body object) {
			run(t, p, []exchange{{name: "userinfo" + r.how + " " + name, given: given,
				request: r.request, call: r.call, code: code,
				response: pacttest.Response{Status: status, Header: h, JSON: body}}})
		}
		run(t, p, []exchange{
			{name: "userinfo" + r.how, given: []state{client, complete, token}, request: r.request,
				response: ok(allClaims), call: r.call},
			{name: "userinfo" + r.how + " of the scope openid alone",
				given: []state{client, complete, given("an access token", "access_token",
					accessToken, "scope", "openid")}, request: r.request, response: ok(sub),
				call: r.call},
		})
		fails("without the scope openid", []state{client, given("an access token", "access_token",
			accessToken, "scope", "profile")}, 403, "insufficient_scope",
			counted("100", "99", "WWW-Authenticate",
				challenge(`Bearer realm="gatehouse", error="insufficient_scope", scope="openid"`)),
			three("insufficient_scope"))
		fails("over its limit", []state{client, token,
			given("the limit of /oauth/userinfo is used up")}, 429, "rate_limit_exceeded",
			counted("100", "0", "Retry-After", pacttest.Matching("42", "^([1-9]|[1-5][0-9]|60)$")),
			object{"error": "rate_limit_exceeded", "message": pacttest.NotEmpty("Wait."),
				"retry_after": pacttest.Integer(42)})
		fails("with an expired token", []state{client, given("an access token", "access_token",
			accessToken, "scope", allOpenID, "kind", "expired")}, 401, "token_expired",
			header("WWW-Authenticate", challenge(expiredChallenge), "Cache-Control", "no-store",
				anyOrigin, "*"), three("token_expired"))
		fails("after a sign-in with one factor, where the client requires two", []state{
			confidential("scope", allOpenID, "require_second_factor", true),
			given("an access token", "access_token", accessToken, "scope", allOpenID, "acr", "1")},
			401, "insufficient_user_authentication",
			header("WWW-Authenticate", challenge(factorChallenge), "Cache-Control", "no-store",
				anyOrigin, "*"), three("insufficient_user_authentication"))
		fails("with a revoked token", []state{client, given("an access token", "access_token",
			accessToken, "scope", allOpenID, "kind", "revoked")}, 401, "",
			header("WWW-Authenticate", challenge(invalidChallenge), "Cache-Control", "no-store",
				anyOrigin, "*"), object{"message": pacttest.NotEmpty("It is not valid.")})
		fails("during overload", []state{client, token, given("the identity service is busy")}, 503,
			"temporarily_unavailable",
			header("Retry-After", positive("1"), "Cache-Control", "no-store"),
			object{"error": "temporarily_unavailable", "message": pacttest.NotEmpty("Later.")})
	}
	detailed := []string{"name", "preferred_username", "picture", "gender", "updated_at", "email",
		"email_verified"}
	twice := form("access_token", accessToken, "access_token", accessToken)
	badForm := func(json any) pacttest.Response {
		return pacttest.Response{Status: 400, JSON: json, Header: header("Cache-Control", "no-store",
			"WWW-Authenticate", challenge(`Bearer realm="gatehouse", error="invalid_request", error_description="The access token is sent more than once, or the form is malformed"`))}
	}
	sendTwice := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.Do(ctx, oauthapp.Request{Method: "POST", Path: userInfoPath,
			Body:   twice.Encode(),
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
		return err
	}
	ok := func(json any) pacttest.Response {
		return pacttest.Response{Status: 200, JSON: json, Header: counted("100", "99", anyOrigin, "*")}
	}
	twiceRequest := pacttest.Request{Method: "POST", Path: userInfoPath, Form: twice,
		Header: map[string]any{"Accept": "application/json"}}
	run(t, p, []exchange{
		{name: "userinfo, with only documented members", given: []state{client, complete, token},
			request: getProfile(userInfoPath, theToken), response: ok(only(append(detailed, "birthdate",
				"phone_number", "phone_number_verified", "address")...)),
			call: ask},
		{name: "userinfo of the scope openid alone, with nothing else",
			given:   []state{client, complete, given("an access token", "scope", "openid")},
			request: getProfile(userInfoPath, theToken), response: ok(only()), call: ask},
		{name: "userinfo for a client without approval, with nothing of the detailed profile",
			given: []state{confidential("scope", allOpenID, "detail_user_approved", false), complete,
				token}, request: getProfile(userInfoPath, theToken), response: ok(only(detailed...)),
			call: ask},
		{name: "userinfo of a user with only a name, with nothing else",
			given:   []state{client, given("a user with no optional profile field"), token},
			request: getProfile(userInfoPath, theToken), response: ok(only("name", "updated_at")),
			call: ask},
		{name: "userinfo of a token that may read the basic profile too",
			given: []state{confidential("scope", "openid view-user"), complete,
				given("an access token", "scope", "openid view-user")},
			request: getProfile(userInfoPath, theToken), response: ok(sub), call: ask},
		{name: "userinfo with groups", given: []state{confidential("scope", "openid groups"), complete,
			given("the user is in groups", "groups", "sales engineering"),
			given("an access token", "access_token", accessToken, "scope", "openid groups")},
			request:  getProfile(userInfoPath, theToken),
			response: ok(object{"sub": allClaims["sub"], "groups": []string{"engineering", "sales"}}),
			call: func(ctx context.Context, a *oauthapp.App) error {
				got, _, err := a.UserInfo(ctx, accessToken)
				if err == nil && !slices.Equal(got.Groups, []string{"engineering", "sales"}) {
					t.Errorf("got %+v, want the groups", got)
				}
				return err
			}},
		{name: "userinfo with groups, with nothing else", given: []state{
			confidential("scope", "openid groups"), complete, given("the user is in groups"),
			given("an access token", "access_token", accessToken, "scope", "openid groups")},
			request: getProfile(userInfoPath, theToken), response: ok(pacttest.OnlyKeys(object{
				"sub": pacttest.Any("17"), "groups": pacttest.Any([]string{"engineering"})})), call: ask},
		{name: "userinfo of somebody in very many groups", given: []state{
			confidential("scope", "openid groups"), complete,
			given("the user is in groups", "groups", "g*"),
			given("an access token", "access_token", accessToken, "scope", "openid groups")},
			request:  getProfile(userInfoPath, theToken),
			response: ok(object{"sub": allClaims["sub"], "groups_truncated": true}), call: ask},
		{name: "userinfo of somebody in very many groups, with nothing else", given: []state{
			confidential("scope", "openid groups"), complete,
			given("the user is in groups", "groups", "g*"),
			given("an access token", "access_token", accessToken, "scope", "openid groups")},
			request: getProfile(userInfoPath, theToken), response: ok(pacttest.OnlyKeys(object{
				"sub": pacttest.Any("17"), "groups_truncated": pacttest.Any(true)})), call: ask},
		{name: "userinfo of an address, with only documented members",
			given: []state{client, complete, token}, request: getProfile(userInfoPath, theToken),
			response: ok(object{"address": pacttest.OnlyKeys(object{
				"formatted": pacttest.Any("12 St James's Square, London")}), "sub": allClaims["sub"]}),
			call: ask},
		{name: "userinfo without a token", request: get(userInfoPath), code: "",
			response: pacttest.Response{Status: 401, Header: header("WWW-Authenticate",
				challenge(bareChallenge), anyOrigin, "*"),
				JSON: object{"message": pacttest.NotEmpty("Send a token.")}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, _, err := a.UserInfo(ctx, "")
				return err
			}},
		{name: "userinfo with two tokens", given: []state{client, token}, request: twiceRequest,
			response: badForm(object{"error": "invalid_request",
				"message": pacttest.NotEmpty("Send one.")}),
			call: sendTwice, code: "invalid_request"},
		{name: "userinfo with two tokens, with only documented members",
			given: []state{client, token}, request: twiceRequest,
			response: badForm(pacttest.OnlyKeys(object{"error": "invalid_request",
				"message": pacttest.Any("Send one.")})),
			call: sendTwice, code: "invalid_request"},
	})
}
