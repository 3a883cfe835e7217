//go:build pact

package oauthapp_test

import (
	"net/url"
	"testing"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// failingPages tests errors that the application's web pages must be able to read.
func failingPages(t *testing.T, p *pacttest.Pact) {
	exchange := form("grant_type", "authorization_code", "code", code, "redirect_uri", redirectURI,
		"code_verifier", verifier, "client_id", clientID)
	foreign := form("token", refreshToken, "client_id", otherClientID)
	unknown := url.Values{}
	for name, values := range exchange {
		unknown[name] = values
	}
	unknown.Set("client_id", otherClientID)
	wrong := given("this address has failed to authenticate too often")
	live := given("an access token")
	for _, row := range []struct {
		name    string
		given   []state
		request pacttest.Request
		status  int
		code    string
		headers []any
	}{
		{"a web page's exchange of an unknown code", []state{public()},
			post("/oauth/token", exchange), 400, "invalid_grant", nil},
		{"a web page's exchange of a code by an unknown client", []state{public()},
			post("/oauth/token", unknown), 401, "invalid_client", nil},
		{"a web page's token request after too many wrong secrets", []state{public(), wrong},
			post("/oauth/token", form("grant_type", "client_credentials", "client_id", clientID,
				"client_secret", otherSecret)), 429, "temporarily_unavailable",
			[]any{"Retry-After", pacttest.Matching("30", "^[1-5]?[0-9]$")}},
		{"a web page's revocation without a token", []state{public()},
			post("/oauth/revoke", form("client_id", clientID)), 400, "invalid_request", nil},
		{"a web page's revocation by an unknown client", []state{public()},
			post("/oauth/revoke", foreign), 401, "invalid_client", nil},
		{"a web page's basic profile without a token", []state{public()},
			getProfile(basicPath, nil), 401, "", nil},
		{"a web page's basic profile without its scope",
			[]state{public(), given("an access token", "scope", "detail-user")},
			getProfile(basicPath, theToken), 403, "insufficient_scope", nil},
		{"a web page's basic profile over its limit",
			[]state{public(), live, given("the limit of /api/user is used up")},
			getProfile(basicPath, theToken), 429, "rate_limit_exceeded", nil},
		{"a web page's detailed profile without a token", []state{public()},
			getProfile(detailedPath, nil), 401, "", nil},
		{"a web page's detailed profile without its scope",
			[]state{public(), given("an access token", "scope", "view-user")},
			getProfile(detailedPath, theToken), 403, "insufficient_scope", nil},
		{"a web page's detailed profile over its limit",
			[]state{public(), live, given("the limit of /api/user/details is used up")},
			getProfile(detailedPath, theToken), 429, "rate_limit_exceeded", nil},
	} {
		body := object{"message": pacttest.NotEmpty("It does not work.")}
		if row.code != "" {
			body["error"] = row.code
		}
		request := with(row.request, "Origin", origin)
		p.Test(t, pacttest.Interaction{
			Name: row.name, Given: row.given, Request: request,
			Response: pacttest.Response{Status: row.status, JSON: body,
				Header: header(append(row.headers, "Access-Control-Allow-Origin", origin, "Vary",
					"Origin")...)},
		}, func(t *testing.T, base string) {
			a := newPageApp(base)
			send := oauthapp.Request{Method: request.Method, Path: request.Path,
				Header: map[string]string{}}
			if request.Form != nil {
				send.Body = request.Form.Encode()
				send.Header["Content-Type"] = "application/x-www-form-urlencoded"
			}
			if request.Header["Authorization"] != nil {
				send.Header["Authorization"] = "Bearer " + accessToken
			}
			_, err := a.Do(t.Context(), send)
			wantError(t, err, row.status, row.code)
		})
	}
}
