package oauthapi_test

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
	access, _ := st.NewToken(t, c, user.ID, oauth.UserScopes)
	before := time.Now()
	a := st.Get(t, "/api/user", "Authorization", "bEaReR "+access)
	if a.Status != 200 || len(a.Object(t)) != 6 {
		t.Errorf("got %d %s, want the six members of the basic profile", a.Status, a.Body)
	}
	a.Has(t, "Content-Type", "application/json", "Cache-Control", "no-store", "X-RateLimit-Limit", "100",
		"X-RateLimit-Remaining", "99")
	reset, err := strconv.ParseInt(a.Header.Get("X-RateLimit-Reset"), 10, 64)
	if end := time.Unix(reset, 0).Sub(before); err != nil || end < time.Minute ||
		end > 62*time.Second {
		t.Errorf("got a reset in %v and %v, want one in a minute, rounded up", end, err)
	}
	a = st.Get(t, "/api/user/details", "Authorization", "Bearer "+access, "Accept", "text/html")
	a.Has(t, "Content-Type", "application/json")
	if o := a.Object(t); a.Status != 200 || o["service_id"] != user.ServiceID ||
		o["phone_number"] != nil || len(o) != 12 {
		t.Errorf("got %d %s, want the twelve members of the detailed profile", a.Status, a.Body)
	}
	a.Has(t, "X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "49")

	head := st.Send(t, "HEAD", st.URL+"/api/user", "", "Authorization", "Bearer "+access)
	if head.Status != 200 || head.Body != "" || head.Header.Get("Content-Length") == "0" {
		t.Errorf("got %d %q %v, want the headers alone", head.Status, head.Body, head.Header)
	}
	head.Has(t, "X-RateLimit-Remaining", "98")
}

// longest returns a token lengthened to the most that is decoded.
func longest(token string) string {
	return token + strings.Repeat("A", oauth.MaxAccessToken-len(token))
}

func TestInvalidTokens(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	access, refresh := st.NewToken(t, c, st.NewUser(t, "Rosa", rosa).ID, oauth.ViewUser)
	for _, path := range []string{"/api/user", "/api/user/details"} {
		for name, test := range map[string]struct {
			authorization []string
			tried         bool
		}{
			"nothing":       {nil, false},
			"Basic":         {[]string{stacktest.Basic(c.ID, c.Secret)}, false},
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
			a := st.Get(t, path+"?access_token="+access, headers...)
			if o := a.Object(t); a.Status != 401 || len(o) != 1 || o["message"] == "" {
				t.Errorf("%s: got %d %s, want 401 and a message alone", name, a.Status, a.Body)
			}
			challenge := a.Header.Get("WWW-Authenticate")
			if !strings.HasPrefix(challenge, "Bearer ") ||
				strings.Contains(challenge, "invalid_token") != test.tried {
				t.Errorf("%s: got challenge %q, want invalid_token in it %v", name, challenge,
					test.tried)
			}
			a.Has(t, "X-RateLimit-Limit", "", "Cache-Control", "no-store")
		}
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
			pre := st.Send(t, "OPTIONS", st.URL+path, "", headers...)
			if pre.Status != 204 || !strings.Contains(
				pre.Header.Get("Access-Control-Allow-Headers"), "Authorization") {
				t.Errorf("%s: got %d %v, want a preflight that allows Authorization", path,
					pre.Status, pre.Header)
			}
			for _, a := range []stacktest.Response{pre,
				st.Send(t, method, st.URL+path, "", headers...)} {
				a.Has(t, "Access-Control-Allow-Origin", allowed, "Vary", "Origin")
				if exposed := a.Header.Get("Access-Control-Expose-Headers"); strings.Contains(
					exposed, "X-RateLimit-Reset") != want {
					t.Errorf("%s from %s: got exposed headers %q, want them %v", path, origin,
						exposed, want)
				}
			}
		}
	}
	if a := st.Send(t, "OPTIONS", st.URL+"/oauth/authorize", "", "Origin",
		"https://spa.example:8443"); a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("got %v, want no page to read the authorization endpoint", a.Header)
	}
}
