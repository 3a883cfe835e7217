package oauthapi_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/fetch"
)

// platforms serves the issuers of workloads at https, each at a path of its name.
type platforms struct {
	*httptest.Server
	metadata map[string]http.HandlerFunc // by name; those that are missing are honest
	keys     map[string]http.HandlerFunc
}

func (p *platforms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, file, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if path.Base(file) == "jwks" {
		p.keys[name](w, r)
		return
	}
	if say := p.metadata[name]; say != nil {
		say(w, r)
		return
	}
	document(fmt.Sprintf(`{"issuer":"%s/%s","jwks_uri":"%[1]s/%[2]s/jwks"}`, p.URL, name))(w, r)
}

func document(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte(text)) // the client may have gone
	}
}

// published returns the key set of a platform with the members that its keys have, such as the
// certificates of GitHub.
func published(t *testing.T, key *rsa.PublicKey, more string) string {
	t.Helper()
	return fmt.Sprintf(`{"keys":[{"kty":"RSA","n":%q,"e":%q,"kid":"k","alg":"RS256","use":"sig"%s}]}`,
		base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
		base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()), more)
}

// TestWorkloads has workloads of honest platforms get tokens while other platforms at the same host are
// hostile. Each of these fails its own clients only.
func TestWorkloads(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	stacktest.Must(t, err)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	stacktest.Must(t, err)
	certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	stacktest.Must(t, err)
	good := published(t, &key.PublicKey, "")
	release := make(chan struct{})
	slow := func(w http.ResponseWriter, r *http.Request) {
		document(`{"keys":[`)(w, r)
		_ = http.NewResponseController(w).Flush() // the client may have gone
		<-release
	}
	p := &platforms{metadata: map[string]http.HandlerFunc{}, keys: map[string]http.HandlerFunc{
		"github":     document(published(t, &key.PublicKey, `,"x5c":["`+base64.StdEncoding.EncodeToString(certificate)+`"]`)),
		"gitlab":     document(strings.Replace(good, `]}`, `,{"kty":"OKP","crv":"Ed25519","kid":"e","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`, 1)),
		"kubernetes": document(good),
		"jwk-set": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/jwk-set+json")
			_, _ = w.Write([]byte(good))
		},
		"huge":      document(strings.Replace(good, `]}`, strings.Repeat(`,`+good[9:len(good)-2], 300)+`]}`, 1)),
		"small":     document(published(t, &small.PublicKey, "")),
		"exponent":  document(published(t, &rsa.PublicKey{N: key.N, E: 3}, "")),
		"symmetric": document(`{"keys":[{"kty":"oct","kid":"k","k":"c2VjcmV0"}]}`),
		"empty":     document(`{"keys":[]}`),
		"list":      document(`[]`),
		"page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(good))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/github/jwks", http.StatusFound)
		},
		"slow": slow, "other": document(good), "elsewhere": document(good), "moved": document(good), "away": document(good),
	}}
	p.Server = httptest.NewTLSServer(p)
	defer p.Close()
	defer close(release)
	p.metadata["other"] = document(fmt.Sprintf(`{"issuer":"%s/github","jwks_uri":"%[1]s/github/jwks"}`, p.URL))
	p.metadata["elsewhere"] = document(fmt.Sprintf(`{"issuer":"%s/elsewhere","jwks_uri":"https://169.254.169.254/jwks"}`, p.URL))
	p.metadata["moved"] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/github/.well-known/openid-configuration", http.StatusMovedPermanently)
	}
	p.metadata["away"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }

	roots := x509.NewCertPool()
	roots.AddCert(p.Certificate())
	fetcher, err := fetch.New(fetch.Config{Roots: roots, Allow: netip.Addr.IsLoopback})
	stacktest.Must(t, err)
	st := stacktest.NewIdentity(t, func(c *stack.Config) { c.Identity.Fetcher = fetcher })
	client := map[string]stacktest.Client{}
	for name := range p.keys {
		client[name] = st.NewClient(t, func(c *oauth.Client) {
			c.Secrets, c.Grants = nil, oauth.ClientCredentialsGrant
			c.Options.Federated = oauth.Federated{Issuer: p.URL + "/" + name, Subject: "repo:a/b"}
		})
	}
	send := func(name string, key *rsa.PrivateKey) stacktest.Response {
		now := time.Now().Unix()
		jwt := stacktest.SignJWT(t, jose.RS256, key, map[string]any{"iss": p.URL + "/" + name, "sub": "repo:a/b",
			"aud": st.Tokens.Issuer(), "iat": now, "exp": now + 300}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
		return st.PostToken(t, stacktest.Values("grant_type", "client_credentials", "client_id",
			client[name].ID, "client_assertion", jwt, "client_assertion_type",
			"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"))
	}
	waiting := make(chan stacktest.Response)
	go func() { waiting <- send("slow", key) }()
	const later, wrong = "temporarily_unavailable", "invalid_client"
	for name, want := range map[string]string{
		"github": "", "gitlab": "", "kubernetes": "", "jwk-set": "",
		"huge": later, "list": later, "page": later, "redirect": later, "other": later, "elsewhere": later,
		"moved": later, "away": later, "small": wrong, "exponent": wrong, "symmetric": wrong, "empty": wrong,
	} {
		a := send(name, map[bool]*rsa.PrivateKey{true: small, false: key}[name == "small"])
		var got struct{ Error, Message, Hint string }
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || got.Error != want || want == wrong &&
			(!strings.HasPrefix(got.Message, "The issuer has no key") || !strings.Contains(got.Hint, "the operator")) {
			t.Errorf("%s: got %d %s, want %q, and what to do about a missing key", name, a.Status, a.Body, want)
		}
	}
	if a := <-waiting; a.Status != 503 {
		t.Errorf("slow: got %d %s, want 503", a.Status, a.Body)
	}
}
