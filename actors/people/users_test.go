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
	h := newFixture(t)
	for _, c := range []struct {
		name     string
		user     account.User
		password string
		want     string
	}{
		{"no name", account.User{Email: "b@example.com"}, password, "name is missing"},
		{"no way to sign in", account.User{Name: "Bo"}, "", "email or phone_number is needed"},
		{"no password", account.User{Name: "Bo", Email: "b@example.com"}, "", "password is needed"},
		{"a password alone", account.User{Name: "Bo", Phone: "+14155550123"}, password, "password is of no use"},
		{"a weak password", account.User{Name: "Bo", Email: "b@example.com"}, "1234567890", "too common"},
		{"an address that is taken", account.User{Name: "Bo", Email: "ANN@example.com"}, password, account.ErrTaken.Error()},
	} {
		if u, err := h.CreateUser(t.Context(), c.user, c.password, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", c.name, u, err, c.want)
		}
	}
}

func TestChangesOfUsersReachRequestsAtOnce(t *testing.T) {
	h, now, ctx := newFixture(t), time.Now(), t.Context()
	id := h.ann.ID
	in, bearer := h.mustSignIn(t, password, now), h.token(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	h.wantVerdict(t, "at first", bearer, token.Admitted)
	must(h.DisableUser(ctx, id, now))
	h.wantVerdict(t, "disabled", bearer, token.TokenInvalid)
	h.wantSession(t, "disabled", in.Token, now, false)
	must(h.EnableUser(ctx, id, now))
	h.wantVerdict(t, "enabled", bearer, token.Admitted)
	h.wantSession(t, "enabled", in.Token, now, true)
	u, err := h.UpdateUser(ctx, id, func(u *account.User) error {
		u.Name, u.ID, u.PasswordHash, u.ServiceID = " Bea ", 99, "", ""
		return nil
	}, now)
	if err != nil || u.Name != "Bea" || u.ID != id || u.PasswordHash == "" || u.ServiceID != h.ann.ServiceID {
		t.Errorf("got %+v, %v, want only the name changed", u, err)
	}
	if a := h.tokens.Admit(bearer, token.BasicProfile, now); string(a.Profile) != string(u.AppendBasic(nil)) {
		t.Errorf("got %s, want the new name", a.Profile)
	}
	must(h.tokens.RevokeAll(ctx, &oauth.Revoke{UserID: id}))
	h.wantVerdict(t, "revoked", bearer, token.TokenInvalid)
	h.wantSession(t, "tokens revoked", in.Token, now, true)
	bearer = h.token(t)
	h.wantVerdict(t, "a new one", bearer, token.Admitted)
	must(h.DeleteUser(ctx, id))
	h.wantVerdict(t, "deleted", bearer, token.TokenInvalid)
	h.wantSession(t, "deleted", in.Token, now, false)
	for what, err := range map[string]error{"delete": h.DeleteUser(ctx, id), "disable": h.DisableUser(ctx, id, now)} {
		if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s again: got %v, want account.ErrNotFound", what, err)
		}
	}
}

// TestChangesOfOneUserDoNotUndoEachOther changes different fields at the same time.
func TestChangesOfOneUserDoNotUndoEachOther(t *testing.T) {
	h, now := newFixture(t), time.Now()
	var callers sync.WaitGroup
	for _, change := range []func(*account.User){
		func(u *account.User) { u.Gender = "female" }, func(u *account.User) { u.Bio = "b" }, func(u *account.User) { u.Address = "a" },
		func(u *account.User) { u.PlaceOfBirth = "p" }, func(u *account.User) { u.Username = "ann" },
	} {
		callers.Go(func() {
			if _, err := h.UpdateUser(t.Context(), h.ann.ID, func(u *account.User) error { change(u); return nil }, now); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	u, err := h.User(t.Context(), h.ann.ID)
	if err != nil || u.Gender == "" || u.Bio == "" || u.Address == "" || u.PlaceOfBirth == "" || u.Username == "" {
		t.Errorf("got %+v, %v, want all five changes", u, err)
	}
}
