//go:build pact

package oauthapp_test

import (
	"context"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/pact-foundation/pact-go/v2/matchers"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

const (
	basicPath    = "/api/user"
	detailedPath = "/api/user/details"
	resetAt      = "1790000000"
	serviceID    = "0197f3a2-5c1e-7b44-9d3a-2f6e8c0b1a57"
)

// theToken is the Authorization header with the access token of a state.
var theToken = pacttest.FromState("Bearer ${access_token}", "Bearer "+accessToken)

func getProfile(path string, authorization any) pacttest.Request {
	r := pacttest.Request{Method: "GET", Path: path,
		Header: map[string]any{"Accept": "application/json"}}
	if authorization != nil {
		r.Header["Authorization"] = authorization
	}
	return r
}

// counted returns header for responses with a rate limit.
func counted(limit, remaining string, pairs ...any) map[string]any {
	return header(append(pairs, "Cache-Control", "no-store", "X-RateLimit-Limit", limit,
		"X-RateLimit-Remaining", remaining,
		"X-RateLimit-Reset", pacttest.Matching(resetAt, "^[0-9]{10}$"))...)
}

// everything holds the fields of a complete profile.
var everything = []any{"name", "Ada Lovelace", "email", "ada@example.com", "username", "ada",
	"gender", "female",
	"profile_picture", "https://example.com/ada.png", "bio", "Wrote the first program.",
	"phone_number", "+12025550123",
	"place_of_birth", "London", "date_of_birth", "1990-12-10", "address",
	"12 St James's Square, London"}

// basicFields returns the members of a basic profile. Those without a value are null.
func basicFields(values object) object {
	all := object{"id": pacttest.Integer(17)}
	for _, name := range []string{"name", "email", "profile_picture", "username", "gender"} {
		all[name] = pacttest.Null()
		if v, ok := values[name]; ok {
			all[name] = v
		}
	}
	return all
}

// detailedFields returns the same for a detailed profile.
func detailedFields(values object) object {
	all := basicFields(values)
	all["service_id"] = pacttest.Pattern(serviceID,
		"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
	for _, name := range []string{"bio", "phone_number", "place_of_birth", "date_of_birth",
		"address"} {
		all[name] = pacttest.Null()
		if v, ok := values[name]; ok {
			all[name] = v
		}
	}
	return all
}

func profiles(t *testing.T, p *pacttest.Pact) {
	full := object{}
	for i := 0; i < len(everything); i += 2 {
		full[everything[i].(string)] = everything[i+1]
	}
	full["phone_number"] = pacttest.Pattern("+12025550123", `^\+[0-9]{5,15}$`)
	text := func(s string) *string { return &s }
	ada := oauthapp.Details{Profile: oauthapp.Profile{ID: 17, Name: "Ada Lovelace",
		Email: text("ada@example.com"), Picture: text("https://example.com/ada.png"),
		Username: text("ada"), Gender: text("female")}, Bio: text("Wrote the first program."),
		PhoneNumber:  text("+12025550123"),
		PlaceOfBirth: text("London"), DateOfBirth: text("1990-12-10"),
		Address: text("12 St James's Square, London"), ServiceID: serviceID}
	bare := oauthapp.Details{Profile: oauthapp.Profile{ID: 17, Name: "Ada Lovelace"},
		ServiceID: serviceID}
	byPhone := bare
	byPhone.PhoneNumber = text("+12025550123")
	token := given("an access token", "scope", "view-user detail-user")
	for _, row := range []struct {
		name   string
		user   state
		fields object
		want   oauthapp.Details
	}{
		{"of a user with a complete profile",
			given("a user with every profile field set", everything...), full, ada},
		{"of a user with only a name",
			given("a user with no optional profile field", "name", "Ada Lovelace"),
			object{"name": "Ada Lovelace"}, bare},
		{"of a user who registered by phone",
			given("a user registered by phone", "name", "Ada Lovelace", "phone_number",
				"+12025550123"),
			object{"name": "Ada Lovelace", "phone_number": "+12025550123"}, byPhone},
	} {
		p.Test(t, pacttest.Interaction{
			Name: "the basic profile " + row.name, Given: []state{confidential(), row.user, token},
			Request: getProfile(basicPath, theToken),
			Response: pacttest.Response{Status: 200, Header: counted("100", "99"),
				JSON: basicFields(row.fields)},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			got, quota, err := a.Profile(t.Context(), accessToken)
			pacttest.Must(t, err)
			if !reflect.DeepEqual(*got, row.want.Profile) ||
				quota != (oauthapp.Quota{Limit: 100, Remaining: 99,
					Reset: time.Unix(1790000000, 0)}) {
				t.Errorf("got %+v with %+v, want %+v with 99 of 100 left", *got, quota,
					row.want.Profile)
			}
		})
		p.Test(t, pacttest.Interaction{
			Name:    "the detailed profile " + row.name,
			Given:   []state{confidential(), row.user, token},
			Request: getProfile(detailedPath, theToken),
			Response: pacttest.Response{Status: 200, Header: counted("50", "49"),
				JSON: detailedFields(row.fields)},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			got, quota, err := a.Details(t.Context(), accessToken)
			pacttest.Must(t, err)
			if !reflect.DeepEqual(*got, row.want) ||
				quota != (oauthapp.Quota{Limit: 50, Remaining: 49,
					Reset: time.Unix(1790000000, 0)}) {
				t.Errorf("got %+v with %+v, want %+v with 49 of 50 left", *got, quota, row.want)
			}
		})
	}
	closedProfiles(t, p)
}

func closedProfiles(t *testing.T, p *pacttest.Pact) {
	examples := func(fields object) object {
		e := maps.Clone(fields)
		for name, value := range map[string]string{"name": "Ada Lovelace",
			"email": "ada@mail.example", "profile_picture": "https://pictures.example/ada.png",
			"username": "ada", "gender": "female", "bio": "Wrote the first program.",
			"phone_number": "+14155550100", "place_of_birth": "London",
			"date_of_birth": "1990-12-10", "address": "12 St James's Square, London",
			"service_id": "1f0e9d8c-7b6a-4958-8776-655443322110"} {
			if _, ok := e[name]; ok {
				e[name] = pacttest.Any(value)
			}
		}
		e["id"] = pacttest.Integer(17)
		return e
	}
	basic := examples(basicFields(nil))
	for _, row := range []struct {
		name, path string
		members    object
		ask        func(context.Context, *oauthapp.App) error
	}{
		{"the basic profile with only documented members", basicPath, basic,
			func(ctx context.Context, a *oauthapp.App) error {
				_, _,
					err := a.Profile(ctx, accessToken)
				return err
			}},
		{"the detailed profile with only documented members", detailedPath,
			examples(detailedFields(nil)),
			func(ctx context.Context, a *oauthapp.App) error {
				_, _,
					err := a.Details(ctx, accessToken)
				return err
			}},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []state{confidential(),
				given("a user with every profile field set", everything...),
				given("an access token")},
			Request: getProfile(row.path, theToken),
			Response: pacttest.Response{Status: 200, Header: header(),
				JSON: pacttest.OnlyKeys(row.members)},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			if err := row.ask(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
}

func profileHeaders(t *testing.T, p *pacttest.Pact) {
	head := getProfile(basicPath, theToken)
	head.Method = "HEAD"
	p.Test(t, pacttest.Interaction{
		Name:  "a request for the remaining quota",
		Given: []state{confidential(), given("an access token")}, Request: head,
		Response: pacttest.Response{Status: 200, Header: counted("100", "99")},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		if got, err := a.Quota(t.Context(), accessToken); err != nil || got.Remaining != 99 {
			t.Errorf("got %+v, %v, want 99 left", got, err)
		}
	})
	basic := object{"id": pacttest.Integer(17), "name": pacttest.NotEmpty("Ada Lovelace")}
	detailed := maps.Clone(basic)
	detailed["service_id"] = pacttest.NotEmpty(serviceID)
	for _, row := range []struct {
		name, path, limit string
		fields            object
	}{
		{"the last basic profile of the minute", basicPath, "100", basic},
		{"the last detailed profile of the minute", detailedPath, "50", detailed},
	} {
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: []state{confidential(), given("an access token"),
				given("the limit of "+row.path+" is used up", "remaining", 1)},
			Request: getProfile(row.path, theToken),
			Response: pacttest.Response{Status: 200, Header: counted(row.limit, "0"),
				JSON: row.fields},
		}, func(t *testing.T, base string) {
			a := newApp(base)
			if row.path == basicPath {
				if _, got, err := a.Profile(t.Context(), accessToken); err != nil ||
					got.Remaining != 0 || got.Limit != 100 {
					t.Errorf("got %+v, %v, want nothing left", got, err)
				}
				return
			}
			if _, got, err := a.Details(t.Context(), accessToken); err != nil || got.Remaining != 0 ||
				got.Limit != 50 {
				t.Errorf("got %+v, %v, want nothing left", got, err)
			}
		})
	}
	p.Test(t, pacttest.Interaction{
		Name: "a basic profile does not count for detailed ones",
		Given: []state{confidential(), given("an access token"),
			given("the limit of /api/user/details is used up")},
		Request:  getProfile(basicPath, theToken),
		Response: pacttest.Response{Status: 200, Header: counted("100", "99"), JSON: basic},
	}, func(t *testing.T, base string) {
		a := newApp(base)
		if _, got, err := a.Profile(t.Context(), accessToken); err != nil || got.Remaining != 99 {
			t.Errorf("got %+v, %v, want 99 left", got, err)
		}
	})
}

// matchers.Matcher is the type of matchers for headers.
var _ matchers.Matcher = theToken
