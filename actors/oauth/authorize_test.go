package oauth_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

const chooser = "skip_account_chooser"

// query returns a request that is valid for both test clients, after the changes: parameters to
// replace or add.
func query(changes string) []oauth.Parameter {
	params := form("client_id=id&redirect_uri=https://app.example/cb&response_type=code&scope=view-user&state=s" +
		"&code_challenge=" + challenge + "&code_challenge_method=S256")
	for _, change := range form(changes) {
		for i := range params {
			if params[i].Name == change.Name {
				params[i].Value, change.Name = change.Value, ""
			}
		}
		if change.Name != "" {
			params = append(params, change)
		}
	}
	return params
}

func webClient() *oauth.Client {
	return &oauth.Client{ID: "id", RedirectURIs: []string{"https://app.example/cb",
		"http://localhost/cb"}, Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant}
}

func publicClient() *oauth.Client {
	c := webClient()
	c.Public = true
	c.RedirectURIs = append(c.RedirectURIs, "com.example.app:/cb", "http://127.0.0.1/cb")
	return c
}

func TestParseAuthorizationRequest(t *testing.T) {
	for _, row := range []struct {
		changes string
		want    func(*oauth.AuthorizationRequest)
	}{
		{"", func(*oauth.AuthorizationRequest) {}},
		{"scope=detail-user view-user", func(r *oauth.AuthorizationRequest) { r.Scopes = oauth.UserScopes }},
		{"scope=", func(r *oauth.AuthorizationRequest) { r.DefaultScopes = true }},
		{"state=", func(r *oauth.AuthorizationRequest) { r.State = "" }},
		{"state=%C3%A9+%26%3D%22%3Cb%3E", func(r *oauth.AuthorizationRequest) { r.State = `é &="<b>` }},
		{"prompt=login+consent", func(r *oauth.AuthorizationRequest) { r.Prompt = oauth.PromptLogin | oauth.PromptConsent }},
		{"prompt=none", func(r *oauth.AuthorizationRequest) { r.Prompt = oauth.PromptNone }},
		{chooser + "=true", func(r *oauth.AuthorizationRequest) { r.SkipAccountChooser = true }},
		{chooser + "=TRUE", func(*oauth.AuthorizationRequest) {}},
		{chooser + "=1", func(*oauth.AuthorizationRequest) {}},
		{"code_challenge=&code_challenge_method=", func(r *oauth.AuthorizationRequest) { r.CodeChallenge = "" }},
		{"nonce=x&resource=&ui_locales=en", func(*oauth.AuthorizationRequest) {}},
	} {
		want := oauth.AuthorizationRequest{ClientID: "id", RedirectURI: "https://app.example/cb",
			Scopes: oauth.ViewUser, State: "s", CodeChallenge: challenge}
		row.want(&want)
		got, err := oauth.ParseAuthorizationRequest(query(row.changes), chooser)
		if err == nil {
			err = got.CheckClient(webClient())
		}
		if err == nil {
			err = got.Check(webClient(), oauth.ViewUser)
		}
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", row.changes, got, err, want)
		}
	}
}

