//go:build programs

package programs_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

// TestOAuth2Proxy puts oauth2-proxy before a page.
func TestOAuth2Proxy(t *testing.T) {
	a := newApp(t, "", "/oauth2/callback")
	at := gatehouse(t, a)
	printed := start(t, "Cookie settings", exec.Command(tool(t, "oauth2-proxy-v7.8.1"),
		"--provider=oidc", "--oidc-issuer-url="+at.issuer, "--client-id="+at.id,
		"--client-secret="+at.secret, "--redirect-url="+a.callback,
		"--http-address="+strings.TrimPrefix(a.base, "http://"), "--email-domain=*",
		"--cookie-secret=0123456789abcdef0123456789abcdef", "--cookie-secure=false",
		"--upstream=static://200", "--code-challenge-method=S256", "--scope=openid profile email",
		"--skip-provider-button", "--cookie-refresh=1s", "--whitelist-domain=127.0.0.1:*"))
	awaitPort(t, a.port)
	p := newPerson(t)
	p.visit(a.base + "/")
	p.reach(a.base, at.signIn, func() bool { return strings.Contains(p.text(), "Authenticated") })
	who := func() (who map[string]any) {
		p.visit(a.base + "/oauth2/userinfo")
		json.Unmarshal([]byte(p.text()), &who)
		return who
	}
	wantClaim(t, who(), "email", at.email)
	at.service.Alter(t, "UPDATE users SET disabled = TRUE")
	p.reach("", nil, func() bool { // it keeps its own session, as its documentation says
		who()
		return strings.Contains(printed.String(), "Unable to refresh session")
	})
}

// TestKubelogin signs in as kubectl does: a program on a person's computer, which gets an id_token.
func TestKubelogin(t *testing.T) {
	port := freePort(t)
	a := &app{base: fmt.Sprintf("http://localhost:%d", port), port: port, public: true}
	a.callback = a.base
	at := gatehouse(t, a)
	command := exec.Command(tool(t, "kubelogin-v1.28.0"), "get-token", "--oidc-issuer-url="+at.issuer,
		"--oidc-client-id="+at.id, "--oidc-extra-scope=email", "--oidc-extra-scope=offline_access",
		"--skip-open-browser", fmt.Sprintf("--listen-address=127.0.0.1:%d", port),
		"--token-cache-dir="+t.TempDir(), "--oidc-use-pkce")
	printed := start(t, "Please visit", command)
	p := newPerson(t)
	p.visit(a.base + "/")
	p.reach(a.base, at.signIn, func() bool { return strings.Contains(printed.String(), "ExecCredential") })
	if !strings.Contains(printed.String(), `"token":"eyJ`) {
		t.Errorf("got %s, want an id_token", printed)
	}
}

// TestApache signs in at Apache with mod_auth_openidc, which passes the claims to a server behind
// it.
func TestApache(t *testing.T) {
	for _, alg := range []string{"RS256", "ES256"} {
		t.Run(alg, func(t *testing.T) {
			behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := json.Marshal(map[string]any{
					"signedIn": true, "sub": r.Header.Get("OIDC_CLAIM_sub"), "email": r.Header.Get("OIDC_CLAIM_email"),
				})
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, `<pre id="state">%s</pre>`, text)
			}))
			t.Cleanup(behind.Close)
			a := newApp(t, "", "/callback")
			at := gatehouseWith(t, a, func(c *oauth.Client) {
				c.Options.IDTokenAlg = alg
				c.Options.PostLogoutRedirectURIs = []string{a.base + "/bye"}
			})
			startApache(t, a, at, behind.URL, alg)
			p := newPerson(t)
			p.visit(a.base + "/")
			wantClaim(t, p.signsIn(a, at), "email", at.email)
			p.visit(a.base + "/callback?logout=" + a.base + "/bye")
			p.reach(a.base+"/bye", at.signOut, func() bool { return true })
			p.wantPassword(a, at, func() { p.visit(a.base + "/") })
		})
	}
}

func startApache(t *testing.T, a *app, at *provider, behind, alg string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var modules strings.Builder
	for _, name := range []string{"mpm_event", "authn_core", "authz_core", "authz_user", "proxy", "proxy_http", "auth_openidc"} {
		fmt.Fprintf(&modules, "LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", name, name)
	}
	configuration := modules.String() + fmt.Sprintf(`
ServerRoot %s
ServerName 127.0.0.1
PidFile apache.pid
Mutex file:%[1]s
Listen 127.0.0.1:%d
ErrorLog /dev/stderr
LogLevel warn
User www-data
Group www-data
OIDCProviderMetadataURL %s/.well-known/openid-configuration
OIDCClientID %s
OIDCClientSecret %s
OIDCRedirectURI %s
OIDCCryptoPassphrase 0123456789abcdef
OIDCScope "openid email"
OIDCPKCEMethod S256
OIDCIDTokenSignedResponseAlg %s
OIDCSessionType server-cache
<Location />
	ProxyPass %s/
	AuthType openid-connect
	Require valid-user
</Location>
<Location /bye>
	AuthType none
	Require all granted
</Location>
`, folder, a.port, at.issuer, at.id, at.secret, a.callback, alg, behind)
	path := filepath.Join(folder, "apache.conf")
	if err := os.WriteFile(path, []byte(configuration), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/usr/sbin/apache2", "-f", path, "-X", "-e", "notice")
	start(t, "auth_openidc", command)
	awaitPort(t, a.port)
}

// TestAuthlib runs a script with Python's Authlib.
func TestAuthlib(t *testing.T) {
	a := newApp(t, "", "/callback")
	back := make(chan string, 1)
	server := &http.Server{Addr: strings.TrimPrefix(a.base, "http://"),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/callback" {
				back <- a.base + r.URL.String()
			}
			io.WriteString(w, "<p>Back</p>")
		})}
	go server.ListenAndServe()
	t.Cleanup(func() { server.Close() })
	at := gatehouse(t, a)
	command := withEnvironment(exec.Command("/usr/bin/python3", "apps/authlib_app.py"), map[string]string{
		"ISSUER": at.issuer, "CLIENT_ID": at.id, "CLIENT_SECRET": at.secret, "CALLBACK": a.callback,
	})
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		t.Fatal("got no authorization URL")
	}
	p := newPerson(t)
	p.visit(lines.Text())
	p.reach(a.base, at.signIn, func() bool { return true })
	fmt.Fprintln(in, <-back)
	if !lines.Scan() || lines.Text() != "ok "+at.email {
		t.Errorf("got %q, want ok and the address", lines.Text())
	}
}
