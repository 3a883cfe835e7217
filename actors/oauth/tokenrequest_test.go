package oauth_test

import (
	"encoding/base64"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

// form parses "name=value&…" into parameters.
func form(text string) []oauth.Parameter {
	var params []oauth.Parameter
	for pair := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(pair, "=")
		value, _ = url.QueryUnescape(value)
		params = append(params, oauth.Parameter{Name: name, Value: value})
	}
	return params
}

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestParseTokenRequest(t *testing.T) {
	byBody := oauth.Credentials{ClientID: "id", Secret: "s"}
	byBasic := oauth.Credentials{ClientID: "id", Secret: "s", Basic: true}
	for _, row := range []struct {
		form, authorization string
		want                oauth.TokenRequest
	}{
		{"grant_type=client_credentials&client_id=id&client_secret=s&scope=x+y", "",
			oauth.TokenRequest{Credentials: byBody, Grant: oauth.ClientCredentialsGrant,
				Scope: "x y"}},
		{"grant_type=authorization_code&client_id=id&client_secret=s&code=c&redirect_uri=u&code_verifier=v&refresh_token=r", "",
			oauth.TokenRequest{Credentials: byBody, Grant: oauth.AuthorizationCodeGrant, Code: "c",
				RedirectURI: "u", CodeVerifier: "v"}},
		{"grant_type=refresh_token&client_id=id&refresh_token=r&code=c&redirect_uri=u&code_verifier=v", "",
			oauth.TokenRequest{Credentials: oauth.Credentials{ClientID: "id"},
				Grant: oauth.RefreshTokenGrant, RefreshToken: "r"}},
		{"grant_type=authorization_code&client_id=id&client_secret=s", "",
			oauth.TokenRequest{Credentials: byBody, Grant: oauth.AuthorizationCodeGrant}},
		{"grant_type=client_credentials", basic("id:s"),
			oauth.TokenRequest{Credentials: byBasic, Grant: oauth.ClientCredentialsGrant}},
		{"grant_type=client_credentials&client_id=id&client_secret=",
			strings.ToLower(basic("id:s")[:5]) + "  " +
				basic("id:s")[6:], oauth.TokenRequest{Credentials: byBasic,
				Grant: oauth.ClientCredentialsGrant}},
		{"grant_type=client_credentials", basic("i%64:%73"),
			oauth.TokenRequest{Credentials: byBasic, Grant: oauth.ClientCredentialsGrant}},
		{"grant_type=client_credentials", basic("id:a:b+c"),
			oauth.TokenRequest{Credentials: oauth.Credentials{ClientID: "id", Secret: "a:b c",
				Basic: true}, Grant: oauth.ClientCredentialsGrant}},
		{"grant_type=client_credentials", basic("id:"),
			oauth.TokenRequest{Credentials: oauth.Credentials{ClientID: "id", Basic: true},
				Grant: oauth.ClientCredentialsGrant}},
		{"audience=1&grant_type=client_credentials&client_id=id&client_secret=s&other=", "",
			oauth.TokenRequest{Credentials: byBody, Grant: oauth.ClientCredentialsGrant}},
	} {
		got, err := oauth.ParseTokenRequest(form(row.form), row.authorization)
		if err != nil || !reflect.DeepEqual(*got, row.want) {
			t.Errorf("%s %s: got %+v, %v, want %+v", row.form, row.authorization, got, err,
				row.want)
		}
	}
}

