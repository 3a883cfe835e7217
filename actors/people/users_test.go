package people_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

func TestCreateUserRefuses(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		name     string
		user     account.User
		password string
		want     string
	}{
		{"no name", account.User{Email: "b@example.com"}, password, "name is missing"},
		{"no way to sign in", account.User{Name: "Bo"}, "", "email or phone_number is needed"},
		{"a password alone", account.User{Name: "Bo", Phone: "+14155550123"}, password, "password is of no use"},
		{"a weak password", account.User{Name: "Bo", Email: "b@example.com"}, "1234567890", "too common"},
		{"an address that is taken", account.User{Name: "Bo", Email: "ANN@example.com"}, password, account.ErrTaken.Error()},
	} {
		u, err := f.CreateUser(t.Context(), c.user, c.password, time.Now())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", c.name, u, err, c.want)
		}
	}
}

func TestUserChangesTakeEffectAtOnce(t *testing.T) {
	f, now, ctx := newFixture(t), time.Now(), t.Context()
	id := f.ann.ID
	in, bearer := f.mustSignIn(t, password, now), f.token(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f.wantVerdict(t, "before", bearer, token.Admitted)
	must(f.DisableUser(ctx, id, now))
	f.wantVerdict(t, "disabled", bearer, token.TokenInvalid)
	f.wantSession(t, "disabled", in.Token, now, false)
	must(f.EnableUser(ctx, id, now))
	f.wantVerdict(t, "enabled", bearer, token.Admitted)
	f.wantSession(t, "enabled", in.Token, now, true)
	u, err := f.UpdateUser(ctx, id, func(u *account.User) error {
		u.Name, u.ID, u.PasswordHash, u.ServiceID = " Bea ", 99, "", ""
		return nil
	}, now)
	if err != nil || u.Name != "Bea" || u.ID != id || u.PasswordHash == "" ||
		u.ServiceID != f.ann.ServiceID {
		t.Errorf("got %+v, %v, want only the name changed", u, err)
	}
	a := f.tokens.Admit(bearer, token.BasicProfile, now)
	if string(a.Profile) != string(u.AppendBasic(nil)) {
		t.Errorf("got %s, want the new name", a.Profile)
	}
	must(f.tokens.RevokeAll(ctx, &oauth.Revoke{UserID: id}))
	f.wantVerdict(t, "revoked", bearer, token.TokenInvalid)
	f.wantSession(t, "tokens revoked", in.Token, now, true)
	bearer = f.token(t)
	f.wantVerdict(t, "a new one", bearer, token.Admitted)
	must(f.DeleteUser(ctx, id, now))
	f.wantVerdict(t, "deleted", bearer, token.TokenInvalid)
	f.wantSession(t, "deleted", in.Token, now, false)
	for what, err := range map[string]error{
		"delete": f.DeleteUser(ctx, id, now), "disable": f.DisableUser(ctx, id, now),
	} {
		if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s again: got %v, want account.ErrNotFound", what, err)
		}
	}
}

// TestConcurrentUserUpdates changes different fields at the same time.
func TestConcurrentUserUpdates(t *testing.T) {
	f, now := newFixture(t), time.Now()
	var callers sync.WaitGroup
	for _, change := range []func(*account.User){
		func(u *account.User) { u.Gender = "female" },
		func(u *account.User) { u.Bio = "b" },
		func(u *account.User) { u.Address = "a" },
		func(u *account.User) { u.PlaceOfBirth = "p" },
		func(u *account.User) { u.Username = "ann" },
	} {
		callers.Go(func() {
			_, err := f.UpdateUser(t.Context(), f.ann.ID,
				func(u *account.User) error { change(u); return nil }, now)
			if err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	u, err := f.User(t.Context(), f.ann.ID)
	if err != nil || u.Gender == "" || u.Bio == "" || u.Address == "" || u.PlaceOfBirth == "" ||
		u.Username == "" {
		t.Errorf("got %+v, %v, want all five changes", u, err)
	}
}
