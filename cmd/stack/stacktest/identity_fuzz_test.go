package stacktest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// unbroken removes line breaks, which would end a header.
var unbroken = strings.NewReplacer("\r", "", "\n", "")

// handled sends a raw request and checks that the response is no 5xx. It removes bytes that would
// end the request line or a header early.
func handled(t *testing.T, base, method, target, body string, headers ...string) reply {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	stacktest.Must(t, err)
	defer conn.Close()
	stacktest.Must(t, conn.SetDeadline(time.Now().Add(timeout)))
	var request strings.Builder
	fmt.Fprintf(&request, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n",
		method, strings.NewReplacer("\r", "", "\n", "", " ", "").Replace(target), len(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			request.WriteString(headers[i] + ": " + unbroken.Replace(headers[i+1]) + "\r\n")
		}
	}
	if _, err := io.WriteString(conn, request.String()+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("got %v, want a response to %q", err, request.String())
	}
	r := reply{Response: stacktest.ReadResponse(t, response)}
	if r.Status >= 500 {
		t.Errorf("%s: got %d %s, want no 5xx", method, r.Status, r.Body)
	}
	return r
}

const fuzzedSecret = "gtcs_fuzzed"

// fuzzed is a service with an approved client, a public client, and a user with tokens and a
// session.
type fuzzed struct {
	*stacktest.IdentityStack
	client, public stacktest.Client
	user           *account.User
	access         string
	session        string
}

func newFuzzed(f *testing.F) *fuzzed {
	f.Helper()
	st := stacktest.NewIdentity(f)
	s := &fuzzed{IdentityStack: st, public: st.NewClient(f, public),
		user: st.NewUser(f, "Rosa", "rosa@example.com")}
	s.client = st.NewClient(f, func(c *oauth.Client) { // the same in every fuzzing process
		c.ID, c.Secrets[0].Hash = "01234567-89ab-4cde-8f01-23456789abcd", oauth.HashOf(fuzzedSecret)
	})
	s.client.Secret = fuzzedSecret
	now := time.Now()
	code, fault := st.Tokens.IssueCode(f.Context(),
		oauth.AuthorizationCode{ClientID: s.client.ID, UserID: s.user.ID,
			Epochs:      oauth.Epochs{User: s.user.Epoch},
			RedirectURI: stacktest.RedirectURI, Scopes: oauth.ViewUser}, now)
	if fault != nil {
		f.Fatal(fault)
	}
	request := &oauth.TokenRequest{Credentials: oauth.Credentials{ClientID: s.client.ID,
		Secret: s.client.Secret}, Grant: oauth.AuthorizationCodeGrant,
		Code: code, RedirectURI: stacktest.RedirectURI}
	response, fault := st.Tokens.Token(f.Context(), request, now)
	if fault != nil {
		f.Fatal(fault)
	}
	s.access, s.session = response.AccessToken, account.NewSecret()
	_, err := st.Store.CreateSession(f.Context(), &account.Session{Hash: oauth.HashOf(s.session),
		UserID: s.user.ID, Created: now, SignedIn: now,
		Seen: now, Expires: now.Add(time.Hour), Device: "curl"})
	stacktest.Must(f, err)
	return s
}

// FuzzTokenRequest checks that every response is JSON, and that only the right secret gets a token.
// The body goes to revocation and introspection as well.
func FuzzTokenRequest(f *testing.F) {
	s := newFuzzed(f)
	for _, form := range [][]string{ownToken(s.client), redemption(s.client, "gtac_x"),
		renewal(s.client, "gtrt_x"), redemption(s.public, "gtac_x"), ownToken(s.public)} {
		f.Add(stacktest.Values(form...).Encode(), formType, "")
		f.Add(stacktest.Values(overridden(form, []string{"client_secret", ""})...).Encode(), formType+";charset=x",
			stacktest.Basic(s.client.ID, fuzzedSecret))
	}
	f.Add("grant_type=%", "", "Basic "+strings.Repeat("=", 9))
	f.Add("&&=&=&%00=%ff", formType, "Basic Og==")
	f.Fuzz(func(t *testing.T, body, kind, authorization string) {
		r := handled(t, s.URL, "POST", "/oauth/token", body, "Content-Type", kind, "Authorization",
			authorization)
		o := r.object(t, r.Status)
		if r.Status == 200 {
			if _, ok := o["access_token"].(string); !ok || authorization == "" &&
				!strings.Contains(body, "client_secret") {
				t.Errorf("got %s, want an access token only for the secret", r.Body)
			}
			return
		}
		for _, path := range []string{"/oauth/revoke", "/oauth/introspect"} {
			handled(t, s.URL, "POST", path, body, "Content-Type", kind, "Authorization", authorization)
		}
		for _, member := range []string{"error", "error_description", "message", "hint"} {
			if text, _ := o[member].(string); text == "" && o["error"] != "bad_request" {
				t.Errorf("got %s, want the member %s", r.Body, member)
			}
		}
	})
}

