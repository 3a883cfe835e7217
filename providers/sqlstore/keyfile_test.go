package sqlstore_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

var quiet = slog.New(slog.DiscardHandler)

const someKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY" // 32 bytes, without padding

// writeKey writes a key file.
func writeKey(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o600),
		os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// refused checks that the database cannot be opened, for a reason in one line that does not have
// the content of a key file.
func refused(t *testing.T, what string, config sqlstore.Config, reason string) {
	t.Helper()
	config.Logger = quiet
	s, err := sqlstore.Open(t.Context(), config)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, sqlstore.ErrKeyFile) || !strings.Contains(err.Error(), reason) ||
		strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), someKey[:12]) {
		t.Errorf("%s: got %v, want one line with %q", what, err, reason)
	}
}

// strangers are a user and a group whom only root can give files.
const strangers = 54321

func TestKeyFileContent(t *testing.T) {
	url := databases[0].empty(t)
	path := strings.TrimPrefix(url, "sqlite:")
	folder := filepath.Dir(path)
	name := filepath.Join(folder, "key")
	config := sqlstore.Config{URL: url, Migrate: true, KeyFiles: []string{name}}
	refused(t, "missing", config, "does not exist: create it with (umask 077; head -c 32")
	for _, test := range []struct {
		what, content string
		mode          os.FileMode
		reason        string // "" = accepted
	}{
		{"empty", "", 0o600, "must have 32 bytes"},
		{"31 bytes", someKey[:41] + "g", 0o600, "must have 32 bytes"},
		{"33 bytes", someKey + "A", 0o600, "must have 32 bytes"},
		{"not base64", "!" + someKey[1:], 0o600, "must have 32 bytes"},
		{"another spelling", someKey[:42] + "Z", 0o600, "must have 32 bytes"},
		{"in two lines", someKey[:20] + "\n" + someKey[20:], 0o600, "must have 32 bytes"},
		{"too long", strings.Repeat(someKey, 100), 0o600, "must have 32 bytes"},
		{"read by the group of the process", someKey, 0o640, ""},
		{"only read by it", someKey, 0o440, ""},
		{"run by the group", someKey, 0o650, "chmod 600"},
		{"written by the group", someKey, 0o620, "chmod 600"},
		{"read by all", someKey, 0o604, "chmod 600"},
		{"plain", someKey, 0o600, ""},
		{"only readable", someKey, 0o400, ""},
		{"with padding", someKey + "=", 0o600, ""},
		{"with padding and line end", someKey + "=\n", 0o600, ""},
		{"with another line end", someKey + "\r\n", 0o600, ""},
	} {
		writeKey(t, name, test.content, test.mode)
		if test.reason != "" {
			refused(t, test.what, config, test.reason)
			continue
		}
		config.Logger = quiet
		s, err := sqlstore.Open(t.Context(), config)
		if err != nil {
			t.Errorf("%s: got %v, want none", test.what, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if os.Chown(writeKey(t, name, someKey, 0o640), os.Geteuid(), strangers) == nil { // as root
		refused(t, "read by another group", config, "chmod 600")
		if err := errors.Join(os.Chown(name, strangers, os.Getegid()), os.Chmod(name, 0o640)); err != nil {
			t.Fatal(err)
		}
		refused(t, "of another owner", config, "chmod 600")
	}
	config.KeyFiles = []string{folder}
	refused(t, "a folder", config, "is not a file")
	if _, err := os.Stat(path + ".key"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("file beside the database: got %v, want none while another is given", err)
	}
}

// TestKeyFileAsCredential: the service manager lets the group of the service read its credentials.
func TestKeyFileAsCredential(t *testing.T) {
	url := databases[0].empty(t)
	path := strings.TrimPrefix(url, "sqlite:")
	folder := filepath.Join(filepath.Dir(path), "credentials")
	if err := os.MkdirAll(filepath.Join(folder, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		mode   os.FileMode
		reason string
	}{
		{"credentials/key", 0o440, ""},
		{"credentials/deep/key", 0o440, ""},
		{"credentials/key", 0o444, "chmod 600"},
		{"credentials2", 0o440, "chmod 600"},
		{"credentials/../key", 0o440, "chmod 600"},
	} {
		name := filepath.Dir(path) + "/" + test.name
		config := sqlstore.Config{URL: url, Migrate: true, Logger: quiet, Credentials: folder,
			KeyFiles: []string{writeKey(t, name, someKey, test.mode)}}
		if os.Chown(name, os.Geteuid(), strangers) != nil && test.mode == 0o440 {
			test.reason = "" // not root: the file belongs to the group of the process
		}
		if test.reason != "" {
			refused(t, test.name, config, test.reason)
		} else if s, err := sqlstore.Open(t.Context(), config); err != nil {
			t.Errorf("%s: got %v, want none", test.name, err)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFirstOpenCreatesKeyFile(t *testing.T) {
	url := databases[0].empty(t)
	path := strings.TrimPrefix(url, "sqlite:")
	s := open(t, sqlstore.Config{URL: url})
	want := allKeys(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path + ".key")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key file: got %v, error %v, want mode 600", info, err)
	}
	if files, err := filepath.Glob(path + ".key?*"); err != nil || len(files) > 0 {
		t.Errorf("beside the key file: got %v, error %v, want nothing", files, err)
	}
	again := open(t, sqlstore.Config{URL: url})
	if got := allKeys(t, again); !slices.Equal(got, want) {
		t.Errorf("keys after a restart: got %v, want the same %v", got, want)
	}
	if err := errors.Join(again.Close(), os.Rename(path+".key", path+".other")); err != nil {
		t.Fatal(err)
	}
	refused(t, "lost", sqlstore.Config{URL: url}, "does not exist: restore it from its copy")
	if _, err := os.Stat(path + ".key"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the loss: got %v, want no new key file", err)
	}
	writeKey(t, path+".key", someKey, 0o600)
	refused(t, "wrong", sqlstore.Config{URL: url}, path+".key is not the key file of this database")
	refused(t, "two wrong", sqlstore.Config{URL: url, KeyFiles: []string{path + ".key",
		path + ".key"}}, "are not the key files of this database")
	both := open(t, sqlstore.Config{URL: url, KeyFiles: []string{path + ".key", path + ".other"}})
	if got := allKeys(t, both); !slices.Equal(got, want) {
		t.Errorf("keys with two files: got %v, want the same %v", got, want)
	}
}

func TestPostgresNeedsKeyFile(t *testing.T) {
	config := sqlstore.Config{URL: pgtest.Start(t), Migrate: true}
	if got := sqlstore.DefaultKeyFile(config.URL); got != "" {
		t.Errorf("got default key file %s, want none", got)
	}
	refused(t, "none", config, "(umask 077; head -c 32 /dev/urandom | base64 > FILE)")
	name := filepath.Join(t.TempDir(), "key")
	config.KeyFiles = []string{name}
	refused(t, "missing", config, "base64 > "+name+")")
	open(t, sqlstore.Config{URL: config.URL})
	refused(t, "missing later", config, "restore it from its copy")
	writeKey(t, name, someKey, 0o600)
	refused(t, "wrong", config, "is not the key file of this database")
}

// allKeys returns all stored keys.
func allKeys(t *testing.T, s *sqlstore.Store) []oauth.Key {
	t.Helper()
	all, err := s.Keys(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestConcurrentFirstStart opens one new database eight times.
func TestConcurrentFirstStart(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.empty(t), Logger: quiet}
			if d.name == "PostgreSQL" {
				config.KeyFiles = []string{pgtest.KeyFile(t)}
			}
			if _, err := sqlstore.Migrate(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			var stores [8]*sqlstore.Store
			var opening sync.WaitGroup
			for i := range stores {
				opening.Go(func() {
					var err error
					if stores[i], err = sqlstore.Open(t.Context(), config); err != nil {
						t.Error(err)
					}
				})
			}
			opening.Wait()
			if t.Failed() {
				return
			}
			want := allKeys(t, stores[0])
			for i, s := range stores {
				if got := allKeys(t, s); len(got) != len(oauth.Purposes) ||
					!slices.Equal(got, want) {
					t.Errorf("store %d: got %v, want %v", i, got, want)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestConcurrentKeyRotations(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			rotateConcurrently(t, []oauth.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})}, time.Now())
		})
	}
}

func TestKeyNumbersEnd(t *testing.T) {
	url, _ := sqlite(t)
	s := open(t, sqlstore.Config{URL: url})
	if err := sqlstore.Execute(t.Context(), s,
		"UPDATE keys SET number = 65535 WHERE purpose = 'tokens'"); err != nil {
		t.Fatal(err)
	}
	before, err := s.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rotation := oauth.KeyRotation{Purpose: oauth.TokenKeys, Now: time.Now(), Drop: true}
	if err := s.RotateKeys(t.Context(), rotation); err == nil ||
		!strings.Contains(err.Error(), "no number is left") {
		t.Errorf("got %v, want an error that no number is left", err)
	}
	if after, err := s.ListKeys(t.Context()); err != nil || !slices.Equal(after, before) {
		t.Errorf("got %v, error %v, want %v", after, err, before)
	}
	if _, err := s.Keys(t.Context(), time.Now()); err == nil {
		t.Error("key with another number than it was wrapped with: got no error")
	}
}

// TestRewrap wraps the keys again beside a running server that has both key files, and another one
// that has the old file only.
func TestRewrap(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.make(t), Logger: quiet}
			next := filepath.Join(t.TempDir(), "next.key")
			if d.name == "PostgreSQL" {
				config.KeyFiles = []string{pgtest.KeyFile(t)}
			}
			old := open(t, config)
			before, list := allKeys(t, old), listKeys(t, old)
			p := &oauth.Provider{ID: "acme", Kind: oauth.OpenIDProvider, Secret: "hunter2"}
			if err := old.SaveProvider(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if d.name == "PostgreSQL" {
				if _, err := sqlstore.Rewrap(t.Context(), config,
					next); !errors.Is(err, sqlstore.ErrKeyFile) {
					t.Errorf("new file is missing: got %v, want %v", err, sqlstore.ErrKeyFile)
				}
			} else {
				config.KeyFiles = []string{strings.TrimPrefix(config.URL, "sqlite:") + ".key"}
			}
			oldFile := config.KeyFiles[0]
			writeKey(t, next, someKey, 0o600)
			both := open(t, sqlstore.Config{URL: config.URL, KeyFiles: []string{oldFile, next}})
			for range 2 { // it can be repeated
				n, err := sqlstore.Rewrap(t.Context(), config, next)
				if err != nil || n != len(oauth.Purposes) {
					t.Fatalf("got %d keys, error %v, want %d", n, err, len(oauth.Purposes))
				}
			}
			if got := allKeys(t, both); !slices.Equal(got, before) {
				t.Errorf("keys with both files: got %v, want the same %v", got, before)
			}
			if all, err := both.Providers(t.Context()); err != nil || len(all) != 1 || all[0].Secret != "hunter2" {
				t.Errorf("got %+v and error %v, want the provider's secret with the new file", all, err)
			}
			if _, err := old.Providers(t.Context()); !errors.Is(err, sqlstore.ErrKeyFile) {
				t.Errorf("secrets with the old file: got %v, want %v", err, sqlstore.ErrKeyFile)
			}
			if _, err := old.Keys(t.Context(), time.Now()); !errors.Is(err, sqlstore.ErrKeyFile) {
				t.Errorf("keys with the old file: got %v, want %v", err, sqlstore.ErrKeyFile)
			}
			if err := old.RotateKeys(t.Context(), oauth.KeyRotation{Purpose: oauth.FormKeys,
				Now: time.Now()}); !errors.Is(err, sqlstore.ErrKeyFile) {
				t.Errorf("rotation with the old file: got %v, want %v", err, sqlstore.ErrKeyFile)
			}
			_, changes, err := both.Changes(t.Context(), 0, 100)
			if err != nil || len(changes) != 0 {
				t.Errorf("got changes %+v, error %v, want none: no key has changed", changes, err)
			}
			if err := both.RotateKeys(t.Context(), oauth.KeyRotation{Purpose: oauth.FormKeys,
				Now: time.Now(), Expires: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			for _, k := range listKeys(t, both) {
				if k.File == list[0].File || len(k.File) != 16 {
					t.Errorf("%s key %d: got key file %s, want the new one", k.Purpose, k.Number,
						k.File)
				}
			}
			refused(t, "old file", sqlstore.Config{URL: config.URL, KeyFiles: []string{oldFile}},
				"is not the key file of this database")
			open(t, sqlstore.Config{URL: config.URL, KeyFiles: []string{next}})
			if d.name == "SQLite" {
				if _, err := sqlstore.Rewrap(t.Context(), sqlstore.Config{URL: config.URL,
					KeyFiles: []string{next}, Logger: quiet}, next+"2"); err != nil {
					t.Errorf("to a file that does not exist: got %v, want none", err)
				}
				open(t, sqlstore.Config{URL: config.URL, KeyFiles: []string{next + "2"}})
			}
		})
	}
}

func listKeys(t *testing.T, s *sqlstore.Store) []oauth.KeyInfo {
	t.Helper()
	list, err := s.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestDropTokenKeys(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.make(t), Logger: quiet}
			if d.name == "PostgreSQL" {
				config.KeyFiles = []string{pgtest.KeyFile(t)}
			}
			s := open(t, config)
			now := time.Now()
			if err := s.RotateKeys(t.Context(), oauth.KeyRotation{Purpose: oauth.TokenKeys,
				Now: now, Expires: now.Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			before := allKeys(t, s)
			ann := &account.User{Name: "Ann", Email: "ann@example.com"}
			hash := newHash()
			if err := s.CreateUser(t.Context(), ann); err != nil {
				t.Fatal(err)
			}
			if err := s.ChangeCredentials(t.Context(), ann, account.CredentialChange{
				Notices: []account.Notice{{UserID: ann.ID, Channel: account.Email, To: ann.Email,
					Kind: account.AddressLeft, Made: now, At: now, Seed: "seed", Link: hash}},
			}); err != nil {
				t.Fatal(err)
			}
			started := &account.Challenge{Hash: newHash(), Purpose: account.ForReset,
				Channel: account.Email, Address: ann.Email, UserID: ann.ID,
				Ends: now.Add(account.ChallengeLifetime)}
			started.Renew("code", now)
			if _, err := s.CreateChallenge(t.Context(), started, newHash()); err != nil {
				t.Fatal(err)
			}
			if l, err := s.Link(t.Context(), hash); err != nil || l.Address != ann.Email {
				t.Fatalf("got %+v and error %v, want a link", l, err)
			}
			waits := &account.PendingSignIn{Hash: newHash(), UserID: ann.ID,
				Ends: time.Now().Add(time.Hour)}
			trusted := &account.TrustedBrowser{Hash: newHash(), UserID: ann.ID,
				Ends: time.Now().Add(time.Hour)}
			if err := errors.Join(s.CreatePendingSignIn(t.Context(), waits),
				s.TrustBrowser(t.Context(), trusted), s.Close(),
				sqlstore.DropTokenKeys(t.Context(), config)); err != nil {
				t.Fatal(err)
			}
			s = open(t, config)
			_, pending := s.PendingSignIn(t.Context(), waits.Hash)
			_, trust := s.TrustedBrowser(t.Context(), trusted.Hash)
			if !errors.Is(pending, account.ErrNotFound) || !errors.Is(trust, account.ErrNotFound) {
				t.Errorf("got %v and %v, want no sign-in that waits and no trusted browser", pending,
					trust)
			}
			events, err := s.Events(t.Context(), audit.Filter{Limit: 10})
			if err != nil || len(events) != 1 || events[0].Action != audit.KeysDropped ||
				events[0].Target != "tokens" || events[0].Source != (audit.Source{}) {
				t.Errorf("got events %+v, error %v, want one by the service itself", events, err)
			}
			if _, err := s.Link(t.Context(), hash); !errors.Is(err, account.ErrNotFound) {
				t.Errorf("got %v for a link, want it gone", err)
			}
			if _, err := s.Challenge(t.Context(), started.Hash); !errors.Is(err, account.ErrNotFound) {
				t.Errorf("got %v for an unfinished challenge, want it gone", err)
			}
			after := allKeys(t, s)
			kept := len(oauth.Purposes) - len(oauth.SigningPurposes)
			if len(after) != len(oauth.Purposes) || after[0].Number != 3 ||
				!slices.Equal(after[1:kept], before[2:kept+1]) {
				t.Fatalf("got %v, want key 3 for tokens and the same others", after)
			}
			for _, k := range after[kept:] {
				if k.Number != 2 || k.Private == "" {
					t.Errorf("got %v, want the second key pair", k)
				}
			}
			u := &account.User{Name: "Ann"}
			if err := s.CreateUser(t.Context(), u); err != nil || u.ID < now.UnixMilli() ||
				u.ID >= 1<<53 {
				t.Errorf("got user %d, error %v, want one above all that were ever given", u.ID, err)
			}
			for _, k := range before[:2] {
				if k.Secret == after[0].Secret {
					t.Errorf("%v: got the same secret again", k)
				}
			}
		})
	}
}

// TestStolenDatabase copies the files of an open database, without its key file.
func TestStolenDatabase(t *testing.T) {
	url, path := sqlite(t)
	s := open(t, sqlstore.Config{URL: url})
	keys := allKeys(t, s)
	file, err := os.ReadFile(path + ".key")
	if err != nil {
		t.Fatal(err)
	}
	wrapping, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(file)))
	if err != nil {
		t.Fatal(err)
	}
	secrets := [][]byte{wrapping}
	for _, k := range keys {
		secret := k.Secret[:]
		if k.Purpose.IsSigning() {
			secret = []byte(k.Private)
		}
		secrets = append(secrets, secret)
	}
	stolen := filepath.Join(t.TempDir(), "gatehouse.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			for _, form := range [][]byte{secret, []byte(hex.EncodeToString(secret)),
				[]byte(base64.RawStdEncoding.EncodeToString(secret)),
				[]byte(base64.RawURLEncoding.EncodeToString(secret))} {
				if bytes.Contains(content, form) {
					t.Errorf("file %q has a secret key in clear text", suffix)
				}
			}
		}
		if err := os.WriteFile(stolen+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, "without a key file", sqlstore.Config{URL: "sqlite:" + stolen}, "does not exist")
	writeKey(t, stolen+".key", someKey, 0o600)
	refused(t, "with another one", sqlstore.Config{URL: "sqlite:" + stolen}, "is not the key file")
	writeKey(t, stolen+".key", string(file), 0o600)
	if got := allKeys(t, open(t, sqlstore.Config{URL: "sqlite:" + stolen})); !slices.Equal(got, keys) {
		t.Errorf("with its key file: got %v, want the keys", got)
	}
}
