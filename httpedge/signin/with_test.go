package signin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// upstream is an OpenID provider that says what a test wants. The person is always signed in there.
type upstream struct {
	*httptest.Server
	t      *testing.T
	key    *ecdsa.PrivateKey // signs
	served *ecdsa.PublicKey  // that of key at first; a node may read it at any time

	mu       sync.Mutex
	claims   map[string]any // of id_tokens, beside those of the protocol
	lie      func(claims map[string]any)
	info     map[string]any // of userinfo, with the subject; nil = as the id_token
	iss      string         // parameter of its responses; "" = none
	saysIss  bool           // in its metadata
	code     url.Values     // of the request that the code is for
	requests []string       // paths
	status   int            // of all responses; 0 = as it should be
}

// newUpstream returns a provider whose people have these claims.
func newUpstream(t *testing.T, claims map[string]any) *upstream {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stacktest.Must(t, err)
	u := &upstream{t: t, key: key, served: &key.PublicKey, claims: claims}
	u.Server = httptest.NewServer(http.HandlerFunc(u.serve))
	t.Cleanup(u.Close)
	return u
}

// set changes what it says.
func (u *upstream) set(change func(u *upstream)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = append(u.requests, r.URL.Path)
	if u.status != 0 {
		w.WriteHeader(u.status)
		return
	}
	write := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		write(map[string]any{"issuer": u.URL, "authorization_endpoint": u.URL + "/authorize",
			"token_endpoint": u.URL + "/token", "userinfo_endpoint": u.URL + "/userinfo",
			"jwks_uri": u.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
			"authorization_response_iss_parameter_supported": u.saysIss})
	case "/keys":
		write(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: u.served, KeyID: "k1", Use: "sig"}}})
	case "/authorize":
		u.code = r.URL.Query()
		back := u.code.Get("redirect_uri") + "?code=c0de&state=" + url.QueryEscape(u.code.Get("state"))
		if u.iss != "" {
			back += "&iss=" + url.QueryEscape(u.iss)
		}
		http.Redirect(w, r, back, http.StatusFound)
	case "/token":
		id, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		if id != "gate" || secret != "s3cret-of-the-upstream" || r.FormValue("code") != "c0de" ||
			u.code == nil || challenge != u.code.Get("code_challenge") ||
			r.FormValue("redirect_uri") != u.code.Get("redirect_uri") {
			w.WriteHeader(http.StatusBadRequest)
			write(map[string]string{"error": "invalid_grant"})
			return
		}
		claims := map[string]any{"iss": u.URL, "aud": "gate", "iat": time.Now().Unix(),
			"exp": time.Now().Add(time.Minute).Unix(), "nonce": u.code.Get("nonce")}
		for name, value := range u.claims {
			claims[name] = value
		}
		if u.lie != nil {
			u.lie(claims)
		}
		u.code = nil
		write(map[string]any{"access_token": "at", "token_type": "Bearer", "id_token": u.sign(claims)})
	case "/userinfo":
		info := map[string]any{"sub": u.claims["sub"]}
		for name, value := range u.info {
			info[name] = value
		}
		write(info)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (u *upstream) sign(claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: u.key},
		(&jose.SignerOptions{}).WithHeader("kid", "k1"))
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		panic(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return compact
}

// offer lets people sign in with the provider.
func (u *upstream) offer(st *stacktest.IdentityStack, id string, change func(*oauth.Provider)) {
	u.t.Helper()
	p := &oauth.Provider{ID: id, Kind: oauth.OpenIDProvider, Issuer: u.URL, ClientID: "gate",
		Secret: "s3cret-of-the-upstream", Label: "Acme", CreateAccounts: true, TrustEmail: true}
	if change != nil {
		change(p)
	}
	if _, _, err := st.Tokens.PutProvider(u.t.Context(), p, false, time.Now()); err != nil {
		u.t.Fatal(err)
	}
}

var startLink = regexp.MustCompile(`href="([^"]*start=[^"]*)"`)

// leave follows the button of a page, and returns where the provider sends the browser back to.
func leave(t *testing.T, b *stacktest.Browser, p stacktest.Page) string {
	t.Helper()
	link := startLink.FindStringSubmatch(p.Body)
	if link == nil {
		t.Fatalf("got %d at %s: %s, want a button of a provider", p.Status, p.Path, p.Body)
	}
	to := b.Get(html.UnescapeString(link[1]))
	if to.Location == "" {
		t.Fatalf("got %d at %s: %s, want a redirect to the provider", to.Status, to.Path, to.Body)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), "GET", to.Location, nil)
	stacktest.Must(t, err)
	response, err := client.Do(request)
	stacktest.Must(t, err)
	response.Body.Close()
	back, err := url.Parse(response.Header.Get("Location"))
	if err != nil || back.Path == "" {
		t.Fatalf("got %d to %q, want a redirect back", response.StatusCode, back)
	}
	return back.RequestURI()
}

// comeBack signs in with the provider whose button is on a page.
func comeBack(t *testing.T, b *stacktest.Browser, p stacktest.Page) stacktest.Page {
	t.Helper()
	return b.Get(leave(t, b, p))
}

