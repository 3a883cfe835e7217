package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

func TestNumbersOfTwoStoresAreInOrder(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			numberInOrder(t, []oauth.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})}, "app")
		})
	}
}

func TestEndsSurviveRestart(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			s := open(t, sqlstore.Config{URL: url})
			op := endToken("app")
			op.Token.Expires = op.Token.Expires.Truncate(time.Second).UTC()
			if err := errors.Join(submit(t, s, op), s.Close()); err != nil {
				t.Fatal(err)
			}
			again := open(t, sqlstore.Config{URL: url})
			last, ends, err := again.Ends(t.Context(), time.Now())
			want := oauth.End{Token: op.Token.ID, ClientID: "app", Expires: op.Token.Expires}
			if err != nil || last != 1 || len(ends) != 1 || ends[0] != want {
				t.Errorf("got number %d and %+v, error %v, want 1 and %+v", last, ends, err, want)
			}
			repeated := &oauth.Revoke{Token: op.Token}
			if err := submit(t, again, repeated); err != nil || len(repeated.Ended) > 0 {
				t.Errorf("end it again: got %+v, error %v, want none", repeated.Ended, err)
			}
		})
	}
}

// TestEpochsWhenClockIsBehind raises epochs that are later than the clock.
func TestEpochsWhenClockIsBehind(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := open(t, sqlstore.Config{URL: d.make(t)})
			user, client := &account.User{Name: "Ada"}, &oauth.Client{ID: "app", Name: "App"}
			ahead := time.Now().Add(time.Hour).UnixMicro()
			if err := errors.Join(s.CreateUser(t.Context(), user),
				s.CreateClient(t.Context(), client),
				sqlstore.Execute(t.Context(), s, fmt.Sprint("UPDATE users SET epoch = ", ahead)),
				sqlstore.Execute(t.Context(), s, fmt.Sprint("UPDATE clients SET epoch = ", ahead)),
				submit(t, s, &oauth.Revoke{UserID: user.ID}),
				submit(t, s, &oauth.Revoke{ClientID: client.ID})); err != nil {
				t.Fatal(err)
			}
			gotUser, err := s.User(t.Context(), user.ID)
			if err != nil {
				t.Fatal(err)
			}
			gotClient, err := s.Client(t.Context(), client.ID)
			if err != nil {
				t.Fatal(err)
			}
			if gotUser.Epoch != ahead+1 || gotClient.Epoch != ahead+1 {
				t.Errorf("got epochs %d and %d, want %d", gotUser.Epoch, gotClient.Epoch, ahead+1)
			}
			if err := s.ChangeCredentials(t.Context(), gotUser, account.CredentialChange{EndTokens: true}); err != nil ||
				gotUser.Epoch != ahead+2 {
				t.Errorf("new password: got epoch %d, error %v, want %d", gotUser.Epoch, err,
					ahead+2)
			}
		})
	}
}

// TestRevokeUserRace redeems codes and rotates families through one Store while another one ends
// all tokens of the user or client.
func TestRevokeUserRace(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			f, other := newFaulty(t, url), open(t, sqlstore.Config{URL: url})
			if err := f.CreateClient(t.Context(), &oauth.Client{ID: "app"}); err != nil {
				t.Fatal(err)
			}
			done := 0
			for round := range 16 {
				revoke := &oauth.Revoke{UserID: f.user.ID}
				if round%2 == 1 {
					revoke = &oauth.Revoke{ClientID: "app"}
				}
				done += f.race(other, revoke)
			}
			t.Logf("%d operations were faster than the end", done)
		})
	}
}

// race returns how many operations got tokens.
func (f *faulty) race(other *sqlstore.Store, revoke *oauth.Revoke) (done int) {
	f.Helper()
	var redeems, rotated [4]*oauth.Redeem
	var rotates [4]*oauth.Rotate
	for i := range redeems {
		redeems[i], rotated[i] = f.redeem(), f.redeem()
		f.save(redeems[i])
		f.save(rotated[i])
		f.must(rotated[i])
		rotates[i] = f.rotation(rotated[i])
	}
	var racing sync.WaitGroup
	racing.Go(func() {
		if err := submit(f.T, other, revoke); err != nil {
			f.Error(err)
		}
	})
	for i := range redeems {
		racing.Go(func() {
			if err := errors.Join(submit(f.T, f, redeems[i]),
				submit(f.T, f, rotates[i])); err != nil {
				f.Error(err)
			}
		})
	}
	racing.Wait()
	now := f.epochs()
	check := func(outcome oauth.Outcome, epochs oauth.Epochs, refresh oauth.Hash) {
		if outcome != oauth.OutcomeDone {
			return
		}
		done++
		if epochs.User >= now.User && revoke.UserID != 0 ||
			epochs.Client >= now.Client && revoke.ClientID != "" {
			f.Errorf("got epochs %+v, want an earlier one than %+v", epochs, now)
		}
		if token, err := f.RefreshToken(f.Context(), refresh); err != nil ||
			!token.Family.Revoked {
			f.Errorf("refresh token: got %+v, error %v, want its family revoked", token, err)
		}
	}
	for i := range redeems {
		check(redeems[i].Outcome, redeems[i].Epochs, *redeems[i].Refresh)
		check(rotates[i].Outcome, rotates[i].Epochs, rotates[i].Refresh)
	}
	return done
}

