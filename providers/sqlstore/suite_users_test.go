package sqlstore_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

var userTests = map[string]func(*testing.T, *fixture){
	"UserRoundTrip":                        userRoundTrip,
	"UserIsReplaced":                       userIsReplaced,
	"UserUpdateConflict":                   userUpdateConflict,
	"UserLookupIgnoresCase":                userLookupIgnoresCase,
	"UserIdentifiersAreUnique":             userIdentifiersAreUnique,
	"OptionalDigitOfPhoneIsIgnored":        optionalDigitOfPhone,
	"UserIDsAreNeverReused":                userIDsAreNeverReused,
	"UnknownUser":                          unknownUser,
	"UserPages":                            userPages,
	"ConcurrentRegistrationsHaveOneWinner": concurrentRegistrations,
	"DeleteUserRevokesTokens":              deleteUser,
	"DeleteUserDeletesChallenges":          deleteUserWithChallenges,
	"CredentialsFindTheirUser":             credentialsFindUser,
	"CredentialIsUsedOnce":                 credentialIsUsedOnce,
	"UseOfCredentialSendsNotices":          useSendsNotices,
	"PasskeyChallengeIsUsedOnce":           passkeyChallengeOnce,
	"ImportedPartIsDoneOnce":               importOnce,
	"ImportRefusesWhatCollides":            importCollisions,
	"DryImportKeepsNothing":                importDry,
}

func (f *fixture) fullUser() *account.User {
	return &account.User{
		Name: "Ada Lovelace", Email: "Ada@Example.org", Phone: "+4912345", Username: "Ada",
		Gender: "female", Bio: "Line\nbreak 🧮",
		PlaceOfBirth: "London", DateOfBirth: "1815-12-10", Address: "St James's Square",
		ProfilePicture: "https://x.example/a.png",
		PasswordHash:   "$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA", PhoneSignIn: true,
		Credentials: account.Credentials{
			Handle: []byte("handle of Ada, 32 random bytes.."),
			Passkeys: []account.Passkey{{
				ID: []byte{1, 0, 255}, PublicKey: []byte{2}, Counter: 7, SignsIn: true,
				Transports: []string{"usb"}, Name: "Key", Created: f.now, Used: f.now,
			}},
			Authenticator: &account.Authenticator{Secret: []byte{3}, Created: f.now, Step: 4},
			RecoveryCodes: [][]byte{{5}, {6}},
			Connections: []account.Connection{{
				Issuer: "https://id.example", Subject: "Ada 1", Name: "ada", Created: f.now,
			}},
		},
		Created: f.now,
		Updated: f.now.Add(time.Second),
	}
}

func credentialsFindUser(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	find := func(handle, subject string) (byHandle, byConnection error) {
		got, byHandle := f.UserByHandle(f.ctx, []byte(handle))
		if byHandle == nil && got.ID != u.ID {
			t.Errorf("got user %d by handle, want %d", got.ID, u.ID)
		}
		got, byConnection = f.UserByConnection(f.ctx, "https://id.example", subject)
		if byConnection == nil && got.ID != u.ID {
			t.Errorf("got user %d by connection, want %d", got.ID, u.ID)
		}
		return byHandle, byConnection
	}
	byHandle, byConnection := find("handle of Ada, 32 random bytes..", "Ada 1")
	f.must(byHandle)
	f.must(byConnection)
	byHandle, byConnection = find("", "ada 1")
	f.wantError("no handle", byHandle, account.ErrNotFound)
	f.wantError("other subject", byConnection, account.ErrNotFound)

	other := &account.User{Name: "Bob", Created: f.now, Updated: f.now}
	f.must(f.CreateUser(f.ctx, other))
	other.Credentials.Connections = u.Credentials.Connections
	f.wantError("connection of another user", f.UpdateUser(f.ctx, other), account.ErrTaken)
	again := &account.User{Name: "Bob", Created: f.now, Updated: f.now, Credentials: other.Credentials}
	f.wantError("new user with it", f.CreateUser(f.ctx, again), account.ErrTaken)

	u.Credentials.Connections = nil
	f.must(f.UpdateUser(f.ctx, u))
	_, byConnection = find("", "Ada 1")
	f.wantError("removed connection", byConnection, account.ErrNotFound)
	f.must(f.UpdateUser(f.ctx, other))
	f.must(f.DeleteUser(f.ctx, other.ID, [32]byte{}))
	_, byConnection = find("", "Ada 1")
	f.wantError("deleted user", byConnection, account.ErrNotFound)
}

