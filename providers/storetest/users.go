package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var userTests = map[string]func(*testing.T, *world){
	"UserIsReadBack":            userIsReadBack,
	"UserIsReplaced":            userIsReplaced,
	"UserIsReplacedOnce":        userIsReplacedOnce,
	"UserIsFoundWithoutCase":    userIsFoundWithoutCase,
	"UserIdentifiersAreUnique":  userIdentifiersAreUnique,
	"UserIDsAreNeverReused":     userIDsAreNeverReused,
	"UserThatIsNotThere":        userThatIsNotThere,
	"UsersComeInPages":          usersComeInPages,
	"UserRegisteredTwiceAtOnce": userRegisteredTwiceAtOnce,
	"AddressClaimedAtOnce":      addressClaimedAtOnce,
	"DeleteUserEndsTheirTokens": deleteUser,
}

func (w *world) fullUser() *account.User {
	return &account.User{
		Name: "Ada Lovelace", Email: "Ada@Example.org", Phone: "+4912345", Username: "Ada", Gender: "female", Bio: "Line\nbreak 🧮",
		PlaceOfBirth: "London", DateOfBirth: "1815-12-10", Address: "St James's Square", ProfilePicture: "https://x.example/a.png",
		PasswordHash: "$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA", Created: w.now, Updated: w.now.Add(time.Second),
	}
}

func (w *world) sameUser(want *account.User) {
	w.Helper()
	got, err := w.User(w.ctx, want.ID)
	w.must(err)
	if !reflect.DeepEqual(got, want) {
		w.Errorf("got %+v, want %+v", got, want)
	}
}

func userIsReadBack(t *testing.T, w *world) {
	u := w.fullUser()
	w.must(w.CreateUser(w.ctx, u))
	if u.ID < 1 || u.ID >= 1<<53 || len(u.ServiceID) != 36 {
		t.Errorf("got id %d and service id %q, want a number from 1 to 2^53-1 and a UUID", u.ID, u.ServiceID)
	}
	w.sameUser(u)
	w.sameUser(w.user)
}

func userIsReplaced(t *testing.T, w *world) {
	u := w.fullUser()
	w.must(w.CreateUser(w.ctx, u))
	changed := *u
	changed.Email, changed.Phone, changed.Username = "new@example.org", "", "ADA"
	changed.Disabled, changed.Bio, changed.Updated = true, "", w.now.Add(time.Hour)
	w.must(w.UpdateUser(w.ctx, &changed))
	w.sameUser(&changed)
	_, err := w.UserByEmail(w.ctx, u.Email)
	w.gone("old e-mail address", err, account.ErrNotFound)
	_, err = w.UserByPhone(w.ctx, u.Phone)
	w.gone("old phone number", err, account.ErrNotFound)
	if got, err := w.UserByEmail(w.ctx, "new@example.org"); err != nil || got.ID != u.ID {
		t.Errorf("new e-mail address: got %v, error %v, want user %d", got, err, u.ID)
	}
}

func userIsReplacedOnce(t *testing.T, w *world) {
	u := w.fullUser()
	w.must(w.CreateUser(w.ctx, u))
	first, second := *u, *u
	first.PasswordHash, second.Disabled = "", true
	w.must(w.UpdateUser(w.ctx, &first))
	w.gone("change of what was read before another", w.UpdateUser(w.ctx, &second), account.ErrConflict)
	w.sameUser(&first)
	for _, version := range []int64{-1, 7} {
		ahead := first
		ahead.Version = version
		w.gone("change of a version that there is not", w.UpdateUser(w.ctx, &ahead), account.ErrConflict)
	}
	if second.Version != u.Version {
		t.Errorf("version after a refused change: got %d, want %d", second.Version, u.Version)
	}
	second = first
	second.Disabled = true
	w.must(w.UpdateUser(w.ctx, &second))
	w.sameUser(&second)
}

func userIsFoundWithoutCase(t *testing.T, w *world) {
	u := w.fullUser()
	w.must(w.CreateUser(w.ctx, u))
	for _, email := range []string{"Ada@Example.org", "ada@example.org", "ADA@EXAMPLE.ORG"} {
		got, err := w.UserByEmail(w.ctx, email)
		w.must(err)
		if !reflect.DeepEqual(got, u) {
			t.Errorf("%s: got %+v, want %+v", email, got, u)
		}
	}
	got, err := w.UserByPhone(w.ctx, "+4912345")
	w.must(err)
	if got.ID != u.ID {
		t.Errorf("phone: got user %d, want %d", got.ID, u.ID)
	}
}

