package httpedge_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

func TestProfiles(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	user := st.NewUser(t, "Rosa", rosa)
	access, _ := newToken(t, st, c, user.ID, oauth.UserScopes)
	before := time.Now()
	a := get(t, st.Stack, "/api/user", "Authorization", "bEaReR "+access)
	if a.status != 200 || len(a.object(t)) != 6 {
		t.Errorf("got %d %s, want the six members of the basic profile", a.status, a.body)
	}
	a.has(t, "Content-Type", "application/json")
	a.has(t, "Cache-Control", "no-store")
	a.has(t, "X-RateLimit-Limit", "100")
	a.has(t, "X-RateLimit-Remaining", "99")
	reset, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
	if end := time.Unix(reset, 0).Sub(before); err != nil || end < time.Minute ||
		end > 62*time.Second {
		t.Errorf("got a reset in %v and %v, want one in a minute, rounded up", end, err)
	}
	a = get(t, st.Stack, "/api/user/details", "Authorization", "Bearer "+access)
	if o := a.object(t); a.status != 200 || o["service_id"] != user.ServiceID ||
		o["phone_number"] != nil || len(o) != 12 {
		t.Errorf("got %d %s, want the twelve members of the detailed profile", a.status, a.body)
	}
	a.has(t, "X-RateLimit-Limit", "50")
	a.has(t, "X-RateLimit-Remaining", "49")

	head := send(t, st.Stack, "HEAD", st.URL+"/api/user", "", "Authorization", "Bearer "+access)
	if head.status != 200 || head.body != "" || head.header.Get("Content-Length") == "0" {
		t.Errorf("got %d %q %v, want the headers alone", head.status, head.body, head.header)
	}
	head.has(t, "X-RateLimit-Remaining", "98")
}

// longest returns a token lengthened to the most that is decoded.
func longest(token string) string {
	return token + strings.Repeat("A", oauth.MaxAccessToken-len(token))
}

func TestInvalidTokens(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	access, refresh := newToken(t, st, c, st.NewUser(t, "Rosa", rosa).ID, oauth.ViewUser)
	for _, path := range []string{"/api/user", "/api/user/details"} {
		for name, test := range map[string]struct {
			authorization []string
			tried         bool
		}{
			"nothing":       {nil, false},
			"Basic":         {[]string{basic(c.ID, c.Secret)}, false},
			"garbage":       {[]string{"Bearer garbage"}, true},
			"flipped":       {[]string{"Bearer " + access[:len(access)-1] + "!"}, true},
			"refresh token": {[]string{"Bearer " + refresh}, true},
			"client secret": {[]string{"Bearer " + c.Secret}, true},
			"long":          {[]string{"Bearer " + strings.Repeat("a", 4000)}, true},
			"lengthened":    {[]string{"Bearer " + longest(access)}, true},
			"twice":         {[]string{"Bearer " + access, "Bearer " + access}, true},
		} {
			var headers []string
			for _, line := range test.authorization {
				headers = append(headers, "Authorization", line)
			}
			a := get(t, st.Stack, path+"?access_token="+access, headers...)
			if o := a.object(t); a.status != 401 || len(o) != 1 || o["message"] == "" {
				t.Errorf("%s: got %d %s, want 401 and a message alone", name, a.status, a.body)
			}
			challenge := a.header.Get("WWW-Authenticate")
			if !strings.HasPrefix(challenge, "Bearer ") ||
				strings.Contains(challenge, "invalid_token") != test.tried {
				t.Errorf("%s: got challenge %q, want invalid_token in it %v", name, challenge,
					test.tried)
			}
			a.has(t, "X-RateLimit-Limit", "")
			a.has(t, "Cache-Control", "no-store")
		}
	}
}

func TestExpiredToken(t *testing.T) {
	st := stacktest.NewIdentity(t)
	token := st.Seal(t, oauth.AccessToken{
		ClientID: st.NewClient(t, nil).ID, Expires: time.Now().Add(-time.Hour).Unix(),
	})
	a := get(t, st.Stack, "/api/user", "Authorization", "Bearer "+token)
	o := a.object(t)
	if a.status != 401 || o["error"] != "token_expired" || o["error_description"] == "" ||
		o["message"] == "" || len(o) != 3 {
		t.Errorf("got %d %s, want 401 token_expired", a.status, a.body)
	}
	if challenge := a.header.Get("WWW-Authenticate"); !strings.Contains(challenge,
		`error="invalid_token"`) {
		t.Errorf("got challenge %q, want invalid_token", challenge)
	}
}

