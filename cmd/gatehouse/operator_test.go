package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// startDemo runs a demo and returns the folder above its own, in which commands can use
// --demo ./gatehouse-demo.
func startDemo(t *testing.T) (above string, file demoFile) {
	t.Helper()
	above = t.TempDir()
	dir := filepath.Join(above, "gatehouse-demo")
	p := start(t, nil, append([]string{"demo", "--dir", dir}, anyPorts...)...)
	p.stderr.await(t, "msg=serving")
	return above, readDemo(t, dir)
}

// decode reads the JSON that a command printed.
func decode[T any](t *testing.T, got outcome) T {
	t.Helper()
	var v T
	if got.code != exitDone || got.stderr != "" {
		t.Fatalf("got code %d, stderr %q, want 0 and none", got.code, got.stderr)
	}
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
		t.Fatalf("got %q, want JSON: %v", got.stdout, err)
	}
	return v
}

// tokenStatus requests a token by client credentials and returns the status.
func tokenStatus(t *testing.T, base, id, secret string) int {
	t.Helper()
	response, err := newClient(t, "").PostForm(base+"/oauth/token",
		url.Values{"grant_type": {"client_credentials"}, "client_id": {id},
			"client_secret": {secret}})
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// record has the members of clients and users that these tests read.
type record struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Name         string
	ClientURI    *string  `json:"client_uri"`
	RedirectURIs []string `json:"redirect_uris"`
	Scopes       []string
	Grants       []string
	Public       bool
	Approved     bool `json:"detail_user_approved"`
	Disabled     bool
	Quota        int     `json:"tokens_per_minute"`
	Issued       int     `json:"tokens_issued"`
	LastUsed     *string `json:"last_used_at"`
	Secrets      []struct{ ID string }
	ID           int64
	Email        *string
	Phone        *string `json:"phone_number"`
	Bio          *string
}