// ofAda are the claims of a person.
func ofAda() map[string]any {
	return map[string]any{"sub": "ada-1", "name": "Ada Upstream", "email": ada, "email_verified": true}
}

// connectionsOf returns the connections of the account with an address.
func connectionsOf(t *testing.T, st *stacktest.IdentityStack, email string) []account.Connection {
	t.Helper()
	u, err := st.Store.UserByEmail(t.Context(), email)
	stacktest.Must(t, err)
	return u.Credentials.Connections
}

// TestSignInWithProvider creates an account, and signs in to it the second time. An app gets a code.
func TestSignInWithProvider(t *testing.T) {
	st := stacktest.NewReachable(t)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) {
		p.Groups = map[string]string{"Staff": "staff", "Other": "other"}
	})
	up.set(func(u *upstream) { u.claims["groups"] = []string{"Staff", "Unmapped", "gatehouse-operators"} })
	b := st.NewBrowser(t)
	p := b.Get("/login")
	p.Says(t, "Continue with <bdi>Acme</bdi>")
	comeBack(t, b, p).Shows(t, 200, "/me")
	u, err := st.Store.UserByConnection(t.Context(), up.URL, "ada-1")
	if err != nil || u.Email != ada || u.Name != "Ada Upstream" || u.PasswordHash != "" {
		t.Fatalf("got %+v and error %v, want the new account", u, err)
	}
	if got := u.Credentials.Connections; len(got) != 1 || got[0].Name != ada ||
		!slices.Equal(got[0].Groups, []string{"staff"}) {
		t.Errorf("got %+v, want the address and the mapped group", got)
	}
	up.set(func(u *upstream) { delete(u.claims, "groups") })
	c := st.NewOpenIDClient(t, nil)
	other := st.NewBrowser(t)
	p = other.Get("/oauth/authorize?" + c.Request("scope", "openid").Encode())
	p.Shows(t, 200, "/login")
	p = comeBack(t, other, p)
	p.Shows(t, 200, "/consent")
	code := other.Send(p, "decision", "allow").Code(t, st.IdentityStack)
	if token := st.Redeem(t, c, code).Object(t)["id_token"]; token == nil {
		t.Error("got no id_token")
	}
	u, err = st.Store.UserByConnection(t.Context(), up.URL, "ada-1")
	if err != nil || u.Credentials.Connections[0].Groups != nil {
		t.Errorf("got %+v and error %v, want no groups after they are gone", u, err)
	}
	st.Mail.Notice(t, ada, account.NewBrowser)
	sessions, err := st.Store.Sessions(t.Context(), u.ID)
	if err != nil || len(sessions) != 2 || len(sessions[0].AMR) != 0 ||
		sessions[0].Way != u.Credentials.Connections[0].Way() {
		t.Errorf("got %+v and error %v, want two sessions without amr", sessions, err)
	}
	events, err := st.Store.Events(t.Context(), audit.Filter{UserID: u.ID, Limit: 20})
	if err != nil || !slices.ContainsFunc(events, func(e audit.Event) bool {
		return e.Action == audit.SignIn && slices.Contains(e.Details, "provider") &&
			e.Data["provider"] == up.URL
	}) {
		t.Errorf("got %+v and error %v, want a sign-in with the provider", events, err)
	}
	other.Get("/me/history").Says(t, "You signed in with an account of another provider")
}

// TestLinkingNeedsSignIn has a verified address of an account: only a sign-in to the account itself
// connects it.
func TestLinkingNeedsSignIn(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Ada", ada)
	st.NewUser(t, "Rosa", rosa)
	st.Alter(t, "UPDATE users SET created = created - 100000000")
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", nil)

	b := st.NewBrowser(t)
	p := comeBack(t, b, b.Get("/login"))
	p.Shows(t, 200, "/login")
	p.Says(t, "already has an account", `value="ada@example.com"`)
	b.Send(p, "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me") // not hers
	if got := connectionsOf(t, st.IdentityStack, rosa); got != nil {
		t.Errorf("got %+v, want no connection of another account", got)
	}
	b.Open("POST", "/me", nil)
	b = st.NewBrowser(t)
	p = comeBack(t, b, b.Get("/login"))
	b.Send(p, "password", "not the password").Shows(t, 422, "/login")
	if got := connectionsOf(t, st.IdentityStack, ada); got != nil {
		t.Errorf("got %+v, want no connection before the sign-in", got)
	}
	p = b.Get("/login")
	p.Says(t, "already has an account")
	p = b.Send(p, "password", stacktest.Password)
	p.Shows(t, 200, "/me/connections")
	p.Says(t, "The account is connected.", "Acme", ada)
	if got := connectionsOf(t, st.IdentityStack, ada); len(got) != 1 || got[0].Subject != "ada-1" {
		t.Errorf("got %+v, want the connection", got)
	}
	st.Mail.Notice(t, ada, account.ConnectionAdded)
	fresh := st.NewBrowser(t)
	comeBack(t, fresh, fresh.Get("/login")).Shows(t, 200, "/me")
}

