package oauth_test

import (
	"encoding/json"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

func TestResponseBodies(t *testing.T) {
	for _, row := range []struct {
		response interface{ AppendJSON([]byte) []byte }
		want     string
	}{
		{&oauth.TokenResponse{AccessToken: "a", ExpiresIn: time.Hour, Scopes: oauth.ViewUser},
			`{"access_token":"a","token_type":"Bearer","expires_in":3600}`},
		{&oauth.TokenResponse{AccessToken: "a", ExpiresIn: 90 * time.Second, RefreshToken: "r", Scopes: oauth.UserScopes, ShowScope: true},
			`{"access_token":"a","token_type":"Bearer","expires_in":90,"refresh_token":"r","scope":"view-user detail-user"}`},
		{&oauth.Introspection{Scopes: oauth.ViewUser, ClientID: "id", UserID: 7}, `{"active":false}`},
		{&oauth.Introspection{Active: true, Scopes: oauth.ViewUser, ClientID: "id", UserID: 7, Issued: time.Unix(1, 0), Expires: time.Unix(2, 0)},
			`{"active":true,"scope":"view-user","client_id":"id","token_type":"Bearer","sub":"7","iat":1,"exp":2}`},
		{&oauth.TokenResponse{AccessToken: "a", ExpiresIn: time.Hour, IssuedTokenType: oauth.AccessTokenType},
			`{"access_token":"a","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`},
		{&oauth.Introspection{Active: true, ClientID: "c", UserID: 7, Expires: time.Unix(2, 0), Actors: []string{"c", "b"}},
			`{"active":true,"scope":"","client_id":"c","token_type":"Bearer","sub":"7","act":{"sub":"c","act":{"sub":"b"}},"exp":2}`},
		{&oauth.Introspection{Active: true, ClientID: "id", Expires: time.Unix(2, 0), Refresh: true},
			`{"active":true,"scope":"","client_id":"id","exp":2}`},
		{&oauth.Error{Code: oauth.InvalidGrant, Description: "A \"b\"\n\\\xff.", Hint: "é."},
			`{"error":"invalid_grant","error_description":"A \"b\"\u000a\\�.","message":"A \"b\"\u000a\\�.","hint":"é."}`},
	} {
		got := row.response.AppendJSON([]byte("x"))
		if string(got) != "x"+row.want || !json.Valid(got[1:]) {
			t.Errorf("got %s, want x%s", got, row.want)
		}
	}
}

func TestErrorStatus(t *testing.T) {
	for code, want := range map[oauth.Code]int{
		oauth.InvalidRequest: 400, oauth.InvalidClient: 401, oauth.InvalidGrant: 400,
		oauth.UnauthorizedClient:   400,
		oauth.UnsupportedGrantType: 400, oauth.InvalidScope: 400, oauth.TemporarilyUnavailable: 503,
		oauth.ServerError: 500,
	} {
		if got := (&oauth.Error{Code: code}).Status(); got != want {
			t.Errorf("%s: got %d, want %d", code, got, want)
		}
	}
	if got := (&oauth.Error{Code: oauth.TemporarilyUnavailable,
		Throttled: true}).Status(); got != 429 {
		t.Errorf("throttled: got %d, want 429", got)
	}
}

// TestResponsesAllocateNothing writes responses into a buffer that is large enough.
func TestResponsesAllocateNothing(t *testing.T) {
	now, buffer := time.Unix(1_800_000_000, 0), make([]byte, 0, 1024)
	about := oauth.Introspection{Active: true, Scopes: oauth.UserScopes, ClientID: "c", UserID: 7,
		Issued: now, Expires: now}
	tokens := oauth.TokenResponse{AccessToken: "a", Scopes: oauth.UserScopes, ShowScope: true,
		ExpiresIn: time.Hour}
	for what, write := range map[string]func(){
		"introspection": func() { buffer = about.AppendJSON(buffer[:0]) },
		"tokens":        func() { buffer = tokens.AppendJSON(buffer[:0]) },
	} {
		if n := testing.AllocsPerRun(100, write); n != 0 {
			t.Errorf("%s: got %v allocations, want none", what, n)
		}
	}
}
