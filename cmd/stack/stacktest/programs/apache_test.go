//go:build programs

package programs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/recipe"
)

// TestApache signs in at Apache with mod_auth_openidc, which passes the claims to a server behind
// it.
func TestApache(t *testing.T) {
	for alg, row := range map[string]struct {
		flags []string
		more  string // settings
	}{
		"RS256": {},
		"ES256": {[]string{"--id-token-alg", "ES256"}, "OIDCIDTokenSignedResponseAlg ES256\n"},
	} {
		t.Run(alg, func(t *testing.T) {
			behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := json.Marshal(map[string]any{
					"signedIn": true, "sub": r.Header.Get("OIDC_CLAIM_sub"), "email": r.Header.Get("OIDC_CLAIM_email"),
				})
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, `<pre id="state">%s</pre>`, text)
			}))
			t.Cleanup(behind.Close)
			a := newApp(t, "Apache", "", "/callback")
			at := gatehouse(t, a, row.flags...)
			startApache(t, a, a.settings(at)+row.more+"ProxyPass / "+behind.URL+"/\n")
			login := func(p *person) { p.visit(a.base + "/") }
			p := newPerson(t)
			login(p)
			state := p.signsIn(a, at)
			wantClaim(t, state, "email", at.email)
			staysTheSame(t, a, at, login, state, "sub")
			p.visit(a.base + "/callback?logout=" + a.base + "/bye")
			p.reach(a.base+"/bye", at.signOut, func() bool { return true })
			p.wantPassword(a, at, func() { p.visit(a.base + "/") })
		})
	}
}