// TestOldSessionDoesNotLink is signed in to the account already: a connection needs a new sign-in.
func TestOldSessionDoesNotLink(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Ada", ada)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", nil)
	b, _ := st.SignedIn(t, ada)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/login")
	b.Get("/me/connections")
	b.Get("/me")
	if got := connectionsOf(t, st.IdentityStack, ada); got != nil {
		t.Errorf("got %+v, want no connection", got)
	}
}

// TestUntrustedAddress is never looked up nor stored until a code has reached it.
func TestUntrustedAddress(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*oauth.Provider)
		claims map[string]any
	}{
		{"not trusted", func(p *oauth.Provider) { p.TrustEmail = false }, nil},
		{"not verified", nil, map[string]any{"email_verified": false}},
		{"says nothing", nil, map[string]any{"email_verified": nil}},
		{"no text", nil, map[string]any{"email_verified": "yes"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			st := stacktest.NewReachable(t)
			st.NewUser(t, "Ada", ada)
			st.Alter(t, "UPDATE users SET created = created - 100000000")
			claims := ofAda()
			for name, value := range row.claims {
				claims[name] = value
			}
			up := newUpstream(t, claims)
			up.offer(st.IdentityStack, "acme", row.change)
			b := st.NewBrowser(t)
			p := comeBack(t, b, b.Get("/login"))
			p.Shows(t, 200, "/register/connect")
			if _, err := st.Store.UserByConnection(t.Context(), up.URL, "ada-1"); err == nil {
				t.Error("got an account, want none before a code")
			}
			if strings.Contains(p.Body, "already has an account") {
				t.Errorf("got %s, want nothing about accounts", p.Body)
			}
			p = b.Send(p) // the address of the account, as the provider says it
			p.Shows(t, 200, "/register/connect/verify")
			p = b.Send(p, "code", st.Mail.Next(t, ada).Code)
			p.Shows(t, 200, "/login")
			p.Says(t, "already has an account")
			if got := connectionsOf(t, st.IdentityStack, ada); got != nil {
				t.Errorf("got %+v, want no connection before the sign-in", got)
			}
			b.Send(p, "password", stacktest.Password).Shows(t, 200, "/me/connections")
			if got := connectionsOf(t, st.IdentityStack, ada); len(got) != 1 {
				t.Errorf("got %+v, want the connection", got)
			}

			up.set(func(u *upstream) { u.claims["sub"] = "kofi-1" })
			fresh := st.NewBrowser(t)
			p = comeBack(t, fresh, fresh.Get("/login"))
			p = fresh.Send(p, "email", kofi)
			p = fresh.Send(p, "code", st.Mail.Next(t, kofi).Code)
			p.Shows(t, 200, "/me")
			if got := connectionsOf(t, st.IdentityStack, kofi); len(got) != 1 || got[0].Subject != "kofi-1" {
				t.Errorf("got %+v, want a new account with the connection", got)
			}
		})
	}
}