func (f *faulty) epochs() oauth.Epochs {
	f.Helper()
	user, err := f.User(f.Context(), f.user.ID)
	if err != nil {
		f.Fatal(err)
	}
	client, err := f.Client(f.Context(), "app")
	if err != nil {
		f.Fatal(err)
	}
	return oauth.Epochs{Client: client.Epoch, User: user.Epoch}
}

// link is the hash of the token in the notice of TestChangeOfPasswordIsAtomic.
var link = newHash()

// TestChangeOfPasswordIsAtomic makes each of its statements fail.
func TestChangeOfPasswordIsAtomic(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			f := newFaulty(t, d.make(t))
			family, code := f.redeem(), f.redeem()
			f.save(family)
			f.must(family)
			f.save(code)
			session := &account.Session{Hash: newHash(), UserID: f.user.ID,
				Expires: time.Now().Add(time.Hour)}
			if _, err := f.CreateSession(t.Context(), session); err != nil {
				t.Fatal(err)
			}
			for n := 2; ; n++ { // after BEGIN
				f.must(save()) // the writer is idle then
				changed := *f.user
				changed.PasswordHash = "new"
				f.seen, f.fail = nil, func(i int) bool { return i == n }
				err := f.ChangeCredentials(t.Context(), &changed, account.CredentialChange{EndTokens: true,
					Notices: []account.Notice{{UserID: f.user.ID, Channel: account.Email,
						To: "ada@example.com", Kind: account.PasswordChanged, Made: time.Now(),
						At: time.Now(), Seed: "seed", Link: link}}})
				f.fail = nil
				replaced := f.replaced(session, family, code)
				if err == nil {
					if n < 9 || replaced != "password session family code epoch change notice link " {
						t.Errorf("after %d statements: got %q replaced, want all", n-1, replaced)
					}
					return
				}
				if !errors.Is(err, errInjected) || replaced != "" ||
					changed.Version != f.user.Version {
					t.Fatalf("statement %d fails, %s: got %v and %q replaced, want nothing", n,
						f.seen[n-1], err, replaced)
				}
			}
		})
	}
}

// replaced returns what is no longer as it was before ChangeCredentials.
func (f *faulty) replaced(session *account.Session, family, code *oauth.Redeem) string {
	f.Helper()
	var parts strings.Builder
	note := func(what string, is bool) {
		if is {
			parts.WriteString(what + " ")
		}
	}
	user, err := f.User(f.Context(), f.user.ID)
	if err != nil {
		f.Fatal(err)
	}
	note("password", user.PasswordHash != f.user.PasswordHash)
	_, err = f.Session(f.Context(), session.Hash)
	note("session", err != nil)
	token, err := f.RefreshToken(f.Context(), *family.Refresh)
	if err != nil {
		f.Fatal(err)
	}
	note("family", token.Family.Revoked)
	_, err = f.AuthorizationCode(f.Context(), code.Code)
	note("code", err != nil)
	note("epoch", user.Epoch != f.user.Epoch)
	last, _, err := f.Changes(f.Context(), 0, 1)
	if err != nil {
		f.Fatal(err)
	}
	note("change", last != 0)
	_, notices, err := f.DueNotices(f.Context(), time.Now(), 1)
	if err != nil {
		f.Fatal(err)
	}
	note("notice", notices > 0)
	_, err = f.Link(f.Context(), link)
	note("link", err == nil)
	return parts.String()
}