// TestOperatorsDay creates the first operator while a server runs, and goes through the life of a
// client.
func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	database := "--database-url=sqlite:" + filepath.Join(t.TempDir(), "g.db")
	p := start(t, nil, append([]string{"serve", "--roles=identity", database}, anyPorts...)...)
	listen, admin := p.ready(t)
	base := "http://" + listen

	first := decode[operator](t, runOnce(t, nil, "init", "--json", database))
	if got := runOnce(t, nil, "init", "--json", database); got.code != exitFailed ||
		got.stdout != "" || !strings.Contains(got.stderr, "--new-operator") {
		t.Errorf("got code %d, stdout %q, stderr %q of a second init, want 1 and a line that names --new-operator",
			got.code, got.stdout, got.stderr)
	}
	if another := decode[operator](t, runOnce(t, nil, "init", "--json", "--new-operator",
		database)); another.ClientID == first.ClientID {
		t.Errorf("got the same client twice, want another one")
	}
	env := []string{"GATEHOUSE_CLIENT_ID=" + first.ClientID,
		"GATEHOUSE_CLIENT_SECRET=" + first.ClientSecret,
		"GATEHOUSE_BASE_URL=" + base, "GATEHOUSE_ADMIN_URL=http://" + admin}
	remote := func(args ...string) outcome { return runOnce(t, env, append(args, "--json")...) }

	shop := decode[record](t, remote("client", "create", "--name=Shop",
		"--redirect-uri=https://shop.example/a", "--redirect-uri=https://shop.example/b?x=1,2",
		"--scope=view-user detail-user", "--grant=authorization_code", "--grant=client_credentials",
		"--approve-detail-user"))
	if len(shop.RedirectURIs) != 2 || shop.RedirectURIs[1] != "https://shop.example/b?x=1,2" ||
		len(shop.Scopes) != 2 || len(shop.Grants) != 2 || !shop.Approved {
		t.Errorf("got %+v, want what the flags say", shop)
	}
	app := decode[record](t, remote("client", "create", "--name=App",
		"--client-uri=http://localhost:9000/app", "--public",
		"--redirect-uri=com.example.app:/back"))
	if app.ClientSecret != "" || !app.Public || app.ClientURI == nil ||
		*app.ClientURI != "http://localhost:9000/app" {
		t.Errorf("got %+v, want a public client without secret", app)
	}
	if got := len(decode[[]record](t, remote("client", "list"))); got != 4 {
		t.Errorf("got %d clients, want 4", got)
	}
	machine := decode[record](t, remote("client", "create", "--name=Machine", "--scope=",
		"--grant=client_credentials"))
	if len(machine.Scopes) != 0 {
		t.Errorf("got scopes %v for an empty --scope, want none", machine.Scopes)
	}
	if got := remote("client", "create", "--name=Nothing", "--grant="); got.code != exitFailed ||
		!strings.Contains(got.stderr, "grants") {
		t.Errorf("got code %d, stderr %q for an empty --grant, want 1 and grants", got.code,
			got.stderr)
	}
	decode[record](t, remote("client", "update", machine.ClientID, "--scope=view-user"))
	if got := decode[record](t, remote("client", "update", machine.ClientID,
		"--scope=")); len(got.Scopes) != 0 {
		t.Errorf("got scopes %v after an empty --scope, want none", got.Scopes)
	}
	machine = decode[record](t, remote("client", "create", "--name=Limited", "--scope=",
		"--grant=client_credentials", "--tokens-per-minute=2"))
	if machine.Quota != 2 || machine.Issued != 0 || machine.LastUsed != nil {
		t.Errorf("got %+v, want a quota of 2 and no use", machine)
	}
	for _, want := range []int{200, 200, 429} {
		if got := tokenStatus(t, base, machine.ClientID, machine.ClientSecret); got != want {
			t.Errorf("got %d with a quota of 2, want %d", got, want)
		}
	}
	if got := decode[record](t, remote("client", "show", machine.ClientID)); got.Quota != 2 ||
		got.Issued != 2 || got.LastUsed == nil {
		t.Errorf("got %+v, want a quota of 2 and 2 tokens issued", got)
	}
	if got := decode[record](t, remote("client", "update", machine.ClientID,
		"--tokens-per-minute=0")); got.Quota != 0 {
		t.Errorf("got %+v, want no quota", got)
	}
	if got := tokenStatus(t, base, machine.ClientID, machine.ClientSecret); got != 200 {
		t.Errorf("got %d without a quota, want 200", got)
	}
	if got := remote("client", "update", machine.ClientID,
		"--tokens-per-minute=1000001"); got.code != exitUsage ||
		!strings.Contains(got.stderr, "--tokens-per-minute") {
		t.Errorf("got code %d, stderr %q for a quota too large, want 2 and why", got.code, got.stderr)
	}
	works := func(secret string, want int) {
		t.Helper()
		if got := tokenStatus(t, base, shop.ClientID, secret); got != want {
			t.Errorf("got %d from the token endpoint, want %d", got, want)
		}
	}
	works(shop.ClientSecret, 200)
	second := decode[record](t, remote("client", "rotate-secret", shop.ClientID))
	works(shop.ClientSecret, 200)
	works(second.ClientSecret, 200)
	if got := decode[record](t, remote("client", "revoke-secret",
		shop.ClientID)); len(got.Secrets) != 1 {
		t.Errorf("got secrets %v, want one", got.Secrets)
	}
	works(shop.ClientSecret, 401)
	works(second.ClientSecret, 200)
	if got := remote("client", "revoke-secret", shop.ClientID); got.code != exitFailed ||
		!strings.Contains(got.stderr, "only one secret") {
		t.Errorf("got code %d, stderr %q for the last secret, want 1 and why", got.code, got.stderr)
	}
	if got := decode[record](t, remote("client", "update", shop.ClientID, "--name=The Shop",
		"--scope=view-user")); got.Name != "The Shop" || len(got.Scopes) != 1 ||
		len(got.RedirectURIs) != 2 {
		t.Errorf("got %+v, want name and scopes changed alone", got)
	}
	if got := decode[record](t, remote("client", "update", shop.ClientID,
		"--client-uri=https://shop.example/about")); got.ClientURI == nil ||
		*got.ClientURI != "https://shop.example/about" {
		t.Errorf("got %+v, want the page about it", got)
	}
	if got := decode[record](t, remote("client", "update", shop.ClientID,
		"--client-uri=")); got.ClientURI != nil {
		t.Errorf("got %+v, want no page about it", got)
	}
	if got := remote("client", "update", shop.ClientID,
		"--client-uri=http://shop.example/"); got.code != exitFailed ||
		!strings.Contains(got.stderr, "client_uri") {
		t.Errorf("got code %d, stderr %q for a page on plain http, want 1 and why", got.code,
			got.stderr)
	}
	if got := decode[record](t, remote("client", "unapprove", shop.ClientID)); got.Approved {
		t.Errorf("got %+v, want it not approved", got)
	}
	if got := decode[record](t, remote("client", "disable", shop.ClientID)); !got.Disabled {
		t.Errorf("got %+v, want it disabled", got)
	}
	works(second.ClientSecret, 401)
	decode[record](t, remote("client", "enable", shop.ClientID))
	works(second.ClientSecret, 200)
	if got := remote("keys", "rotate"); got.code != exitDone ||
		!strings.Contains(got.stdout, "rotate_again_at") || got.stderr != "" {
		t.Errorf("got code %d, stdout %q for a rotation, want 0 and when the next can be", got.code,
			got.stdout)
	}
	if got := remote("keys", "rotate"); got.code != exitFailed ||
		!strings.Contains(got.stderr, "former key") {
		t.Errorf("got code %d, stderr %q for another at once, want 1 and why", got.code, got.stderr)
	}
	works(second.ClientSecret, 200)
	decode[record](t, remote("client", "delete", shop.ClientID))
	if got := remote("client", "show", shop.ClientID); got.code != exitFailed || got.stdout != "" ||
		strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("got code %d, stdout %q, stderr %q for a deleted client, want 1 and one line",
			got.code, got.stdout, got.stderr)
	}
	p.stop(t)
	for _, hidden := range []string{first.ClientSecret, shop.ClientSecret, second.ClientSecret} {
		if strings.Contains(p.stderr.String(), hidden) {
			t.Error("got a secret in the server's log")
		}
	}
}

