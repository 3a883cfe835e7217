package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// TestDeclare starts servers with files of clients and resources, and changes the files, on both
// databases.
func TestDeclare(t *testing.T) {
	t.Parallel()
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			declare(t, url(t))
		})
	}
}

func declare(t *testing.T, database string) {
	file := write(t, "shop.yaml", "")
	secret := strings.TrimSpace(runOnce(t, nil, "secret").stdout)
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const shop = `{client_id: shop, name: Shop, grants: [client_credentials], scopes: [], secrets: [{env: SHOP_SECRET}]}`
	const wiki = `{client_id: wiki, name: Wiki, public: true, redirect_uris: ['https://wiki.example/cb']}`
	const notes = "resources: [{uri: 'https://notes.example/', scopes: [n]}]\n"
	first := "revision: 1\n" + notes + "clients: [" + shop + ", " + wiki + "]\n"
	put(first)
	s := newBare(t, append(databaseEnv(t, database), "SHOP_SECRET="+secret), "--declare", file)
	if strings.HasPrefix(database, "postgres") {
		s.serve(t) // another node
	}
	env := s.operatorEnv()
	works := func(want int) {
		t.Helper()
		if got := tokenStatus(t, s.base, "shop", secret); got != want {
			t.Errorf("got %d for the declared client, want %d", got, want)
		}
	}
	works(200)
	const refused = "own files declare this record"
	for _, args := range []string{"client disable wiki", "client delete wiki", "client update wiki --name x",
		"client rotate-secret shop", "resource delete https://notes.example/"} {
		wantRun(t, env, 1, []string{refused}, strings.Fields(args)...)
	}
	wantRun(t, env, 1, []string{refused}, "apply", "-f", write(t, "x.yaml", "set: default\nclients: ["+wiki+"]\n"))
	number := func() string { return runOnce(t, env, "resource", "list").stdout }
	before := number()

	reload := func(text, want string) {
		t.Helper()
		put(text)
		s.server.stderr.clear()
		s.server.signal(t, syscall.SIGHUP)
		if line := s.server.stderr.await(t, want); strings.Contains(line, secret) {
			t.Errorf("got a secret in the log: %s", line)
		}
		s.server.stderr.await(t, "settings and certificates are read again")
	}
	second := "revision: 2\nclients: [" + shop + "]\n"
	reload(second, `"msg":"declared","set":"default","revision":2,"clients_changed":1`)
	wantRun(t, env, 0, []string{`"disabled": true`}, "client", "show", "wiki", "--json")
	wantRun(t, env, 0, []string{"client_disabled", `"declared":true`}, "audit", "--client", "wiki", "--json")
	if got := number(); strings.Contains(got, "notes.example") {
		t.Errorf("got the resource that is gone:\n%s", got)
	}
	reload(strings.Replace(second, "Shop", "Shoppe", 1), "raise revision")
	reload("revision: 3\nclients: [{client_id: shop}]\n", "needs the key name")
	reload(first, "a newer revision is declared already")
	works(200)
	reload(strings.Replace(first, "revision: 1", "revision: 4", 1), `"revision":4,"clients_changed":1`)
	wantRun(t, env, 0, []string{`"disabled": false`}, "client", "show", "wiki", "--json")
	if got := number(); got != before {
		t.Errorf("got resources\n%swant\n%s", got, before)
	}
	reload("revision: 5\nclients: [{client_id: "+s.operator.ClientID+", name: Mine, operator: true, secrets: [{env: SHOP_SECRET}]}]\n",
		"the admin API has made it")
	reload("revision: 6\nclients: ["+shop+", {client_id: keys, name: Keys, jwks_uri: 'https://10.0.0.1/k', redirect_uris: ['https://k.example/']}]\n",
		"10.0.0.1 has no public address")
	reload(second[:len("revision: ")]+"7"+second[len("revision: 2"):], `"revision":7,"clients_changed":1`)
	wantRun(t, env, 0, nil, "client", "delete", "wiki") // its files have it no more
	works(200)
	s.server.stop(t)
	put("revision: 7\nclients: []\n")
	wantRun(t, s.env, 2, []string{"raise revision"}, append([]string{"serve", "--roles=identity", "--declare", file},
		anyPorts...)...)
}

