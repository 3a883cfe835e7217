package main

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// settled settles the file and returns the notes.
func settled(t *testing.T, file *demoFile, store *sqlstore.Store) []string {
	t.Helper()
	notes, err := file.settle(t.Context(), store, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return notes
}

// works checks that the database has the file's accounts and clients.
func (f demoFile) works(t *testing.T, store *sqlstore.Store) {
	t.Helper()
	u, err := store.User(t.Context(), f.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	right, _, err := account.NewHasher(account.DefaultCost()).Verify(u.PasswordHash, f.User.Password)
	if err != nil || !right || u.Email != f.User.Email || u.Disabled {
		t.Errorf("got user %d disabled %v, password right %v, error %v, want one who can sign in",
			u.ID, u.Disabled, right, err)
	}
	if p, err := store.User(t.Context(), f.PhoneUser.ID); err != nil ||
		p.Phone != f.PhoneUser.Phone || p.Disabled {
		t.Errorf("got %v and error %v, want the user with the phone", p, err)
	}
	for _, c := range []struct {
		name     string
		file     demoClient
		public   bool
		approved bool
		scopes   oauth.Scopes
	}{
		{"confidential", f.Clients.Confidential, false, true, oauth.UserScopes},
		{"public", f.Clients.Public, true, false, oauth.UserScopes},
		{"unapproved", f.Clients.Unapproved, false, false, oauth.UserScopes},
		{"operator", f.Clients.Operator, false, false, oauth.ServerOperations},
		{"openid", f.Clients.OpenID, false, true, oauth.GrantableScopes},
	} {
		got, err := store.Client(t.Context(), c.file.ClientID)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := got.Authenticate(oauth.Credentials{ClientID: got.ID,
			Secret: c.file.ClientSecret}); err != nil {
			t.Errorf("%s: got %v, want the file's secret to work", c.name, err)
		}
		if got.Public != c.public || got.DetailApproved != c.approved || got.Scopes != c.scopes ||
			c.file.RedirectURI != strings.Join(got.RedirectURIs, "") {
			t.Errorf("%s: got %+v, want it as it was made", c.name, got)
		}
	}
}

// copied returns a deep copy of f.
func (f demoFile) copied(t *testing.T) demoFile {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var other demoFile
	if err := json.Unmarshal(text, &other); err != nil {
		t.Fatal(err)
	}
	return other
}

func TestDemoAccountsAreSetAgainWhereTheyDoNotMatch(t *testing.T) {
	t.Parallel()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: sqlitetest.URL(t),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var file demoFile
	if notes := settled(t, &file, store); len(notes) != 0 {
		t.Errorf("got notes %q of a first time, want none", notes)
	}
	file.works(t, store)
	for _, test := range []struct {
		name  string
		alter func(*testing.T, *demoFile, *sqlstore.Store)
		notes []string // a part of each note
		kept  bool     // the file is the same afterwards
	}{
		{"nothing", func(*testing.T, *demoFile, *sqlstore.Store) {}, nil, true},
		{"another password", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			changeUser(t, s, f.User.ID, func(u *account.User) { u.PasswordHash = "" })
		}, []string{"password"}, true},
		{"users disabled", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			changeUser(t, s, f.User.ID, func(u *account.User) { u.Disabled = true })
			changeUser(t, s, f.PhoneUser.ID, func(u *account.User) { u.Disabled = true })
		}, []string{"disabled", "phone was disabled"}, true},
		{"users gone", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			for _, id := range []int64{f.User.ID, f.PhoneUser.ID} {
				if err := s.DeleteUser(t.Context(), id, [32]byte{}); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{demoEmail, "phone did not exist"}, false},
		{"another address", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			changeUser(t, s, f.User.ID,
				func(u *account.User) { u.Email = "eve@example.com"; u.Username = "eve" })
		}, []string{demoEmail}, false},
		{"address and username parted", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			changeUser(t, s, f.User.ID, func(u *account.User) { u.Email = "ida@example.com" })
		}, []string{demoEmail}, false},
		{"client gone", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			if err := s.DeleteClient(t.Context(), f.Clients.Public.ClientID); err != nil {
				t.Fatal(err)
			}
		}, []string{"Demo App"}, true},
		{"clients changed", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			changeClient(t, s, f.Clients.Confidential.ClientID,
				func(c *oauth.Client) { c.Secrets[0].Hash[0]++ })
			changeClient(t, s, f.Clients.Unapproved.ClientID,
				func(c *oauth.Client) { c.DetailApproved = true })
			changeClient(t, s, f.Clients.Operator.ClientID,
				func(c *oauth.Client) { c.Disabled = true })
		}, []string{"Demo Shop", "Demo Newcomer", "Demo Operator"}, true},
		{"secret lost", func(_ *testing.T, f *demoFile, _ *sqlstore.Store) {
			f.Clients.Operator.ClientSecret = ""
		}, []string{"Demo Operator"}, false},
		{"options changed", func(t *testing.T, f *demoFile, s *sqlstore.Store) {
			changeClient(t, s, f.Clients.OpenID.ClientID,
				func(c *oauth.Client) { c.Options.IDTokenAlg = "ES256" })
		}, []string{"Demo OpenID"}, true},
		{"no client for OpenID", func(_ *testing.T, f *demoFile, _ *sqlstore.Store) {
			f.Clients.OpenID = demoClient{}
		}, nil, false},
		{"file from before", func(_ *testing.T, f *demoFile, _ *sqlstore.Store) { *f = demoFile{} },
			nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := file.copied(t)
			test.alter(t, &file, store)
			notes := settled(t, &file, store)
			file.works(t, store)
			if len(notes) != len(test.notes) {
				t.Fatalf("got notes %q, want %d", notes, len(test.notes))
			}
			for i, want := range test.notes {
				if !strings.Contains(notes[i], want) {
					t.Errorf("got note %q, want it to hold %q", notes[i], want)
				}
				if strings.Contains(notes[i], file.User.Password) ||
					strings.Contains(notes[i], "gtcs_") {
					t.Errorf("got a secret in note %q", notes[i])
				}
			}
			if reflect.DeepEqual(file, before) != test.kept {
				t.Errorf("got the file kept %v, want %v", !test.kept, test.kept)
			}
			if again := settled(t, &file, store); len(again) != 0 {
				t.Errorf("got notes %q once more, want none", again)
			}
		})
	}
}