func TestUsersAtTheCommandLine(t *testing.T) {
	t.Parallel()
	above, _ := startDemo(t)
	demo := "--demo=" + filepath.Join(above, "gatehouse-demo")
	remote := func(args ...string) outcome {
		return runOnce(t, nil,
			append(args, demo, "--json")...)
	}
	file := write(t, "password", "correct horse battery\n")
	made := decode[record](t, remote("user", "create", "--name=Eve", "--email=eve@example.com",
		"--password-file", file, "--bio=x"))
	if made.ID == 0 || made.Email == nil || *made.Email != "eve@example.com" || made.Bio == nil {
		t.Errorf("got %+v, want what the flags say", made)
	}
	if got := decode[record](t, remote("user", "update", "3", "--bio=",
		"--phone=+1 202 555 0199")); got.Bio != nil || got.Phone == nil ||
		*got.Phone != "+12025550199" {
		t.Errorf("got %+v, want no bio and a phone number", got)
	}
	if got := len(decode[[]record](t, remote("user", "list"))); got != 3 {
		t.Errorf("got %d users, want 3", got)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"user", "create", "--name=x"}, exitUsage, "--email or --phone"},
		{[]string{"user", "create", "--name=x", "--phone=+12025550100", "--password=" + secret},
			exitUsage, "--email"},
		{[]string{"user", "create", "--name=x", "--email=a@example.com", "--password=" + secret,
			"--password-file=" + file}, exitUsage, "can't be used together"},
		{[]string{"user", "create", "--name=x", "--email=a@example.com",
			"--password-file=/no/such"}, exitFailed, "/no/such"},
		{[]string{"user", "create", "--name=x", "--email=a@example.com", "--password-stdin"},
			exitUsage, "empty"},
		{[]string{"user", "create", "--name=x", "--email=a@example.com", "--password=s3cr3t"},
			exitFailed, "password: must have at least"},
		{[]string{"user", "create", "--email=a@example.com"}, exitUsage, "--name"},
		{[]string{"user", "update", "3"}, exitUsage, "nothing to change"},
		{[]string{"user", "update", "3", "--email=nowhere"}, exitFailed, "email: is not"},
		{[]string{"user", "reset-password", "3"}, exitUsage, "--password-stdin"},
		{[]string{"user", "show", "../clients"}, exitFailed, ""},
		{[]string{"user", "show"}, exitUsage, "id"},
		{[]string{"user"}, exitUsage, "create"},
		{[]string{"client"}, exitUsage, "create"},
		{[]string{"migrate"}, exitUsage, "status"},
	} {
		args := append(test.args, demo)
		if len(test.args) == 1 {
			args = test.args
		}
		got := runOnce(t, nil, args...)
		if got.code != test.code || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 ||
			!strings.Contains(got.stderr, test.want) || strings.Contains(got.stderr, "s3cr3t") {
			t.Errorf("%v: got code %d, stdout %q, stderr %q, want %d and one line with %q",
				test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
}

// TestExamplesInHelpWork runs the examples of all commands that end by themselves in a shell.
func TestExamplesInHelpWork(t *testing.T) {
	t.Parallel()
	above, _ := startDemo(t)
	local := [][]string{{"client"}, {"user"}, {"init"}, {"migrate"}, {"migrate", "status"},
		{"migrate", "up"}, {"config"}, {"version"}}
	for _, command := range append(local, remoteCommands...) {
		help := runOnce(t, nil, append(command, "--help")...).stdout
		_, example, found := strings.Cut(help, "Example:\n\n")
		if !found {
			t.Errorf("%v: got help without an example", command)
			continue
		}
		example, _, _ = strings.Cut(example, "\n\n")
		shell := exec.Command("sh", "-e", "-c", example)
		shell.Dir, shell.Env = above, append(slices.Clone(environ),
			"PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("%v:\n%s\ngot %v and\n%s", command, example, err, out)
		}
	}
}

func TestRemoteCommandsThatCannotWork(t *testing.T) {
	t.Parallel()
	above, file := startDemo(t)
	dir := filepath.Join(above, "gatehouse-demo")
	id, key := file.Clients.Confidential.ClientID, file.Clients.Confidential.ClientSecret
	for _, test := range []struct {
		name      string
		env, args []string
		code      int
		want      string
	}{
		{"no operator", nil, nil, exitUsage, "--client-id"},
		{"no secret", []string{"GATEHOUSE_CLIENT_ID=x"}, nil, exitUsage, "GATEHOUSE_CLIENT_SECRET"},
		{"no server", []string{"GATEHOUSE_CLIENT_ID=x", "GATEHOUSE_CLIENT_SECRET=" + secret},
			[]string{"--base-url=http://127.0.0.1:1"}, exitFailed, "http://127.0.0.1:1"},
		{"wrong secret", []string{"GATEHOUSE_CLIENT_ID=" + id, "GATEHOUSE_CLIENT_SECRET=" + secret},
			[]string{"--base-url=" + file.BaseURL}, exitFailed, "secret is wrong"},
		{"no operator client", []string{"GATEHOUSE_CLIENT_ID=" + id,
			"GATEHOUSE_CLIENT_SECRET=" + key}, []string{"--base-url=" + file.BaseURL}, exitFailed,
			"scope"},
		{"no admin API", nil, []string{"--demo=" + dir, "--admin-url=ignored"}, exitDone, ""},
		{"address of no kind", []string{"GATEHOUSE_ADMIN_URL=127.0.0.1:8081",
			"GATEHOUSE_CLIENT_ID=x", "GATEHOUSE_CLIENT_SECRET=" + secret}, nil, exitUsage,
			"GATEHOUSE_ADMIN_URL"},
		{"address with a password", []string{"GATEHOUSE_BASE_URL=http://me:" + secret + "@h",
			"GATEHOUSE_CLIENT_ID=x", "GATEHOUSE_CLIENT_SECRET=x"}, nil, exitUsage, "redacted@h"},
		{"socket of nobody", []string{"GATEHOUSE_CLIENT_ID=x", "GATEHOUSE_CLIENT_SECRET=" + secret},
			[]string{"--base-url=unix:/no/such"}, exitFailed, "unix:/no/such"},
		{"folder of no demo", nil, []string{"--demo=" + above}, exitUsage, "--demo"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runOnce(t, test.env, append([]string{"client", "list"}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.stderr, test.want) ||
				strings.Contains(got.stderr, secret) {
				t.Errorf("got code %d, stderr %q, want %d and one line with %q", got.code,
					got.stderr, test.code, test.want)
			}
			if test.code != exitDone && (got.stdout != "" || strings.Count(got.stderr, "\n") != 1) {
				t.Errorf("got stdout %q and stderr %q, want one line on stderr alone", got.stdout,
					got.stderr)
			}
		})
	}
}

func TestRemoteCommandsOverUnixSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := filepath.Join(dir, "demo")
	p := start(t, nil, "demo", "--dir", demo, "--listen=unix:"+dir+"/p",
		"--admin-listen=unix:"+dir+"/a")
	p.stderr.await(t, "msg=serving")
	if got := len(decode[[]record](t, runOnce(t, nil, "client", "list", "--json", "--demo",
		demo))); got != 5 {
		t.Errorf("got %d clients, want 5", got)
	}
	file := readDemo(t, demo)
	env := []string{"GATEHOUSE_CLIENT_ID=" + file.Clients.Operator.ClientID,
		"GATEHOUSE_CLIENT_SECRET=" + file.Clients.Operator.ClientSecret}
	urls := []string{"GATEHOUSE_BASE_URL=unix:" + dir + "/p", "GATEHOUSE_ADMIN_URL=unix:" + dir + "/a"}
	settings := filepath.Join(dir, "server.yaml")
	if err := os.WriteFile(settings, []byte("listen: unix:"+dir+"/p?mode=0660\nadmin-listen: unix:"+
		dir+"/a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, got := range []outcome{
		runOnce(t, append(urls, env...), "user", "show", "1"),
		runOnce(t, env, "user", "show", "1", "--config", settings), // that of the server
	} {
		if got.code != exitDone || !strings.Contains(got.stdout, demoEmail) {
			t.Errorf("got code %d, stdout %q, stderr %q, want the demo's user", got.code, got.stdout,
				got.stderr)
		}
	}
}

func TestMigrateAndInit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "g.db")
	database := "--database-url=sqlite:" + path
	refused := runOnce(t, nil, append([]string{"serve", "--roles=identity", "--migrate=false",
		database}, anyPorts...)...)
	if refused.code != exitFailed || strings.Count(refused.stderr, "\n") != 1 ||
		!strings.Contains(refused.stderr, "gatehouse migrate up") {
		t.Errorf("got code %d, stderr %q, want 1 and one line that names gatehouse migrate up",
			refused.code, refused.stderr)
	}
	type step struct {
		Version int
		Applied *string `json:"applied_at"`
	}
	for _, s := range decode[[]step](t, runOnce(t, nil, "migrate", "status", "--json", database)) {
		if s.Applied != nil {
			t.Errorf("got %+v applied before it was asked for", s)
		}
	}
	if got := decode[[]step](t, runOnce(t, nil, "migrate", "up", "--json",
		database)); len(got) == 0 || got[0].Applied == nil {
		t.Errorf("got steps %v, want at least one", got)
	}
	if got := runOnce(t, nil, "migrate", "up", database); got.code != exitDone ||
		got.stdout != "The schema is up to date.\n" {
		t.Errorf("got code %d, stdout %q, want 0 and that nothing was to do", got.code, got.stdout)
	}
	config := write(t, "g.yaml", "database-url: sqlite:"+path+"\nroles: identity\n")
	got := runOnce(t, nil, "init", "--config", config)
	exports := regexp.MustCompile(`(?m)^    export GATEHOUSE_CLIENT_(ID|SECRET)=(gtcs_)?[0-9A-Za-z-]+$`)
	if got.code != exitDone || len(exports.FindAllString(got.stdout, -1)) != 2 {
		t.Errorf("got code %d, stdout %q, stderr %q, want two lines for the shell", got.code,
			got.stdout, got.stderr)
	}
	if got := runOnce(t, nil, "init", "--database-url=postgres://me:"+secret+
		"@127.0.0.1:1/x"); got.code != exitFailed || strings.Contains(got.stderr, secret) ||
		strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("got code %d, stderr %q for a database that is not there, want 1 and one line without the password",
			got.code, got.stderr)
	}
}