// credentialIsUsedOnce uses one step of an authenticator app in two processes.
func credentialIsUsedOnce(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	one, two := *u, *u
	one.Credentials.Authenticator = &account.Authenticator{Secret: []byte{3}, Created: f.now, Step: 5}
	f.must(f.UseCredential(f.ctx, &one))
	f.wantError("second use", f.UseCredential(f.ctx, &two), account.ErrConflict)
	f.wantError("change of what was read before", f.UpdateUser(f.ctx, &two), account.ErrConflict)
	f.sameUser(&one)
	f.must(f.DeleteUser(f.ctx, u.ID, [32]byte{}))
	f.wantError("deleted user", f.UseCredential(f.ctx, &one), account.ErrNotFound)
}

func (f *fixture) sameUser(want *account.User) {
	f.Helper()
	got, err := f.User(f.ctx, want.ID)
	f.must(err)
	if !reflect.DeepEqual(got, want) {
		f.Errorf("got %+v, want %+v", got, want)
	}
}

func userRoundTrip(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	if u.ID < 1 || u.ID >= 1<<53 || len(u.ServiceID) != 36 {
		t.Errorf("got id %d and service id %q, want a number from 1 to 2^53-1 and a UUID",
			u.ID, u.ServiceID)
	}
	f.sameUser(u)
	f.sameUser(f.user)
}

func userIsReplaced(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	changed := *u
	changed.Email, changed.Phone, changed.Username = "new@example.org", "", "ADA"
	changed.Disabled, changed.Bio, changed.Updated = true, "", f.now.Add(time.Hour)
	f.must(f.UpdateUser(f.ctx, &changed))
	f.sameUser(&changed)
	_, err := f.UserByEmail(f.ctx, u.Email)
	f.wantError("old e-mail address", err, account.ErrNotFound)
	_, err = f.UserByPhone(f.ctx, u.Phone)
	f.wantError("old phone number", err, account.ErrNotFound)
	if got, err := f.UserByEmail(f.ctx, "new@example.org"); err != nil || got.ID != u.ID {
		t.Errorf("new e-mail address: got %v, error %v, want user %d", got, err, u.ID)
	}
}

func userUpdateConflict(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	first, second := *u, *u
	first.PasswordHash, second.Disabled = "", true
	f.must(f.UpdateUser(f.ctx, &first))
	f.wantError("update of an old version", f.UpdateUser(f.ctx, &second), account.ErrConflict)
	f.sameUser(&first)
	for _, version := range []int64{-1, 7} {
		ahead := first
		ahead.Version = version
		f.wantError("update of an unknown version", f.UpdateUser(f.ctx, &ahead),
			account.ErrConflict)
	}
	if second.Version != u.Version {
		t.Errorf("version after a conflict: got %d, want %d", second.Version, u.Version)
	}
	second = first
	second.Disabled = true
	f.must(f.UpdateUser(f.ctx, &second))
	f.sameUser(&second)
}

func userLookupIgnoresCase(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	for _, email := range []string{"Ada@Example.org", "ada@example.org", "ADA@EXAMPLE.ORG"} {
		got, err := f.UserByEmail(f.ctx, email)
		f.must(err)
		if !reflect.DeepEqual(got, u) {
			t.Errorf("%s: got %+v, want %+v", email, got, u)
		}
	}
	got, err := f.UserByPhone(f.ctx, "+4912345")
	f.must(err)
	if got.ID != u.ID {
		t.Errorf("phone: got user %d, want %d", got.ID, u.ID)
	}
}

// optionalDigitOfPhone writes an Argentine mobile number with and without the 9.
func optionalDigitOfPhone(t *testing.T, f *fixture) {
	const short, long = "+541123456789", "+5491123456789"
	u := &account.User{Name: "Ada", Phone: long}
	f.must(f.CreateUser(f.ctx, u))
	for _, phone := range []string{short, long} {
		got, err := f.UserByPhone(f.ctx, phone)
		f.must(err)
		if got.ID != u.ID || got.Phone != long {
			t.Errorf("%s: got user %d with %s, want %d with %s", phone, got.ID, got.Phone, u.ID, long)
		}
		f.wantError("another user", f.CreateUser(f.ctx, &account.User{Name: "Eve", Phone: phone}),
			account.ErrTaken)
	}
	f.newChallenge(long) // not text messages: other recipients
	sms := f.challenge(short, f.now)
	sms.Channel = account.SMS
	f.must(f.create(sms))
	other := f.challenge(long, f.now)
	other.Channel = account.SMS
	f.limited("the same number", f.create(other), f.now.Add(account.SendInterval))
}