func userIdentifiersAreUnique(t *testing.T, w *world) {
	w.must(w.CreateUser(w.ctx, w.fullUser()))
	other := w.newUser()
	for what, change := range map[string]func(*account.User){
		"e-mail":   func(u *account.User) { u.Email = "aDA@example.ORG" },
		"phone":    func(u *account.User) { u.Phone = "+4912345" },
		"username": func(u *account.User) { u.Username = "aDA" },
	} {
		u := &account.User{Name: "Eve"}
		change(u)
		w.gone("create with the same "+what, w.CreateUser(w.ctx, u), account.ErrTaken)
		if u.ID != 0 || u.ServiceID != "" {
			t.Errorf("%s: got id %d, want none", what, u.ID)
		}
		changed := *other
		change(&changed)
		w.gone("update to the same "+what, w.UpdateUser(w.ctx, &changed), account.ErrTaken)
	}
	w.sameUser(other)
}

func userIDsAreNeverReused(t *testing.T, w *world) {
	first := w.newUser()
	_, err := w.DeleteUser(w.ctx, first.ID)
	w.must(err)
	if second := w.newUser(); second.ID <= first.ID {
		t.Errorf("after %d: got id %d", first.ID, second.ID)
	}
}

func userThatIsNotThere(t *testing.T, w *world) {
	for _, id := range []int64{0, -1, 4711, 1 << 60} {
		_, err := w.User(w.ctx, id)
		w.gone(fmt.Sprintf("user %d", id), err, account.ErrNotFound)
		_, err = w.DeleteUser(w.ctx, id)
		w.gone(fmt.Sprintf("delete user %d", id), err, account.ErrNotFound)
	}
	for _, s := range []string{"", "nobody@example.org", "a\x00b", "\xff"} {
		_, err := w.UserByEmail(w.ctx, s)
		w.gone(fmt.Sprintf("e-mail %q", s), err, account.ErrNotFound)
		_, err = w.UserByPhone(w.ctx, s)
		w.gone(fmt.Sprintf("phone %q", s), err, account.ErrNotFound)
	}
	w.gone("update", w.UpdateUser(w.ctx, &account.User{ID: 4711, Name: "Nobody"}), account.ErrNotFound)
	if err := w.CreateUser(w.ctx, &account.User{Name: "a\x00b"}); err == nil {
		t.Error("user whose name holds a NUL: got no error")
	}
}

func usersComeInPages(t *testing.T, w *world) {
	want := []*account.User{w.user}
	for range 6 {
		want = append(want, w.newUser())
	}
	var got []*account.User
	for after := int64(0); ; after = got[len(got)-1].ID {
		page, err := w.Users(w.ctx, after, 3)
		w.must(err)
		if len(page) > 3 {
			t.Fatalf("got %d users, want 3 at most", len(page))
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d users, want the %d that were made, in order", len(got), len(want))
	}
}

func userRegisteredTwiceAtOnce(t *testing.T, w *world) {
	const racers = 16
	errs := make([]error, racers)
	var ended sync.WaitGroup
	for i := range errs {
		ended.Go(func() { errs[i] = w.CreateUser(w.ctx, w.fullUser()) })
	}
	ended.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
			continue
		}
		w.gone("create", err, account.ErrTaken)
	}
	if made != 1 {
		t.Errorf("got %d users, want 1", made)
	}
}

func addressClaimedAtOnce(t *testing.T, w *world) { ClaimAtOnce(t, []account.Store{w}) }

// ClaimAtOnce has new users and users who are there claim one e-mail address, phone number and username at once, through stores that are on one
// database: one gets them, and the others hear that they are taken.
func ClaimAtOnce(t *testing.T, stores []account.Store) {
	t.Helper()
	for round := range 5 {
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

func deleteUser(t *testing.T, w *world) {
	c := w.newCrowd()
	session := &account.Session{Hash: newHash(), UserID: c.users[0].ID, Expires: w.now.Add(time.Hour)}
	w.must(w.CreateSession(w.ctx, session))
	tokens, err := w.DeleteUser(w.ctx, c.users[0].ID)
	w.must(err)
	ended := make([]oauth.Hash, len(tokens))
	for i, hash := range tokens {
		ended[i] = hash
	}
	w.revoked("delete", ended,
		c.family[0][0].Access.Hash, c.family[0][1].Access.Hash, c.direct[0][0].Hash, c.direct[0][1].Hash)
	_, err = w.User(w.ctx, c.users[0].ID)
	w.gone("user", err, account.ErrNotFound)
	_, err = w.Session(w.ctx, session.Hash)
	w.gone("session", err, account.ErrNotFound)
	_, err = w.RefreshToken(w.ctx, *c.family[0][0].Refresh)
	w.gone("refresh token", err, oauth.ErrNotFound)
	_, err = w.AuthorizationCode(w.ctx, c.family[0][0].Code)
	w.gone("used code", err, oauth.ErrNotFound)
	gone := func(user, _ int) bool { return user == 0 }
	c.check(w, gone)
	c.consents(w, gone)
}