// TestDatabaseOfANewerGatehouse marks a database as migrated by a newer program.
func TestDatabaseOfANewerGatehouse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "gatehouse.db")
	database := "--database-url=sqlite:" + path
	if got := runOnce(t, nil, "migrate", "up", database); got.code != exitDone {
		t.Fatalf("got code %d, stderr %q", got.code, got.stderr)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (4711, 1)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		append([]string{"serve", "--roles=identity", database}, anyPorts...),
		append([]string{"serve", "--roles=identity", "--migrate=false", database}, anyPorts...),
		append([]string{"demo", "--dir=" + dir}, anyPorts...),
		{"init", database}, {"migrate", "up", database}, {"migrate", "status", database},
	} {
		got := runOnce(t, nil, args...)
		if got.code != exitFailed || strings.Count(got.stderr, "\n") != 1 ||
			!strings.Contains(got.stderr, "made by a newer gatehouse") {
			t.Errorf("%v: got code %d, stderr %q, want 1 and one line", args, got.code, got.stderr)
		}
	}
}

func TestSecondServerOnOneFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := append([]string{"serve", "--roles=identity", "--database-url=sqlite:" + dir + "/g.db"},
		anyPorts...)
	p := start(t, nil, args...)
	listen, _ := p.ready(t)
	got := runOnce(t, nil, args...)
	if got.code != exitFailed || strings.Count(got.stderr, "\n") != 1 ||
		!strings.Contains(got.stderr, "in use") {
		t.Errorf("got code %d, stderr %q, want 1 and one line", got.code, got.stderr)
	}
	if status, body := get(t, newClient(t, ""),
		"http://"+listen+"/.well-known/oauth-authorization-server"); status != http.StatusOK ||
		!strings.Contains(body, `"http://`+listen+`"`) {
		t.Errorf("got %d %s, want 200 and the bound address as issuer", status, body)
	}
}