// TestLyingProvider says what is not so. Nobody is signed in, and nothing is connected.
func TestLyingProvider(t *testing.T) {
	st := stacktest.NewReachable(t)
	victim := st.NewUser(t, "Rosa", rosa)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", nil)
	other := newUpstream(t, map[string]any{"sub": "mallory"})
	other.offer(st.IdentityStack, "other", func(p *oauth.Provider) { p.Disabled = true })
	refused := func(t *testing.T, p stacktest.Page) {
		t.Helper()
		if p.Status < 400 || strings.HasPrefix(p.Path, "/me") {
			t.Errorf("got %d at %s: %s, want an error", p.Status, p.Path, p.Body)
		}
		if _, err := st.Store.UserByEmail(t.Context(), ada); err == nil {
			t.Error("got an account, want none")
		}
	}
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stacktest.Must(t, err)
	for _, row := range []struct {
		name   string
		change func(u *upstream)
	}{
		{"other issuer", func(u *upstream) { u.lie = func(c map[string]any) { c["iss"] = other.URL } }},
		{"other audience", func(u *upstream) { u.lie = func(c map[string]any) { c["aud"] = "another" } }},
		{"two audiences", func(u *upstream) {
			u.lie = func(c map[string]any) { c["aud"] = []string{"gate", "another"} }
		}},
		{"other party", func(u *upstream) { u.lie = func(c map[string]any) { c["azp"] = "another" } }},
		{"no nonce", func(u *upstream) { u.lie = func(c map[string]any) { delete(c, "nonce") } }},
		{"other nonce", func(u *upstream) { u.lie = func(c map[string]any) { c["nonce"] = "n" } }},
		{"expired", func(u *upstream) {
			u.lie = func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }
		}},
		{"no subject", func(u *upstream) { u.lie = func(c map[string]any) { delete(c, "sub") } }},
		{"long subject", func(u *upstream) {
			u.lie = func(c map[string]any) { c["sub"] = strings.Repeat("s", 256) }
		}},
		{"subject with NUL", func(u *upstream) {
			u.lie = func(c map[string]any) { c["sub"] = "ada\x00" }
		}},
		{"swapped subject", func(u *upstream) { // userinfo is asked, since there is no name
			u.lie = func(c map[string]any) { delete(c, "name") }
			u.info = map[string]any{"sub": "somebody"}
		}},
		{"other access token", func(u *upstream) {
			u.lie = func(c map[string]any) { c["at_hash"] = "AAAAAAAAAAAAAAAAAAAAAA" }
		}},
		{"other iss", func(u *upstream) { u.iss = other.URL }},
		{"foreign key", func(u *upstream) { u.lie = func(map[string]any) { u.key = foreign } }},
	} {
		t.Run(row.name, func(t *testing.T) {
			key := up.key
			up.set(row.change)
			b := st.NewBrowser(t)
			p := comeBack(t, b, b.Get("/login"))
			refused(t, p)
			up.set(func(u *upstream) { u.lie, u.info, u.iss, u.key = nil, nil, "", key })
		})
	}
	t.Run("no iss that is announced", func(t *testing.T) {
		quiet := newUpstream(t, ofAda())
		quiet.set(func(u *upstream) { u.saysIss = true })
		quiet.offer(st.IdentityStack, "acme", func(p *oauth.Provider) { p.ID = "acme" })
		b := st.NewBrowser(t)
		refused(t, comeBack(t, b, b.Get("/login")))
		up.offer(st.IdentityStack, "acme", nil)
	})
	t.Run("state of another provider", func(t *testing.T) { // mix-up
		b := st.NewBrowser(t)
		back := leave(t, b, b.Get("/login"))
		other.offer(st.IdentityStack, "other", nil)
		refused(t, b.Get(strings.Replace(back, "/acme/", "/other/", 1)))
		other.offer(st.IdentityStack, "other", func(p *oauth.Provider) { p.Disabled = true })
	})
	t.Run("other browser", func(t *testing.T) {
		b, thief := st.NewBrowser(t), st.NewBrowser(t)
		back := leave(t, b, b.Get("/login"))
		thief.Get("/login")
		refused(t, thief.Get(back))
	})
	t.Run("expired state", func(t *testing.T) {
		b := st.NewBrowser(t)
		back := leave(t, b, b.Get("/login"))
		st.Alter(t, "UPDATE provider_attempts SET ends = ends - 600001")
		refused(t, b.Get(back))
	})
	t.Run("made-up state", func(t *testing.T) {
		b := st.NewBrowser(t)
		b.Get("/login")
		refused(t, b.Get("/login/with/acme/callback?code=c0de&state="+account.NewSecret()))
	})
	t.Run("refused by the person", func(t *testing.T) {
		b := st.NewBrowser(t)
		back := leave(t, b, b.Get("/login"))
		p := b.Get(strings.Replace(back, "code=c0de", "error=access_denied", 1))
		refused(t, p)
		p.Says(t, "You did not sign in with")
	})
	t.Run("link without its token", func(t *testing.T) {
		b := st.NewBrowser(t)
		b.Get("/login").Shows(t, 200, "/login")
		b.Get("/login/with/acme").Shows(t, 403, "/login/with/acme")
	})
	t.Run("replayed state", func(t *testing.T) {
		b := st.NewBrowser(t)
		back := leave(t, b, b.Get("/login"))
		before := b.Cookies()["gatehouse-form"] // a sign-in renews it
		b.Get(back).Shows(t, 200, "/me")
		b.Get("/logout")
		b.Client.Jar.SetCookies(nil, []*http.Cookie{{Name: "gatehouse-form", Value: before}})
		up.set(func(u *upstream) { u.code = url.Values{} })
		again := b.Get(back)
		again.Shows(t, 410, "/login/with/acme/callback")
	})
	if kept, err := st.Store.User(t.Context(), victim.ID); err != nil || kept.Credentials.Connections != nil {
		t.Errorf("got %+v and error %v, want no connection", kept, err)
	}
	logged := fmt.Sprint(st.Log.Records("a sign-in with a provider failed"))
	for _, secret := range []string{"c0de", ada, "s3cret-of-the-upstream", "ada-1"} {
		if strings.Contains(logged, secret) {
			t.Errorf("got %s, want no %s in the log", logged, secret)
		}
	}
}

// TestDomainsAreChecked lets only those of a domain in, also with a connection from before.
func TestDomainsAreChecked(t *testing.T) {
	st := stacktest.NewReachable(t)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", nil)
	b := st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
	up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) {
		p.AllowedDomains = []string{"corp.example"}
	})
	for _, email := range []string{ada, "ada@corp.example.evil.example", "ada@evilcorp.example", "", "corp.example"} {
		up.set(func(u *upstream) { u.claims["email"] = email })
		b = st.NewBrowser(t)
		comeBack(t, b, b.Get("/login")).Shows(t, 403, "/login/with/acme/callback")
	}
	up.set(func(u *upstream) { u.claims["email"] = "ada@Corp.example" })
	b = st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
	up.set(func(u *upstream) { u.claims["email_verified"] = false })
	b = st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 403, "/login/with/acme/callback")
}

