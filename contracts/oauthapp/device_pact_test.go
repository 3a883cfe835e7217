//go:build pact

package oauthapp_test

import (
	"context"
	"net/url"
	"slices"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

const (
	deviceCode = "gtdc_L3VNf1sk5dL0WVqlafsiaeAIsY9CT8NvfiN73VMCDbX31yGNU"
	resource   = "https://notes.example/v1"
	assertion  = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIzZDhmNmYwZS03YTU1LTRiMmItOWMzOS0xZjVmNGExZDJjNzcifQ.c2lnbmF0dXJl"

	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

func devices(t *testing.T, p *pacttest.Pact) {
	const path = "/oauth/device_authorization"
	grants := deviceGrant + " refresh_token"
	screen := public("grants", grants)
	begin := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.BeginDevice(ctx, "view-user")
		return err
	}
	tokens := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.DeviceTokens(ctx, deviceCode)
		return err
	}
	body := object{
		"device_code":      pacttest.Pattern(deviceCode, "^gtdc_[0-9A-Za-z]{40,}$"),
		"user_code":        pacttest.Pattern("WDJB-MJHT", "^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$"),
		"verification_uri": pacttest.Pattern("https://id.example/device", "^https?://[^/?#]+/device$"),
		"verification_uri_complete": pacttest.Pattern("https://id.example/device?user_code=WDJB-MJHT",
			"^https?://[^/?#]+/device\\?user_code=[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$"),
		"expires_in": pacttest.Integer(600), "interval": pacttest.Integer(5),
	}
	closed := object{}
	for name, value := range body {
		closed[name] = value
	}
	asked := form("client_id", clientID, "scope", "view-user")
	ok := func(json any) pacttest.Response {
		return pacttest.Response{Status: 200, Header: notStored(), JSON: json}
	}
	fails := func(status int, code string, more ...any) pacttest.Response {
		return pacttest.Response{Status: status, Header: notStored(more...), JSON: four(code)}
	}
	poll := post("/oauth/token", form("grant_type", deviceGrant, "device_code", deviceCode,
		"client_id", clientID))
	device := func(kind string) state {
		return given("a device code", "device_code", deviceCode, "kind", kind)
	}
	all := []exchange{
		{name: "a request for a device code", given: []state{screen}, app: newPublicApp,
			request: post(path, asked), response: ok(body), call: begin},
		{name: "a request for a device code, with only documented members", given: []state{screen},
			app: newPublicApp, request: post(path, asked), response: ok(pacttest.OnlyKeys(closed)),
			call: begin},
		{name: "a request for a device code with a secret",
			given:   []state{confidential("grants", grants)},
			request: post(path, signed("scope", "view-user")), response: ok(body), call: begin},
		{name: "a request for a device code with HTTP Basic", app: newBasicApp,
			given:    []state{confidential("grants", grants)},
			request:  with(post(path, form("scope", "view-user")), "Authorization", basic),
			response: ok(body), call: begin},
		{name: "a request for a device code of an unknown scope", given: []state{screen},
			app: newPublicApp, request: post(path, form("client_id", clientID, "scope", "fly")),
			response: fails(400, "invalid_scope"), code: "invalid_scope",
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.BeginDevice(ctx, "fly")
				return err
			}},
		{name: "a request for a device code without its grant", given: []state{public()},
			app: newPublicApp, request: post(path, asked),
			response: fails(400, "unauthorized_client"), code: "unauthorized_client", call: begin},
		{name: "a request for a device code of an unknown client", app: newPublicApp,
			request: post(path, asked), response: fails(401, "invalid_client"),
			code: "invalid_client", call: begin},
		{name: "a request for a device code with a wrong secret in HTTP Basic",
			given: []state{confidential("grants", grants)},
			app: func(base string) *oauthapp.App {
				a := newBasicApp(base)
				a.Secret = otherSecret
				return a
			},
			request:  with(post(path, form("scope", "view-user")), "Authorization", wrongBasic),
			response: fails(401, "invalid_client", "WWW-Authenticate", basicChallenge),
			code:     "invalid_client", call: begin},
		{name: "a request for one device code too many",
			given: []state{screen, given("this address has requested too many device codes")},
			app:   newPublicApp, request: post(path, asked),
			response: fails(429, "temporarily_unavailable", "Retry-After", positive("3")),
			code:     "temporarily_unavailable", call: begin},
		{name: "a request for a device code during overload", app: newPublicApp,
			given:    []state{screen, given("the identity service is busy")},
			request:  post(path, asked),
			response: fails(503, "temporarily_unavailable", "Retry-After", positive("1")),
			code:     "temporarily_unavailable", call: begin},
		{name: "a token request of a device that a person has allowed", app: newPublicApp,
			given: []state{screen, device("allowed")}, request: poll,
			response: ok(issued(withRefresh)), call: tokens},
		{name: "a token request with the device grant of a client without it", app: newPublicApp,
			given: []state{public()}, request: poll, response: fails(400, "unsupported_grant_type"),
			code: "unsupported_grant_type", call: tokens},
		{name: "a token request of a device that asks too often", app: newPublicApp,
			given: []state{screen, device("pending"),
				given("the client has just asked for the tokens of a device", "device_code",
					deviceCode)}, request: poll, response: fails(400, "slow_down"),
			code: "slow_down", call: tokens},
		{name: "a token request with an unknown device code", app: newPublicApp,
			given: []state{screen}, request: poll, response: fails(400, "invalid_grant"),
			code: "invalid_grant", call: tokens},
	}
	for kind, code := range map[string]string{"pending": "authorization_pending",
		"denied": "access_denied", "expired": "expired_token", "used": "invalid_grant"} {
		all = append(all, exchange{name: "a token request of a device, " + kind,
			app: newPublicApp, given: []state{screen, device(kind)}, request: poll,
			response: fails(400, code), code: code, call: tokens})
	}
	run(t, p, all)
}