// TestServersOnOnePostgreSQL starts two servers. A client that is registered at one is known at the
// other, and the second one warns.
func TestServersOnOnePostgreSQL(t *testing.T) {
	t.Parallel()
	env := databaseEnv(t, pgtest.Migrated(t))
	serve := append([]string{"serve", "--roles=identity"}, anyPorts...)
	first := decode[operator](t, runOnce(t, env, "init", "--json"))
	one := start(t, env, serve...)
	listen, admin := one.ready(t)
	two := start(t, env, serve...)
	other, _ := two.ready(t)
	if line := two.stderr.await(t, "another server"); !strings.Contains(line, `"level":"WARN"`) {
		t.Errorf("got %s, want a warning", line)
	}
	remote := append(env, "GATEHOUSE_CLIENT_ID="+first.ClientID,
		"GATEHOUSE_CLIENT_SECRET="+first.ClientSecret,
		"GATEHOUSE_BASE_URL=http://"+listen, "GATEHOUSE_ADMIN_URL=http://"+admin)
	shop := decode[record](t, runOnce(t, remote, "client", "create", "--name=Shop",
		"--grant=client_credentials", "--json"))
	for _, at := range []string{listen, other} {
		if got := tokenStatus(t, "http://"+at, shop.ClientID,
			shop.ClientSecret); got != http.StatusOK {
			t.Errorf("got %d for a new client, want 200", got)
		}
	}
}