// TestApacheStepUp has a path of Apache demand a second factor of somebody who is signed in with one.
func TestApacheStepUp(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<pre id="state">{"acr":%q,"amr":%q}</pre>`, r.Header.Get("OIDC_CLAIM_acr"),
			r.Header.Get("OIDC_CLAIM_amr"))
	}))
	t.Cleanup(behind.Close)
	a := newApp(t, "Apache", "", "/callback")
	at := gatehouse(t, a)
	startApache(t, a, a.settings(at)+`<Location /payroll>
	Require claim acr:2
	OIDCUnAutzAction auth
	OIDCPathAuthRequestParams acr_values=2
</Location>
ProxyPass / `+behind.URL+"/\n")
	shows := func(p *person, want string) func() bool {
		return func() bool { return fmt.Sprint(p.state()["acr"]) == want }
	}
	p := newPerson(t)
	p.visit(a.base + "/")
	p.reach(a.base, at.signIn, shows(p, "1"))
	b, _ := at.service.SignedIn(t, at.email)
	code := b.AddApp(b.Get("/me/factors/app")).RecoveryCodes(t)[0]
	p.visit(a.base + "/payroll")
	p.reach(a.base+"/payroll", append([]step{{`input[name="code"]`,
		map[string]string{`input[name="code"]`: code}, atSubmit}}, at.signIn...), shows(p, "2"))
	if amr := fmt.Sprint(p.state()["amr"]); !strings.Contains(amr, "mfa") {
		t.Errorf("got amr %q, want mfa in it", amr)
	}
}

// TestApacheAPI lets Apache ask about access tokens by https, with a certificate that only a file
// of Apache's settings trusts.
func TestApacheAPI(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("OIDC_CLAIM_client_id"))
	}))
	t.Cleanup(behind.Close)
	files := newCertificate(t)
	t.Setenv("GATEHOUSE_CA", files.authority)
	st := stacktest.NewIdentity(t, func(c *stack.Config) {
		c.CertFile, c.KeyFile = files.certificate, files.key
	})
	a := newApp(t, "Apache as an API", "", "")
	made := a.recipe.Create(t, st, recipe.Addresses(st.URL, a.port))
	agent, api := made[0], made[1]
	other := newOtherResource(t, st, agent)
	settings := a.settings(&provider{issuer: st.URL, id: api.ID, secret: api.Secret}) +
		"ProxyPass /notes " + behind.URL + "\n"
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: files.pool},
	}}
	t.Cleanup(client.CloseIdleConnections)
	post := func(path string, form url.Values) (answer map[string]any) {
		t.Helper()
		form.Set("client_id", agent.ID)
		form.Set("client_secret", agent.Secret)
		response, err := client.PostForm(st.URL+path, form)
		stacktest.Must(t, err)
		defer response.Body.Close()
		json.NewDecoder(response.Body).Decode(&answer)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("got %d %v of %s, want 200", response.StatusCode, answer, path)
		}
		return answer
	}
	token := func(form url.Values) string {
		form.Set("grant_type", "client_credentials")
		text, _ := post("/oauth/token", form)["access_token"].(string)
		return text
	}
	notes := url.Values{"resource": {a.base + "/notes"}, "scope": {"notes:read"}}
	good, gone := token(notes), token(notes)
	post("/oauth/revoke", url.Values{"token": {gone}})

	t.Run("private authority", func(t *testing.T) {
		startApache(t, a, "OIDCCABundlePath "+files.authority+"\n"+settings)
		for name, row := range map[string]struct {
			token string
			want  int
		}{
			"for this API":         {good, http.StatusOK},
			"revoked":              {gone, http.StatusUnauthorized},
			"unknown":              {"gtat_unknown", http.StatusUnauthorized},
			"none":                 {"", http.StatusUnauthorized},
			"without a scope":      {token(url.Values{"resource": {a.base + "/notes"}}), http.StatusUnauthorized},
			"for gatehouse itself": {token(url.Values{}), http.StatusUnauthorized},
			"for another API": {token(url.Values{"resource": {other}, "scope": {"notes:read"}}),
				http.StatusUnauthorized},
		} {
			if got, text := ask(t, a, row.token); got != row.want || got == http.StatusOK && text != agent.ID {
				t.Errorf("%s: got %d %q, want %d", name, got, text, row.want)
			}
		}
		post("/oauth/revoke", url.Values{"token": {good}})
		if got, _ := ask(t, a, good); got != http.StatusUnauthorized {
			t.Errorf("got %d after the revocation, want 401", got)
		}
	})
	t.Run("unknown authority", func(t *testing.T) {
		a.port = freePort(t)
		a.base = fmt.Sprintf("http://127.0.0.1:%d", a.port)
		startApache(t, a, settings)
		if got, _ := ask(t, a, token(notes)); got == http.StatusOK {
			t.Errorf("got %d, want an error: nothing vouches for the certificate", got)
		}
	})
}

// newOtherResource registers a resource that has the same scope, and lets a client ask for it.
func newOtherResource(t *testing.T, st *stacktest.IdentityStack, of recipe.Client) (uri string) {
	t.Helper()
	r := oauth.Resource{URI: "https://mail.example/api", Scopes: []string{"notes:read"}}
	if _, err := st.Tokens.CreateResource(t.Context(), r, time.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := st.Store.Client(t.Context(), of.ID)
	if err == nil {
		c.Options.Resources = append(c.Options.Resources, r.URI)
		err = st.Store.UpdateClient(t.Context(), c)
	}
	stacktest.Must(t, err)
	return r.URI
}

// ask requests the API with an access token; "" = without.
func ask(t *testing.T, a *app, token string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.base+"/notes", nil)
	stacktest.Must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	stacktest.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	stacktest.Must(t, err)
	return response.StatusCode, string(body)
}

// startApache starts Apache with the modules that the settings need.
func startApache(t *testing.T, a *app, settings string) {
	t.Helper()
	folder := t.TempDir()
	stacktest.Must(t, os.Chmod(folder, 0o755))
	var configuration strings.Builder
	for _, name := range []string{
		"mpm_event", "authn_core", "authz_core", "authz_user", "proxy", "proxy_http", "auth_openidc",
	} {
		fmt.Fprintf(&configuration, "LoadModule %s_module /usr/lib/apache2/modules/mod_%[1]s.so\n", name)
	}
	fmt.Fprintf(&configuration, `ServerRoot %s
ServerName 127.0.0.1
PidFile apache.pid
Mutex file:%[1]s
Listen 127.0.0.1:%d
ErrorLog /dev/stderr
LogLevel warn
User www-data
Group www-data
%s`, folder, a.port, settings)
	path := filepath.Join(folder, "apache.conf")
	stacktest.Must(t, os.WriteFile(path, []byte(configuration.String()), 0o644))
	start(t, "auth_openidc", exec.Command("/usr/sbin/apache2", "-f", path, "-X", "-e", "notice"))
	awaitPort(t, a.port)
}

// certificateFiles are a certificate for 127.0.0.1 and the authority that signed it.
type certificateFiles struct {
	authority, certificate, key string // paths, PEM
	pool                        *x509.CertPool
}

// newCertificate makes an authority and a certificate that it signs.
func newCertificate(t *testing.T) certificateFiles {
	t.Helper()
	folder := t.TempDir()
	for path := folder; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil { // Apache is another user
			t.Fatal(err)
		}
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(folder, name)
		block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		stacktest.Must(t, os.WriteFile(path, block, 0o644))
		return path
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		stacktest.Must(t, err)
		return key
	}
	signer, key := newKey(), newKey()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "gatehouse"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, signer.Public(), signer)
	stacktest.Must(t, err)
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, key.Public(), signer)
	stacktest.Must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	stacktest.Must(t, err)
	parsed, err := x509.ParseCertificate(authorityDER)
	stacktest.Must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return certificateFiles{
		authority:   write("authority.pem", "CERTIFICATE", authorityDER),
		certificate: write("certificate.pem", "CERTIFICATE", serverDER),
		key:         write("key.pem", "PRIVATE KEY", keyDER), pool: pool,
	}
}