// TestNobodyIsCreated where accounts are not made by providers.
func TestNobodyIsCreated(t *testing.T) {
	st := stacktest.NewReachable(t)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) { p.CreateAccounts = false })
	for _, verified := range []bool{true, false} {
		up.set(func(u *upstream) { u.claims["email_verified"] = verified })
		b := st.NewBrowser(t)
		p := comeBack(t, b, b.Get("/login"))
		p.Shows(t, 403, "/login/with/acme/callback")
		p.Says(t, "No account here is connected")
		if _, err := st.Store.UserByEmail(t.Context(), ada); err == nil {
			t.Error("got an account, want none")
		}
	}
}

// TestProviderThatIsAway says so at its button. All other ways work.
func TestProviderThatIsAway(t *testing.T) {
	st := stacktest.NewReachable(t)
	st.NewUser(t, "Rosa", rosa)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", nil)
	up.set(func(u *upstream) { u.status = 503 })
	b := st.NewBrowser(t)
	p := b.Get("/login")
	link := html.UnescapeString(startLink.FindStringSubmatch(p.Body)[1])
	away, err := b.Browser.Open(context.Background(), "GET", link, nil)
	if err != nil || away.Status != 503 || away.Header.Get("Retry-After") == "" ||
		!strings.Contains(away.Body, "does not respond at the moment. Sign in another way") {
		t.Fatalf("got %+v and error %v, want 503 and another way", away, err)
	}
	p = b.Get("/login")
	p.Says(t, `<p class="hint"><bdi>Acme</bdi> does not respond at the moment.</p>`)
	b.Send(p, "email", rosa, "password", stacktest.Password).Shows(t, 200, "/me")
	up.set(func(u *upstream) { u.status = 0 })
	fresh := st.NewBrowser(t)
	comeBack(t, fresh, fresh.Get("/login")).Shows(t, 200, "/me") // the button works all the same
	if p = fresh.Get("/login"); strings.Contains(p.Body, "does not respond") {
		t.Errorf("got %s, want nothing about a provider that is back", p.Body)
	}
}

// TestConnectionsOfAccount connects an account by the page for that, and removes it. Both need a
// proof, and each is told.
func TestConnectionsOfAccount(t *testing.T) {
	st := stacktest.NewReachable(t)
	u := st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", kofi)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", nil)
	b, p := st.SignedIn(t, rosa)
	p.Says(t, `href="/me/connections"`)
	p = b.Get("/me/connections")
	if startLink.MatchString(p.Body) {
		t.Errorf("got %s, want nothing to connect before a proof", p.Body)
	}
	b.Send(p, "current_password", "a guess at it").Shows(t, 422, "/me/connections")
	p = b.Send(p, "current_password", stacktest.Password)
	p.Shows(t, 200, "/me/connections")
	p.Says(t, "No account of another provider is connected.")
	back := leave(t, b, p)
	thief, _ := st.SignedIn(t, kofi)
	thief.Get(back).Shows(t, 410, "/login/with/acme/callback")
	p = b.Get(back)
	p.Shows(t, 200, "/me/connections")
	p.Says(t, "The account is connected.", ada)
	st.Mail.Notice(t, rosa, account.ConnectionAdded)

	q := thief.Send(thief.Get("/me/connections"), "current_password", stacktest.Password)
	q = comeBack(t, thief, q)
	q.Says(t, "already connected to another account")
	if got := connectionsOf(t, st.IdentityStack, kofi); got != nil {
		t.Errorf("got %+v, want none of somebody else", got)
	}
	away, _ := st.SignedIn(t, rosa)
	id := regexp.MustCompile(`name="remove" value="([^"]*)"`).FindStringSubmatch(p.Body)
	if id == nil {
		t.Fatalf("got %s, want a button that removes the connection", p.Body)
	}
	b.Send(p, "remove", "none").Shows(t, 422, "/me/connections")
	p = b.Send(b.Get("/me/connections"), "remove", id[1])
	p.Shows(t, 200, "/me/connections")
	p.Says(t, "The account is no longer connected.")
	st.Mail.Notice(t, rosa, account.ConnectionRemoved)
	away.Get("/me").Shows(t, 200, "/login") // other sessions may be those of the connection
	events, err := st.Store.Events(t.Context(), audit.Filter{UserID: u.ID, Limit: 20})
	var actions []audit.Action
	for _, e := range events {
		if e.Target == up.URL {
			actions = append(actions, e.Action)
		}
	}
	if err != nil || !slices.Equal(actions, []audit.Action{audit.ConnectionAdded, audit.ConnectionRemoved}) {
		t.Errorf("got %v and error %v, want both changes", actions, err)
	}
}