func TestRolesOfAServer(t *testing.T) {
	t.Parallel()
	for role, want := range map[string][2]int{"identity": {200, 404}, "geo": {404, 200}} {
		p := start(t, nil, append([]string{"serve", "--ip-provider=sim", "--roles=" + role},
			anyPorts...)...)
		listen, _ := p.ready(t)
		client := newClient(t, "")
		identity, _ := get(t, client, "http://"+listen+"/.well-known/oauth-authorization-server")
		geo, _ := get(t, client, "http://"+listen+"/api/lookup?q=8.8.8.8")
		if got := [2]int{identity, geo}; got != want {
			t.Errorf("%s: got %v from the two services, want %v", role, got, want)
		}
	}
}

// TestReadOnlyDatabaseIsNamed checks that a program that cannot write names the setting at its
// start.
func TestReadOnlyDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	url, env := pgtest.Migrated(t), []string{"GATEHOUSE_KEY_FILE=" + pgtest.KeyFile(t)}
	for _, command := range [][]string{append([]string{"serve", "--roles=identity"}, anyPorts...),
		{"init", "--new-operator"}} {
		got := runOnce(t, env, append(command,
			"--database-url="+url+"&default_transaction_read_only=on")...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "--database-url: ") ||
			strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: got code %d, stderr %q, want 1 and a line that names --database-url",
				command[0], got.code, got.stderr)
		}
	}
}

