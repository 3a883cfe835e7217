package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// applyEnv starts a server on an empty database and returns the variables of its operator, and the
// address of its token endpoint.
func applyEnv(t *testing.T) (env []string, base string) {
	t.Helper()
	s := newBare(t, databaseEnv(t, sqlitetest.URL(t)))
	return s.operatorEnv(), s.base
}

// wantRun runs a command and checks its exit code and parts of what it prints.
func wantRun(t *testing.T, env []string, code int, parts []string, args ...string) outcome {
	t.Helper()
	got := runOnce(t, env, args...)
	if got.code != code {
		t.Errorf("%v: got code %d, want %d\n%s%s", args, got.code, code, got.stdout, got.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(got.stdout+got.stderr, part) {
			t.Errorf("%v: got\n%s%s\nwant %q in it", args, got.stdout, got.stderr, part)
		}
	}
	return got
}

const shopFile = `set: shop
resources: [{uri: https://notes.example/mcp, name: Notes, scopes: {notes:read: Read your notes}}]
clients:
  - client_id: shop
    name: Shop
    grants: [client_credentials, "urn:ietf:params:oauth:grant-type:token-exchange"]
    serves: [https://notes.example/mcp]
    exchange: [{from: https://notes.example/mcp, to: https://crm.example, scopes: [list]}]
    scopes: []
    secrets: [{file: shop.secret}]
  - client_id: wiki
    name: Wiki
    public: true
    redirect_uris: [https://wiki.example/cb]
`

func TestApply(t *testing.T) {
	t.Parallel()
	env, base := applyEnv(t)
	secret := strings.TrimSpace(runOnce(t, nil, "secret").stdout)
	file := write(t, "shop.yaml", shopFile)
	dir := filepath.Dir(file)
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("shop.secret", secret+"\n")
	apply := func(code int, parts []string, more ...string) {
		t.Helper()
		wantRun(t, env, code, parts, append([]string{"apply", "-f", file}, more...)...)
	}
	apply(3, []string{"client shop: create", "would be 3 created, 0 changed"}, "--dry-run")
	apply(0, []string{"3 created, 0 changed, 0 deleted; 0 unchanged, 0 failed"})
	apply(0, []string{"0 created, 0 changed, 0 deleted; 3 unchanged, 0 failed"})
	apply(0, []string{"3 unchanged"}, "--dry-run")
	if status := tokenStatus(t, base, "shop", secret); status != http.StatusOK {
		t.Errorf("got %d for the declared secret, want 200", status)
	}

	put("shop.yaml", strings.NewReplacer("name: Shop", "name: The Shop", "public: true\n",
		"public: false\n", "{notes:read: Read your notes}", "{notes:read: Read notes, notes:write: }").Replace(shopFile))
	apply(1, []string{`name: "Shop" -> "The Shop"`, "scopes: add notes:write", "scopes: other texts", "shop.yaml:11",
		"client wiki stays as it is", "0 created, 2 changed, 0 deleted; 0 unchanged, 1 failed"})
	wantRun(t, env, 0, []string{`"public": true`, `"name": "Wiki"`}, "client", "show", "wiki", "--json")

	// The export of one server is that of another one that applies it.
	exported := runOnce(t, env, "export").stdout
	if !strings.Contains(exported, "from: https://notes.example/mcp\n") || !strings.Contains(exported, "notes:read: Read notes\n") || !strings.Contains(exported, "name: Notes") {
		t.Errorf("got\n%s\nwant the texts of scopes", exported)
	}
	copied := put("export.txt", exported)
	other, otherBase := applyEnv(t)
	wantRun(t, other, 0, []string{"0 failed"}, "apply", "-f", copied)
	if status := tokenStatus(t, otherBase, "shop", secret); status != http.StatusOK {
		t.Errorf("got %d for the secret at the copy, want 200", status)
	}
	wantRun(t, other, 0, []string{"0 changed", "0 failed"}, "apply", "-f", copied)
	wantRun(t, env, 0, []string{"1 changed", `set: none -> "default"`}, "apply", "-f", copied) // the operator
	wantRun(t, env, 0, []string{"0 changed"}, "apply", "-f", copied)

	put("shop.yaml", "set: shop\nclients: [{client_id: shop, name: Shop, grants: [client_credentials], scopes: []}]\n")
	apply(0, []string{"client wiki: delete", "resource https://notes.example/mcp: delete"}, "--prune")
	if status := tokenStatus(t, base, "shop", secret); status != http.StatusOK {
		t.Errorf("got %d for a secret that the file leaves out, want 200", status)
	}
	// What an operator disables stays so; what has no set is adopted by the set default.
	wantRun(t, env, 0, nil, "client", "disable", "shop")
	apply(0, []string{"0 created, 0 changed"})
	wantRun(t, env, 0, []string{`"disabled": true`}, "client", "show", "shop", "--json")
	wantRun(t, env, 0, nil, "client", "create", "--id", "hand", "--name", "Hand", "--redirect-uri", "https://h.example/")
	hand := put("hand.txt", "clients: [{client_id: hand, name: Hand, redirect_uris: [https://h.example/]}]\n")
	wantRun(t, env, 0, []string{`set: none -> "default"`, "1 changed"}, "apply", "-f", hand)
	wantRun(t, env, 0, []string{"0 changed"}, "apply", "-f", hand)

	put("other.txt", "set: other\nclients: [{client_id: shop, name: Mine}]\n")
	wantRun(t, env, 1, []string{`belongs to the set "shop"`}, "apply", "-f", filepath.Join(dir, "other.txt"))

	for text, message := range map[string]string{
		"teams: [{name: x}]\n": `bad.txt:1: the key "teams" is not known`,
		"clients:\n  - client_id: abc\n    name: A\n    boo: 1\n":              `bad.txt:4: the key "boo" is not known`,
		"clients: [{client_id: abc}]\n":                                        "needs the key name",
		"clients: [{client_id: abc, name: A, exchange: [x]}]\n":                "exchange: each must be",
		"clients: [{client_id: a, name: A}]\n":                                 "3 to 40",
		"clients: [{client_id: abc, name: A, public: 1}]\n":                    "true or false",
		"clients: [{client_id: abc, name: A, secrets: [{env: NONE}]}]\n":       "NONE is not set",
		"clients: [{client_id: abc, name: A, secrets: [{file: shop.yaml}]}]\n": "gatehouse secret made",
		"clients: [{client_id: abc, name: A}, {client_id: abc, name: B}]\n":    "as well",
		"clients: [\n": "yaml", "": "describes nothing", "- x\n": "mapping",
	} {
		wantRun(t, env, 2, []string{message}, "apply", "-f", put("bad.txt", text))
	}
}

var declaredClients = flag.Int("declared", 210, "clients of TestApplyMany")

// TestApplyMany applies many objects, kills the command and repeats it, changes an object by hand, and
// runs two commands at once, on both databases.
func TestApplyMany(t *testing.T) {
	t.Parallel()
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			applyMany(t, newBare(t, databaseEnv(t, url(t))).operatorEnv())
		})
	}
}

