package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/providers/sqlstore/pgtest"
)

// TestDeclare starts servers with files of clients and resources, and changes the files, on both
// databases.
func TestDeclare(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "g.db") },
		"postgres": func(t *testing.T) string { return pgtest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			declare(t, database(t))
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
	s := &fixture{env: append(databaseEnv(t, database), "SHOP_SECRET="+secret), http: newClient(t, ""),
		flags: []string{"--declare", file}}
	s.operator = decode[operator](t, runOnce(t, s.env, "init", "--json"))
	s.serve(t)
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
		"the admin API or another set has made it")
	works(200)
	s.server.stop(t)
	put("revision: 4\nclients: []\n")
	wantRun(t, s.env, 2, []string{"raise revision"}, append([]string{"serve", "--roles=identity", "--declare", file},
		anyPorts...)...)
}