// FuzzBearer checks that only the exact token is accepted.
func FuzzBearer(f *testing.F) {
	s := newFuzzed(f)
	for _, seed := range [][2]string{{"Bearer ", ""}, {"bearer  ", ""}, {"Bearer", ""}, {"Basic ", ""},
		{"Bearer ", "="}, {"Bearer ", "x"}, {"Bearer \x00", "\xff"}, {"", ""}} {
		f.Add(seed[0], seed[1], true)
		f.Add(seed[0], seed[1], false)
	}
	f.Fuzz(func(t *testing.T, before, behind string, whole bool) {
		token := s.access
		if !whole {
			token = token[:len(token)-1]
		}
		for _, path := range []string{"/api/user", "/api/user/details"} {
			r := handled(t, s.URL, "GET", path, "", "Authorization", before+token+behind)
			if admitted := r.Status == 200 || r.Status == 403 || r.Status == 429; admitted &&
				!s.holds(before+token+behind) {
				t.Errorf("got %d for %q and %q around the token, want 401", r.Status, before, behind)
			}
		}
		r := handled(t, s.AdminURL, "GET", "/admin/v1/clients", "", "Authorization", before+token+behind)
		if r.Status < 400 {
			t.Errorf("got %d at the admin API, want no access", r.Status)
		}
	})
}

// holds reports whether a header has the Bearer scheme and the valid token.
func (s *fuzzed) holds(authorization string) bool {
	scheme, token, _ := strings.Cut(strings.Trim(unbroken.Replace(authorization), " \t"), " ")
	return strings.EqualFold(scheme, "Bearer") && strings.TrimLeft(token, " ") == s.access
}

// FuzzRedirectURI checks that redirects go only to the registered URI.
func FuzzRedirectURI(f *testing.F) {
	s := newFuzzed(f)
	for _, uri := range []string{stacktest.RedirectURI, stacktest.RedirectURI + "#",
		stacktest.RedirectURI + "@evil.example", "https://app.example:443/callback?tenant=1",
		"//evil.example",
		`https://app.example\@evil.example/callback?tenant=1`, "javascript:alert(1)",
		"http://127.0.0.1:1/", "https://app.example/callback?tenant=1\r\nX: y", "", "%", "\xff"} {
		f.Add(uri, "s", true)
		f.Add(uri, "\r\nLocation: x", false)
	}
	f.Fuzz(func(t *testing.T, uri, state string, escaped bool) {
		q := "response_type=code&prompt=none&client_id=" + s.client.ID + "&redirect_uri="
		if escaped {
			q += url.QueryEscape(uri) + "&state=" + url.QueryEscape(state)
		} else {
			q += uri + "&state=" + state
		}
		for _, path := range []string{"/oauth/authorize", "/login", "/accounts", "/consent"} {
			r := handled(t, s.URL, "GET", path+"?"+q, "", "Cookie", "gatehouse="+s.session)
			location := r.Header.Get("Location")
			own := strings.HasPrefix(location, "/") && !strings.HasPrefix(location, "//") &&
				!strings.HasPrefix(location, `/\`)
			if location != "" && !own && !strings.HasPrefix(location, stacktest.RedirectURI+"&") {
				t.Errorf("got a redirect to %q, want one to the client only", location)
			}
			if escaped && uri != stacktest.RedirectURI && r.Status != 400 {
				t.Errorf("%s: got %d to %q for %q, want 400", path, r.Status, location, uri)
			}
			if strings.ContainsAny(location, "\r\n\x00") {
				t.Errorf("got a redirect to %q", location)
			}
		}
		if err := oauth.CheckRedirectURI(uri, true); err == nil {
			if u, err := url.Parse(uri); err != nil || u.Fragment != "" || u.User != nil ||
				strings.ContainsAny(uri, "*\r\n\x00 ") {
				t.Errorf("got %q registered, want it refused", uri)
			}
		}
	})
}

// FuzzCookies checks that no cookie causes a 5xx, and that only the session's cookie signs in.
func FuzzCookies(f *testing.F) {
	s := newFuzzed(f)
	for _, cookie := range []string{"", "gatehouse=", "gatehouse=a.b.c", "gatehouse=" +
		strings.Repeat("a", 43), "gatehouse-form=x; gatehouse-known=~.~", "=;=", "gatehouse=\xff\x00",
		"gatehouse=a; gatehouse=b", "gatehouse-form=" + strings.Repeat("A", 43)} {
		f.Add(cookie, "")
		f.Add(cookie, "form_token=AAAA&email=rosa%40example.com&password=x&account=1&decision=allow")
	}
	f.Fuzz(func(t *testing.T, cookie, form string) {
		if strings.Contains(cookie, s.session) {
			return
		}
		q := "?" + s.client.Request().Encode()
		if form != "" {
			q += "&" + form // a query that nobody registered
		}
		for _, path := range []string{"/oauth/authorize", "/login", "/accounts", "/consent", "/logout",
			"/me", "/me/apps", "/me/sessions", "/me/password", "/me/history", "/me/delete"} {
			get := handled(t, s.URL, "GET", path+q, "", "Cookie", cookie)
			post := handled(t, s.URL, "POST", path+q, form, "Cookie", cookie, "Content-Type", formType)
			for _, r := range []reply{get, post} {
				if strings.Contains(r.Header.Get("Location"), "code=gtac_") || strings.HasPrefix(path, "/me") &&
					r.Header.Get("Location") != "/login" && r.Status < 400 {
					t.Errorf("%s: got %d, want nobody signed in", path, r.Status)
				}
			}
		}
	})
}
