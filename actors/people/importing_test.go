package people_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/crypto/bcrypt"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

// importedStore calls a hook before it updates a user, once.
type importedStore struct {
	account.Store
	before func()
}

func (s *importedStore) UpdateUser(ctx context.Context, u *account.User) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.UpdateUser(ctx, u)
}

// importUser imports one user and returns the problems.
func (f *fixture) importUser(t *testing.T, u *account.User) []account.RefusedLine {
	t.Helper()
	p := &account.ImportPart{ID: uuid.NewString(), Line: 1,
		Users: []account.ImportedUser{{Line: 1, User: u}}}
	if err := f.ImportUsers(t.Context(), p, time.Now()); err != nil {
		t.Fatal(err)
	}
	return p.Refused
}

// TestFirstSignInOfAnImportedUser replaces the hash, also when the person signs in two times at once.
func TestFirstSignInOfAnImportedUser(t *testing.T) {
	store := &importedStore{}
	f := newFixture(t, func(c *people.Config) { store.Store, c.Store = c.Store, store })
	hash, err := bcrypt.GenerateFromPassword([]byte("short"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"bo@example.com", "cy@example.com"} {
		if refused := f.importUser(t, &account.User{Name: "Bo", Email: email, PasswordHash: string(hash)}); len(refused) > 0 {
			t.Fatalf("got %v, want no refusal", refused)
		}
	}
	signIn := func(email, password string) error {
		_, err := f.SignIn(t.Context(), people.SignIn{Email: email, Password: password}, time.Now())
		return err
	}
	kept := func(email string) string {
		u, err := f.store.UserByEmail(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		return u.PasswordHash
	}
	if err := signIn("bo@example.com", "wrong"); err != people.ErrWrongCredentials || kept("bo@example.com") != string(hash) {
		t.Errorf("got %v, want a wrong password, and the hash as it was", err)
	}
	for range 2 {
		if err := signIn("BO@example.com", "short"); err != nil || !strings.HasPrefix(kept("bo@example.com"), "$argon2id$") {
			t.Errorf("got %v and the hash %s, want a sign-in and an own hash", err, kept("bo@example.com"))
		}
	}
	store.before = func() {
		if err := signIn("cy@example.com", "short"); err != nil {
			t.Errorf("the other sign-in: got %v", err)
		}
	}
	if err := signIn("cy@example.com", "short"); err != nil {
		t.Errorf("two sign-ins at once: got %v, want both", err)
	}
}

func TestImportRefuses(t *testing.T) {
	f := newFixture(t)
	for name, row := range map[string]struct {
		user account.User
		want string
	}{
		"no name":        {account.User{Email: "a@example.com"}, "name is missing"},
		"no address":     {account.User{Name: "A"}, "email or phone_number is needed"},
		"bad address":    {account.User{Name: "A", Email: "a"}, "email is not"},
		"negative id":    {account.User{Name: "A", Email: "a@example.com", ID: -1}, "id must be"},
		"huge id":        {account.User{Name: "A", Email: "a@example.com", ID: account.MaxID + 1}, "id must be"},
		"no uuid":        {account.User{Name: "A", Email: "a@example.com", ServiceID: "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}"}, "service_id must"},
		"costly hash":    {account.User{Name: "A", Email: "a@example.com", PasswordHash: "$2y$15$" + strings.Repeat("a", 53)}, "password_hash costs"},
		"hash, no email": {account.User{Name: "A", Phone: "+14155550199", PasswordHash: "$2y$04$" + strings.Repeat("a", 53)}, "password_hash is of no use"},
		"phone sign-in":  {account.User{Name: "A", Email: "a@example.com", PhoneSignIn: true}, "phone_sign_in needs"},
		"of another":     {account.User{Name: "A", Email: "ANN@example.com"}, "email belongs"},
	} {
		refused := f.importUser(t, &row.user)
		if len(refused) != 1 || !strings.HasPrefix(refused[0].Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, refused, row.want)
		}
	}
}