func userIdentifiersAreUnique(t *testing.T, f *fixture) {
	f.must(f.CreateUser(f.ctx, f.fullUser()))
	other := f.newUser()
	for what, change := range map[string]func(*account.User){
		"e-mail":   func(u *account.User) { u.Email = "aDA@example.ORG" },
		"phone":    func(u *account.User) { u.Phone = "+4912345" },
		"username": func(u *account.User) { u.Username = "aDA" },
	} {
		u := &account.User{Name: "Eve"}
		change(u)
		f.wantError("create with the same "+what, f.CreateUser(f.ctx, u), account.ErrTaken)
		if u.ID != 0 || u.ServiceID != "" {
			t.Errorf("%s: got id %d, want none", what, u.ID)
		}
		changed := *other
		change(&changed)
		f.wantError("update to the same "+what, f.UpdateUser(f.ctx, &changed), account.ErrTaken)
	}
	f.sameUser(other)
}

func userIDsAreNeverReused(t *testing.T, f *fixture) {
	first := f.newUser()
	f.must(f.DeleteUser(f.ctx, first.ID, [32]byte{}))
	if second := f.newUser(); second.ID <= first.ID {
		t.Errorf("after %d: got id %d", first.ID, second.ID)
	}
}

func unknownUser(t *testing.T, f *fixture) {
	for _, id := range []int64{0, -1, 4711, 1 << 60} {
		_, err := f.User(f.ctx, id)
		f.wantError(fmt.Sprintf("user %d", id), err, account.ErrNotFound)
		f.wantError(fmt.Sprintf("delete user %d", id), f.DeleteUser(f.ctx, id, [32]byte{}), account.ErrNotFound)
	}
	for _, s := range []string{"", "nobody@example.org", "a\x00b", "\xff"} {
		_, err := f.UserByEmail(f.ctx, s)
		f.wantError(fmt.Sprintf("e-mail %q", s), err, account.ErrNotFound)
		_, err = f.UserByPhone(f.ctx, s)
		f.wantError(fmt.Sprintf("phone %q", s), err, account.ErrNotFound)
	}
	f.wantError("update", f.UpdateUser(f.ctx, &account.User{ID: 4711, Name: "Nobody"}),
		account.ErrNotFound)
	if err := f.CreateUser(f.ctx, &account.User{Name: "a\x00b"}); err == nil {
		t.Error("user with a NUL in the name: got no error")
	}
}

func userPages(t *testing.T, f *fixture) {
	want := []*account.User{f.user}
	for range 6 {
		want = append(want, f.newUser())
	}
	var got []*account.User
	for after := int64(0); ; after = got[len(got)-1].ID {
		page, err := f.Users(f.ctx, after, 3)
		f.must(err)
		if len(page) > 3 {
			t.Fatalf("got %d users, want at most 3", len(page))
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d users, want all %d, in order", len(got), len(want))
	}
}

func concurrentRegistrations(t *testing.T, f *fixture) {
	const racers = 16
	errs := make([]error, racers)
	var ended sync.WaitGroup
	for i := range errs {
		ended.Go(func() { errs[i] = f.CreateUser(f.ctx, f.fullUser()) })
	}
	ended.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
			continue
		}
		f.wantError("create", err, account.ErrTaken)
	}
	if made != 1 {
		t.Errorf("got %d users, want 1", made)
	}
}

// claimConcurrently has new and existing users claim one e-mail address, phone number or username
// concurrently, through stores on one database. It checks that one succeeds and the others get
// ErrTaken.
func claimConcurrently(t *testing.T, stores []account.Store) {
	t.Helper()
	for round := range 3 {
		var claims [8]func() error
		for i := range claims {
			store := stores[i%len(stores)]
			u := &account.User{Name: "Ada"}
			claims[i] = func() error { return store.CreateUser(t.Context(), u) }
			if i >= len(claims)/4 {
				if err := store.CreateUser(t.Context(), u); err != nil {
					t.Fatal(err)
				}
				claims[i] = func() error { return store.UpdateUser(t.Context(), u) }
			}
			switch round % 3 {
			case 0:
				u.Email = fmt.Sprintf("claimed%d@example.org", round)
			case 1:
				u.Phone = fmt.Sprintf("+491511%07d", round)
			case 2:
				u.Username = fmt.Sprint("claimed", round)
			}
		}
		var claimers sync.WaitGroup
		var errs [len(claims)]error
		for i, claim := range claims {
			claimers.Go(func() { errs[i] = claim() })
		}
		claimers.Wait()
		got := 0
		for _, err := range errs {
			if err == nil {
				got++
			} else if !errors.Is(err, account.ErrTaken) {
				t.Errorf("got %v, want %v", err, account.ErrTaken)
			}
		}
		if got != 1 {
			t.Errorf("got %d claims granted, want 1", got)
		}
	}
}