func applyMany(t *testing.T, env []string) {
	var text strings.Builder
	text.WriteString("resources:\n")
	n := *declaredClients
	for i := range n / 10 {
		fmt.Fprintf(&text, "  - {uri: 'https://r%d.example/', scopes: [s%d]}\n", i, i)
	}
	text.WriteString("clients:\n")
	for i := range n {
		fmt.Fprintf(&text, "  - {client_id: c-%d, name: C%d, grants: [client_credentials], scopes: [], secrets: [{hash: '%s'}]}\n",
			i, i, oauth.HashOf(fmt.Sprint(i)))
	}
	file := write(t, "many.yaml", text.String())
	killed := start(t, env, "apply", "-f", file)
	killed.stdout.await(t, fmt.Sprintf("client c-%d: create", n/3))
	killed.signal(t, syscall.SIGKILL)
	killed.code(t)
	both := func() {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { wantRun(t, env, 0, []string{" 0 failed"}, "apply", "-f", file) })
		}
		both.Wait()
	}
	both()
	wantRun(t, env, 0, nil, "client", "update", "c-7", "--name", "Mine")
	wantRun(t, env, 3, []string{`name: "Mine" -> "C7"`,
		fmt.Sprintf("0 created, 1 changed, 0 deleted; %d unchanged, 0 failed", n+n/10-1)},
		"apply", "-f", file, "--dry-run")
	both()
	began := time.Now()
	wantRun(t, env, 0, []string{
		fmt.Sprintf("0 created, 0 changed, 0 deleted; %d unchanged, 0 failed", n+n/10)},
		"apply", "-f", file)
	t.Logf("%d objects that are unchanged: %v", n+n/10, time.Since(began).Round(time.Millisecond))
}