func TestScopesAndApproval(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	user := st.NewUser(t, "Rosa", rosa)
	basicOnly, _ := newToken(t, st, c, user.ID, oauth.ViewUser)
	detailOnly, _ := newToken(t, st, c, user.ID, oauth.DetailUser)
	machine := postToken(t, st, query(credentials(c)...)).object(t)["access_token"].(string)
	for _, test := range []struct {
		token, path, code, limit string
	}{
		{basicOnly, "/api/user/details", "insufficient_scope", "50"},
		{detailOnly, "/api/user", "insufficient_scope", "100"},
		{detailOnly, "/api/user/details", "unapproved_scope", "50"},
		{machine, "/api/user", "insufficient_scope", "100"},
		{machine, "/api/user/details", "insufficient_scope", "50"},
	} {
		a := get(t, st.Stack, test.path, "Authorization", "Bearer "+test.token)
		o := a.object(t)
		if a.status != 403 || o["error"] != test.code || o["error_description"] == "" ||
			o["message"] == "" || len(o) != 3 {
			t.Errorf("%s: got %d %s, want 403 %s", test.path, a.status, a.body, test.code)
		}
		a.has(t, "X-RateLimit-Limit", test.limit)
		if challenge := a.header.Get("WWW-Authenticate"); !strings.Contains(challenge,
			`error="insufficient_scope"`) {
			t.Errorf("got challenge %q, want insufficient_scope", challenge)
		}
	}
}

func TestRateLimit(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	access, _ := newToken(t, st, c, st.NewUser(t, "Rosa", rosa).ID, oauth.UserScopes)
	for path, limit := range map[string]int{"/api/user": 100, "/api/user/details": 50} {
		for i := range limit {
			a := get(t, st.Stack, path, "Authorization", "Bearer "+access)
			if a.status != 200 {
				t.Fatalf("got %d %s at request %d, want 200", a.status, a.body, i+1)
			}
			a.has(t, "X-RateLimit-Remaining", strconv.Itoa(limit-1-i))
		}
		a := get(t, st.Stack, path, "Authorization", "Bearer "+access)
		o := a.object(t)
		wait, ok := o["retry_after"].(float64)
		if a.status != 429 || o["error"] != "rate_limit_exceeded" || o["message"] == "" || !ok ||
			wait < 1 || wait > 60 || len(o) != 3 {
			t.Errorf("got %d %s, want 429 with retry_after", a.status, a.body)
		}
		a.has(t, "Retry-After", strconv.Itoa(int(wait)))
		a.has(t, "X-RateLimit-Remaining", "0")
		a.has(t, "X-RateLimit-Limit", strconv.Itoa(limit))
	}
}

func TestPagesOfPublicClientsMayCall(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewClient(t,
		func(c *oauth.Client) { c.RedirectURIs = []string{"https://confidential.example/cb"} })
	st.NewClient(t, func(c *oauth.Client) {
		c.Public, c.RedirectURIs = true,
			[]string{"https://spa.example:8443/cb", "http://localhost:3000/cb",
				"com.example.app:/cb"}
	})
	for origin, registered := range map[string]bool{"https://spa.example:8443": true,
		"http://localhost:3000": true, "https://spa.example": false,
		"https://confidential.example": false, "null": false, "com.example.app:": false, "": false,
		"https://evil.example": false} {
		for path, method := range map[string]string{"/oauth/token": "POST", "/oauth/revoke": "POST",
			"/api/user": "GET", "/api/user/details": "GET"} {
			want := registered || method == "POST" && origin != "" // tokens: pages of any origin
			headers := []string{"Access-Control-Request-Method", method,
				"Access-Control-Request-Headers", "authorization, content-type"}
			allowed := map[bool]string{true: origin}[want]
			if origin != "" {
				headers = append(headers, "Origin", origin)
			}
			pre := send(t, st.Stack, "OPTIONS", st.URL+path, "", headers...)
			if pre.status != 204 || !strings.Contains(
				pre.header.Get("Access-Control-Allow-Headers"), "Authorization") {
				t.Errorf("%s: got %d %v, want a preflight that allows Authorization", path,
					pre.status, pre.header)
			}
			for _, a := range []response{pre,
				send(t, st.Stack, method, st.URL+path, "", headers...)} {
				a.has(t, "Access-Control-Allow-Origin", allowed)
				a.has(t, "Vary", "Origin")
				if exposed := a.header.Get("Access-Control-Expose-Headers"); strings.Contains(
					exposed, "X-RateLimit-Reset") != want {
					t.Errorf("%s from %s: got exposed headers %q, want them %v", path, origin,
						exposed, want)
				}
			}
		}
	}
	if a := send(t, st.Stack, "OPTIONS", st.URL+"/oauth/authorize", "", "Origin",
		"https://spa.example:8443"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("got %v, want no page to read the authorization endpoint", a.header)
	}
}