func TestRedirectURLs(t *testing.T) {
	const issuer = "https://id.example"
	const iss = "iss=https%3A%2F%2Fid.example"
	denied := &oauth.Error{Code: oauth.AccessDenied, Description: "The user denied access."}
	for _, row := range []struct{ uri, state, want string }{
		{"https://app.example/cb", "s", "https://app.example/cb?code=c&state=s&" + iss},
		{"https://app.example", "", "https://app.example?code=c&" + iss},
		{"https://app.example/cb?a=%20b", "s", "https://app.example/cb?a=%20b&code=c&state=s&" + iss},
		{"https://app.example/cb?", "s", "https://app.example/cb?code=c&state=s&" + iss},
		{"https://app.example/cb?a&", "s", "https://app.example/cb?a&code=c&state=s&" + iss},
		{"com.example.app:/cb", "a b+&=#%é\r\n", "com.example.app:/cb?code=c&state=a%20b%2B%26%3D%23%25%C3%A9%0D%0A&" + iss},
	} {
		r := &oauth.AuthorizationRequest{RedirectURI: row.uri, State: row.state}
		if got := r.ResponseURL(r.CodeResponse("c", issuer)); got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
		want := strings.Replace(row.want, "code=c",
			"error=access_denied&error_description=The%20user%20denied%20access.", 1)
		if got := r.ResponseURL(r.ErrorResponse(denied, issuer)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzAuthorizationRequest checks that a response goes to the registered redirect URI and returns
// the state unchanged.
func FuzzAuthorizationRequest(f *testing.F) {
	f.Add("https://app.example/cb", "code", "view-user", "s", "none", challenge)
	f.Add("http://127.0.0.1:9/cb", "token", " ", "a\r\nb", "login", "")
	f.Fuzz(func(t *testing.T, uri, responseType, scope, state, prompt, challenge string) {
		r, err := oauth.ParseAuthorizationRequest([]oauth.Parameter{
			{Name: "client_id", Value: "id"}, {Name: "redirect_uri", Value: uri}, {Name: "response_type", Value: responseType},
			{Name: "scope", Value: scope}, {Name: "state", Value: state}, {Name: "prompt", Value: prompt},
			{Name: "code_challenge", Value: challenge}, {Name: "code_challenge_method", Value: "S256"},
		}, chooser)
		c := publicClient()
		c.LoopbackAnyPort = true
		if err != nil || r.CheckClient(c) != nil {
			return
		}
		response := r.ResponseURL(r.CodeResponse("c", "https://id.example"))
		if fault := r.Check(c, oauth.ViewUser); fault != nil {
			response = r.ResponseURL(r.ErrorResponse(fault, "https://id.example"))
		} else if !c.Scopes.Contains(r.Scopes) || r.Scopes == 0 || r.CodeChallenge != challenge {
			t.Errorf("passed: %+v", r)
		}
		rest, ok := strings.CutPrefix(response, uri+"?")
		if !ok || strings.ContainsAny(response, "\r\n \"<>") {
			t.Fatalf("got %q", response)
		}
		for _, p := range form(rest) {
			if p.Name == "state" && p.Value != state {
				t.Errorf("got state %q, want %q", p.Value, state)
			}
		}
	})
}

// openIDClient is webClient, registered for the scopes of OpenID Connect as well.
func openIDClient() *oauth.Client {
	c := webClient()
	c.Scopes |= oauth.OpenIDScopes
	c.RedirectURIs = append(c.RedirectURIs, "com.example.app:/cb")
	return c
}

func TestOpenIDRequestErrors(t *testing.T) {
	for _, row := range []struct {
		changes string
		want    oauth.Code
		mode    oauth.ResponseMode
	}{
		{"max_age=-1", oauth.InvalidRequest, 0},
		{"max_age=1.5", oauth.InvalidRequest, 0},
		{"max_age=2147483648", oauth.InvalidRequest, 0},
		{"max_age=x", oauth.InvalidRequest, 0},
		{"nonce=%00", oauth.InvalidRequest, 0},
		{"response_mode=fragment", oauth.InvalidRequest, 0},
		{"response_mode=form_post&redirect_uri=com.example.app:/cb", oauth.InvalidRequest, 0},
		{"request=a.b.c", oauth.RequestNotSupported, 0},
		{"request_uri=https://app.example/r", oauth.RequestURINotSupported, 0},
		{"prompt=none+select_account", oauth.InvalidRequest, 0},
		{"prompt=create", oauth.InvalidRequest, 0},
		{"response_mode=form_post&request=a", oauth.RequestNotSupported, oauth.FormPost},
		{"response_mode=form_post&response_type=token", oauth.UnsupportedResponseType, oauth.FormPost},
		{"response_mode=form_post&scope=openid+calendar", oauth.InvalidScope, oauth.FormPost},
	} {
		changes := row.changes
		if !strings.Contains(changes, "scope=") {
			changes += "&scope=openid"
		}
		r, err := oauth.ParseAuthorizationRequest(query(changes), chooser)
		if err != nil || r.CheckClient(openIDClient()) != nil {
			t.Fatalf("%s: got %v, want an error for the redirect URI", row.changes, err)
		}
		err = r.Check(openIDClient(), 0)
		if err == nil || err.Code != row.want || r.ResponseMode != row.mode {
			t.Errorf("%s: got %v in mode %d, want %s in mode %d", row.changes, err, r.ResponseMode,
				row.want, row.mode)
		}
	}
	twice := append(query("scope=openid&nonce=a"), oauth.Parameter{Name: "nonce", Value: "a"})
	r, err := oauth.ParseAuthorizationRequest(twice, chooser)
	if err == nil {
		err = r.Check(openIDClient(), 0)
	}
	if err == nil || err.Code != oauth.InvalidRequest {
		t.Errorf("got %v, want two nonces refused", err)
	}
}

func TestIsOutdated(t *testing.T) {
	now := time.Unix(1_800_000_000, 900_000_000)
	for _, row := range []struct {
		limits  bool
		maxAge  time.Duration
		elapsed time.Duration
		want    bool
	}{
		{false, 0, time.Hour, false},
		{true, 0, 0, true}, {true, 0, time.Hour, true},
		{true, time.Minute, 59 * time.Second, false}, {true, time.Minute, time.Minute, false},
		{true, time.Minute, 60*time.Second + 900*time.Millisecond, false},
		{true, time.Minute, 61 * time.Second, true},
		{true, time.Minute, -time.Second, false},
	} {
		r := oauth.AuthorizationRequest{LimitsAge: row.limits, MaxAge: row.maxAge}
		if got := r.IsOutdated(now.Add(-row.elapsed), now); got != row.want {
			t.Errorf("max age %v of %t, %v after: got %t, want %t", row.maxAge, row.limits,
				row.elapsed, got, row.want)
		}
	}
}