// TestApplyProviders applies, exports and prunes providers. Secrets come from files and variables, and
// nobody is shown them.
func TestApplyProviders(t *testing.T) {
	t.Parallel()
	env, _ := applyEnv(t)
	env = append(env, "ENTRA_SECRET=hunter3")
	const providers = `set: up
providers:
  - {id: google, kind: oidc, issuer: 'https://accounts.google.com', client_id: g, client_secret_file: google.secret, trust_email: true, groups: {A: a}}
  - {id: github, kind: github, client_id: h, client_secret_env: ENTRA_SECRET, allowed_domains: [a.example]}
`
	file := write(t, "up.yaml", providers)
	secret := filepath.Join(filepath.Dir(file), "google.secret")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply := func(code int, parts []string, more ...string) outcome {
		t.Helper()
		return wantRun(t, env, code, parts, append([]string{"apply", "-f", file}, more...)...)
	}
	apply(3, []string{"provider google: create", "would be 2 created"}, "--dry-run")
	apply(0, []string{"2 created"})
	apply(0, []string{"0 created, 0 changed, 0 deleted; 2 unchanged"})
	if err := os.WriteFile(secret, []byte("hunter4"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := apply(3, []string{"client_secret: another one"}, "--dry-run"); strings.Contains(got.stdout, "hunter") {
		t.Errorf("got %s, want no secret", got.stdout)
	}
	apply(0, []string{"1 changed"})
	wantRun(t, env, 0, []string{"google", "https://accounts.google.com", "/login/with/google/callback"},
		"provider", "list")
	shown := wantRun(t, env, 0, []string{`"client_secret_set_at"`}, "provider", "show", "google", "--json")
	exported := wantRun(t, env, 0, []string{"set: up", "id: google", "client_secret_file: google.secret",
		"client_secret_file: github.secret", "trust_email: true"}, "export")
	if strings.Contains(shown.stdout+exported.stdout, "hunter") {
		t.Errorf("got %s%s, want no secret", shown.stdout, exported.stdout)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "github.secret"), []byte("hunter3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(exported.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(0, []string{"0 created, ", " 0 deleted; ", " 0 failed"})
	for wrong, want := range map[string]string{
		"providers: [{id: x, kind: oidc}]":                                             "needs the key client_id",
		"providers: [{id: X, kind: oidc, client_id: g}]":                               "id: it must have",
		"providers: [{id: x, kind: saml, client_id: g}]":                               "kind: it must be oidc or github",
		"providers: [{id: x, kind: oidc, client_id: g, client_secret: y}]":             "is not known",
		"providers: [{id: x, kind: oidc, client_id: g, client_secret_file: missing}]":  "client_secret_file: file missing",
		"providers: [{id: x, kind: oidc, client_id: g, client_secret_env: NOT_THERE}]": "the variable NOT_THERE is not set",
		"providers: [{id: x, kind: oidc, client_id: g, trust_email: maybe}]":           "trust_email: it must be true or false",
	} {
		wantRun(t, env, 2, []string{want}, "apply", "-f", write(t, "wrong.yaml", wrong))
	}
	wantRun(t, env, 1, []string{"it must begin with https://"}, "apply", "-f",
		write(t, "wrong.yaml", "providers: [{id: x, kind: oidc, client_id: g, issuer: 'ftp://a.example'}]"))
	if err := os.WriteFile(file, []byte("set: up\nclients: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(0, []string{"provider google: delete", "2 deleted"}, "--prune")
}
