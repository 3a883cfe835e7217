//go:build pact

package oauthapp_test

import (
	"context"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// shop is a client whose id an operator has chosen.
const shop = "shop"

// unusualValues tests values that look unlike the others: of many alphabets, in the middle of a
// minute, chosen by people.
func unusualValues(t *testing.T, p *pacttest.Pact) {
	const name, bio, place, address = "Zoë Ångström-Đỗ", "数学者 🧮 «é» & <b>", "Αθήνα, Ελλάδα",
		"Straße des 17. Juni 1\nКиїв"
	user := given("a user with every profile field set", "name", name, "email", "zoe@example.com",
		"username", "zoe", "gender", "fémina", "profile_picture", "https://example.com/zo%C3%AB.png",
		"bio", bio, "phone_number", "+12025550123", "place_of_birth", place, "date_of_birth",
		"1990-12-10", "address", address)
	withLetters := func(scope string) []state {
		return []state{confidential("scope", allOpenID+" view-user detail-user"), user,
			given("an access token", "scope", scope)}
	}
	run(t, p, []exchange{
		{name: "the basic profile of a user with letters of many alphabets",
			given: withLetters("view-user"), request: getProfile(basicPath, theToken),
			response: pacttest.Response{Status: 200, Header: counted("100", "99"),
				JSON: object{"id": pacttest.Integer(17), "name": name, "gender": "fémina",
					"profile_picture": "https://example.com/zo%C3%AB.png"}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				got, _, err := a.Profile(ctx, accessToken)
				if err == nil && got.Name != name {
					t.Errorf("got %q, want %q", got.Name, name)
				}
				return err
			}},
		{name: "the detailed profile of a user with letters of many alphabets",
			given: withLetters("detail-user"), request: getProfile(detailedPath, theToken),
			response: pacttest.Response{Status: 200, Header: counted("50", "49"),
				JSON: object{"id": pacttest.Integer(17), "service_id": pacttest.NotEmpty(serviceID),
					"name": name, "bio": bio, "place_of_birth": place, "address": address}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				got, _, err := a.Details(ctx, accessToken)
				if err == nil && *got.Bio != bio {
					t.Errorf("got %q, want %q", *got.Bio, bio)
				}
				return err
			}},
		{name: "userinfo of a user with letters of many alphabets",
			given: withLetters(allOpenID), request: getProfile(userInfoPath, theToken),
			response: pacttest.Response{Status: 200, Header: counted("100", "99"),
				JSON: object{"sub": pacttest.Pattern("17", "^[1-9][0-9]*$"), "name": name,
					"gender": "fémina", "address": object{"formatted": address}}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, _, err := a.UserInfo(ctx, accessToken)
				return err
			}},
	})
	for _, limited := range []struct {
		path, limit, scope string
	}{
		{basicPath, "100", "view-user"}, {detailedPath, "50", "detail-user"},
		{userInfoPath, "100", "openid"},
	} {
		run(t, p, []exchange{{name: "a request over the limit of " + limited.path + " ten seconds later",
			given: []state{confidential("scope", "openid view-user detail-user"),
				given("an access token", "scope", limited.scope),
				given("the limit of "+limited.path+" is used up", "elapsed", 10)},
			request: getProfile(limited.path, theToken),
			response: pacttest.Response{Status: 429, Header: counted(limited.limit, "0", "Retry-After",
				pacttest.Matching("42", "^([1-9]|[1-4][0-9]|5[01])$")),
				JSON: object{"error": "rate_limit_exceeded", "retry_after": pacttest.Integer(42)}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Do(ctx, oauthapp.Request{Path: limited.path,
					Header: map[string]string{"Authorization": "Bearer " + accessToken}})
				return err
			},
			code: "rate_limit_exceeded"}})
	}
	chosen := given("a confidential client", "client_id", shop, "client_secret", secret,
		"redirect_uri", redirectURI)
	asShop := func(base string) *oauthapp.App {
		a := newApp(base)
		a.ClientID = shop
		return a
	}
	run(t, p, []exchange{
		{name: "a token for a client with a chosen id", app: asShop, given: []state{chosen},
			request: post("/oauth/token", form("grant_type", "client_credentials", "client_id", shop,
				"client_secret", secret)),
			response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: object{"token_type": "Bearer", "expires_in": pacttest.Integer(3600),
					"access_token": pacttest.Pattern(accessToken, "^gtat_[-_0-9A-Za-z]+$")}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.ClientCredentials(ctx, "")
				return err
			}},
		{name: "a question about a token of a client with a chosen id", app: asShop,
			given: []state{chosen, given("an access token", "access_token", accessToken)},
			request: post("/oauth/introspect", form("token", accessToken, "client_id", shop,
				"client_secret", secret)),
			response: pacttest.Response{Status: 200, Header: notStored(),
				JSON: object{"active": true, "client_id": shop}},
			call: func(ctx context.Context, a *oauthapp.App) error {
				_, err := a.Introspect(ctx, accessToken, "")
				return err
			}},
	})
}
