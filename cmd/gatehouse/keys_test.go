package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gatehouse/providers/sqlstore/pgtest"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// failsOnce checks that a command exits with that code and one line on stderr that has all parts.
func failsOnce(t *testing.T, what string, got outcome, code int, parts ...string) {
	t.Helper()
	if got.code != code || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%s: got code %d, stdout %q, stderr %q, want %d and one line", what, got.code,
			got.stdout, got.stderr, code)
	}
	for _, part := range parts {
		if !strings.Contains(got.stderr, part) {
			t.Errorf("%s: got stderr %q, want %q in it", what, got.stderr, part)
		}
	}
}

// end stops the server in order.
func (s *fixture) end(t *testing.T) {
	t.Helper()
	s.server.stop(t)
	s.http.CloseIdleConnections()
	s.browser.client.CloseIdleConnections()
}

// restart ends the server and starts it with these key files.
func (s *fixture) restart(t *testing.T, keyFiles ...string) {
	t.Helper()
	s.end(t)
	s.flags = []string{"--key-file=" + strings.Join(keyFiles, ",")}
	s.serve(t)
}

// operate runs a command as the operator.
func (s *fixture) operate(t *testing.T, args ...string) outcome {
	t.Helper()
	return runOnce(t, nil, append(args, "--base-url="+s.base, "--admin-url="+s.admin,
		"--client-id="+s.operator.ClientID, "--client-secret="+s.operator.ClientSecret)...)
}

// wantProfile checks the status of a profile.
func (s *fixture) wantProfile(t *testing.T, what, token string, want int) {
	t.Helper()
	if status, body, err := s.profile(s.base, "/api/user", token); err != nil || status != want {
		t.Errorf("%s: got %d %s and error %v, want %d", what, status, body, err, want)
	}
}

// TestUnusableKeyFile breaks the key file of a database in each way. No command starts anything,
// and each says what to do.
func TestUnusableKeyFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		damage func(path string) error
		want   string
	}{
		{"missing", os.Remove, "restore it from its copy"},
		{"of another database", func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("A", 43)+"=\n"), 0o600)
		}, "of this database"},
		{"truncated", func(path string) error { return os.Truncate(path, 20) }, "32 bytes in base64"},
		{"empty", func(path string) error { return os.Truncate(path, 0) }, "32 bytes in base64"},
		{"readable for all", func(path string) error { return os.Chmod(path, 0o644) }, "chmod 600"},
		{"writable for the group", func(path string) error { return os.Chmod(path, 0o620) }, "chmod 600"},
		{"a folder", func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		}, "is not a file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			database := sqlitetest.File(t)
			file, flag := database+".key", "--database-url=sqlite:"+database
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.damage(file); err != nil {
				t.Fatal(err)
			}
			for _, command := range [][]string{
				append([]string{"serve", "--roles=identity"}, anyPorts...),
				{"init", "--new-operator"}, {"keys", "drop"},
				{"keys", "rewrap", "--new-key-file=" + filepath.Join(t.TempDir(), "new.key")},
			} {
				got := runOnce(t, nil, append(command, flag)...)
				what := strings.Join(command[:2], " ")
				failsOnce(t, what, got, exitUsage, "--key-file: ", file, test.want)
				if strings.Contains(got.stderr, strings.TrimSpace(string(content))) {
					t.Errorf("%s: got the key on stderr", what)
				}
			}
			p := start(t, []string{"GATEHOUSE_DATABASE_URL=sqlite:" + database,
				"GATEHOUSE_KEY_FILE=" + file}, append([]string{"serve"}, anyPorts...)...)
			failsOnce(t, "a process", outcome{p.code(t), p.stdout.String(), p.stderr.String()},
				exitUsage, "GATEHOUSE_KEY_FILE: ", test.want)
		})
	}
}

func TestUnusableKeyFileOfADemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "gatehouse.db.key")
	env := []string{"GATEHOUSE_KEY_FILE=/nowhere", "CREDENTIALS_DIRECTORY=" + t.TempDir()}
	args := append([]string{"demo", "--dir=" + dir, "--log-format=json"}, anyPorts...)
	p := start(t, env, args...)
	p.ready(t)
	p.stop(t)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v and error %v, want a key file for its owner", info, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	failsOnce(t, "without its key file", runOnce(t, env, args...), exitUsage, file, "restore it")
}