// resources tests tokens for the APIs of others.
func resources(t *testing.T, p *pacttest.Pact) {
	server := given("a resource server", "uri", resource, "scope", "read write")
	withCode := []string{"grant_type", "authorization_code", "code", code, "redirect_uri",
		redirectURI}
	aCode := given("an authorization code", "code", code, "resource", resource)
	forResource := func(uri string) func(string) *oauthapp.App {
		return func(base string) *oauthapp.App {
			a := newApp(base)
			a.Resource = uri
			return a
		}
	}
	redeem := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.Exchange(ctx, code, "")
		return err
	}
	introspect := func(ctx context.Context, a *oauthapp.App) error {
		got, err := a.Introspect(ctx, accessToken, "")
		if err == nil && !slices.Equal(got.Audience, []string{resource}) {
			t.Errorf("got %+v, want the audience %s", got, resource)
		}
		return err
	}
	token := given("an access token", "access_token", accessToken, "resource", resource)
	about := object{"active": true, "scope": "view-user detail-user read write", "client_id": clientID,
		"token_type": "Bearer", "aud": []any{resource}, "sub": pacttest.Pattern("17", "^[1-9][0-9]*$"),
		"iat": pacttest.Integer(1790000000), "exp": pacttest.Integer(4102444800)}
	ask := func(uri string) (url.Values, oauthapp.Authorization) {
		return asked("scope", "view-user", "state", "s1", "resource", uri),
			oauthapp.Authorization{Scope: "view-user", State: "s1"}
	}
	other, request := ask("https://other.example")
	run(t, p, []exchange{
		{name: "an exchange of a code for the API of others", app: forResource(resource),
			given:    []state{server, confidential(), aCode},
			request:  post("/oauth/token", signed(append(withCode, "resource", resource)...)),
			response: pacttest.Response{Status: 200, Header: notStored(), JSON: issued(withRefresh)},
			call:     redeem},
		{name: "an exchange of a code for an API that is not registered",
			app: forResource("https://other.example"), given: []state{server, confidential(), aCode},
			request: post("/oauth/token", signed(append(withCode, "resource",
				"https://other.example")...)),
			response: pacttest.Response{Status: 400, Header: notStored(), JSON: four("invalid_target")},
			call:     redeem, code: "invalid_target"},
		{name: "an introspection of a token for the API of others",
			given:    []state{server, confidential(), token},
			request:  post("/oauth/introspect", signed("token", accessToken)),
			response: pacttest.Response{Status: 200, Header: notStored(), JSON: about},
			call:     introspect},
		{name: "the basic profile with a token for the API of others",
			given:   []state{server, confidential(), given("an access token", "resource", resource)},
			request: getProfile(basicPath, theToken),
			response: pacttest.Response{Status: 401, Header: header("WWW-Authenticate",
				`Bearer realm="gatehouse", error="invalid_token", error_description="The access token is for `+
					resource+`, not for this endpoint"`),
				JSON: object{"message": pacttest.NotEmpty("The access token is for " + resource + ".")}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, _, err := a.Profile(ctx, accessToken)
				return err
			}},
		{name: "an authorization for an API that is not registered",
			app: forResource("https://other.example"), given: []state{confidential()},
			request: authorization(other, false),
			response: pacttest.Response{Status: 302, Header: map[string]any{"Location": comeBack(redirectURI,
				errorPart("invalid_target"), textPart, statePart("s1"), issPart)}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := visit(ctx, a, a.AuthorizationPath(request), false)
				return err
			}},
	})
}