func changeUser(t *testing.T, s *sqlstore.Store, id int64, change func(*account.User)) {
	t.Helper()
	u, err := s.User(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	if err := s.UpdateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func changeClient(t *testing.T, s *sqlstore.Store, id string, change func(*oauth.Client)) {
	t.Helper()
	c, err := s.Client(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	if err := s.UpdateClient(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestDemoKeepsTokens starts a demo twice in one folder: tokens of the first are valid in the
// second.
func TestDemoKeepsTokens(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	args := append([]string{"demo", "--dir", dir}, anyPorts...)
	p := start(t, []string{"GATEHOUSE_DATABASE_URL=postgres://nobody@127.0.0.1:1/none"}, args...)
	p.stderr.await(t, "msg=serving")
	first := readDemo(t, dir)
	response, err := newClient(t, "").PostForm(first.BaseURL+"/oauth/token",
		url.Values{"grant_type": {"client_credentials"},
			"client_id":     {first.Clients.Confidential.ClientID},
			"client_secret": {first.Clients.Confidential.ClientSecret}})
	if err != nil {
		t.Fatal(err)
	}
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&token); err != nil || token.AccessToken == "" {
		t.Fatalf("got error %v, want a token", err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	log := p.stderr.String()
	for _, hidden := range []string{first.User.Password, first.User.Email,
		first.Clients.Operator.ClientSecret, first.Clients.Confidential.ClientSecret,
		token.AccessToken} {
		if strings.Contains(log, hidden) {
			t.Errorf("got a secret in the log:\n%s", log)
		}
	}

	again := start(t, nil, args...)
	again.stderr.await(t, "msg=serving")
	second := readDemo(t, dir)
	if second.BaseURL == first.BaseURL {
		t.Errorf("got base_url %q again, want the new one", second.BaseURL)
	}
	if !reflect.DeepEqual(second.Clients, first.Clients) ||
		!reflect.DeepEqual(second.User, first.User) ||
		!reflect.DeepEqual(second.PhoneUser, first.PhoneUser) {
		t.Errorf("got %+v after another start, want accounts and clients as before", second)
	}
	again.stdout.await(t, second.User.Password) // by another pipe than the log
	if banner := again.stdout.String(); strings.Contains(banner, "again") ||
		!strings.Contains(banner, second.User.Password) {
		t.Errorf("got banner\n%s\nwant the password and nothing set again", banner)
	}
	response, err = newClient(t, "").PostForm(second.BaseURL+"/oauth/introspect",
		url.Values{"token": {token.AccessToken},
			"client_id":     {second.Clients.Confidential.ClientID},
			"client_secret": {second.Clients.Confidential.ClientSecret}})
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Active bool }
	if err := json.NewDecoder(response.Body).Decode(&about); err != nil || !about.Active {
		t.Errorf("got active %v and error %v for a token of the first start, want true",
			about.Active, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDemoFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "demo.json"), []byte(`{"user":`+secret),
		0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, append([]string{"demo", "--dir", dir}, anyPorts...)...)
	p.stderr.await(t, "msg=serving")
	if got := p.stdout.String(); !strings.Contains(got, "demo.json is written again") ||
		strings.Contains(got, secret) {
		t.Errorf("got banner\n%s\nwant it to say that the file is written again, and nothing of its contents",
			got)
	}
	if readDemo(t, dir).Clients == nil {
		t.Error("got no clients in demo.json, want some")
	}
}