// TestDeclareFolders: sets hand a client to each other, and names and order of files do not matter.
// Two nodes that start at once with other revisions end with the higher one.
func TestDeclareFolders(t *testing.T) {
	t.Parallel()
	secret := strings.TrimSpace(runOnce(t, nil, "secret").stdout)
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	client := func(id string) string {
		return "{client_id: " + id + ", name: " + id + ", grants: [client_credentials], scopes: [], secrets: [{file: secret}]}"
	}
	set := func(name, revision string, clients ...string) string {
		return "set: " + name + "\nrevision: " + revision + "\nclients: [" + strings.Join(clients, ", ") + "]\n"
	}
	// The secret is a credential of a systemd service.
	env := append(databaseEnv(t, pgtest.Migrated(t)),
		"CREDENTIALS_DIRECTORY="+folder(map[string]string{"secret": secret + "\n"}))
	s := &fixture{env: env, http: newClient(t, "")}
	s.operator = decode[operator](t, runOnce(t, s.env, "init", "--json"))
	serve := func(files map[string]string) {
		t.Helper()
		s.flags = []string{"--declare", folder(files)}
		s.serve(t)
	}
	works := func(id string) {
		t.Helper()
		if got := tokenStatus(t, s.base, id, secret); got != 200 {
			t.Errorf("got %d for the client %s, want 200", got, id)
		}
	}
	serve(map[string]string{"1.yaml": set("a", "1", client("one"), client("two")), "2.yaml": set("b", "1", client("three"))})
	works("one")
	serve(map[string]string{"x.yaml": set("b", "1", client("three")), "y.yaml": set("a", "1", client("two")),
		"z.yaml": set("a", "1", client("one"))})
	serve(map[string]string{"1.yaml": set("a", "2", client("one")), "2.yaml": set("b", "2", client("three"), client("two"))})
	works("two")
	wantRun(t, s.operatorEnv(), 0, []string{`"set": "b"`, `"disabled": false`}, "client", "show", "two", "--json")

	var both [2]*process
	for i, revision := range []string{"3", "4"} {
		both[i] = start(t, s.env, append([]string{"serve", "--declare", folder(map[string]string{
			"1.yaml": set("a", revision, client("one"), client("only-in-"+revision))})}, anyPorts...)...)
	}
	for _, p := range both {
		p.stderr.await(t, `"msg":"serving"`)
	}
	wantRun(t, s.operatorEnv(), 0, []string{`"disabled": false`}, "client", "show", "only-in-4", "--json")
	if got := runOnce(t, s.operatorEnv(), "client", "show", "only-in-3", "--json"); got.code == 0 &&
		!strings.Contains(got.stdout, `"disabled": true`) {
		t.Errorf("got %s, want the client of the lower revision missing or disabled", got.stdout)
	}
}

// TestDeclareProviders declares a provider, which the admin API then refuses to change. Gone from the
// files, nobody signs in with it; it comes back with its secret.
func TestDeclareProviders(t *testing.T) {
	t.Parallel()
	const acme = "providers: [{id: acme, kind: oidc, issuer: 'http://127.0.0.1:9', client_id: g, client_secret_env: ACME_SECRET, label: Acme}]\n"
	file := write(t, "up.yaml", "revision: 1\n"+acme)
	s := newBare(t, append(databaseEnv(t, sqlitetest.URL(t)), "ACME_SECRET=hunter2"), "--declare", file)
	env := s.operatorEnv()
	shows := func(want bool) {
		t.Helper()
		response, err := s.http.Get(s.base + "/login")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if got := strings.Contains(string(body), "Continue with <bdi>Acme</bdi>"); err != nil || got != want {
			t.Errorf("got the button %v and error %v, want %v", got, err, want)
		}
	}
	shows(true)
	wantRun(t, env, 0, []string{`"declared": true`}, "provider", "show", "acme", "--json")
	wantRun(t, env, 1, []string{"own files declare this record"}, "provider", "delete", "acme")
	reload := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.server.stderr.clear()
		s.server.signal(t, syscall.SIGHUP)
		if line := s.server.stderr.await(t, want); strings.Contains(line, "hunter2") {
			t.Errorf("got a secret in the log: %s", line)
		}
		s.server.stderr.await(t, "settings and certificates are read again")
	}
	reload("revision: 2\nproviders: []\n", `"msg":"declared","set":"default","revision":2`)
	shows(false)
	wantRun(t, env, 0, []string{`"disabled": true`}, "provider", "show", "acme", "--json")
	reload("revision: 3\n"+acme, `"revision":3`)
	shows(true)
	reload("revision: 3\n"+strings.Replace(acme, "label: Acme", "label: Other", 1), "raise revision")
	reload("revision: 4\n"+strings.Replace(acme, "http://127.0.0.1:9", "http://acme.example", 1), "localhost only: use https")
	shows(true)
}
