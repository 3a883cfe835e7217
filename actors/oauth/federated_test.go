package oauth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
)

// The claims of workloads, as their platforms document them.
const (
	githubClaims = `{"jti":"example-id","sub":"repo:octo-org/octo-repo:environment:prod","environment":"prod",
"aud":"https://id.example","ref":"refs/heads/main","sha":"example-sha","repository":"octo-org/octo-repo",
"repository_owner":"octo-org","actor_id":"12","repository_visibility":"private","run_id":"example-run-id",
"job_workflow_ref":"octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main","ref_type":"branch",
"iss":"https://token.actions.githubusercontent.com","nbf":1799999400,"exp":1800000300,"iat":1800000000}`
	gitlabClaims = `{"iss":"https://gitlab.com","sub":"project_path:my-group/my-project:ref_type:branch:ref:feature-branch-1",
"aud":"https://id.example","iat":1799999999,"nbf":1799999994,"exp":1800003594,"jti":"235b3a54-b797-45c7-ae9a-f72d7bc6ef5b",
"namespace_path":"my-group","project_path":"my-group/my-project","user_login":"sample-user","pipeline_source":"push"}`
	kubernetesClaims = `{"aud":["https://id.example"],"exp":1800003600,"iat":1800000000,
"iss":"https://kubernetes.default.svc.cluster.local","jti":"0b1c5b9d-9d0b-4f8e-8d1c-2c3d4e5f6a7b",
"kubernetes.io":{"namespace":"shop","serviceaccount":{"name":"worker","uid":"14ee3fa4-a7e2-420f-9f9a-dbc4507c3798"}},
"nbf":1800000000,"sub":"system:serviceaccount:shop:worker"}`
)

func TestFederatedAssertions(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "rsa"}}
	now := time.Unix(1_800_000_000, 0)
	for platform, text := range map[string]string{
		"github": githubClaims, "gitlab": gitlabClaims, "kubernetes": kubernetesClaims,
	} {
		var good map[string]any
		if err := json.Unmarshal([]byte(text), &good); err != nil {
			t.Fatal(err)
		}
		with := func(name string, value any) map[string]any {
			changed := maps.Clone(good)
			if changed[name] = value; value == nil {
				delete(changed, name)
			}
			return changed
		}
		of := oauth.Federated{Issuer: good["iss"].(string), Subject: good["sub"].(string)}
		narrow := of
		narrow.Audience = "https://other.example"
		for what, row := range map[string]struct {
			client oauth.Federated
			claims map[string]any
			ok     bool
		}{
			"as it is":          {of, good, true},
			"no jti":            {of, with("jti", nil), true},
			"no iat":            {of, with("iat", nil), true},
			"another subject":   {of, with("sub", of.Subject+":x"), false},
			"a part of it":      {of, with("sub", strings.TrimSuffix(of.Subject, of.Subject[len(of.Subject)-1:])), false},
			"pattern":           {oauth.Federated{Issuer: of.Issuer, Subject: "*"}, good, false},
			"upper case":        {of, with("sub", strings.ToUpper(of.Subject)), false},
			"another issuer":    {of, with("iss", "https://evil.example"), false},
			"issuer with slash": {of, with("iss", of.Issuer+"/"), false},
			"token endpoint":    {of, with("aud", "https://id.example/oauth/token"), false},
			"several audiences": {of, with("aud", []string{"https://id.example", "https://other.example"}), false},
			"no audience":       {of, with("aud", nil), false},
			"registered":        {narrow, with("aud", "https://other.example"), true},
			"not registered":    {narrow, good, false},
			"expired":           {of, with("exp", now.Unix()), false},
			"no exp":            {of, with("exp", nil), false},
			"for two days":      {of, with("exp", now.Unix()+172_800), false},
			"not before":        {of, with("nbf", now.Unix()+60), false},
			"issued later":      {of, with("iat", now.Unix()+60), false},
		} {
			client := &oauth.Client{ID: "c", Options: oauth.ClientOptions{Federated: row.client}}
			a, fault := client.ParseAssertion(signed(t, jose.RS256, key, "rsa", row.claims),
				[]string{"https://id.example", "https://id.example/oauth/token"}, now)
			if ok := fault == nil && a.IsReusable && a.IsSignedBy(a.Key(keys)); ok != row.ok {
				t.Errorf("%s, %s: got %v and error %v, want %v", platform, what, ok, fault, row.ok)
			}
		}
		for what, jwt := range map[string]string{"malformed": "x",
			"of another kind": typed(t, "at+jwt", jose.RS256, key, "rsa", good)} {
			client := &oauth.Client{ID: "c", Options: oauth.ClientOptions{Federated: of}}
			_, fault := client.ParseAssertion(jwt, []string{"https://id.example"}, now)
			if fault == nil || !strings.Contains(fault.Hint, "the issuer has made") {
				t.Errorf("%s, %s: got %v, want a hint for a JWT of the issuer", platform, what, fault)
			}
		}
		own := &oauth.Client{ID: of.Subject, Options: oauth.ClientOptions{JWKS: "{}"}}
		if _, fault := own.ParseAssertion(signed(t, jose.RS256, key, "rsa", good),
			[]string{"https://id.example"}, now); fault == nil {
			t.Errorf("%s: got an assertion of a client with keys of its own, want none", platform)
		}
	}
}

func TestMetadataOfFederatedIssuer(t *testing.T) {
	f := oauth.Federated{Issuer: "https://ci.example/", Subject: "x"}
	if got := f.MetadataURL(); got != "https://ci.example/.well-known/openid-configuration" {
		t.Errorf("got %s", got)
	}
	for text, want := range map[string]string{
		`{"issuer":"https://ci.example/","jwks_uri":"https://keys.example/jwks"}`: "https://keys.example/jwks",
		`{"issuer":"https://ci.example","jwks_uri":"https://keys.example/jwks"}`:  "",
		`{"issuer":"https://ci.example/","jwks_uri":"http://keys.example/jwks"}`:  "",
		`{"issuer":"https://ci.example/","jwks_uri":"https://169.254.169.254/x"}`: "",
		`{"issuer":"https://ci.example/"}`:                                        "",
		`[]`:                                                                      "",
	} {
		if got, err := f.KeysURL([]byte(text)); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: got %q and error %v, want %q", text, got, err, want)
		}
	}
}
