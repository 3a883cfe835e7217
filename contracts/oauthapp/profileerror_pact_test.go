//go:build pact

package oauthapp_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// endpoints holds the two profiles.
var endpoints = []struct {
	what, path, limit, scope string
	ask                      func(context.Context, *oauthapp.App, string) error
}{
	{"the basic profile", basicPath, "100", "view-user",
		func(ctx context.Context, a *oauthapp.App, token string) error {
			_, _, err := a.Profile(ctx, token)
			return err
		}},
	{"the detailed profile", detailedPath, "50", "detail-user",
		func(ctx context.Context, a *oauthapp.App, token string) error {
			_, _, err := a.Details(ctx, token)
			return err
		}},
}

// three returns the expected error body of a profile.
func three(code string) object {
	return object{"error": code, "error_description": pacttest.NotEmpty("It is not so."),
		"message": pacttest.NotEmpty("Do something.")}
}

const (
	bareChallenge    = `Bearer realm="gatehouse"`
	invalidChallenge = `Bearer realm="gatehouse", error="invalid_token", error_description="The access token is malformed, unknown or revoked"`
	expiredChallenge = `Bearer realm="gatehouse", error="invalid_token", error_description="The access token expired"`
	factorChallenge  = `Bearer realm="gatehouse", error="insufficient_user_authentication", error_description="The user has to sign in with two factors", acr_values="2"`
)