// TestSessionsAtTheCommandLine lists the sessions of a person, and ends one.
func TestSessionsAtTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqlitetest.URL(t))
	env := s.operatorEnv()
	type session struct {
		ID      string
		Factors []string
	}
	all := decode[[]session](t, runOnce(t, env, "user", "sessions", "1", "--json"))
	if len(all) != 1 || all[0].ID == "" || !slices.Equal(all[0].Factors, []string{"pwd"}) {
		t.Fatalf("got %+v, want the session of the browser", all)
	}
	if got := runOnce(t, env, "user", "sessions", "1"); !strings.HasPrefix(got.stdout, "ID ") ||
		!strings.Contains(got.stdout, all[0].ID) {
		t.Errorf("got %q, want a table", got.stdout)
	}
	got := runOnce(t, env, "user", "end-session", "1", all[0].ID)
	if got.code != exitDone || got.stdout != "the session has ended\n" {
		t.Errorf("got %+v, want its end", got)
	}
	if got := runOnce(t, env, "user", "end-session", "1", all[0].ID); got.code != exitFailed {
		t.Errorf("got %+v, want exit code 1 for a session that has ended", got)
	}
	if left := decode[[]session](t, runOnce(t, env, "user", "sessions", "1", "--json")); len(left) != 0 {
		t.Errorf("got %+v, want none", left)
	}
}

// TestHealth: the command says whether a server is ready.
func TestHealth(t *testing.T) {
	t.Parallel()
	_, demo := startDemo(t)
	for _, args := range [][]string{{}, {"--live"}} {
		got := runOnce(t, []string{"GATEHOUSE_ADMIN_URL=" + demo.AdminURL}, append([]string{"health"}, args...)...)
		if got.code != exitDone || got.stdout == "" {
			t.Errorf("health %q: got code %d, stdout %q, stderr %q, want 0", args, got.code, got.stdout, got.stderr)
		}
	}
	got := runOnce(t, nil, "health", "--admin-url", demo.BaseURL+"/nowhere")
	if got.code != exitFailed || !strings.Contains(got.stderr, "is not ready: ") {
		t.Errorf("another address: got code %d, stderr %q, want 1 and why", got.code, got.stderr)
	}
	got = runOnce(t, []string{"GATEHOUSE_ADMIN_LISTEN=127.0.0.1:9"}, "health")
	if got.code != exitFailed || !strings.Contains(got.stderr, "reach the server at http://127.0.0.1:9: ") {
		t.Errorf("no server: got code %d, stderr %q, want 1 and its address", got.code, got.stderr)
	}
}