// TestConnectionIsWayIn is the only way in to an account: it proves who the person is, and cannot be
// removed, as long as people can sign in with its provider.
func TestConnectionIsWayIn(t *testing.T) {
	st := stacktest.NewIdentity(t) // nobody can be reached
	claims := ofAda()
	claims["email_verified"] = false
	up := newUpstream(t, claims)
	up.offer(st, "acme", nil)
	b := st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
	u, err := st.Store.UserByConnection(t.Context(), up.URL, "ada-1")
	if err != nil || u.Email != "" {
		t.Fatalf("got %+v and error %v, want an account without the address", u, err)
	}
	p := b.Get("/me/connections")
	p.Says(t, "confirm that it is you")
	p = b.Get("/me/confirm?for=connections")
	p.Shows(t, 200, "/me/confirm")
	up.set(func(u *upstream) { u.claims["sub"] = "somebody" })
	comeBack(t, b, p).Shows(t, 200, "/me/confirm") // proves nothing
	up.set(func(u *upstream) { u.claims["sub"] = "ada-1" })
	p = comeBack(t, b, p)
	p.Shows(t, 200, "/me/connections")
	if got := up.requests; !slices.Contains(got, "/authorize") {
		t.Errorf("got %v, want a sign-in", got)
	}
	id := regexp.MustCompile(`name="remove" value="([^"]*)"`).FindStringSubmatch(p.Body)
	p = b.Send(p, "remove", id[1])
	p.Shows(t, 422, "/me/connections")
	p.Says(t, "This is the only way to sign in")
	b.Get("/me/delete").Shows(t, 200, "/me/delete")
}

// TestGroupsOfProviders: groups at a provider stand for groups here until the next sign-in there, or the
// end of the mapping or connection. Then the tokens of apps that need one of them end.
func TestGroupsOfProviders(t *testing.T) {
	st := stacktest.NewReachable(t)
	o := st.NewOperator(t)
	for _, name := range []string{"staff", "sales"} {
		o.Do(201, "POST", "/groups", `{"name":"`+name+`"}`)
	}
	up := newUpstream(t, ofAda())
	offer := func(mapped map[string]string) {
		t.Helper()
		up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) { p.Groups = mapped })
	}
	offer(map[string]string{"Staff": "staff"})
	signIn := func(groups ...string) *stacktest.Browser {
		t.Helper()
		up.set(func(u *upstream) { u.claims["groups"] = groups })
		b := st.NewBrowser(t)
		comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
		return b
	}
	b := signIn("Staff", "Other")
	u, err := st.Store.UserByConnection(t.Context(), up.URL, "ada-1")
	stacktest.Must(t, err)
	path := fmt.Sprintf("/users/%d", u.ID)
	o.Do(204, "PUT", fmt.Sprintf("/groups/sales/members/%d", u.ID), "")
	free := st.NewClient(t, func(c *oauth.Client) { c.Scopes = oauth.GrantableScopes })
	info, _ := st.NewToken(t, free, u.ID, oauth.OpenID|oauth.Groups)
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.RequireGroups = []string{"staff"} })
	check := func(step, groups, mapped string) {
		t.Helper()
		got := st.Get(t, "/oauth/userinfo", "Authorization", "Bearer "+info).Object(t)["groups"]
		if fmt.Sprint(got) != groups {
			t.Errorf("%s: got %v, want %s", step, got, groups)
		}
		record := o.Do(200, "GET", path, "").Object(t)
		if got := fmt.Sprint(record["groups"], record["provider_groups"]); got != groups+" "+mapped {
			t.Errorf("%s: got %s, want %s %s", step, got, groups, mapped)
		}
	}
	both := "[map[groups:[staff] issuer:" + up.URL + "]]"
	check("at first", "[sales staff]", both)
	b.Get("/me/connections").Says(t, "Groups: <bdi>staff</bdi>")
	for _, row := range []struct {
		name string
		end  func()
	}{
		{"a sign-in without the group", func() { b = signIn("Other") }},
		{"another mapping", func() { offer(map[string]string{"Staff": "sales"}) }},
		{"the provider is gone", func() {
			stacktest.Must(t, st.Tokens.DeleteProvider(t.Context(), "acme"))
			offer(map[string]string{"Staff": "staff"})
		}},
		{"the connection is removed", func() {
			p := comeBack(t, b, b.Get("/me/confirm?for=connections"))
			id := regexp.MustCompile(`name="remove" value="([^"]*)"`).FindStringSubmatch(p.Body)
			b.Send(p, "remove", id[1]).Says(t, "no longer connected")
		}},
	} {
		offer(map[string]string{"Staff": "staff"})
		b = signIn("Staff")
		check("before "+row.name, "[sales staff]", both)
		token, _ := st.NewToken(t, c, u.ID, oauth.ViewUser)
		if got := st.Get(t, "/api/user", "Authorization", "Bearer "+token).Status; got != 200 {
			t.Errorf("before %s: got %d, want 200", row.name, got)
		}
		row.end()
		check(row.name, "[sales]", "[]")
		if got := st.Get(t, "/api/user", "Authorization", "Bearer "+token).Status; got != 401 {
			t.Errorf("%s: got %d, want 401", row.name, got)
		}
	}
}