func deleteUser(t *testing.T, f *fixture) {
	c := f.newCrowd()
	session := &account.Session{Hash: newHash(), UserID: c.users[0].ID,
		Expires: f.now.Add(time.Hour)}
	f.endedTokens(f.CreateSession(f.ctx, session))
	f.must(f.DeleteUser(f.ctx, c.users[0].ID, [32]byte{}))
	_, err := f.User(f.ctx, c.users[0].ID)
	f.wantError("user", err, account.ErrNotFound)
	_, err = f.Session(f.ctx, session.Hash)
	f.wantError("session", err, account.ErrNotFound)
	_, err = f.RefreshToken(f.ctx, *c.family[0][0].Refresh)
	f.wantError("refresh token", err, oauth.ErrNotFound)
	_, err = f.AuthorizationCode(f.ctx, c.family[0][0].Code)
	f.wantError("used code", err, oauth.ErrNotFound)
	gone := func(user, _ int) bool { return user == 0 }
	c.check(f, gone)
	c.consents(f, gone)
}

func deleteUserWithChallenges(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	keep := []*account.Challenge{f.newChallenge("other@example.org")}
	end := []*account.Challenge{f.newChallenge("ada@EXAMPLE.org"), f.newChallenge(u.Phone)}
	f.user = u
	end = append(end, f.newChallenge("new@example.org"))
	f.must(f.DeleteUser(f.ctx, u.ID, [32]byte{}))
	for _, c := range keep {
		f.sameChallenge(c, f.now.Add(account.SendInterval))
	}
	for _, c := range end {
		_, err := f.Challenge(f.ctx, c.Hash)
		f.wantError("challenge at "+c.Address, err, account.ErrNotFound)
	}
}

// importOf returns a part of an import whose users have the lines from 1 on.
func importOf(id string, users ...*account.User) *account.ImportPart {
	p := &account.ImportPart{ID: id, Line: 1}
	for i, u := range users {
		p.Users = append(p.Users, account.ImportedUser{Line: int64(i + 1), User: u})
	}
	return p
}

// imported returns what a part has led to, with one line of text for each refused line.
func (f *fixture) imported(p *account.ImportPart) (created int, refused []string) {
	f.Helper()
	f.must(f.ImportUsers(f.ctx, p))
	for _, r := range p.Refused {
		refused = append(refused, fmt.Sprintf("%d: %v", r.Line, r.FieldError))
	}
	return p.Created, refused
}

// importOnce sends a part again, as a command does that has lost the response, and then one that
// another command has gone beyond.
func importOnce(t *testing.T, f *fixture) {
	ctx := audit.WithSource(f.ctx, audit.Source{Actor: audit.Actor{Kind: audit.Operator, ID: "op"}})
	part := func() *account.ImportPart {
		p := importOf("a", f.fullUser(), &account.User{Name: "Bo", Email: "bo@example.org"})
		p.Refused = []account.RefusedLine{{Line: 3, FieldError: account.FieldError{Field: "id", Message: "is odd"}}}
		return p
	}
	for range 2 {
		p := part()
		f.must(f.ImportUsers(ctx, p))
		if p.Created != 2 || len(p.Refused) != 1 || p.Refused[0].Message != "is odd" {
			t.Errorf("got %d created and %v, want 2 and the line that was refused before", p.Created, p.Refused)
		}
	}
	next := importOf("a", &account.User{Name: "Cy", Phone: "+4912346"})
	next.Line = 9
	f.must(f.ImportUsers(ctx, next))
	f.wantError("a part before the last", f.ImportUsers(ctx, part()), account.ErrConflict)
	events, err := f.Events(f.ctx, audit.Filter{Action: audit.UsersImported, Limit: 10})
	f.must(err)
	if len(events) != 2 || events[0].Actor.ID != "op" || events[0].Data["created"] != 2.0 ||
		events[0].Data["refused"] != 1.0 {
		t.Errorf("got %+v, want two events by the operator, the first of two users", events)
	}
	n, err := f.Sweep(f.ctx, f.now.Add(account.ImportKept+time.Hour))
	f.must(err)
	again := part()
	f.must(f.ImportUsers(ctx, again))
	if n == 0 || again.Created != 0 || len(again.Refused) != 3 {
		t.Errorf("got %d, %+v, want a part that collides with itself after the sweep", n, again)
	}
}