// assertions tests clients that authenticate with a key.
func assertions(t *testing.T, p *pacttest.Pact) {
	app := func(base string) *oauthapp.App {
		a := newApp(base)
		a.Secret, a.Assertion = "", func() (string, error) { return assertion, nil }
		return a
	}
	keyed := func(pairs ...string) url.Values {
		return form(append(pairs, "client_assertion", assertion, "client_assertion_type",
			assertionType)...)
	}
	live := []state{confidential("grants", "client_credentials refresh_token authorization_code "+deviceGrant),
		given("a client assertion", "client_assertion", assertion)}
	own := func(ctx context.Context, a *oauthapp.App) error {
		_, err := a.ClientCredentials(ctx, "")
		return err
	}
	inactive := object{"active": false}
	ok := func(json any) pacttest.Response {
		return pacttest.Response{Status: 200, Header: notStored(), JSON: json}
	}
	all := []exchange{
		{name: "a token for the client itself by its key", app: app, given: live,
			request:  post("/oauth/token", keyed("grant_type", "client_credentials")),
			response: ok(issued(nil)), call: own},
		{name: "an introspection by the client's key", app: app, given: live,
			request: post("/oauth/introspect", keyed("token", "nonsense")), response: ok(inactive),
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Introspect(ctx, "nonsense", "")
				return err
			}},
		{name: "a revocation by the client's key", app: app, given: live,
			request: post("/oauth/revoke", keyed("token", "nonsense")), response: ok(object{}),
			call: func(ctx context.Context, a *oauthapp.App) error {
				return a.Revoke(ctx, "nonsense", "")
			}},
		{name: "a request for a device code by the client's key", app: app, given: live,
			request: post("/oauth/device_authorization", keyed("scope", "view-user")),
			response: ok(object{"interval": pacttest.Integer(5), "expires_in": pacttest.Integer(600),
				"device_code":      pacttest.NotEmpty(deviceCode),
				"user_code":        pacttest.NotEmpty("WDJB-MJHT"),
				"verification_uri": pacttest.NotEmpty("https://id.example/device")}),
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.BeginDevice(ctx, "view-user")
				return err
			}},
	}
	for kind, name := range map[string]string{"expired": "an expired assertion",
		"forged": "an assertion that another key signed"} {
		all = append(all, exchange{name: "a token for the client itself by " + name, app: app,
			given: []state{confidential(), given("a client assertion", "client_assertion", assertion,
				"kind", kind)},
			request:  post("/oauth/token", keyed("grant_type", "client_credentials")),
			response: pacttest.Response{Status: 401, Header: notStored(), JSON: four("invalid_client")},
			call:     own, code: "invalid_client"})
	}
	run(t, p, all)
}