// TestWaitingConnectionFollowsProvider has a connection wait for the sign-in to the account. What the
// operator changes meanwhile counts: a group that is not mapped any more is not joined, and there is no
// connection to a provider that is gone.
func TestWaitingConnectionFollowsProvider(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*testing.T, *stacktest.IdentityStack, *upstream)
		want   int // connections
	}{
		"unmapped": {func(_ *testing.T, st *stacktest.IdentityStack, up *upstream) {
			up.offer(st, "acme", nil)
		}, 1},
		"disabled": {func(_ *testing.T, st *stacktest.IdentityStack, up *upstream) {
			up.offer(st, "acme", func(p *oauth.Provider) { p.Disabled = true })
		}, 0},
		"gone": {func(t *testing.T, st *stacktest.IdentityStack, _ *upstream) {
			stacktest.Must(t, st.Tokens.DeleteProvider(t.Context(), "acme"))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			st := stacktest.NewReachable(t)
			st.NewUser(t, "Ada", ada)
			st.Alter(t, "UPDATE users SET created = created - 100000000")
			o := st.NewOperator(t)
			o.Do(201, "POST", "/groups", `{"name":"staff"}`)
			up := newUpstream(t, ofAda())
			up.set(func(u *upstream) { u.claims["groups"] = []string{"Staff"} })
			up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) {
				p.Groups = map[string]string{"Staff": "staff"}
			})
			b := st.NewBrowser(t)
			p := comeBack(t, b, b.Get("/login"))
			p.Says(t, "already has an account")
			row.change(t, st.IdentityStack, up)
			b.Send(p, "email", ada, "password", stacktest.Password)
			b.Get("/me").Shows(t, 200, "/me")
			if got := connectionsOf(t, st.IdentityStack, ada); len(got) != row.want {
				t.Errorf("got %+v, want %d connections", got, row.want)
			}
			u, err := st.Store.UserByEmail(t.Context(), ada)
			if err != nil || u.Groups != "" {
				t.Errorf("got the groups %q and error %v, want none", u.Groups, err)
			}
		})
	}
}

// TestConnectionsAreImported: an export has the accounts at other providers, and an import takes them.
func TestConnectionsAreImported(t *testing.T) {
	st := stacktest.NewReachable(t)
	o := st.NewOperator(t)
	o.Do(201, "POST", "/groups", `{"name":"staff"}`)
	up := newUpstream(t, ofAda())
	up.offer(st.IdentityStack, "acme", func(p *oauth.Provider) { p.Groups = map[string]string{"Staff": "staff"} })
	send := func(lines ...string) map[string]any {
		t.Helper()
		var users []string
		for i, line := range lines {
			users = append(users, fmt.Sprintf(`{"line":%d,"user":%s}`, i+1, line))
		}
		return o.Do(200, "POST", "/users/import", `{"import":"`+uuid.NewString()+`","users":[`+
			strings.Join(users, ",")+`]}`).Object(t)
	}
	connection := func(member string) string { return `{"name":"Ada","connections":[{` + member + `}]}` }
	got := send(`{"name":"Ada","connections":[{"provider":"acme","subject":"ada-1","groups":["staff","none"]},`+
		`{"issuer":"https://other.example","subject":"7","name":"ada"}]}`,
		connection(`"provider":"acme","subject":"ada-1"`),
		connection(`"provider":"none","subject":"ada-2"`),
		connection(`"subject":"ada-3"`),
		connection(`"issuer":"http://evil.example","subject":"ada-4"`),
		connection(`"provider":"acme","subject":""`),
		connection(`"provider":"acme","subject":"`+strings.Repeat("x", 256)+`"`),
		connection(`"provider":"acme","subject":"ada-5","groups":["gatehouse-operators"]`),
		connection(`"provider":"acme","subject":"ada-6"},{"provider":"acme","subject":"ada-6"`),
		connection(`"provider":"acme","subject":"ada-7","name":"a\u0007"`),
		`{"name":"Ada","connections":[]}`,
		connection(`"provider":"acme","subject":"ada-8","name":"a\u202e"`))
	var refused []string
	for _, line := range got["refused"].([]any) {
		line := line.(map[string]any)
		refused = append(refused, fmt.Sprint(line["line"], " ", line["field"], " ", line["message"]))
	}
	slices.Sort(refused)
	want := []string{
		"10 connections must have names of one line, of at most 200 characters, without control characters",
		"11 email or phone_number is needed",
		"12 connections must have names of one line, of at most 200 characters, without control characters",
		"2 connections must not have one that belongs to another account",
		"3 connections must be of providers that exist, or name the issuer",
		"4 connections must each have an issuer with https, or a provider",
		"5 connections must each have an issuer with https, or a provider",
		"6 connections must each have a subject of 1 to 255 bytes",
		"7 connections must each have a subject of 1 to 255 bytes",
		"8 connections must have groups that a provider may give: at most 1,000, without gatehouse-operators",
		"9 connections must have each issuer and subject once",
	}
	if got["created"] != 1.0 || !slices.Equal(refused, want) {
		t.Fatalf("got %v, want one created and %v refused", got, want)
	}
	u, err := st.Store.UserByConnection(t.Context(), up.URL, "ada-1")
	if err != nil || u.Groups != "staff" || u.Given != "" {
		t.Errorf("got %+v and error %v, want a group of the provider", u, err)
	}
	users := o.Do(200, "GET", "/users/export", "").Object(t)["users"].([]any)
	line, err := json.Marshal(users[len(users)-1])
	if err != nil || !strings.Contains(string(line), `"provider":"acme","subject":"ada-1"`) ||
		strings.Contains(string(line), `"groups":["staff"],"id"`) {
		t.Errorf("got %s and error %v, want the connection, and its group there only", line, err)
	}
	b := st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
	o.Do(204, "DELETE", fmt.Sprintf("/users/%d", u.ID), "")
	if got := send(string(line)); got["created"] != 1.0 {
		t.Fatalf("got %v, want the exported line imported", got)
	}
	again, err := st.Store.UserByConnection(t.Context(), up.URL, "ada-1")
	if err != nil || again.ID != u.ID || again.Groups != "staff" || len(again.Credentials.Connections) != 2 ||
		again.Credentials.Connections[1].Name != "ada" {
		t.Errorf("got %+v and error %v, want the same account", again, err)
	}
	b = st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
}