// TestMigrationOfTokenRows migrates a database of the schema before, which has rows for access
// tokens and keys in clear text.
func TestMigrationOfTokenRows(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.empty(t), Logger: quiet}
			if err := sqlstore.MigrateTo(t.Context(), config, 3); err != nil {
				t.Fatal(err)
			}
			now := time.Now().UTC().Truncate(time.Millisecond)
			family, code, refresh, session := uuid.New(), newHash(), newHash(), newHash()
			fill(t, config, now, family, code, refresh, session)
			s := open(t, config)
			user, err := s.User(t.Context(), 7)
			if err != nil || user.Epoch != now.UnixMicro() {
				t.Fatalf("user: got %+v, error %v, want epoch %d", user, err, now.UnixMicro())
			}
			client, err := s.Client(t.Context(), "app")
			if err != nil || client.Epoch != now.UnixMicro() {
				t.Fatalf("client: got %+v, error %v, want epoch %d", client, err, now.UnixMicro())
			}
			if _, err := s.Session(t.Context(), session); err != nil {
				t.Errorf("session: got %v, want none", err)
			}
			token, err := s.RefreshToken(t.Context(), refresh)
			if err != nil || token.Family.ID != family || !token.Family.AccessExpires.IsZero() {
				t.Fatalf("refresh token: got %+v, error %v, want one of family %s", token, err,
					family)
			}
			rotate := &oauth.Rotate{FamilyID: family, Generation: 1, Now: now,
				Expires: now.Add(time.Hour), AccessExpires: now.Add(time.Minute),
				Refresh: newHash()}
			redeem := &oauth.Redeem{Code: code, Now: now, Family: oauth.Family{ID: uuid.New(),
				ClientID: "app", UserID: 7, Generation: 1, Expires: now.Add(time.Hour),
				Ends: now.Add(time.Hour)}}
			if err := errors.Join(submit(t, s, rotate), submit(t, s, redeem)); err != nil {
				t.Fatal(err)
			}
			want := oauth.Epochs{Client: now.UnixMicro(), User: now.UnixMicro()}
			if rotate.Outcome != oauth.OutcomeDone || redeem.Outcome != oauth.OutcomeDone ||
				rotate.Epochs != want || redeem.Epochs != want {
				t.Errorf("got outcomes %d and %d with %+v and %+v, want done with %+v",
					rotate.Outcome, redeem.Outcome, rotate.Epochs, redeem.Epochs, want)
			}
			if keys := allKeys(t, s); len(keys) != len(oauth.Purposes) {
				t.Errorf("got keys %v, want new ones", keys)
			}
		})
	}
}

// fill inserts a user and client with a session, an unused code, a family and an access token into
// a database of schema version 3.
func fill(t *testing.T, config sqlstore.Config, now time.Time, family uuid.UUID, code, refresh,
	session oauth.Hash) {
	t.Helper()
	db := direct(t, config.URL)
	at := now.UnixMilli()
	later := at + time.Hour.Milliseconds()
	hash := newHash()
	for _, statement := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO users (id, service_id, name, email, phone, username, gender, bio, place_of_birth, date_of_birth,
address, profile_picture, password_hash, disabled, created, updated, version)
VALUES (7, 'x', 'Ada', '', '', '', '', '', '', '', '', '', '', FALSE, $1, $1, 0)`, []any{at}},
		{`INSERT INTO clients (id, name, public, operator, introspect_any, loopback_any_port, disabled, detail_approved,
scopes, grants, created, version) VALUES ('app', 'App', FALSE, FALSE, FALSE, FALSE, FALSE, FALSE, 0, 0, $1, 0)`, []any{at}},
		{`INSERT INTO sessions (hash, user_id, created, signed_in, seen, expires, device)
VALUES ($1, 7, $2, $2, $2, $3, '')`, []any{session[:], at, later}},
		{`INSERT INTO authorization_codes (hash, client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge,
expires, family_id) VALUES ($1, 'app', 7, '', 0, FALSE, '', $2, '')`, []any{code[:], later}},
		{`INSERT INTO families (id, client_id, user_id, scopes, generation, advanced, expires, ends, revoked)
VALUES ($1, 'app', 7, 0, 1, $2, $3, $3, FALSE)`, []any{family.String(), at, later}},
		{`INSERT INTO refresh_tokens (hash, family_id, generation) VALUES ($1, $2, 1)`,
			[]any{refresh[:], family.String()}},
		{`INSERT INTO access_tokens (hash, client_id, user_id, family_id, scopes, issued, expires)
VALUES ($1, 'app', 7, $2, 0, $3, $4)`, []any{hash[:], family.String(), at, later}},
		{`INSERT INTO keys (name, value, created) VALUES ('current', $1, $2)`, []any{hash[:], at}},
	} {
		if _, err := db.Exec(statement.text, statement.args...); err != nil {
			t.Fatalf("%s: %v", statement.text, err)
		}
	}
}