func TestParseTokenRequestRejects(t *testing.T) {
	const good = "grant_type=client_credentials&client_id=id&client_secret=s"
	for _, row := range []struct {
		form, authorization string
		code                oauth.Code
	}{
		{"", "", oauth.InvalidRequest},
		{"client_id=id&client_secret=s", "", oauth.InvalidRequest},
		{"grant_type=&client_id=id&client_secret=s", "", oauth.InvalidRequest},
		{"grant_type=password&client_id=id&client_secret=s", "", oauth.UnsupportedGrantType},
		{"grant_type=Client_Credentials&client_id=id&client_secret=s", "", oauth.UnsupportedGrantType},
		{"grant_type=client_credentials&client_secret=s", "", oauth.InvalidRequest},
		{"grant_type=client_credentials&client_id=", "", oauth.InvalidRequest},
		{good + "&scope=a&scope=a", "", oauth.InvalidRequest},
		{good + "&grant_type=client_credentials", "", oauth.InvalidRequest},
		{good + "&client_id=", "", oauth.InvalidRequest},
		{good + "&code=1&code=2", "", oauth.InvalidRequest},
		{good + "&scope=%ff", "", oauth.InvalidRequest},
		{good + "&scope=a%00", "", oauth.InvalidRequest},
		{good + "&redirect_uri=a%0d%0ab", "", oauth.InvalidRequest},
		{good + "&code=a%7f", "", oauth.InvalidRequest},
		{good + "&code=a%c2%85", "", oauth.InvalidRequest},
		{good, basic("id:s"), oauth.InvalidRequest},
		{"grant_type=client_credentials&client_id=other", basic("id:s"), oauth.InvalidRequest},
		{"grant_type=client_credentials", "Bearer x", oauth.InvalidClient},
		{"grant_type=client_credentials", "Basic", oauth.InvalidClient},
		{"grant_type=client_credentials", "Basic !", oauth.InvalidClient},
		{"grant_type=client_credentials", basic("id"), oauth.InvalidClient},
		{"grant_type=client_credentials", basic(":s"), oauth.InvalidClient},
		{"grant_type=client_credentials", basic("id:%zz"), oauth.InvalidClient},
		{"grant_type=client_credentials", basic("id:\xff"), oauth.InvalidClient},
		{"grant_type=client_credentials", basic("i%00d:s"), oauth.InvalidClient},
		// the order of the checks
		{"grant_type=password&scope=a&scope=b", "Basic !", oauth.InvalidRequest},
		{"grant_type=password", "Basic !", oauth.UnsupportedGrantType},
	} {
		r, err := oauth.ParseTokenRequest(form(row.form), row.authorization)
		if r != nil || err == nil || err.Code != row.code || err.Description == "" ||
			err.Hint == "" {
			t.Errorf("%s %s: got %+v, %v, want %s", row.form, row.authorization, r, err, row.code)
		} else if row.code == oauth.InvalidClient && !err.BasicTried {
			t.Errorf("%s: got BasicTried false, want true", row.authorization)
		}
	}
}

func TestParseCredentials(t *testing.T) {
	c, token, err := oauth.ParseCredentials(form("token=t&token_type_hint=refresh_token"),
		basic("id:s"))
	if err != nil || token != "t" || c != (oauth.Credentials{ClientID: "id", Secret: "s",
		Basic: true}) {
		t.Errorf("got %+v, %q, %v", c, token, err)
	}
	for _, row := range []struct {
		form string
		code oauth.Code
	}{
		{"client_id=id", oauth.InvalidRequest},
		{"token=t", oauth.InvalidRequest},
		{"token=t&token=t&client_id=id", oauth.InvalidRequest},
		{"token=t&token_type_hint=%01&client_id=id", oauth.InvalidRequest},
	} {
		if _, _, err := oauth.ParseCredentials(form(row.form), ""); err == nil ||
			err.Code != row.code {
			t.Errorf("%s: got %v, want %s", row.form, err, row.code)
		}
	}
}

// FuzzParseTokenRequest checks that the result has a grant type and client, or else an error that
// does not contain the input.
func FuzzParseTokenRequest(f *testing.F) {
	f.Add("client_credentials", "id", "s", "scope", "view-user", "")
	f.Add("authorization_code", "", "", "code", "gtac_x", basic("id:s"))
	f.Add("password", "", "", "grant_type", "x", "Basic Og==")
	f.Fuzz(func(t *testing.T, grant, id, secret, name, value, authorization string) {
		params := []oauth.Parameter{{Name: "grant_type", Value: grant},
			{Name: "client_id", Value: id}, {Name: "client_secret", Value: secret}, {Name: name,
				Value: value}}
		r, err := oauth.ParseTokenRequest(params, authorization)
		switch {
		case err != nil && (r != nil || len(value) > 30 &&
			strings.Contains(string(err.AppendJSON(nil)), value)):
			t.Errorf("got %+v and %v", r, err)
		case err == nil && (r.Grant.String() != grant || r.ClientID == "" ||
			r.Basic != (authorization != "")):
			t.Errorf("got %+v", r)
		}
	})
}