func profileRefusals(t *testing.T, p *pacttest.Pact) {
	for _, e := range endpoints {
		messageOnly := object{"message": pacttest.NotEmpty("The access token is not valid.")}
		foreign := "Basic " + "bm9ib2R5Om5vdGhpbmc="
		for _, row := range []struct {
			name      string
			given     []state
			header    any    // Authorization
			token     string // of the application
			challenge string
		}{
			{"without a token", nil, nil, "", bareChallenge},
			{"with an unknown token", nil, "Bearer nonsense", "nonsense", invalidChallenge},
			{"with a forged token", nil, "Bearer " + accessToken, accessToken, invalidChallenge},
			{"with a refresh token", []state{confidential(),
				given("a refresh token", "refresh_token", refreshToken)}, "Bearer " + refreshToken,
				refreshToken, invalidChallenge},
			{"with a revoked token", []state{confidential(),
				given("an access token", "kind", "revoked")}, theToken, accessToken,
				invalidChallenge},
			{"with a token of a disabled client",
				[]state{confidential("disabled", true), given("an access token")}, theToken,
				accessToken, invalidChallenge},
			{"with a token of a disabled user",
				[]state{confidential(), given("an access token"), given("the user is disabled")},
				theToken, accessToken, invalidChallenge},
		} {
			p.Test(t, pacttest.Interaction{
				Name: e.what + " " + row.name, Given: row.given,
				Request: getProfile(e.path, row.header),
				Response: pacttest.Response{Status: 401,
					Header: header("WWW-Authenticate", row.challenge, "Cache-Control", "no-store"),
					JSON:   messageOnly},
			}, func(t *testing.T, base string) {
				a := newApp(base)
				got := wantError(t, e.ask(t.Context(), a, row.token), 401, "")
				if got.Message == "" || got.Expired() || got.Challenge == "" {
					t.Errorf("got %+v, want a message, and no token that has expired", got)
				}
			})
		}
		p.Test(t, pacttest.Interaction{
			Name: e.what + " with another scheme than Bearer", Request: getProfile(e.path, foreign),
			Response: pacttest.Response{Status: 401,
				Header: header("WWW-Authenticate", bareChallenge), JSON: messageOnly},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			_, err := a.Do(t.Context(), oauthapp.Request{Path: e.path,
				Header: map[string]string{"Authorization": foreign}})
			wantError(t, err, 401, "")
		})
		p.Test(t, pacttest.Interaction{
			Name:  e.what + " with the token in the query",
			Given: []state{confidential(), given("an access token", "access_token", accessToken)},
			Request: pacttest.Request{Method: "GET", Path: e.path,
				Header: map[string]any{"Accept": "application/json"},
				Query:  map[string][]any{"access_token": {accessToken}}},
			Response: pacttest.Response{Status: 401,
				Header: header("WWW-Authenticate", bareChallenge), JSON: messageOnly},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			_, err := a.Do(t.Context(), oauthapp.Request{Path: e.path + "?access_token=" + accessToken})
			wantError(t, err, 401, "")
		})
		for _, row := range []struct {
			name   string
			header any
			token  string
		}{
			{"without a token, with only a message", nil, ""},
			{"with an unknown token, with only a message", "Bearer nonsense", "nonsense"},
		} {
			p.Test(t, pacttest.Interaction{
				Name: e.what + " " + row.name, Request: getProfile(e.path, row.header),
				Response: pacttest.Response{Status: 401, Header: header(),
					JSON: pacttest.OnlyKeys(object{"message": pacttest.Any("It is not valid.")})},
			}, func(t *testing.T, base string) {
				a := newApp(base)
				wantError(t, e.ask(t.Context(), a, row.token), 401, "")
			})
		}
		lacking := "detail-user"
		if e.scope == lacking {
			lacking = "view-user"
		}
		fails := func(name string, given []state, status int, code string, h map[string]any,
			body object) {
			ask := func(t *testing.T, base string) {
				a := newApp(base)
				got := wantError(t, e.ask(t.Context(), a, accessToken), status, code)
				if got.Message == "" || got.Expired() != (code == "token_expired") {
					t.Errorf("got %+v, want a message, and expired only if it is so", got)
				}
				if status != 401 && got.Quota == (oauthapp.Quota{}) {
					t.Errorf("got %+v, want the quota", got)
				}
				if status == 429 && got.RetryAfter != 42*time.Second {
					t.Errorf("got %+v, want to come back in 42 s", got)
				}
			}
			p.Test(t, pacttest.Interaction{Name: e.what + " " + name, Given: given,
				Request:  getProfile(e.path, theToken),
				Response: pacttest.Response{Status: status, Header: h, JSON: body}}, ask)
			closed := object{}
			for member := range body {
				closed[member] = pacttest.Any("Something is wrong.")
			}
			closed["error"] = code
			if _, ok := closed["retry_after"]; ok {
				closed["retry_after"] = pacttest.Integer(42)
			}
			p.Test(t, pacttest.Interaction{Name: e.what + " " + name +
				", with only documented members", Given: given,
				Request: getProfile(e.path, theToken),
				Response: pacttest.Response{Status: status, Header: h,
					JSON: pacttest.OnlyKeys(closed)}}, ask)
		}
		fails("with an expired token",
			[]state{confidential(), given("an access token", "kind", "expired")}, 401,
			"token_expired",
			header("WWW-Authenticate", expiredChallenge, "Cache-Control", "no-store"),
			three("token_expired"))
		fails("after a sign-in with one factor, where the client requires two",
			[]state{confidential("require_second_factor", true),
				given("an access token", "acr", "1")}, 401, "insufficient_user_authentication",
			header("WWW-Authenticate", factorChallenge, "Cache-Control", "no-store"),
			three("insufficient_user_authentication"))
		fails("without its scope", []state{confidential(),
			given("an access token", "scope", lacking)}, 403, "insufficient_scope",
			counted(e.limit, pred(e.limit), "WWW-Authenticate",
				`Bearer realm="gatehouse", error="insufficient_scope", scope="`+e.scope+`"`),
			three("insufficient_scope"))
		fails("over its limit", []state{confidential(), given("an access token"),
			given("the limit of " + e.path + " is used up")}, 429, "rate_limit_exceeded",
			counted(e.limit, "0", "Retry-After",
				pacttest.Matching("42", "^([1-9]|[1-5][0-9]|60)$")),
			object{"error": "rate_limit_exceeded", "message": pacttest.NotEmpty("Wait."),
				"retry_after": pacttest.Integer(42)})
		if e.path == detailedPath {
			fails("of a client without approval",
				[]state{confidential("detail_user_approved", false), given("an access token")}, 403,
				"unapproved_scope",
				counted("50", "49", "WWW-Authenticate",
					`Bearer realm="gatehouse", error="insufficient_scope", error_description="The client is not approved for this scope"`),
				three("unapproved_scope"))
		}
	}
	p.Test(t, pacttest.Interaction{
		Name:    "the basic profile with the token of a client itself",
		Given:   []state{confidential(), given("an access token", "user", false, "scope", "")},
		Request: getProfile(basicPath, theToken),
		Response: pacttest.Response{Status: 403, Header: counted("100", "99"),
			JSON: three("insufficient_scope")},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		_, _, err := a.Profile(t.Context(), accessToken)
		wantError(t, err, 403, "insufficient_scope")
	})
	p.Test(t, pacttest.Interaction{
		Name: "the basic profile during overload, with only documented members",
		Given: []state{confidential(), given("an access token"),
			given("the identity service is busy")}, Request: getProfile(basicPath, theToken),
		Response: pacttest.Response{Status: 503, Header: header(),
			JSON: pacttest.OnlyKeys(object{"error": "temporarily_unavailable",
				"message": pacttest.Any("Later.")})},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		_, _, err := a.Profile(t.Context(), accessToken)
		wantError(t, err, 503, "temporarily_unavailable")
	})
	for _, e := range endpoints {
		p.Test(t, pacttest.Interaction{
			Name: e.what + " during overload",
			Given: []state{confidential(), given("an access token"),
				given("the identity service is busy")},
			Request: getProfile(e.path, theToken),
			Response: pacttest.Response{Status: 503,
				Header: header("Retry-After", positive("1"), "Cache-Control", "no-store"),
				JSON: object{"error": "temporarily_unavailable",
					"message": pacttest.NotEmpty("Later.")}},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			if got := wantError(t, e.ask(t.Context(), a, accessToken), 503,
				"temporarily_unavailable"); got.RetryAfter != time.Second {
				t.Errorf("got %+v, want to come back in 1 s", got)
			}
		})
	}
}

// pred returns what remains of a limit after one request.
func pred(limit string) string {
	if limit == "100" {
		return "99"
	}
	return "49"
}