// gitHub answers as https://docs.github.com/en/rest documents it, for a GitHub Enterprise Server.
type gitHub struct {
	*httptest.Server
	user, emails, orgs string
	status             int // of the REST API; 0 = 200
}

func newGitHub(t *testing.T) *gitHub {
	t.Helper()
	g := &gitHub{
		user: `{"login":"octocat","id":583231,"node_id":"MDQ6VXNlcjU4MzIzMQ==","type":"User","name":"The Octocat","email":null}`,
		emails: `[{"email":"old@example.com","verified":true,"primary":false,"visibility":null},
{"email":"ada@example.com","verified":true,"primary":true,"visibility":"private"}]`,
		orgs: `[{"login":"example-org","id":1},{"login":"other","id":2}]`,
	}
	var challenge, redirect string
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api := map[string]*string{"/api/v3/user": &g.user, "/api/v3/user/emails": &g.emails,
			"/api/v3/user/orgs": &g.orgs}[r.URL.Path]
		switch {
		case r.URL.Path == "/login/oauth/authorize":
			q := r.URL.Query()
			challenge, redirect = q.Get("code_challenge"), q.Get("redirect_uri")
			http.Redirect(w, r, redirect+"?code=c0de&state="+q.Get("state"), http.StatusFound)
		case r.URL.Path == "/login/oauth/access_token":
			sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
			if r.FormValue("client_id") != "Iv1.gate" || r.FormValue("client_secret") != "s3cret" ||
				r.FormValue("code") != "c0de" || r.FormValue("redirect_uri") != redirect ||
				base64.RawURLEncoding.EncodeToString(sum[:]) != challenge {
				// GitHub responds to errors with 200
				w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
				fmt.Fprint(w, "error=bad_verification_code&error_description=The+code+is+incorrect.")
				return
			}
			w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
			fmt.Fprint(w, "access_token=gho_16C7e42F292c6912E7710c838347Ae178B4a&scope=read%3Auser%2Cuser%3Aemail&token_type=bearer")
		case api != nil && r.Header.Get("Authorization") == "Bearer gho_16C7e42F292c6912E7710c838347Ae178B4a":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			if g.status != 0 {
				w.WriteHeader(g.status)
			}
			fmt.Fprint(w, *api)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// TestContinueWithGitHub signs in by an emulator of GitHub's documented responses.
func TestContinueWithGitHub(t *testing.T) {
	st := stacktest.NewReachable(t)
	g := newGitHub(t)
	p := &oauth.Provider{ID: "github", Kind: oauth.GitHubProvider, Issuer: g.URL,
		ClientID: "Iv1.gate", Secret: "s3cret", CreateAccounts: true, TrustEmail: true,
		Groups: map[string]string{"example-org": "staff"}}
	if _, _, err := st.Tokens.PutProvider(t.Context(), p, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	b := st.NewBrowser(t)
	page := b.Get("/login")
	page.Says(t, "Continue with <bdi>GitHub</bdi>", "<svg")
	comeBack(t, b, page).Shows(t, 200, "/me")
	u, err := st.Store.UserByConnection(t.Context(), g.URL, "583231")
	if err != nil || u.Email != ada || u.Name != "The Octocat" ||
		u.Credentials.Connections[0].Name != "octocat" ||
		!slices.Equal(u.Credentials.Connections[0].Groups, []string{"staff"}) {
		t.Fatalf("got %+v and error %v, want the account", u, err)
	}
	g.user = strings.Replace(g.user, "octocat", "renamed", 1) // login may be given to somebody else
	b = st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/me")
	g.user = strings.Replace(g.user, "583231", "583232", 1)
	b = st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/login") // has the address, and is somebody else
	g.emails = strings.ReplaceAll(g.emails, `"verified":true,"primary":true`, `"verified":false,"primary":true`)
	b = st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 200, "/register/connect")
	g.user = `{"message":"Bad credentials"}`
	b = st.NewBrowser(t)
	comeBack(t, b, b.Get("/login")).Shows(t, 422, "/login/with/github/callback")
}