func TestKeyFileOfPostgreSQLMustBeGiven(t *testing.T) {
	t.Parallel()
	env := []string{"GATEHOUSE_DATABASE_URL=" + pgtest.Start(t)}
	failsOnce(t, "init", runOnce(t, env, "init"), exitUsage, "--key-file: ", "umask 077")
	missing := filepath.Join(t.TempDir(), "no.key")
	failsOnce(t, "init", runOnce(t, append(env, "GATEHOUSE_KEY_FILE="+missing), "init"), exitUsage,
		"GATEHOUSE_KEY_FILE: ", missing, "umask 077")
	if _, err := os.Stat(missing); err == nil {
		t.Error("got a key file, want none made for PostgreSQL")
	}
}

// TestKeyFileFromSystemd finds the key file among the credentials of a service. Its group may read
// it there.
func TestKeyFileFromSystemd(t *testing.T) {
	t.Parallel()
	file := newKeyFile(t) // gatehouse.key
	if err := os.Chmod(file, 0o440); err != nil {
		t.Fatal(err)
	}
	env := []string{"CREDENTIALS_DIRECTORY=" + filepath.Dir(file),
		"GATEHOUSE_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "g.db")}
	if got := printed(t, env)["key-file"]; got.Value != file {
		t.Errorf("got %+v, want %s", got, file)
	}
	if got := runOnce(t, env, "init"); got.code != exitDone {
		t.Fatalf("got code %d, stderr %q, want 0", got.code, got.stderr)
	}
	p := start(t, env, append([]string{"serve", "--roles=identity"}, anyPorts...)...)
	p.ready(t)
	p.stop(t)
	failsOnce(t, "without the credential", runOnce(t, env[1:], "init", "--new-operator"), exitUsage,
		"--key-file: ")
	env[0] = "CREDENTIALS_DIRECTORY=" + t.TempDir()
	failsOnce(t, "another service", runOnce(t, env, "init", "--new-operator"), exitUsage,
		"--key-file: ")
}

// keyRow is a key as keys list --json prints it.
type keyRow struct {
	Purpose string  `json:"purpose"`
	Number  int     `json:"number"`
	Expires *string `json:"expires_at"`
	KeyFile string  `json:"key_file"`
}

// keyFileOf returns the short name of the file that all keys are wrapped under.
func (s *fixture) keyFileOf(t *testing.T) string {
	t.Helper()
	rows := decode[[]keyRow](t, s.operate(t, "keys", "list", "--json"))
	if len(rows) < 3 {
		t.Fatalf("got %+v, want a key for each purpose", rows)
	}
	for _, row := range rows {
		if row.KeyFile == "" || row.KeyFile != rows[0].KeyFile {
			t.Errorf("got %+v, want all keys under one file", rows)
		}
	}
	return rows[0].KeyFile
}

// TestRewrapOnARunningServer replaces the key file of a server on SQLite. Tokens stay valid all the
// time.
func TestRewrapOnARunningServer(t *testing.T) {
	t.Parallel()
	database := sqlitetest.File(t)
	s := newFixture(t, "sqlite:"+database)
	old, fresh := database+".key", newKeyFile(t)
	before := s.tokens(t).AccessToken
	s.restart(t, old, fresh)
	name := s.keyFileOf(t)
	got := runOnce(t, s.env, "keys", "rewrap", "--key-file="+old, "--new-key-file="+fresh)
	if got.code != exitDone || got.stderr != "" || !strings.Contains(got.stdout, fresh) {
		t.Fatalf("got code %d, stdout %q, stderr %q, want 0 and the new file", got.code, got.stdout,
			got.stderr)
	}
	if wrapped := s.keyFileOf(t); wrapped == name {
		t.Errorf("got the keys under %s as before, want another file", wrapped)
	}
	s.wantProfile(t, "after the rewrap", before, http.StatusOK)
	if got := s.operate(t, "keys", "rotate"); got.code != exitDone {
		t.Errorf("got code %d, stderr %q for a rotation, want 0", got.code, got.stderr)
	}
	between := s.tokens(t).AccessToken
	again := runOnce(t, s.env, "keys", "rewrap", "--key-file="+old, "--new-key-file="+fresh, "--json")
	if again.code != exitDone || !json.Valid([]byte(again.stdout)) {
		t.Errorf("again: got code %d, stdout %q, stderr %q, want 0 and JSON", again.code,
			again.stdout, again.stderr)
	}
	s.restart(t, fresh)
	s.wantProfile(t, "from before", before, http.StatusOK)
	s.wantProfile(t, "from between", between, http.StatusOK)
	s.end(t)
	failsOnce(t, "the old file alone", runOnce(t, s.env, append([]string{"serve",
		"--key-file=" + old}, anyPorts...)...), exitUsage, "is not the key file of this database")
}

// TestRestoredDatabase restores a backup from before a revocation. The revoked token is good again
// until the keys are dropped.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	database := sqlitetest.File(t)
	s := newFixture(t, "sqlite:"+database)
	granted := s.tokens(t)
	s.end(t)
	backup, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t)
	if _, err := s.ask("/oauth/revoke", s.asClient("token", granted.AccessToken)); err != nil {
		t.Fatal(err)
	}
	s.wantProfile(t, "revoked", granted.AccessToken, http.StatusUnauthorized)
	failsOnce(t, "while a server runs", runOnce(t, s.env, "keys", "drop"), exitFailed,
		"GATEHOUSE_DATABASE_URL: ", "in use by another server")
	s.end(t)
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.RemoveAll(database + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(database, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runOnce(t, s.env, "keys", "drop"); got.code != exitDone || got.stderr != "" {
		t.Fatalf("got code %d, stderr %q, want 0", got.code, got.stderr)
	}
	s.serve(t)
	s.wantProfile(t, "restored", granted.AccessToken, http.StatusUnauthorized)
	fresh, err := s.ask("/oauth/token", s.rotation(granted.RefreshToken))
	if err != nil {
		t.Fatal(err)
	}
	s.wantProfile(t, "with the refresh token", fresh.AccessToken, http.StatusOK)
}

func TestRotationThatDropsKeys(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqlitetest.URL(t))
	granted := s.tokens(t)
	failsOnce(t, "--yes alone", s.operate(t, "keys", "rotate", "--yes"), exitUsage, "--now")
	failsOnce(t, "a purpose", s.operate(t, "keys", "rotate", "--purpose=x"), exitUsage,
		"tokens, forms, browsers, cluster, factors, rs256 or es256")
	for _, purpose := range []string{"forms", "browsers", "cluster"} {
		got := s.operate(t, "keys", "rotate", "--now", "--purpose="+purpose)
		if got.code != exitDone || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: got code %d, stderr %q, want 0 and a line about what ends", purpose,
				got.code, got.stderr)
		}
		s.wantProfile(t, purpose, granted.AccessToken, http.StatusOK)
	}
	got := s.operate(t, "keys", "rotate", "--now", "--yes")
	if got.code != exitDone || !strings.Contains(got.stderr, "Every access token ends now.") {
		t.Errorf("got code %d, stderr %q, want 0 and what ends", got.code, got.stderr)
	}
	s.wantProfile(t, "dropped", granted.AccessToken, http.StatusUnauthorized)
	fresh, err := s.ask("/oauth/token", s.rotation(granted.RefreshToken))
	if err != nil {
		t.Fatal(err)
	}
	s.wantProfile(t, "with the refresh token", fresh.AccessToken, http.StatusOK)
	s.server.stderr.await(t, `"msg":"all former keys were dropped"`)
}

// TestConfirm asks a person at a terminal.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		typed string
		yes   bool
		want  bool
	}{
		{"yes\n", false, true}, {" yes \n", false, true}, {"y\n", false, false}, {"\n", false, false},
		{"no\n", false, false}, {"", true, true},
	} {
		terminal, person := openTerminal(t)
		if _, err := person.WriteString(test.typed); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		p := &program{stdin: terminal, stderr: &stderr}
		err := p.confirm("Everything ends.", test.yes)
		if (err == nil) != test.want {
			t.Errorf("%q: got %v, want agreed %v", test.typed, err, test.want)
		}
		if asked := strings.Contains(stderr.String(), "Type yes"); asked == test.yes ||
			!strings.HasPrefix(stderr.String(), "Everything ends.\n") {
			t.Errorf("%q: got %q, want what ends, and a question unless --yes is given", test.typed,
				&stderr)
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) || isTerminal(strings.NewReader("")) {
		t.Error("got a terminal, want none")
	}
}

// openTerminal returns a terminal, and what a person at it types into.
func openTerminal(t *testing.T) (terminal, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(terminal.Close(), person.Close()); err != nil {
			t.Error(err)
		}
	})
	return terminal, person
}