func importCollisions(t *testing.T, f *fixture) {
	const service = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	there := f.fullUser()
	f.must(f.CreateUser(f.ctx, there))
	created, refused := f.imported(importOf("a",
		&account.User{Name: "A", Email: "ADA@EXAMPLE.ORG"},
		&account.User{Name: "B", Email: "b@example.org", Username: "ada"},
		&account.User{Name: "C", Email: "c@example.org", ID: there.ID},
		&account.User{Name: "D", Email: "d@example.org", ID: 4711, ServiceID: service},
		&account.User{Name: "E", Email: "D@example.org"},
		&account.User{Name: "F", Email: "f@example.org", ServiceID: strings.ToUpper(service)},
		&account.User{Name: "G", Email: "g@example.org", Phone: there.Phone},
		&account.User{Name: "H", Email: "h@example.org", ID: account.MaxID},
		&account.User{Name: "I\x00", Email: "i@example.org"},
		&account.User{Name: "J", Email: "j@example.org"}))
	want := []string{"1: email belongs to another account", "2: username belongs to another account",
		"3: id belongs to another account", "5: email belongs to another account",
		"6: service_id belongs to another account", "7: phone_number belongs to another account",
		"9: line text must be UTF-8 without NUL"}
	if created != 3 || !slices.Equal(refused, want) {
		t.Errorf("got %d created, %q, want 3, %q", created, refused, want)
	}
	d, err := f.User(f.ctx, 4711)
	f.must(err)
	if d.ServiceID != service || d.Name != "D" {
		t.Errorf("got %+v, want the ids that were chosen", d)
	}
	later := f.newUser()
	if j, err := f.UserByEmail(f.ctx, "j@example.org"); err != nil || j.ID <= 4711 || later.ID <= j.ID ||
		later.ID > 5000 {
		t.Errorf("got %+v, %v, then id %d, want ids just above the chosen one", j, err, later.ID)
	}
}

func importDry(t *testing.T, f *fixture) {
	dry := importOf("a", &account.User{Name: "A", Email: "a@example.org", ID: 99},
		&account.User{Name: "B", Email: "A@example.org"})
	dry.Dry = true
	created, refused := f.imported(dry)
	if created != 1 || !slices.Equal(refused, []string{"2: email belongs to another account"}) {
		t.Errorf("got %d, %q, want one created, and one refused", created, refused)
	}
	_, err := f.User(f.ctx, 99)
	f.wantError("after a dry run", err, account.ErrNotFound)
	events, err := f.Events(f.ctx, audit.Filter{Limit: 10})
	f.must(err)
	if later := f.newUser(); len(events) > 0 || later.ID >= 99 {
		t.Errorf("got %v, and id %d, want no trace", events, later.ID)
	}
	dry.Dry = false
	if created, _ := f.imported(dry); created != 1 {
		t.Errorf("got %d created after the dry run, want 1", created)
	}
}

func useSendsNotices(t *testing.T, f *fixture) {
	u := f.fullUser()
	f.must(f.CreateUser(f.ctx, u))
	n := account.Notice{UserID: u.ID, Channel: account.Email, To: u.Email, Made: f.now, At: f.now,
		Kind: account.PasskeyRefused, Count: 1}
	old := *u
	f.must(f.UseCredential(f.ctx, u, n))
	f.wantError("by an old record", f.UseCredential(f.ctx, &old, n), account.ErrConflict)
	due, _, err := f.DueNotices(f.ctx, f.now.Add(time.Minute), 10)
	f.must(err)
	if len(due) != 1 || due[0].Kind != account.PasskeyRefused || due[0].Count != 1 {
		t.Errorf("got the notices %+v, want one of the passkey", due)
	}
}

// passkeyChallengeOnce uses one challenge many times at once, and another after the sweep.
func passkeyChallengeOnce(t *testing.T, f *fixture) {
	hash, ends := newHash(), f.now.Add(5*time.Minute)
	var wait sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wait.Go(func() { errs[i] = f.UsePasskeyChallenge(f.ctx, hash, ends) })
	}
	wait.Wait()
	var used int
	for _, err := range errs {
		if err == nil {
			used++
		} else {
			f.wantError("again", err, account.ErrConflict)
		}
	}
	if used != 1 {
		t.Errorf("got %d uses of one challenge, want one", used)
	}
	f.must(f.UsePasskeyChallenge(f.ctx, newHash(), ends.Add(time.Minute)))
	f.sweep(ends.Add(time.Minute-time.Millisecond), 0)
	f.wantError("before the sweep", f.UsePasskeyChallenge(f.ctx, hash, ends), account.ErrConflict)
	f.sweep(ends.Add(time.Minute), 1)
}
